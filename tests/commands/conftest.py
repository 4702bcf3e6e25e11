"""Twelve nights, measured once for every test that judges them: a change told after two takes ten before it."""

from __future__ import annotations

import pytest
from tools import folder_with, trexbench

from suites import FOUR, TwelveNights, make_slower


@pytest.fixture(scope="session")
def twelve_nights(tmp_path_factory: pytest.TempPathFactory) -> TwelveNights:
    folder = folder_with(tmp_path_factory.mktemp("twelve"), four=FOUR)
    dates = [f"2026-11-{day:02}" for day in range(9, 21)]
    done = []
    for date in dates:
        if date == dates[-2]:
            make_slower(folder, 1.05)
        done.append(trexbench(folder, "nightly", "four", "--sim", "-q", "--date", date, "--seed", "7"))
    return TwelveNights(folder, dates, dates[-2], done)
