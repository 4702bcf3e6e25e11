"""The report of 40 cells and a year of nights: time to make it, size, and time until Chromium shows it.

    python benchmarks/report.py [--cells 40] [--nights 365] [--samples 660] [--keep report.html] [--beside other.html]

The rows are made here (an index would deliver them); the latest documents of all cells and those of the older nights
that are laid beside them are real files and are read as the verb reads them. Opening: from the begin of the
navigation, the median of five: until the first text is there; until the page has loaded, which is when the plots in
sight are drawn, at its top and at its trends (the largest plot); and until every plot is drawn. Cold is the first page
of a new Chromium, whose own start is not in it, warm the same page once more. --beside: another page, opened in turns
with this one; one of another version is what that version's benchmarks/report.py leaves with --keep (before plots out
of sight waited, a page had loaded only when all were drawn). Aim: made in under 10 s, below 1 MB, loaded cold in
under 1 s. Only the size fails the benchmark: seconds are this machine's, a night compares the ratios.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from _ratios import Options, leave_out, note, options, yardstick_s
from browser import Page, find_chromium, open_chromium
from year import SUITE, make_report

from trexbench.report.page.html import render
from trexbench.report.page.templates import LIBRARY, read_static

ROUNDS = 5
SIZE = 1440, 900
MOST_MADE_S, MOST_MB, MOST_COLD_S = 10.0, 1.0, 1.0
TIMES = """[performance.getEntriesByName('first-contentful-paint')[0].startTime,
  performance.getEntriesByType('navigation')[0].loadEventEnd, Number(document.documentElement.dataset.ready)]"""


def open_in_turns(program: str, pages: Sequence[Path]) -> dict[Path, tuple[float, ...]]:
    """The medians of the seconds until each page shows text, has loaded and has all plots, cold; all plots, warm; and
    until it has loaded at its trends, cold.
    """
    taken: dict[Path, list[tuple[float, ...]]] = {path: [] for path in pages}
    for _ in range(ROUNDS):
        for path in pages:
            address = path.resolve().as_uri()
            with open_chromium(program) as browser:
                cold, warm = opening(browser, address), opening(browser, address)
            with open_chromium(program) as browser:
                trends = opening(browser, f"{address}#at=trends")
            taken[path].append((*cold, warm[2], trends[1]))
    return {path: tuple(map(statistics.median, zip(*some, strict=True))) for path, some in taken.items()}


def opening(browser: Page, address: str) -> list[float]:
    """Seconds until there is text, until the page has loaded, until all plots are drawn."""
    browser.size(*SIZE)
    browser.open(address)
    return [ms / 1000 for ms in browser.evaluate(TIMES)]


def main() -> int:
    given = options(__doc__, cells=40, nights=365, samples=660, keep=Path, beside=[Path])
    with tempfile.TemporaryDirectory() as place:
        path = given.keep or Path(place) / "report.html"
        made_s = make(Path(place) / "results", path, given)
        print(f"made in {made_s:.2f} s; aim under {MOST_MADE_S:g} s: {made_s < MOST_MADE_S}")
        program = find_chromium()
        pages = [path, *given.beside]
        opened = open_in_turns(program, pages) if program is not None else {}
        for one in pages:
            size = one.stat().st_size / 1e6
            times = (
                "text {:.2f} s, loaded {:.2f} s, all plots {:.2f} s (warm {:.2f} s), at trends {:.2f} s".format(
                    *opened[one]
                )
                if opened
                else "no Chromium here"
            )
            print(f"{'this page' if one == path else one.name:<24} {size:6.2f} MB  {times}")
        small = path.stat().st_size < MOST_MB * 1e6
        print(f"aim: below {MOST_MB:g} MB: {small}")
        note(f"page / {MOST_MB:g} MB", path.stat().st_size / MOST_MB / 1e6, noise=0.02)
        if opened:
            _text, top_s, _all, _warm, trends_s = opened[path]
            soon = {name: seconds < MOST_COLD_S for name, seconds in (("at its top", top_s), ("at trends", trends_s))}
            print(f"aim: loaded cold in under {MOST_COLD_S:g} s: " + ", ".join(f"{n} {ok}" for n, ok in soon.items()))
            note("loaded / all plots, cold", opened[path][1] / opened[path][2], noise=0.3)
        else:
            leave_out("loaded / all plots, cold", "no Chromium here")
        return int(not small)


def make(results: Path, path: Path, given: Options) -> float:
    """Seconds from reading the documents until the page is there."""
    report, read_s, older_s, read_cpu_s = make_report(results, given.cells, given.nights, given.samples)
    library = read_static(LIBRARY)
    begun, cpu = time.monotonic(), time.process_time()
    path.write_text(render(report, library), encoding="utf-8")
    made_s, cpu_s = time.monotonic() - begun, time.process_time() - cpu
    many = sum(len(one) for one in report.older.values())
    load = os.getloadavg()[0]
    note("page made, CPU / yardstick", cpu_s / yardstick_s(), noise=0.3)
    print(f"{SUITE}: {len(report.rows)} rows of {given.cells} cells, {len(report.runs)} documents; load {load:.1f}")
    print(f"documents read {read_s:5.2f} s; {many} older ones {older_s:5.2f} s (both {read_cpu_s:.2f} s of CPU)")
    print(f"page made      {made_s:5.2f} s ({cpu_s:.2f} s of CPU)")
    return made_s + read_s + older_s


if __name__ == "__main__":
    sys.exit(main())
