"""Compare what a report's page saves as CSV, table by table, with the files of ``report --csv``."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path

from browser import Page

LINKS = """Array.from(document.querySelectorAll('a.csv')).map(function (link) { return link.download; })"""
BARE = """Array.from(document.querySelectorAll('table')).filter(function (table) { return !table.closest('.sheet'); })
  .map(function (table) { return [table.className, Array.from(table.querySelectorAll('tbody tr')).map(function (row) {
    return Array.from(row.cells).map(function (cell) { return cell.textContent.trim(); }); })]; })"""
SAVED = """(function (name) {
  document.querySelectorAll('button.whole:not([hidden])').forEach(function (one) { one.click(); });
  var found, was = URL.createObjectURL;
  URL.createObjectURL = function (blob) { found = blob; return '#'; };
  var link = document.querySelector('a.csv[download="' + name + '"]');
  link.addEventListener('click', function (event) { event.preventDefault(); });
  link.click();
  URL.createObjectURL = was;
  return found.text();
})"""


def check_page(chromium: Page, path: Path, files: Mapping[str, str]) -> None:
    """All tables of the page against these CSV files; those of changes and facts have one file for all of them."""
    chromium.said.clear()
    chromium.open(path.as_uri())
    links = chromium.evaluate(LINKS)
    assert sorted(links) == sorted(files.keys() - {"changes.csv", "facts.csv"})
    for name in links:
        assert chromium.evaluate(f"{SAVED}('{name}')") == files[name], name
    for kind, rows in chromium.evaluate(BARE):
        assert kind in ("figures", "facts")
        if kind == "facts":
            found, known = rows, [row[1:] for row in rows_of(files["facts.csv"])]
        else:  # cell, nights, since; a metric's row has one cell
            found = [[row[0], *row[4:6]] for row in rows if len(row) > 1]
            known = [[row[1], *row[8:10]] for row in rows_of(files["changes.csv"])]
        assert found and all(row in known for row in found), (kind, found, known)
    assert chromium.said == []


def rows_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))
