"""JSON schemas of the YAML files for editors, derived from the readers.

python -m trexbench.config.editors    regenerates them
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from inspect import getsource
from itertools import pairwise
from pathlib import Path
from textwrap import dedent
from typing import Any, get_type_hints

from .fleet import Fleet
from .model import DutConfig
from .readers import ONE_VALUE, keys_of
from .suite import Suite

FOLDER = Path(__file__).with_name("schemas")
KINDS: Mapping[str, type] = {"dut": DutConfig, "fleet": Fleet, "suite": Suite}
"""Name of a schema in FOLDER -> the section that is the whole file."""


def modeline(kind: str) -> str:
    """Return the comment by which an editor finds the schema of a file of this kind."""
    return f"# yaml-language-server: $schema={(FOLDER / f'{kind}.json').as_uri()}"


def schema_text(kind: str) -> str:
    """Return the schema as the text of a file with a line per section."""
    sections: dict[str, object] = {}
    whole = {"$schema": "http://json-schema.org/draft-07/schema#", **_of_section(KINDS[kind], sections)}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(section)}" for name, section in sections.items())
    return json.dumps({**whole, "definitions": {}})[:-2] + f"\n{lines}\n}}}}\n"


def _of_section(cls: Any, sections: dict[str, object]) -> dict[str, object]:
    """Return a reference to the section, and add its schema to ``sections``."""
    if cls.__name__ not in sections:
        keys, meanings = keys_of(cls), _meanings(cls)
        sections[cls.__name__] = {
            "type": "object",
            "description": _of_keys(cls.__doc__),
            "properties": {
                key: {**_of(reader, sections), **meanings.get(name, {})} for name, (key, reader, _) in keys.items()
            },
            "required": [key for key, _, needed in keys.values() if needed],
            "additionalProperties": False,
        }
    return {"$ref": f"#/definitions/{cls.__name__}"}


def _meanings(cls: Any) -> dict[str, dict[str, object]]:
    """Return what an editor shows of a class's fields: their notes, in this class or its bases, and plain defaults."""
    meanings: dict[str, dict[str, object]] = {field.name: _default(field.default) for field in fields(cls)}
    for base in reversed(cls.__mro__[:-1]):
        for name, note in notes_of(base).items():
            meaning = meanings.setdefault(name, {})
            meaning["description"] = _of_keys(note)
            if "Default: " in note:
                meaning.pop("default", None)
    return meanings


def _default(value: object) -> dict[str, object]:
    """Return a default as the file would state it; empty for one that no file can, or that is nothing."""
    is_plain = isinstance(value, (str, int, float)) and value != "" and not re.search(r"\de", str(value))
    return {"default": value} if is_plain else {}


def notes_of(cls: type) -> dict[str, str]:
    """Map what a class itself declares to its note: the text below a field, or the comment behind it or a member."""
    source, notes = dedent(getsource(cls)), dict[str, str]()
    body: list[ast.stmt] = getattr(ast.parse(source).body[0], "body", [])
    for field, below in pairwise([*body, None]):
        if isinstance(field, (ast.AnnAssign, ast.Assign)):
            note = source.splitlines()[(field.end_lineno or 0) - 1].partition("  # ")[2]
            if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
                note = str(below.value.value)
            if note:
                notes[ast.unparse(field.target if isinstance(field, ast.AnnAssign) else field.targets[0])] = note
    return notes


def _of_keys(text: str) -> str:
    """Return what the source says of a field as a line about a key: one without a value is unset, not None."""
    return re.sub(r"\bNone\b", "unset", " ".join(text.split()))


def _of(part: object, sections: dict[str, object]) -> Any:
    """Return a part of what readers.takes was given, with each reader in it replaced by the schema of its values."""
    if isinstance(part, Mapping):
        if "section" in part:
            return _of_section(part["section"], sections)
        return {key: _of(value, sections) for key, value in part.items()}
    if isinstance(part, (list, tuple)):
        return [_of(each, sections) for each in part]
    if not callable(part):
        return part
    if hasattr(part, "schema"):
        return _of(part.schema, sections)
    result = get_type_hints(part).get("return")
    if isinstance(result, type) and is_dataclass(result) and keys_of(result):
        return {"anyOf": [_of_section(result, sections), ONE_VALUE]}
    return ONE_VALUE if result in (str, int, float) else {}


if __name__ == "__main__":
    for kind in KINDS:
        (FOLDER / f"{kind}.json").write_text(schema_text(kind))
