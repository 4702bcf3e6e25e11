"""Typed access to a call's parameters; one line says which is missing or does not fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partialmethod
from typing import Any

from .wire import Json, bad_params

INT32_MAX = 2**31 - 1
REQUIRED: Any = object()

Fits = Callable[[Json], bool]
"""Test whether a value has the wanted type and range."""


def _is(kind: type) -> Fits:
    return lambda value: isinstance(value, kind)


def _is_number(value: Json) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_whole(low: int, high: int) -> Fits:
    return lambda value: _is_number(value) and low <= value <= high and value == int(value)


class Params:
    """One JSON object or array among the parameters."""

    def __init__(self, value: Json) -> None:
        self.value = value

    def get(self, name: str | int) -> Json:
        """The raw member; None when it is absent, or this is no object."""
        if isinstance(name, int):
            return self.value[name]
        return self.value.get(name) if isinstance(self.value, dict) else None

    def _typed(
        self,
        kind: str,
        fits: Fits,
        name: str | int,
        default: Any = REQUIRED,
        convert: Callable[[Json], Any] = lambda value: value,
    ) -> Any:
        value = self.get(name)
        if value is None and default is not REQUIRED:
            return default
        if value is None:
            raise bad_params(f"field '{name}' is missing")
        if not fits(value):
            raise bad_params(f"field '{name}' is {str(value)[:40]!r}, expecting {kind}")
        return convert(value)

    # each takes a member's name or index, and a default where the member need not be there
    string = partialmethod(_typed, "text", _is(str))
    boolean = partialmethod(_typed, "true or false", _is(bool))
    integer = partialmethod(_typed, "a whole number", _is_whole(-INT32_MAX - 1, INT32_MAX), convert=int)
    double = partialmethod(_typed, "a number", _is_number, convert=float)
    udouble = partialmethod(_typed, "a number from 0 on", lambda value: _is_number(value) and value >= 0, convert=float)
    byte = partialmethod(_typed, "a whole number of 8 bits", _is_whole(0, 2**8 - 1), convert=int)
    uint16 = partialmethod(_typed, "a whole number of 16 bits", _is_whole(0, 2**16 - 1), convert=int)
    uint32 = partialmethod(_typed, "a whole number of 32 bits", _is_whole(0, 2**32 - 1), convert=int)
    uint64 = partialmethod(_typed, "a whole number of 64 bits", _is_whole(0, 2**64 - 1), convert=int)

    def object(self, name: str | int) -> Params:
        """A member that must be an object."""
        return Params(self._typed("an object", _is(dict), name))

    def array(self, name: str) -> Params:
        """A member that must be an array; ``value`` holds its elements' raw values."""
        return Params(self._typed("a list", _is(list), name))

    def choice(self, name: str, choices: Sequence[Any]) -> Any:
        """A member that must equal one of ``choices``."""
        value = self.get(name)
        if not any(type(value) is type(one) and value == one for one in choices):
            raise bad_params(f"field '{name}' can only be one of {list(choices)}")
        return value

    def profile(self, default: str = "_") -> str:
        """The profile's name."""
        return str(self.string("profile_id", default))
