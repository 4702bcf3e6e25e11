"""Twelve nights, measured once for every test that judges them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from .tools import ROOT, folder_with, trexbench

FOUR = """
duts: [{name: netgate-vpp, rx_queues: 1}, netgate-linux]
modes: [64b]
directions: [uni, bidir]
plan: {warmup: 10kpps:2s, ramp_to: 40%, ramp_duration: 60s, hold: 5s, confirm: 5s}
"""


@dataclass(frozen=True)
class TwelveNights:
    """Of the suite ``four`` of two cells each of two DUTs; from ``slower_from`` on VPP's twin needs 5 % more cycles.

    folder: with ``results``, which is everybody's: who changes them works in a copy. done: the command of each night.
    """

    folder: Path
    dates: Sequence[str]
    slower_from: str
    done: Sequence[subprocess.CompletedProcess[str]]


def make_slower(folder: Path, factor: float) -> None:
    """From here on VPP's twin needs so much longer for every packet."""
    (folder / "dut_configs").mkdir()
    text = (ROOT / "dut_configs" / "netgate-vpp.yaml").read_text()
    keys = r"^(  (?:cycles_per_packet|cycles_per_vector|cycles_per_fetch): )([0-9.]+)"
    found, count = re.subn(keys, lambda match: f"{match[1]}{float(match[2]) * factor:.2f}", text, flags=re.MULTILINE)
    assert count == 3
    (folder / "dut_configs" / "netgate-vpp.yaml").write_text(found)


@pytest.fixture(scope="session")
def twelve_nights(tmp_path_factory: pytest.TempPathFactory) -> TwelveNights:
    folder = folder_with(tmp_path_factory.mktemp("twelve"), four=FOUR)
    dates = [f"2026-11-{day:02}" for day in range(9, 21)]
    done = []
    for date in dates:
        if date == dates[10]:
            make_slower(folder, 1.05)
        done.append(trexbench(folder, "nightly", "four", "--sim", "-q", "--date", date, "--seed", "7"))
    return TwelveNights(folder, dates, dates[10], done)
