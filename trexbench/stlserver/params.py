"""Typed access to a call's parameters, with TRex's error texts for what is missing or has the wrong type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partialmethod
from typing import Any

from .wire import Json, Path, RpcError, as_text, bad_params, json_misfit, offset_of

INT32_MAX = 2**31 - 1
REQUIRED: Any = object()

Fits = Callable[[Json], bool]
"""Test whether a value has the wanted type and range."""


def type_name(value: Json) -> str:
    """TRex's word for a JSON value's type."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "int" if value <= INT32_MAX else "uint"
    names: dict[type, str] = {type(None): "null", float: "double", str: "string", list: "array", dict: "object"}
    return names[type(value)]


def _is(kind: type) -> Fits:
    return lambda value: isinstance(value, kind)


def _is_number(value: Json) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_whole(low: int, high: int) -> Fits:
    return lambda value: _is_number(value) and low <= value <= high and value == int(value)


class Params:
    """One JSON object or array among the parameters; ``text`` and ``path`` say where it stood in the frame."""

    def __init__(self, value: Json, text: str = "", path: Path = ()) -> None:
        self.value = value
        self._text = text
        self._path = path

    def get(self, name: str | int) -> Json:
        """The raw member, None when absent; a misfit when this is no container of the right kind."""
        if isinstance(name, int):
            return self.value[name] if 0 <= name < len(self.value) else None
        if self.value is None:
            return None
        if not isinstance(self.value, dict):
            raise json_misfit("in Json::Value::find(key, end, found): requires objectValue or nullValue")
        return self.value.get(name)

    def _typed(
        self,
        kind: str,
        fits: Fits,
        name: str | int,
        default: Any = REQUIRED,
        convert: Callable[[Json], Any] = lambda value: value,
    ) -> Any:
        if default is not REQUIRED and self.get(name) is None:
            return default
        if isinstance(name, str):
            if self.value is None:
                raise bad_params(f"field '{name}' is missing")
            if not isinstance(self.value, dict):
                raise bad_params(f"parent field '{name}' is missing")
        value = self.get(name)
        if value is None:
            raise bad_params(f"field '{self._label(name)}' value is null")
        if not fits(value):
            raise self._misplaced(name, f"is '{type_name(value)}', expecting '{kind}'")
        return convert(value)

    def _unsigned(self, kind: str, bits: int, name: str | int, default: Any = REQUIRED) -> Any:
        value = self._typed(kind, _is_whole(0, 2**64 - 1), name, default, int)
        if value is not default and value >= 2**bits:
            raise self._misplaced(name, f"has size bigger than uint{bits}.")
        return value

    # each takes a member's name or index, and a default where the member need not be there
    string = partialmethod(_typed, "string", _is(str))
    boolean = partialmethod(_typed, "bool", _is(bool))
    integer = partialmethod(_typed, "int", _is_whole(-INT32_MAX - 1, INT32_MAX), convert=int)
    double = partialmethod(_typed, "double", _is_number, convert=float)
    byte = partialmethod(_unsigned, "byte", 8)
    uint16 = partialmethod(_unsigned, "uint16", 16)
    uint32 = partialmethod(_unsigned, "uint32", 32)
    uint64 = partialmethod(_unsigned, "uint64", 64)

    def udouble(self, name: str | int, default: Any = REQUIRED) -> Any:
        value = self._typed("unsigned double", _is_number, name, default, float)
        if value is not default and value < 0:
            raise self._misplaced(name, "has negative value.")
        return value

    def object(self, name: str | int) -> Params:
        """A member that must be an object."""
        return self._inner(name, self._typed("object", _is(dict), name))

    def array(self, name: str | int) -> Params:
        """A member that must be an array; ``value`` holds its elements' raw values."""
        return self._inner(name, self._typed("array", _is(list), name))

    def choice(self, name: str, choices: Sequence[Any]) -> Any:
        """A member that must equal one of ``choices``."""
        value = self.get(name)
        if value is None:
            raise bad_params(f"field '{name}' is missing")
        for one in choices:
            if type(value) is type(one) and value == one:
                return one
        listed = " ,".join(f"'{one}'" for one in choices)
        raise bad_params(f"field '{name}' can only be one of [{listed}]")

    def profile(self, default: str = "_") -> str:
        """The profile's name; scalars of other types are taken as text, as TRex does."""
        value = self.get("profile_id")
        return default if value is None else as_text(value)

    def _inner(self, name: str | int, value: Json) -> Params:
        return Params(value, self._text, (*self._path, name))

    def _misplaced(self, name: str | int, text: str) -> RpcError:
        offset = offset_of(self._text, (*self._path, name)) if self._text else 0
        return bad_params(f"error at offset: {offset} - '{self._label(name)}' {text}")

    @staticmethod
    def _label(name: str | int) -> str:
        return f"array element: {name + 1} " if isinstance(name, int) else name
