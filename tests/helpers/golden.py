"""Reduce what every verb says about a directory of runs to figures: no wording, no raw counters, no order of keys.

``python tests/helpers/golden.py`` rewrites the figures of documents-v1.tar.xz, for a change of the analysis.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import lzma
import os
import re
import sys
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
DOCUMENTS, FIGURES = FIXTURES / "documents-v1.tar.xz", FIXTURES / "documents-v1.figures.json.xz"
DERIVED = ("status", "analysis", "total_pps", "at_least", "latency", "efficiency", "losses")
WORDS = (
    "status",
    "limit",
    "limited_by",
    "phase",
    "direction",
    "dut",
    "mode",
    "cell",
    "metric",
    "path",
    "night",
    "since",
)
"""Texts that decide what a figure is of; all others are wording."""


def unpack(to: Path) -> Path:
    with tarfile.open(DOCUMENTS) as archive:
        archive.extractall(to)
    return to / "documents-v1"


def documents(results: Path) -> list[str]:
    found = [path for path in results.glob("20*/*/*.json") if not path.name.endswith(".loadtest.json")]
    return sorted(str(path.relative_to(results)) for path in found)


def leaves(value: Any, at: str = "") -> dict[str, Any]:
    """Every number, truth value and absence in it, and the texts of WORDS, by its place."""
    if isinstance(value, dict):
        return {place: leaf for key, one in value.items() for place, leaf in leaves(one, f"{at}/{key}").items()}
    if isinstance(value, list):
        return {place: leaf for key, one in enumerate(value) for place, leaf in leaves(one, f"{at}/{key}").items()}
    known = not isinstance(value, str) or at.rpartition("/")[2] in WORDS
    return {at: value} if known else {}


def of_show(text: str) -> dict[str, Any]:
    document = json.loads(text)
    part = {name: document[name] for name in DERIVED}
    part["measured"] = document["spread"]["measured"]
    part["doubts"] = len(document["warnings"])
    return leaves(part)


def of_export(text: str) -> dict[str, Any]:
    document = json.loads(text)
    plain = json.dumps([f"{one:.9g}" if isinstance(one, float) else one for one in leaves(document["stats"]).values()])
    return leaves(document["vars"]) | {"stats": hashlib.sha256(plain.encode()).hexdigest()}


def of_query(text: str) -> dict[str, Any]:
    return leaves({row["path"]: row | {"nodes": json.loads(row["nodes"])} for row in json.loads(text)})


def of_report(text: str) -> dict[str, Any]:
    """The tables' numbers in three digits: how many are shown is wording."""
    tables = [re.sub(r"(?<=\d)\s(?=\d{3}\b)", "", line) for line in text.splitlines() if line.startswith("|")]
    found = (re.findall(r"\d+(?:\.\d+)?", line) for line in tables)
    return {str(number): " ".join(f"{float(one):.3g}" for one in line) for number, line in enumerate(found)}


def figures(results: Path, call: Callable[[Sequence[str]], tuple[int, str]]) -> dict[str, Any]:
    """By verb. call: a command line -> exit code and standard output."""
    place, found = ["--results", str(results)], dict[str, Any]()
    for path in documents(results):
        found[f"show {path}"] = of_show(call(["results", "show", str(results / path), "--json"])[1])
        export = results / "export.json"
        call(["results", "export", "--loadtest", str(results / path), "-o", str(export)])
        found[f"export {path}"] = of_export(export.read_text())
        export.unlink()
    listed = json.loads(call(["results", "list", *place, "--json"])[1])["runs"]
    found["results list"] = leaves({row["path"]: row for row in listed})
    found["results query"] = of_query(call(["results", "query", *place, "--json", "select * from runs"])[1])
    code, said = call(["regress", *place, "--json"])
    found["regress"] = leaves(json.loads(said)) | {"code": code}
    page = results / "report.md"
    call(["report", *place, "--format", "md", "-o", str(page)])
    found["report"] = of_report(page.read_text())
    page.unlink()
    return found


def call(arguments: Sequence[str]) -> tuple[int, str]:
    from trexbench.cli import main

    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            main(arguments)
    except SystemExit as ended:
        return int(ended.code or 0), said.getvalue()
    return 0, said.getvalue()


def load() -> dict[str, Any]:
    """analysis_version: of which these are the ``figures``."""
    found: dict[str, Any] = json.loads(lzma.decompress(FIGURES.read_bytes()))
    return found


def save(version: int, found: dict[str, Any]) -> None:
    text = json.dumps({"analysis_version": version, "figures": found}, sort_keys=True)
    FIGURES.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


if __name__ == "__main__":
    sys.path.insert(0, str(FIXTURES.parents[1]))
    from trexbench.core.result import ANALYSIS_VERSION

    os.umask(0o022)
    with tempfile.TemporaryDirectory() as folder:
        save(ANALYSIS_VERSION, figures(unpack(Path(folder)), call))
