"""JSON schemas for editors: they take every file that is shipped, and no key or word that the readers refuse."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from trexbench.config.draft import Draft
from trexbench.config.editors import FOLDER, KINDS, schema_text
from trexbench.config.yamltree import Value, load, parse

ROOT = Path(__file__).parents[2]
SHIPPED = [
    *(("dut", path) for path in sorted(ROOT.glob("dut_configs/**/*.yaml"))),
    *(("suite", path) for path in sorted(ROOT.glob("suites/*.yaml"))),
]
TYPES = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool}


def as_json(value: Value) -> Any:
    """The value as an editor sees it, by the rules of YAML 1.2."""
    if isinstance(value.raw, Mapping):
        return {key: as_json(inner) for key, inner in value.raw.items()}
    if isinstance(value.raw, str):
        plain = re.fullmatch(r"true|false|-?[0-9]+(\.[0-9]+)?", value.raw)
        return json.loads(value.raw) if plain and not re.match(r"-?0[0-9]", value.raw) else value.raw
    return [as_json(item) for item in value.raw or ()]


def misfits(value: Any, schema: Mapping[str, Any], sections: Mapping[str, Any], where: str = "") -> Iterator[str]:
    """Each place where the value does not fit the schema, as far as ours go."""
    if "$ref" in schema:
        yield from misfits(value, sections[schema["$ref"].rpartition("/")[2]], sections, where)
    if "anyOf" in schema and all(any(misfits(value, each, sections)) for each in schema["anyOf"]):
        yield f"{where}: {value!r} is none of {schema['anyOf']}"
    kinds = [schema["type"]] if isinstance(schema.get("type"), str) else schema.get("type", [])
    if kinds and not any(isinstance(value, TYPES[kind]) for kind in kinds):
        yield f"{where}: {value!r} is no {kinds}"
        return
    if value not in schema.get("enum", [value]):
        yield f"{where}: {value!r} is none of {schema['enum']}"
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        yield f"{where}: {value!r} is not {schema['pattern']}"
    if "minimum" in schema and not schema["minimum"] <= value <= schema["maximum"]:
        yield f"{where}: {value!r} is out of its limits"
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            yield f"{where}: {len(value)} items"
        for item in value:
            yield from misfits(item, schema.get("items", {}), sections, f"{where}[]")
    elif isinstance(value, dict):
        yield from _misfits_inside(value, schema, sections, where)


def _misfits_inside(
    value: Mapping[str, Any], schema: Mapping[str, Any], sections: Mapping[str, Any], where: str
) -> Iterator[str]:
    known, others = schema.get("properties", {}), schema.get("additionalProperties", {})
    name = schema.get("propertyNames", {}).get("pattern", "")
    yield from (f"{where}: no {key}" for key in schema.get("required", []) if key not in value)
    for key, inner in value.items():
        if (key not in known and others is False) or not re.search(name, key):
            yield f"{where}: unknown key {key}"
        else:
            yield from misfits(inner, known.get(key, others), sections, f"{where}.{key}")


def misfits_of(kind: str, value: Value) -> list[str]:
    schema = json.loads(schema_text(kind))
    return list(misfits(as_json(value), schema, schema["definitions"]))


@pytest.mark.parametrize("kind", KINDS)
def test_the_shipped_schema_is_what_the_readers_say(kind: str) -> None:
    shipped = (FOLDER / f"{kind}.json").read_text()
    assert shipped == schema_text(kind), "run: python -m trexbench.config.editors"


@pytest.mark.parametrize(("kind", "path"), SHIPPED, ids=[path.stem for _, path in SHIPPED])
def test_every_shipped_file_fits(kind: str, path: Path) -> None:
    assert misfits_of(kind, load(path, kind)) == []


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("driver: linux", "driver: linus", ".driver: 'linus' is none of"),
        ("driver: linux\n", "", ": no driver"),
        ("description:", "descriptoin:", ": unknown key descriptoin"),
        ("transport:\n  type: netns\n", "transport: netns\n", ".transport: 'netns' is no ['object']"),
        ("tester: 0", "tester: 128", ".ports[]: "),
        ("interface: d0", "interface: 0d", ".ports[]: "),
        ("prefix: tbx", "prefix: Tbx", ".lab.prefix: 'Tbx' is not "),
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
