"""Every documented command is run: simulated where its verb can be, in a directory with what it reads."""

from __future__ import annotations

import gzip
import json
import re
import shlex
import shutil
from glob import glob
from pathlib import Path

import pytest
from documented import documented, examples, options
from flents import rrul
from page_states import SLOWER, VPP, change, store_night
from tools import ROOT, trexbench

pytestmark = pytest.mark.nightly

LEFT_OUT = {
    r"lab .*": "makes namespaces: tests/root/test_lab.py",
    r"serve .*": "runs until it is ended: tests/commands/test_sim.py, tests/root/test_lab.py",
    r"calibrate --(dut|server) .*": "needs a lab or a TRex: tests/root/test_ramp_in_the_lab.py",
    r"doctor --(dut netgate-vpp|server) ?.*": "asks a DUT or a TRex: tests/commands/test_doctor.py",
    r"dut (apply|plan|revert|telemetry|verify) .*": "asks a DUT by ssh: tests/commands/test_dut_over_ssh.py",
    r"dut new .*": "asks a DUT by ssh: tests/commands/test_dut_new.py",
    r"profile pcap .* -o - .*": "prints no text: tests/unit/test_cli_details.py",
    r"(tcp .*--tunnel|suite run vpn-tunnel-2020 --dut) .*": "no twin: tests/root/test_tunnels_in_the_lab.py",
}
"""Regular expression of whole commands that are not run -> why, and what runs them."""
REWRITES = {
    " --server trex1.lab": "",
    " --no-apply": "",
    "/var/lib/node_exporter/": "",
    "--dut home-router ": "--dut gl-ar150 ",
}
"""What an example has of a bench of its own -> what stands for it here."""
SIMULATED = {"--sim": "--sim", "--speedup": "--speedup 10000"}
"""Option that a verb may have -> what is added if the example does not give it."""
CODES = {
    r"(compare|regress|nightly|report) ?.*": (0, 3, 4),
    r"doctor.*": (0, 5),
    r".* --resume": (2,),
}
"""Regular expression of a command -> its exit codes, where 0 is not the only one.

A night is slower, there are too few nights to say so, the tester that is examined is not there, or there is no night
to resume.
"""
PREPARED = (
    "ramp --dut lab-linux --mode 64b --bidir --sim --speedup 10000 --label kernel-6.12",
    "ramp --dut lab-linux --mode 64b --bidir --sim --speedup 10000 --label kernel-6.18",
    "tcp --dut lab-linux --sim --speedup 10000",
    "suite run home-routers-2022 --sim --speedup 10000",
    "suite run raspberry-pi-2015 --sim --speedup 10000 --date 2026-11-21",
    "suite run netgate-6100 --sim --speedup 10000 --only '*vpp*64b uni*' --date 2026-11-20",
    "regress --acknowledge 'netgate-vpp var2-imix*' --note known",
)
"""Commands whose results others read."""


def left_out(line: str) -> bool:
    return any(re.fullmatch(pattern, line) for pattern in LEFT_OUT)


def runnable(line: str) -> str:
    """The line as it is run here."""
    for theirs, ours in REWRITES.items():
        line = line.replace(theirs, ours)
    takes = options(shlex.split(line))
    added = [more for option, more in SIMULATED.items() if option in takes and option not in line]
    return " ".join([line, *added])


def words_of(line: str, place: Path) -> list[str]:
    """The line's words as a shell in this directory makes them."""
    pairs = zip(shlex.split(line), shlex.split(line, posix=False), strict=True)
    return [name for word, typed in pairs for name in sorted(glob(typed, root_dir=place)) or [word]]


LINES = sorted({line for _, line in (*documented(), *examples())})


def write_files(place: Path) -> None:
    """Files that examples name."""
    iperf3 = ROOT / "tests" / "fixtures" / "iperf3"
    for name, source in (("upload", "forward"), ("download", "reverse"), ("theirs", "forward")):
        shutil.copy(iperf3 / f"{source}.json", place / f"{name}.json")
    (place / "rrul-2026-11-20T101500.flent.gz").write_bytes(gzip.compress(json.dumps(rrul()).encode()))
    shutil.copy(ROOT / "stl_profiles" / "bench.py", place / "mine.py")
    shutil.copytree(ROOT / "suites", place / "suites")
    shutil.copy(ROOT / "dut_configs" / "netgate-linux.yaml", place / "my-router.yaml")
    (measured,) = place.glob("results/*/lab-linux")
    shutil.copytree(measured, place / "results" / "2026-11-21" / "lab-linux", dirs_exist_ok=True)
    runs = sorted(measured.glob("*-bidir.json"))
    for name, run in zip(("before", "after", "run"), (*runs, runs[0]), strict=False):
        shutil.copy(run, place / f"{name}.json")
    done = trexbench(place, "export", "--loadtest", str(runs[0]), "-o", "theirs/")
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with two weeks of nights, the latest of them slower, runs of TCP, and files of other programs."""
    place = tmp_path_factory.mktemp("prepared")
    change(place)
    store_night(place / "results", "2026-11-21", VPP, {"netgate-vpp": SLOWER})
    for line in PREPARED:
        done = trexbench(place, *shlex.split(line))
        assert done.returncode == 0, (line, done.stderr)
    write_files(place)
    return place


@pytest.mark.parametrize("line", [line for line in LINES if not left_out(line)])
def test_it_ends_as_it_should(line: str, prepared: Path, tmp_path: Path) -> None:
    place = tmp_path / "here"
    shutil.copytree(prepared, place)
    done = trexbench(place, *words_of(runnable(line), place), timeout_s=550)
    allowed = next((codes for pattern, codes in CODES.items() if re.fullmatch(pattern, line)), (0,))
    assert done.returncode in allowed and "Traceback" not in done.stderr, done.stderr


@pytest.mark.parametrize("pattern", [*LEFT_OUT, *CODES])
def test_every_row_is_of_a_documented_command(pattern: str) -> None:
    assert any(re.fullmatch(pattern, line) for line in LINES)


@pytest.mark.parametrize("text", REWRITES)
def test_every_rewrite_is_of_a_documented_command(text: str) -> None:
    assert any(text in line for line in LINES)
