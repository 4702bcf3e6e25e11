"""docs/reference and the schemas for editors are what the code says today, and lack nothing stored or shipped."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
import pytest
from golden import FIXTURES, documents, unpack
from jsonschema import Draft7Validator
from reference import ALIKE, FOLDER_OF_PAGES, PACKETS, PAGES, TCP, Part, keys_of, page

import trexbench
from trexbench.config.draft import Draft
from trexbench.config.editors import FOLDER, KINDS, schema_text
from trexbench.config.yamltree import Value, parse, read_text

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


ROOT = Path(__file__).parents[2]
SHIPPED = [
    *(("dut", path) for path in sorted(ROOT.glob("dut_configs/**/*.yaml"))),
    *(("suite", path) for path in sorted(ROOT.glob("suites/*.yaml"))),
]


def as_json(value: Value) -> Any:
    """The value as an editor sees it, by the rules of YAML 1.2."""
    if isinstance(value.raw, Mapping):
        return {key: as_json(inner) for key, inner in value.raw.items()}
    if isinstance(value.raw, str):
        plain = re.fullmatch(r"true|false|-?[0-9]+(\.[0-9]+)?", value.raw)
        return json.loads(value.raw) if plain and not re.match(r"-?0[0-9]", value.raw) else value.raw
    return [as_json(item) for item in value.raw or ()]


@cache
def validator(kind: str) -> Draft7Validator:
    return Draft7Validator(json.loads(schema_text(kind)))


def misfits_of(kind: str, value: Value) -> list[str]:
    errors = validator(kind).iter_errors(as_json(value))
    return [f"{error.json_path}: {error.message}" for error in errors]


@pytest.mark.parametrize("kind", KINDS)
def test_the_shipped_schema_is_what_the_readers_say(kind: str) -> None:
    shipped = (FOLDER / f"{kind}.json").read_text()
    assert shipped == schema_text(kind), "run: python -m trexbench.config.editors"


@pytest.mark.parametrize(("kind", "path"), SHIPPED, ids=[path.stem for _, path in SHIPPED])
def test_every_shipped_file_fits(kind: str, path: Path) -> None:
    assert misfits_of(kind, parse(path, read_text(path, kind))) == []


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("driver: linux", "driver: linus", "$.driver: 'linus' is not one of"),
        ("description:", "descriptoin:", "$: Additional properties are not allowed ('descriptoin'"),
        ("interface: d0", "interface: 0d", "$.ports[0]: "),
        ("prefix: tbx", "prefix: Tbx", "$.lab.prefix: 'Tbx' does not match"),
    ],
)
def test_an_editor_marks_what_the_readers_refuse(old: str, new: str, where: str) -> None:
    text = (ROOT / "dut_configs/lab-linux.yaml").read_text()
    assert old in text
    (said,) = misfits_of("dut", parse(Path("lab.yaml"), text.replace(old, new, 1)))
    assert said.startswith(where)


def test_a_new_config_names_its_schema_first() -> None:
    first, *_ = Draft("linux").text().splitlines()
    named = re.fullmatch(r"# yaml-language-server: \$schema=file://(/\S+)", first)
    assert named is not None and json.loads(Path(unquote(named[1])).read_text())["$ref"] == "#/definitions/DutConfig"
