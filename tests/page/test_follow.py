"""A page that ``trexbench report --watch`` serves loads itself again when a run has ended, and keeps its view."""

from __future__ import annotations

import re
import signal
from pathlib import Path

from browser import Page
from report_nights import CELLS, store_night
from tools import begin


def test_it_renews_itself_and_keeps_the_choice(chromium: Page, tmp_path: Path) -> None:
    results = tmp_path / "results"
    store_night(results, "2026-11-19", CELLS)
    process = begin(tmp_path, "report", "--watch")
    assert process.stderr is not None
    try:
        found = re.search(r"http://\S+/", process.stderr.readline())
        assert found is not None
        chromium.open(found[0])
        chromium.choose(mode="imix", traffic="bidir")
        version = chromium.evaluate("document.getElementById('now').dataset.version")
        assert chromium.evaluate("document.getElementById('now').hidden"), "no night is under way"
        store_night(results, "2026-11-20", CELLS)
        now = "document.getElementById('now') && document.documentElement.dataset.ready"
        chromium.wait(f"{now} && document.getElementById('now').dataset.version !== '{version}'")
        assert chromium.evaluate("document.body.textContent.includes('2026-11-20')")
        assert chromium.evaluate("document.getElementById('mode').value") == "imix"
        assert chromium.said == []
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        chromium.wait("document.getElementById('now').textContent.startsWith('No answer from trexbench')")
        assert {one for one in chromium.asked if not one.startswith((found[0], "data:"))} == set()
    finally:
        process.kill()
        process.communicate()
