"""Mistakes that a user can make: one line that helps, a documented exit code, never a traceback."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import click
import pytest

from trexbench.cli import main
from trexbench.cli.options import complete_duts, complete_suites

pytestmark = pytest.mark.portable

ROOT = Path(__file__).resolve().parents[2]
RAMP = ("ramp", "--dut", "netgate-vpp", "--mode", "64b", "--no-apply", "-q")
SATURATE = ("saturate", *RAMP[1:])
DOCUMENTED = {1, 2, 5, 6, 7, 8, 9, 130, 143}


@pytest.fixture(autouse=True)
def in_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Configs and profiles are the checkout's; locks and results go where the test looks."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TREXBENCH_RUN_DIR", str(tmp_path / "run"))
    for name in ("TREXBENCH_DUT_CONFIGS", "TREXBENCH_STL_PROFILES", "TREXBENCH_TREX_DIR"):
        monkeypatch.delenv(name, raising=False)


def run(arguments: Sequence[str], capfd: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit code, and what it said on stderr; nothing may stand on stdout."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    out, err = capfd.readouterr()
    assert out == "" and "Traceback" not in err
    assert isinstance(ended.value.code, int)
    return ended.value.code, err


def fails(arguments: Sequence[str], code: int, words: Sequence[str], capfd: pytest.CaptureFixture[str]) -> None:
    ended, err = run(arguments, capfd)
    assert ended == code and code in DOCUMENTED, err
    assert err.startswith("trexbench: ") and err.count("\n") == 1 and err.endswith("\n"), err
    for word in words:
        assert word in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("bogus",), ["no command 'bogus'", "there are ramp, search, saturate, ", "compare", "serve"]),
        (("--bogus",), ["--bogus"]),
        (("lab", "bogus"), ["bogus"]),
        (("ramp",), ["--dut", "ramp --help"]),
        ((*RAMP, "--bogus"), ["--bogus"]),
        ((*RAMP, "stray"), ["stray"]),
        (("ramp", "--dut", "nope", "--mode", "64b"), ["unknown DUT 'nope'", "lab-linux", "netgate-vpp"]),
        (("ramp", "--dut", "netgate-vp", "--mode", "64b"), ["netgate-vpp"]),
        (("ramp", "--dut", "no/such.yaml", "--mode", "64b"), ["no/such.yaml: No such file"]),
        (("ramp", "--dut", "netgate-vpp", "--mode", "nope"), ["unknown mode 'nope'", "var2-64b", "1flow", "imix"]),
        (("ramp", "--dut", "netgate-vpp", "--mode", "64"), ["did you mean"]),
        (("ramp", "--dut", "netgate-vpp"), ["var2-64b"]),
        ((*RAMP, "--profile", "bench"), ["--mode and --profile exclude each other"]),
        (("ramp", "--dut", "netgate-vpp", "--profile", "nofile.py"), ["unknown profile 'nofile'", "bench"]),
        (("profile", "show", "nope"), ["unknown mode 'nope'", "var2-64b"]),
        (("dut", "show", "nope"), ["unknown DUT 'nope'", "lab-linux"]),
        ((*RAMP, "--configs-dir", "nowhere"), ["nowhere", "not there"]),
    ],
)
def test_unknown_names_list_the_known_ones(
    arguments: Sequence[str], words: Sequence[str], capfd: pytest.CaptureFixture[str]
) -> None:
    fails(arguments, 2, words, capfd)


@pytest.mark.parametrize("option", ["--ramp-to", "--warmup"])
@pytest.mark.parametrize(
    "rate",
    ["0pps", "-1kpps", "1e6pps", "120%", "fast", "1 .5kpps", "nan", "nanpps", "", "5", "1kpps:", "9" * 400 + "pps"],
)
def test_nonsense_rates(option: str, rate: str, capfd: pytest.CaptureFixture[str]) -> None:
    fails((*RAMP, f"{option}={rate}"), 2, [option], capfd)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((*RAMP, "--ports", "0,0"), ["a port is named twice in 0,0"]),
        ((*RAMP, "--ports", "0"), ["1 port(s) make no pairs"]),
        ((*RAMP, "--ports", "0,1,2"), ["3 port(s) make no pairs"]),
        ((*RAMP, "--ports", "a,b"), ["ports 'a,b'"]),
        ((*RAMP, "--ports", "-1,0"), ["ports '-1,0'"]),
        ((*RAMP, "--ports", ""), ["ports ''"]),
        ((*RAMP, "-t", "size"), ["tunable 'size'"]),
        ((*RAMP, "-t", "size=64,"), ["tunable ''"]),
        ((*RAMP, "-t", "=64"), ["tunable '=64'"]),
        ((*RAMP, "--loss", "2"), ["share '2'"]),
        ((*RAMP, "--loss", "1"), ["share '1'", "1%", "0.01"]),
        ((*RAMP, "--loss", "nan"), ["share 'nan'"]),
        ((*RAMP, "--windows", "0"), ["--windows"]),
        ((*RAMP, "--windows", "x"), ["--windows"]),
        ((*RAMP, "--sample", "1ms"), ["50ms to 10s"]),
        ((*RAMP, "--hold", "-1"), ["duration '-1'"]),
        ((*RAMP, "--ramp-duration", "forever"), ["duration 'forever'"]),
        ((*RAMP, "--ramp-duration", "1"), ["too short to see saturation"]),
        ((*RAMP, "--warmup", "1kpps:1s"), ["is shorter than two samples"]),
        ((*RAMP, "--rpc-port", "99999"), ["--rpc-port"]),
        ((*SATURATE, "--rate", "120%"), ["over line rate"]),
        ((*SATURATE, "--hold", "2"), ["--hold of 2 s is too short"]),
        ((*SATURATE, "--ramp-to", "50%"), ["--ramp-to"]),
    ],
)
def test_nonsense_options(arguments: Sequence[str], words: Sequence[str], capfd: pytest.CaptureFixture[str]) -> None:
    """Refused before anything is touched: no server answers here, and none is asked."""
    fails(
        (*arguments, "--server", "127.0.0.1", "--rpc-port", "1") if "99999" not in arguments else arguments,
        2,
        words,
        capfd,
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("driver: linux\n  ports: [", [":2:", "malformed YAML"]),
        ("ports: [1, 2", ["malformed YAML"]),
        ("\ttab: 1\n", ["malformed YAML"]),
        ("- a list\n", ["dut.yaml"]),
        ("", ["dut.yaml"]),
        ("drivr: linux\n", ["dut.yaml", "drivr"]),
        ("driver: toaster\n", ["dut.yaml"]),
        ("a: &a [*a]\n", ["dut.yaml"]),
        ("\x00", ["dut.yaml"]),
    ],
)
def test_malformed_configs(text: str, words: Sequence[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "dut.yaml").write_text(text)
    fails(("ramp", "--dut", "./dut.yaml", "--mode", "64b"), 2, words, capfd)


def test_a_contradiction_names_the_line_of_the_config(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "dut_configs" / "netgate-vpp.yaml").read_text()
    (tmp_path / "dut.yaml").write_text(text.replace("driver: vpp", "driver: 7"))
    fails(("ramp", "--dut", "./dut.yaml", "--mode", "64b"), 2, ["dut.yaml:", "driver"], capfd)


def test_no_server_on_a_closed_port(capfd: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    fails((*RAMP, "--server", "127.0.0.1", "--rpc-port", str(port)), 5, [f"no TRex server at 127.0.0.1:{port}"], capfd)


def test_no_such_server(capfd: pytest.CaptureFixture[str]) -> None:
    fails((*RAMP, "--server", "no.such.host.invalid"), 5, ["no.such.host.invalid"], capfd)


@pytest.mark.parametrize("verb", [("show",), ("export", "--loadtest", "-o", "out.json")])
def test_files_that_are_no_runs(verb: Sequence[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    fails((*verb, "nofile.json"), 9, ["nofile.json"], capfd)
    for text in ("", "{", "[]", "{}", "[" * 100_000, '{"schema": "trexbench/run", "version": 99}', "\x00\xff"):
        (tmp_path / "run.json").write_text(text)
        fails((*verb, "run.json"), 9, ["run.json"], capfd)


def test_completion_says_nothing_of_a_directory_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREXBENCH_SUITES", "/nowhere")
    monkeypatch.setenv("TREXBENCH_DUT_CONFIGS", "/nowhere")
    param = click.Argument(["name"])
    found = [complete(click.Context(click.Command("x")), param, "la") for complete in (complete_suites, complete_duts)]
    assert [[item.type for item in items] for items in found] == [["file"], []]


def test_the_group_alone_shows_its_help(capfd: pytest.CaptureFixture[str]) -> None:
    for arguments in ((), ("lab",), ("profile",), ("dut",)):
        with pytest.raises(SystemExit):
            main(arguments)
        out, err = capfd.readouterr()
        assert "Usage: trexbench" in out + err and "\nCommands:" in out + err


def test_as_a_process_of_its_own(tmp_path: Path) -> None:
    """Make a mistake through the interpreter: nothing but the line, and the code is the process's."""
    script = [sys.executable, "-c", "from trexbench.cli import main; main()"]
    done = subprocess.run(
        [*script, "ramp", "--dut", "nope", "--mode", "64b"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("trexbench: unknown DUT 'nope'")


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    sh = shutil.which("sh")
    assert sh is not None
    command = f'"{sys.executable}" -c "from trexbench.cli import main; main()" profile show 64b | true'
    done = subprocess.run(
        [sh, "-c", command],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "Traceback" not in done.stderr and "BrokenPipe" not in done.stderr
