"""Every documented command is run: simulated where its verb can, in a directory that has what it reads."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from glob import glob
from pathlib import Path

import pytest
from documented import documented, examples, options, printed
from page_states import SLOWER, VPP, change, store_night
from tools import ROOT, succeed, trexbench

pytestmark = pytest.mark.nightly

LINES = sorted({line for _, line in (*documented(), *examples())})
LEFT_OUT = {
    r"lab up": "makes namespaces: tests/root/test_commands_in_the_lab.py",
    r"lab down": "makes namespaces: tests/root/test_commands_in_the_lab.py",
    r"lab image.*|(ramp|tcp) --dut lab-vm-.*": "starts QEMU: tests/root/test_lab_vm.py",
    r"lab up --trex-dir .*": "needs TRex: tests/root/test_trex_in_the_lab.py",
    r"dut (apply|plan|revert|telemetry|verify) netgate-vpp.*": "uses ssh: tests/commands/test_dut_at_a_prompt.py",
    r"dut new my-router .*": "uses ssh: tests/commands/test_dut_new.py",
    r"doctor --(dut netgate-vpp|server trex1\.lab).*": "asks hosts that nobody knows: tests/commands/test_doctor.py",
    r"tcp --dut lab-linux --tunnel .*": "no twin has this tunnel: tests/root/test_tunnels_in_the_lab.py",
    r"suite run vpn-tunnel-2020 --dut lab-linux .*": "no twin has this tunnel: tests/root/test_tunnels_in_the_lab.py",
    r"lab serve --interfaces .*": "sends on real interfaces: tests/root/test_engine_kernel.py",
    r"lab serve --sim .*": "serves until it is ended: tests/commands/test_sim.py",
    r"fleet (scheduler|worker .*|status.*)": "serves until it is ended: tests/root/test_fleet_page.py",
    r"(nightly .* --fleet fleet.yaml|fleet calibrate .*) --results /srv/.*": "in /srv: tests/root/test_fleet_page.py",
    r"report --watch": "serves until it is ended: tests/commands/test_watch.py",
}
"""Commands that are not run (a regular expression of the whole line) -> the reason."""
REWRITES = {" --server trex1.lab": "", " --no-apply": "", "10gbit theirs/": "1gbit theirs/"}
"""Words of an example that belong to another machine -> what stands for them here."""
CODES = {
    "doctor": (0, 5),  # no TRex server here
    "dut record netgate-pfsense.*": (6,),  # nobody knows that host
    "regress": (3,),  # there is a regression
    "regress --suite netgate-6100 .*": (4,),  # one night is too few to judge
}
"""Regular expression of the whole line -> exit codes, where there are others than 0."""
TWO_CELLS = """
duts: [{name: netgate-vpp, rx_queues: 1}]
modes: [1flow-64b]
directions: [uni, bidir]
plan: {latency: 10s}
"""
"""Stands for the forty of the suite netgate-6100."""
SIMULATED = ("--sim", "--speedup 10000")
PREPARED = (
    "ramp --dut lab-linux --mode 64b --bidir --label kernel-6.12 --sim --speedup 10000",
    "ramp --dut lab-linux --mode 64b --bidir --label kernel-6.18 --sim --speedup 10000",
    "tcp --dut lab-linux --sim --speedup 10000",
    "suite run home-routers-2022 --sim --speedup 10000",
    "suite run raspberry-pi-2015 --date 2026-11-21 --sim --speedup 10000",
    "suite run netgate-6100 --sim --speedup 10000",
    "regress --acknowledge 'netgate-vpp var2-imix*' --metric latency --note expected",
)


def runnable(line: str) -> str:
    """The line as it is run here."""
    for theirs, ours in REWRITES.items():
        line = line.replace(theirs, ours)
    can = options(shlex.split(line))
    for addition in SIMULATED:
        option = addition.split()[0]
        if option in can and option not in line:
            line += f" {addition}"
    return line


def left_out(line: str) -> bool:
    return any(re.fullmatch(pattern, line) for pattern in LEFT_OUT)


COMMANDS = {runnable(line): line for line in LINES if not left_out(line)}


def words_of(line: str, place: Path) -> list[str]:
    """The line's words as a shell in this directory makes them."""
    pairs = zip(shlex.split(line), shlex.split(line, posix=False), strict=True)
    return [one for word, typed in pairs for one in sorted(glob(typed, root_dir=place)) or [word]]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with two weeks of nights, the last of them slower, and the files that examples name."""
    place = tmp_path_factory.mktemp("prepared")
    results, files = place / "results", ROOT / "tests" / "fixtures" / "iperf3"
    shutil.copytree(ROOT / "suites", place / "suites")
    (place / "suites" / "netgate-6100.yaml").write_text(TWO_CELLS)
    change(place)
    store_night(results, "2026-11-21", VPP, {"netgate-vpp": SLOWER})
    for line in PREPARED:
        succeed(place, *shlex.split(line))
    (night,) = (results / "nights").glob("*-netgate-6100.json")
    record = json.loads(night.read_text())
    record["cells"][-1] |= {"state": "waiting", "attempts": []}
    night.write_text(json.dumps({**record, "finished": None}))
    measured = results / "2026-11-21" / "lab-linux"
    next(results.glob("*/lab-linux")).rename(measured)
    run = next(measured.glob("*-bidir.json"))
    for name in ("before", "after", "run"):
        shutil.copy(run, place / f"{name}.json")
    succeed(place, "results", "export", "--loadtest", str(run), "-o", "theirs/")
    for name, theirs in {"upload": "forward", "download": "reverse", "theirs": "forward"}.items():
        shutil.copy(files / f"{theirs}.json", place / f"{name}.json")
    shutil.copy(ROOT / "stl_profiles" / "bench.py", place / "mine.py")
    configs = (ROOT / "docs" / "configs.md").read_text(encoding="utf-8")
    (place / "my-router.yaml").write_text(
        configs.partition("`dut_configs/my-router.yaml`:\n\n```yaml\n")[2].partition("```")[0]
    )
    fleet = (ROOT / "docs" / "fleet.md").read_text(encoding="utf-8")
    (place / "fleet.yaml").write_text(fleet.partition("`fleet.yaml`:\n\n```yaml\n")[2].partition("```")[0])
    (place / "dut_configs").mkdir()
    shutil.copy(ROOT / "dut_configs" / "gl-ar150.yaml", place / "dut_configs" / "home-router.yaml")
    return place


@pytest.mark.parametrize("line", COMMANDS)
def test_it_ends_as_it_should(line: str, prepared: Path, tmp_path: Path) -> None:
    place = tmp_path / "here"
    shutil.copytree(prepared, place)
    done = trexbench(place, *words_of(line, place), timeout_s=500)
    expected = next((codes for pattern, codes in CODES.items() if re.fullmatch(pattern, line)), (0,))
    assert done.returncode in expected and "Traceback" not in done.stderr, done.stderr
    shown = "\n".join(" ".join(one.split()) for one in done.stdout.splitlines())
    assert [one for command, one in printed() if command == COMMANDS[line] and one not in shown] == []


@pytest.mark.parametrize("pattern", LEFT_OUT)
def test_what_is_left_out_is_documented(pattern: str) -> None:
    assert any(re.fullmatch(pattern, line) for line in LINES)
    assert (ROOT / LEFT_OUT[pattern].rpartition(": ")[2]).exists()


def test_no_row_of_a_table_is_dead() -> None:
    for pattern in CODES:
        assert any(re.fullmatch(pattern, line) for line in COMMANDS), pattern
    for theirs in REWRITES:
        assert any(theirs in line for line in LINES), theirs
    assert len(COMMANDS) > 100
