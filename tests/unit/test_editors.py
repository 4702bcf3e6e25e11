"""JSON schemas for editors: they take every file that is shipped, and no key or word that the readers refuse."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from jsonschema import Draft7Validator

from trexbench.config.draft import Draft
from trexbench.config.editors import FOLDER, KINDS, schema_text
from trexbench.config.yamltree import Value, parse, read_text

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
