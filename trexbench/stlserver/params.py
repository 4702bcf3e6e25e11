"""Typed access to a call's parameters, with TRex's error texts for what is missing or has the wrong type."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from trexbench.stlserver.wire import Json, Path, RpcError, as_text, bad_params, json_misfit, offset_of

UINT64_LIMIT = 2**64
INT32_MAX = 2**31 - 1
REQUIRED: Any = object()


def type_name(value: Json) -> str:
    """TRex's word for a JSON value's type."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "int" if value <= INT32_MAX else "uint"
    names: dict[type, str] = {type(None): "null", float: "double", str: "string", list: "array", dict: "object"}
    return names[type(value)]


def _is_number(value: Json) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_uint64(value: Json) -> bool:
    return _is_number(value) and 0 <= value < UINT64_LIMIT and value == int(value)


def _is_int(value: Json) -> bool:
    return _is_number(value) and -INT32_MAX - 1 <= value <= INT32_MAX and value == int(value)


class Params:
    """One JSON object or array among the parameters; ``text`` and ``path`` say where it stood in the frame."""

    def __init__(self, value: Json, text: str = "", path: Path = ()) -> None:
        self.value = value
        self._text = text
        self._path = path

    def __iter__(self) -> Iterator[Json]:
        return iter(self.value)

    def get(self, name: str | int) -> Json:
        """The raw member, None when absent; a misfit when this is no container of the right kind."""
        if isinstance(name, int):
            return self.value[name] if 0 <= name < len(self.value) else None
        if self.value is None:
            return None
        if not isinstance(self.value, dict):
            raise json_misfit("in Json::Value::find(key, end, found): requires objectValue or nullValue")
        return self.value.get(name)

    def string(self, name: str | int, default: Any = REQUIRED) -> Any:
        return self._typed(name, "string", lambda v: isinstance(v, str), default)

    def boolean(self, name: str | int, default: Any = REQUIRED) -> Any:
        return self._typed(name, "bool", lambda v: isinstance(v, bool), default)

    def integer(self, name: str | int, default: Any = REQUIRED) -> Any:
        value = self._typed(name, "int", _is_int, default)
        return value if value is default else int(value)

    def double(self, name: str | int, default: Any = REQUIRED) -> Any:
        value = self._typed(name, "double", _is_number, default)
        return value if value is default else float(value)

    def udouble(self, name: str | int, default: Any = REQUIRED) -> Any:
        value = self._typed(name, "unsigned double", _is_number, default)
        if value is default:
            return value
        if value < 0:
            raise self._misplaced(name, "has negative value.")
        return float(value)

    def byte(self, name: str | int, default: Any = REQUIRED) -> Any:
        return self._unsigned(name, "byte", 8, default)

    def uint16(self, name: str | int, default: Any = REQUIRED) -> Any:
        return self._unsigned(name, "uint16", 16, default)

    def uint32(self, name: str | int, default: Any = REQUIRED) -> Any:
        return self._unsigned(name, "uint32", 32, default)

    def uint64(self, name: str | int, default: Any = REQUIRED) -> Any:
        return self._unsigned(name, "uint64", 64, default)

    def object(self, name: str | int) -> Params:
        """A member that must be an object."""
        return self._inner(name, self._typed(name, "object", lambda v: isinstance(v, dict), REQUIRED))

    def array(self, name: str | int) -> Params:
        """A member that must be an array; iterate it for its elements' raw values."""
        return self._inner(name, self._typed(name, "array", lambda v: isinstance(v, list), REQUIRED))

    def objects(self, name: str) -> Iterator[Params]:
        """The elements of an array member, each of which must be an object."""
        array = self.array(name)
        return (array.object(index) for index in range(len(array.value)))

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

    def _unsigned(self, name: str | int, kind: str, bits: int, default: Any) -> Any:
        value = self._typed(name, kind, _is_uint64, default)
        if value is default:
            return value
        if value >= 2**bits:
            raise self._misplaced(name, f"has size bigger than uint{bits}.")
        return int(value)

    def _typed(self, name: str | int, kind: str, fits: Callable[[Json], bool], default: Any) -> Any:
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
        return value

    def _misplaced(self, name: str | int, text: str) -> RpcError:
        offset = offset_of(self._text, (*self._path, name)) if self._text else 0
        return bad_params(f"error at offset: {offset} - '{self._label(name)}' {text}")

    @staticmethod
    def _label(name: str | int) -> str:
        return f"array element: {name + 1} " if isinstance(name, int) else name
