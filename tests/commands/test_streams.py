"""Whatever becomes of standard output and error: what is measured is kept, and the exit code tells the truth."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import termios
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from effort import NIGHTLY
from tools import TREXBENCH, environment, folder_with, shared_forks, trexbench

from suites import ONE

RAMP = (
    "ramp --dut netgate-vpp --mode 64b --sim --speedup 10000 --no-picture "
    "--warmup 10kpps:2s --ramp-duration 8 --hold 3 --confirm 2 --latency 0"
)
TCP = "tcp --dut raspberry-pi --sim --speedup 10000 --time 4s --ping 0 --no-picture"
LOST = "trexbench: standard output is lost: "


def shell(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    """A line of shell in which ``trexbench`` is ours."""
    return subprocess.run(
        ["bash", "-c", f'set -o pipefail; trexbench() {{ "{TREXBENCH[0]}" -m "{TREXBENCH[2]}" "$@"; }}; {command}'],
        cwd=folder,
        env=environment(folder / "run"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )


def statuses(folder: Path) -> list[str]:
    return [json.loads(path.read_text())["status"] for path in sorted(folder.glob("results/*/*/*.json"))]


FULL = (1, LOST + "No space left on device")
RUNS = {
    f"{RAMP} 2>/dev/full": (0, ""),
    f"{RAMP} >&-": (1, LOST + "it is closed"),
    f"{RAMP} 2>&1 | head -1": (141, ""),
    f"{TCP} >/dev/full": FULL,
}
"""Where the streams of a command lead -> its exit code, and the last line of standard error."""
NIGHTS = {">&- 2>&-": 1}
if NIGHTLY:
    RUNS |= {f"{RAMP} >&- 2>&- <&-": (1, ""), f"{RAMP} 2>&-": (0, "")}
    RUNS |= {f"{RAMP} >/dev/full": FULL, f"{TCP} >&-": (1, LOST + "it is closed")}
    RUNS[f"{TCP} 2>&1 | head -1"] = (141, "")
    NIGHTS |= {"2>&1 | head -2": 141, ">/dev/null 2>/dev/full": 0, ">/dev/full": 1}


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, subprocess.CompletedProcess[str]]]:
    """Every command line that redirects, with its directory: as many at once as there are cores."""
    lines = [*RUNS, *(f"nightly one --sim {where}" for where in NIGHTS)]
    folders = [folder_with(tmp_path_factory.mktemp("streams"), one=ONE) for _ in lines]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        done = pool.map(shell, folders, [f"trexbench {line}" for line in lines])
        return dict(zip(lines, zip(folders, done, strict=True), strict=True))


@pytest.mark.parametrize("line", RUNS)
def test_a_run_is_kept_whatever_becomes_of_its_streams(
    ended: dict[str, tuple[Path, subprocess.CompletedProcess[str]]], line: str
) -> None:
    (folder, done), (code, said) = ended[line], RUNS[line]
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr and "defect" not in done.stderr
    assert not said or done.stderr.splitlines()[-1] == said
    assert statuses(folder) == ["complete"]


@pytest.mark.parametrize("where", NIGHTS)
def test_a_night_is_measured_to_its_end_whatever_becomes_of_its_streams(
    ended: dict[str, tuple[Path, subprocess.CompletedProcess[str]]], where: str
) -> None:
    folder, done = ended[f"nightly one --sim {where}"]
    assert done.returncode == NIGHTS[where]
    assert statuses(folder) == ["complete"] and (folder / "results" / "report.html").is_file()
    (night,) = (folder / "results" / "nights").glob("*.json")
    cells: Any = json.loads(night.read_text())["cells"]
    assert [cell["state"] for cell in cells] == ["done"]
    assert "defect" not in done.stderr and "Traceback" not in done.stderr


def stopped_terminal() -> list[int]:
    """A terminal on which Ctrl-S was pressed."""
    master, slave = pty.openpty()
    termios.tcflow(slave, termios.TCOOFF)
    return [slave, master]


def test_a_terminal_that_takes_nothing_delays_no_run(tmp_path: Path) -> None:
    ends = stopped_terminal()
    done = subprocess.run(
        [*TREXBENCH, *RAMP.split()],
        cwd=tmp_path,
        env={**environment(tmp_path / "run"), "TERM": "xterm"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=ends[0],
        timeout=120,
    )
    for end in ends:
        os.close(end)
    assert done.returncode == 0
    assert statuses(tmp_path) == ["complete"] and b"the DUT saturated" in done.stdout


def on_a_full_disk(folder: Path, *arguments: str) -> tuple[int, str]:
    """Exit code and standard error of a command whose standard output finds no room."""
    forks, said = shared_forks(), folder / "said"
    forks.begin(folder, arguments, Path("/dev/full"), said)
    return forks.exit_code(), said.read_text()


@pytest.mark.parametrize(
    "command", ["--help", "suite list", *(["ramp --help", "dut list", "results list"] if NIGHTLY else [])]
)
def test_what_cannot_be_printed_ends_in_one_line(tmp_path: Path, command: str) -> None:
    (tmp_path / "results").mkdir()
    assert on_a_full_disk(tmp_path, *command.split()) == (1, LOST + "No space left on device\n")


def test_what_failed_keeps_its_exit_code(tmp_path: Path) -> None:
    code, said = on_a_full_disk(tmp_path, "ramp", "--dut", "nothing", "--mode", "64b", "--sim")
    assert code == 2 and "unknown DUT 'nothing'" in said


def test_a_profile_that_ends_the_program_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "exits.py").write_text("import sys\nsys.exit(0)\n")
    done = trexbench(tmp_path, "ramp", "--dut", "netgate-vpp", "--sim", "--profile", "./exits.py", "-q")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stderr
    assert "profile exits.py ends the program (SystemExit(0))" in done.stderr


@pytest.mark.parametrize("file", ["pipe.yaml", "/dev/zero"])
def test_a_file_that_never_ends_is_not_read(tmp_path: Path, file: str) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    done = trexbench(tmp_path, "dut", "show", file)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stderr
