"""docs/reference is what the code says today, and stored documents hold nothing that it leaves out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from golden import FIXTURES, documents, unpack
from reference import ALIKE, FOLDER_OF_PAGES, PACKETS, PAGES, TCP, Part, keys_of, page

import trexbench

FREE = ("command", "dut", "host", "generator", "profiles", "endpoints", "program", "asked_pps", "histogram", "info")
"""Objects whose keys are the system's, the options', or numbers."""
PLACES = {part.place for part in (*PACKETS, *TCP)}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_the_code_says(name: str) -> None:
    stored = (FOLDER_OF_PAGES / f"{name}.md").read_text(encoding="utf-8")
    assert stored == page(name), "python tests/helpers/reference.py rewrites it"


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("yaml", r"\bNone\b|`True`"),
        ("documents", r"\bNone\b"),
        ("options", r"\de\+\d"),
        ("python", r"(?m)^### \w+\n\n##"),
    ],
)
def test_a_page_speaks_of_what_its_reader_sees(name: str, wrong: str) -> None:
    assert not re.search(wrong, page(name))


def test_defaults_and_further_keywords_are_in_the_reference() -> None:
    assert "| Number of parallel connections. Default: 1. |" in page("options")
    assert "load_rows(results='results', **filters) -> list" in page("python")


def test_no_page_is_left_over() -> None:
    assert {file.stem for file in FOLDER_OF_PAGES.glob("*.md")} == {*PAGES}


def objects(value: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each object of a document with its place, but for those of FREE."""
    for one, other in ALIKE.items():
        if place == one:
            place = other
    if isinstance(value, dict):
        yield place, value
        for key, each in value.items():
            if key not in FREE or (place.endswith("]") and isinstance(each, list)):
                yield from objects(each, f"{place}.{key if f'{place}.*' not in PLACES else '*'}".lstrip("."))
    for each in value if isinstance(value, list) else ():
        yield from objects(each, f"{place}[]")


def undescribed(document: dict[str, Any], parts: Sequence[Part]) -> set[str]:
    """Keys that the reference does not have at their places."""
    known: dict[str, set[str]] = {}
    for part in (*PACKETS[1:], *parts):
        known.setdefault(part.place, set()).update(keys_of(part))
    return {
        f"{place}.{key}"
        for place, value in objects(document)
        if f"{place}.*" not in PLACES
        for key in {*value} - known.get(place, set())
    }


def test_stored_packets_are_described(tmp_path: Path) -> None:
    results = unpack(tmp_path)
    runs = [trexbench.load_run(str(results / name)) for name in documents(results) if "-tcp-" not in name]
    assert len(runs) > 10
    for run in runs:
        document = msgspec.to_builtins({**run.without_readings(), **run.readings()}, str_keys=True)
        assert undescribed(document, PACKETS) == set(), run.id


def test_stored_tcp_is_described() -> None:
    run = trexbench.load_tcp(str(FIXTURES / "tcp-v1.json"))
    document = msgspec.to_builtins({**run.without_readings(), **run.readings()}, str_keys=True)
    assert undescribed(document, TCP) == set()
