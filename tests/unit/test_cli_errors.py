"""Mistakes that a user can make: one line that helps, a documented exit code, never a traceback."""

from __future__ import annotations

import io
import socket
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from shlex import quote, split

import click
import pytest
from verbs import empty_directory, python, run  # noqa: F401

from trexbench.cli import main
from trexbench.cli.options import complete_duts, complete_suites
from trexbench.doctor import host

pytestmark = pytest.mark.usefixtures("empty_directory")

NOBODY = "--dut netgate-vpp --mode 64b --no-apply -q --server 127.0.0.1 --rpc-port 1"
"""There is no server, and none is asked."""
RAMP, SATURATE = f"ramp {NOBODY}", f"saturate {NOBODY}"
SIMULATED = "ramp --dut netgate-vpp --mode 64b --sim -q"
SIZES = "search --dut netgate-vpp --sim --sizes"
WAN = "tcp --bdp --dut lab-linux --sim --wan 20ms"
LABELS = "2026-03-01", "latest", "a b", "x" * 65, "../x"
DOCUMENTED = {1, 2, 5, 6, 7, 8, 9, 10, 130, 143}


def fails(line: str, code: int, *words: str) -> None:
    """It says one line on standard error, with these words, and nothing else."""
    ended, out, err = run(*split(line))
    assert (ended, out) == (code, "") and code in DOCUMENTED, err
    assert err.startswith("trexbench: ") and err.count("\n") == 1 and err.endswith("\n"), err
    for word in words:
        assert word in err


MISTAKES: list[tuple[str, ...]] = [
    ("bogus", "no command 'bogus'", "there are ramp, search, saturate, ", "results"),
    ("--bogus", "--bogus"),
    ("lab bogus", "no command 'bogus': there are calibrate, down, ", "lab --help"),
    ("profle", "no command 'profle': did you mean lab profile?"),
    (f"{RAMP} --bidri", "--bidir"),
    ("suite plan netgate-610", "unknown suite 'netgate-610': did you mean netgate-6100?"),
    ("ramp", "--dut", "ramp --help"),
    (f"{RAMP} stray", "stray"),
    ("ramp --dut netgate-vp --mode 64b", "unknown DUT 'netgate-vp': did you mean netgate-vpp?"),
    ("ramp --dut GL-AR150 --mode 64b", "unknown DUT 'GL-AR150': did you mean gl-ar150?"),
    ("ramp --dut netgate-vpp --mode nope", "unknown mode 'nope'", "var2-64b", "1flow", "imix"),
    ("ramp --dut netgate-vpp", "var2-64b"),
    ("ramp --dut netgate-vpp --mode ./mine.py", "./mine.py is not a mode: name a file of your own with --profile"),
    (f"{RAMP} --profile bench", "--mode and --profile exclude each other"),
    ("ramp --dut netgate-vpp --profile nofile.py", "unknown profile 'nofile'", "bench"),
    ("dut new mine --driver linux --interfaces a,b,c -o -", "3 interfaces, 2 ports of the tester", "--ports"),
    (f"{RAMP} --configs-dir nowhere", "nowhere", "not there"),
    (f"{RAMP} --ports 0,1,2", "3 port(s) make no pairs"),
    ("ramp --dut raspberry-pi --mode 64b --sim", "raspberry-pi.yaml names no ports for packets", "trexbench tcp"),
    (f"{RAMP} --ports a,b", "ports 'a,b'"),
    (f"{RAMP} -t size", "tunable 'size'"),
    (f"{RAMP} --loss 1", "share '1'", "1%", "0.01"),
    (f"{RAMP} --sample 1ms", "50ms to 10s"),
    (f"{RAMP} --ramp-duration 1", "too short to see saturation"),
    (f"{RAMP} --warmup=1kpps:", "--warmup"),
    (f"{SATURATE} --rate 120%", "over line rate"),
    (f"{SATURATE} --ramp-to 50%", "--ramp-to"),
    ("ramp --dut netgate-vpp --mode 64b --seed 3", "--seed means nothing without --sim"),
    ("lab serve --interfaces p0,p1 --rx-queues 2", "--rx-queues means nothing without --sim"),
    (f"{SIMULATED} --server trex1", "--sim and --server exclude each other"),
    (f"{RAMP} --server=", "--server", "'' is not a host name or address"),
    (f"{SIMULATED} --no-apply", "--sim and --no-apply exclude each other"),
    (f"{SIMULATED} --rx-queues 4", "its config offers 1, 2, 3"),
    (f"{SIMULATED} --speedup 0.5", "speedup"),
    (f"{SIMULATED} --speedup nan", "--speedup of nan: name a number above 0"),
    (f"{SIMULATED} -t direction=1", "tunable direction: trexbench sets it itself"),
    ("ramp --dut netgate-vpp --sim --mode 64b-v6 -q", "sends IPv6, but the ports have no IPv6 address"),
    (f"{SIZES} rfc2544 --mode 64b", "leave out --mode and --profile"),
    (f"{SIZES} rfc2544 -t size=65", "exclude each other"),
    (f"{SIZES} 64,64", "is repeated"),
    (f"{SIZES} 63", "name a size from 64 to 9216"),
    (f"{SIZES} 64,imix", "write sizes as 64,512,1518, or rfc2544"),
    ("efficiency --dut lab-linux --sim --telemetry off", "nothing to report"),
    ("tcp --dut netgate-vpp --time 4s", "endpoints:"),
    ("tcp --dut raspberry-pi --sim --time 1s", "--time"),
    ("tcp --dut raspberry-pi --sim --variant nope", "nope"),
    ("tcp --dut raspberry-pi --sim --forward --reverse", "exclude each other"),
    ("tcp --dut raspberry-pi --sim --brief --json", "exclude each other"),
    ("tcp --bdp --dut lab-linux --sim", "lab-linux has no WAN: there is no BDP: state one: --wan 20ms,1gbit"),
    (f"{WAN},1gbit --sweep --buffers 1mb", "--sweep and --buffers exclude each other"),
    (f"{WAN},1gbit --buffers 5gb", "--buffers of 5000000000 B: use 4096 to 2147483647"),
    (f"{WAN},1gbit --cc 'Cubic x'", "--cc: 'Cubic x' is not a congestion control"),
    (f"{WAN},1gbit --factor 0", "--factor of 0"),
    (f"{WAN},1gbit --both --ip both", "one version of IP: leave --both and --ip both out"),
    ("tcp --dut raspberry-pi --sim --factor 0", "--factor means nothing without --bdp"),
    ("lab calibrate --sim --prefix tbx2", "--prefix means nothing without --dut", "name the DUT"),
    ("doctor --rx-queues 2", "--rx-queues means nothing without --dut", "name the DUT"),
    ("report --watch --format md", "--watch writes no file"),
    ("report --port 8000", "--port means nothing without --watch: add --watch, or leave it out"),
    ("report --format csv", "a file for each table"),
    ("report --markdown r.md", "--markdown: a report is written in one form at a time: use --format md -o FILE"),
    ("dut record netgate-vpp -o -", "written to a file only"),
    ("regress --acknowledge a --metric power --note x --format md", "--format means nothing with --acknowledge"),
    ("regress --known --junit x --only 'a *'", "--junit, --only means nothing with --known"),
    ("regress -o x.md --junit ./x.md", "two outputs cannot share a file"),
    ("dut plan netgate-vpp --prefix tbx9", "netgate-vpp has no lab"),
    ("results list --since yesterday", "is not a date"),
    ("results prune", "--keep-nights N or --before DATE"),
    ("results prune --keep-nights 3 --before 2026-01-01", "give either --keep-nights N or --before DATE"),
    ("results export x.json -o y/", "Missing option '--loadtest'"),
    ("ramp --dut netgate-vpp --mode 64b --sim -o absent/x.md", "absent does not exist"),
    ("suite run netgate-6100 --sim -o /", "/ is a directory"),
    ("--json dut list", "--json belongs after dut"),
    ("lab down --prefix Up/there", "'Up/there' is not a prefix for namespaces"),
    ("suite run netgate-6100 --date 2999-01-01 --server 127.0.0.1", "lies in the future: name the day on which the"),
    (
        "report -o x.pdf",
        "x.pdf: no form has this ending: take .html, .htm, .md, .json, .csv, or name one with --format",
    ),
    ("results query 'select 1' -o x.parquet", "x.parquet: no form has this ending: take .md, .json, .csv, or name one"),
    (f"{SIMULATED} --windows 1001", "1<=x<=1000"),
    ("dut new ../mine --driver none", "cannot be the name"),
    *((f"{SIMULATED} --label {quote(word)}", "would not be found again") for word in LABELS),
    (f"{SIMULATED} --results file:///tmp/store", "only whole nights can be stored at an address"),
    ("suite run lab --fleet local:2", "--fleet local:2 has simulated testers only: add --sim"),
    ("suite run lab --sim --fleet local:0", "not a number of testers from 1 to 64: write it as local:3"),
    ("regress --github", "--github: annotations are no longer printed: use --format md"),
    ("regress --acknowledge x --note y --forget 1", "exclude each other"),
    ("regress --metric power", "--acknowledge"),
]
"""Words after ``trexbench``, and what its line says of them."""


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake[0])
def test_a_mistake_is_told_in_a_line_before_anything_is_touched(mistake: tuple[str, ...]) -> None:
    fails(mistake[0], 2, *mistake[1:])
    assert {path.name for path in Path().iterdir()} <= {"run", "results"} and not [*Path().glob("results/*")]


def test_no_server_on_a_closed_port() -> None:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    fails(f"{RAMP} --rpc-port {port}", 5, f"no TRex server at 127.0.0.1:{port}")
    fails(f"{RAMP} --server no.such.host.invalid", 5, "no.such.host.invalid")


@pytest.mark.parametrize("verb", ["results show", "results export --loadtest -o out.json"])
def test_files_that_are_no_runs(verb: str) -> None:
    fails(f"{verb} nofile.json", 9, "nofile.json")
    Path("run.json").write_text("{}")  # what else may be in one: test_documents
    fails(f"{verb} run.json", 9, "run.json")


def test_completion_says_nothing_of_a_directory_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREXBENCH_SUITES", "/nowhere")
    monkeypatch.setenv("TREXBENCH_DUT_CONFIGS", "/nowhere")
    param = click.Argument(["name"])
    found = [complete(click.Context(click.Command("x")), param, "la") for complete in (complete_suites, complete_duts)]
    assert [[item.type for item in items] for items in found] == [["file"], []]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_an_error_wraps_on_a_terminal_only_and_keeps_the_place_in_one_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    (tmp_path / "a-long-name.yaml").write_text("driver: linux\ntransport: {type: lokal}\nports: [{tester: 0}]\n")
    line = "dut show ./a-long-name.yaml"
    fails(line, 2, "a-long-name.yaml:2: transport.type: 'lokal' is not known: write one of")
    with pytest.raises(SystemExit), redirect_stderr(Terminal()) as seen:
        main(line.split())
    assert seen.getvalue().splitlines()[:2] == ["trexbench:", "  a-long-name.yaml:2: transport.type:"]


@pytest.mark.parametrize(
    ("name", "value", "coloured"), [("A", "b", True), ("NO_COLOR", "1", False), ("TERM", "dumb", False)]
)
def test_checks_have_colours_unless_they_are_unwanted(
    name: str, value: str, coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "LOOK_S", 0.01)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as ended, redirect_stdout(Terminal()) as seen:
        main(["doctor", "--server", "127.0.0.1", "--rpc-port", "1"])
    assert ("\x1b[" in seen.getvalue()) is coloured and "other load" in seen.getvalue()
    assert ended.value.code == 5 and "t-rex-64 -i --stl" in seen.getvalue(), "the remedy for a missing server"


def test_a_new_config_asks_nothing_where_standard_input_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert run("dut", "new", "box").code == 0


def test_as_a_process_of_its_own() -> None:
    """Make a mistake through the interpreter: nothing but the line, and the code is the process's."""
    mistake = "ramp", "--dut", "nope", "--mode", "64b"
    done = python("from trexbench.cli import main; main()", *mistake, PATH="/usr/bin:/bin")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("trexbench: unknown DUT 'nope'")
