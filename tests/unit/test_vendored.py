"""The plotting library that is part of the package: with its licence, of a known version, named in one place."""

from __future__ import annotations

import re
from pathlib import Path

from trexbench.report.page.templates import read_static
from trexbench.review.report import load_library

ROOT = Path(__file__).resolve().parents[2]


def test_the_library_has_its_licence_beside_it_and_its_version_in_its_head() -> None:
    head = load_library()[:400]
    assert re.search(r"plotly\.js \(basic - minified\) v\d+\.\d+\.\d+\n", head) and "MIT license" in head
    licence = read_static("plotly-basic.LICENSE")
    assert "MIT License" in licence and "Plotly" in licence and "without warranty of any kind" in licence.lower()


def test_the_documents_name_the_version_that_is_there() -> None:
    version = re.search(r" v(\d+\.\d+\.\d+)", load_library()[:400])
    assert version and f"plotly.js basic {version[1]}" in (ROOT / "docs" / "reports.md").read_text(encoding="utf-8")


def test_only_one_function_names_the_file() -> None:
    named = [path for path in (ROOT / "trexbench").rglob("*.py") if "plotly-basic" in path.read_text(encoding="utf-8")]
    assert [path.name for path in named] == ["report.py"] and named[0].read_text().count("plotly-basic.min.js") == 1
