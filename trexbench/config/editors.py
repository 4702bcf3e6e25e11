"""JSON schemas of the YAML files for editors, derived from the readers.

python -m trexbench.config.editors    regenerates them
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from dataclasses import is_dataclass
from inspect import getsource
from itertools import pairwise
from pathlib import Path
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


def _meanings(cls: type) -> dict[str, dict[str, object]]:
    """Return the descriptions of a class's fields: the string below each, in this class or its bases."""
    meanings: dict[str, dict[str, object]] = {}
    for base in reversed(cls.__mro__[:-1]):
        (tree,) = ast.parse(getsource(base)).body
        for field, text in pairwise(getattr(tree, "body", [])):
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
                meanings[ast.unparse(field.target)] = {"description": _of_keys(str(text.value.value))}
    return meanings


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
