"""JSON schemas of the YAML files, derived from their readers, with which an editor completes and checks what is typed.

python -m trexbench.config.editors    writes them anew
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

from .fleet import Fleet
from .model import DutConfig
from .readers import ONE_VALUE, keys_of
from .suite import Suite

FOLDER = Path(__file__).with_name("schemas")
KINDS: Mapping[str, type] = {"dut": DutConfig, "fleet": Fleet, "suite": Suite}
"""Sections that are whole files, by the name of their schema in FOLDER."""


def modeline(kind: str) -> str:
    """The comment by which an editor finds the schema of a file of this kind."""
    return f"# yaml-language-server: $schema={(FOLDER / f'{kind}.json').as_uri()}"


def schema_text(kind: str) -> str:
    """The schema's file, a line for each section."""
    sections: dict[str, object] = {}
    whole = {"$schema": "http://json-schema.org/draft-07/schema#", **_of_section(KINDS[kind], sections)}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(section)}" for name, section in sections.items())
    return json.dumps({**whole, "definitions": {}})[:-2] + f"\n{lines}\n}}}}\n"


def _of_section(cls: Any, sections: dict[str, object]) -> dict[str, object]:
    """A reference to the section, which is put among the others."""
    if cls.__name__ not in sections:
        keys = keys_of(cls)
        about, meanings = _explained(cls, "|".join(field.name for field in fields(cls)))
        sections[cls.__name__] = {
            "type": "object",
            "description": about,
            "properties": {
                key: {**_of(reader, sections), **meanings.get(name, {})} for name, (key, reader, _) in keys.items()
            },
            "required": [key for key, _, needed in keys.values() if needed],
            "additionalProperties": False,
        }
    return {"$ref": f"#/definitions/{cls.__name__}"}


def _explained(cls: Any, names: str) -> tuple[str, dict[str, dict[str, object]]]:
    """Split a docstring into a section's meaning and those of its fields: ``Meaning. field, field: meaning. ...``"""
    mention = rf"(?:^|(?<=[.;] ))((?:{names})(?:(?:, | and )(?:{names}))*): "
    about, *parts = re.split(mention, " ".join(cls.__doc__.split()))
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return about.strip(" ;"), {
        one: {"description": text.strip(" ;")} for every, text in pairs for one in re.split(", | and ", every)
    }


def _of(part: object, sections: dict[str, object]) -> Any:
    """A part of what readers.takes was given, with the schemas of readers in their places."""
    if isinstance(part, Mapping):
        if "section" in part:
            return _of_section(part["section"], sections)
        return {key: _of(value, sections) for key, value in part.items()}
    if isinstance(part, (list, tuple)):
        return [_of(each, sections) for each in part]
    return _of(_taken_by(part), sections) if callable(part) else part


def _taken_by(reader: Callable[..., object]) -> Mapping[str, object]:
    """The schema that the reader states, else that of what it returns: one value, a section in any form, anything."""
    result = get_type_hints(reader).get("return")
    if hasattr(reader, "schema"):
        return dict(reader.schema)
    if isinstance(result, type) and is_dataclass(result) and keys_of(result):
        return {"anyOf": [{"section": result}, ONE_VALUE]}
    return ONE_VALUE if result in (str, int, float) else {}


if __name__ == "__main__":
    for kind in KINDS:
        (FOLDER / f"{kind}.json").write_text(schema_text(kind))
