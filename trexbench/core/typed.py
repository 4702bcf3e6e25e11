"""Checked values of stored files, and the status of a run: types of numbers for msgspec.convert, finite as in JSON."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Annotated, Any, TypeVar

from msgspec import Meta, ValidationError, convert

from .errors import StoreError

T = TypeVar("T")


class Status(str, Enum):
    """Status of a run."""

    RUNNING = "running"  # still being written, or its writer was killed
    COMPLETE = "complete"
    INCOMPLETE = "incomplete"  # ended early; ``reason`` says why


Count = Annotated[int, Meta(ge=0)]
Number = Annotated[float, Meta(ge=-1e300, le=1e300)]
"""Small enough for differences and sums to be finite, too."""
Amount = Annotated[float, Meta(ge=0, le=1.7976931348623157e308)]
Seconds = Annotated[float, Meta(ge=0, le=1e300)]


def version_of(values: Any, what: str, schema: str, version: int) -> int:
    """Return the version of a JSON object; StoreError for another schema, and for a version newer than ``version``."""
    if not isinstance(values, Mapping) or values.get("schema") != schema:
        raise StoreError(f"not a {what}", f"expected schema {schema!r}")
    stored = values.get("version")
    if type(stored) is not int or not 1 <= stored <= version:
        raise StoreError(f"{what} of version {stored!r}, this trexbench reads up to {version}", "upgrade trexbench")
    return stored


def read_stored(values: Any, what: str, schema: str, version: int, of: type[T]) -> T:
    """Read a JSON object as a value of this type; StoreError for another schema, a newer version, and damage."""
    version_of(values, what, schema, version)
    try:
        return convert(values, of)
    except (ValidationError, UnicodeEncodeError, RecursionError, OverflowError) as error:
        raise StoreError(f"{what} with a part missing or of the wrong kind ({error})", "the file is damaged") from None
