"""A YAML file -> values that know their file, line and key, read so that no file can do harm.

Scalars stay text until a reader says what they are meant to be: ``no``, ``1e3`` and ``12:34:56`` mean what they say.
Anchors, aliases, tags and merges are refused: a configuration of one page needs none, and they are how small
files become huge ones.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import yaml

from ..core.errors import ConfigError

MAX_BYTES = 256 * 1024
MAX_DEPTH = 12

T = TypeVar("T")
_REQUIRED = object()


@dataclass(frozen=True)
class Value:
    """One node: ``raw`` is a mapping, a list, text, or None where nothing was written; line counts from 1."""

    file: Path
    line: int
    key: str
    raw: Mapping[str, Value] | Sequence[Value] | str | None

    def wrong(self, message: str, remedy: str) -> ConfigError:
        return ConfigError(f"{self.file}:{self.line}: {self.key + ': ' if self.key else ''}{message}", remedy)

    def read(self, reader: Callable[[Value], T]) -> T:
        """What the reader makes of this; its ConfigError gets file, line and key if it has none yet."""
        try:
            return reader(self)
        except ConfigError as error:
            if str(error).startswith(f"{self.file}:"):
                raise
            raise ConfigError(f"{self.file}:{self.line}: {self.key}: {error}") from None

    def table(self, what: str, known: Iterable[str]) -> Table:
        """This as a mapping with no other keys than the known ones."""
        if not isinstance(self.raw, Mapping):
            raise self.wrong(f"{_kind(self)} where {what} should stand", f"write keys under it: {', '.join(known)}")
        keys = tuple(known)
        for key, value in self.raw.items():
            if key not in keys:
                close = difflib.get_close_matches(key, keys, n=1)
                fix = f"did you mean {close[0]!r}?" if close else f"known here: {', '.join(keys)}"
                raise value.wrong("unknown key", fix)
        return Table(self, what)

    def items(self, what: str) -> Sequence[Value]:
        """This as a list."""
        if isinstance(self.raw, (Mapping, str)) or self.raw is None:
            raise self.wrong(f"{_kind(self)} where a list of {what} should stand", f"write '- ' before each {what}")
        return self.raw

    def text(self) -> str:
        """This as the text that was written."""
        if not isinstance(self.raw, str):
            raise self.wrong(f"{_kind(self)} where one value should stand", "write the value on the line of its key")
        return self.raw


@dataclass(frozen=True)
class Table:
    """A mapping whose keys are all known."""

    value: Value
    what: str

    def get(self, key: str, reader: Callable[[Value], T], default: T | object = _REQUIRED) -> T:
        """What the reader makes of this key; a missing key is the default, or an error when it has none."""
        assert isinstance(self.value.raw, Mapping)
        node = self.value.raw.get(key)
        if node is None:
            if default is _REQUIRED:
                raise self.value.wrong(f"{key!r} is missing", f"{self.what} needs it: add '{key}: ...'")
            return default  # type: ignore[return-value]
        if node.raw is None:
            raise node.wrong("nothing stands after the colon", "give it a value, or take the line out")
        return node.read(reader)

    def has(self, key: str) -> bool:
        assert isinstance(self.value.raw, Mapping)
        return key in self.value.raw

    def at(self, key: str) -> Value:
        """The node of a key that is there (for messages), or of the whole mapping."""
        assert isinstance(self.value.raw, Mapping)
        return self.value.raw.get(key, self.value)


def load(path: Path, what: str) -> Value:
    """The one document of a YAML file, a ``what``. ConfigError, with the line where there is one, for all else."""
    text = _read_text(path, what)
    try:
        _refuse_risky(path, text)
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        raise _malformed(path, error) from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not YAML ({' '.join(str(error).split())})", "save it as plain text") from None
    if node is None:
        raise ConfigError(f"{path}:1: the file is empty", "start from one that is shipped")
    return _convert(path, node, "", node.start_mark.line + 1)


def _read_text(path: Path, what: str) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}", "name a readable file") from None
    if len(data) > MAX_BYTES:
        raise ConfigError(f"{path}: {len(data)} bytes are no {what}", f"at most {MAX_BYTES} are read")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ConfigError(
            f"{path}:{line}: not UTF-8 text (byte 0x{data[error.start]:02x})", "save it as UTF-8"
        ) from None


def _refuse_risky(path: Path, text: str) -> None:
    """Walk the events, which costs no recursion, before anything is built from them."""
    depth = documents = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):  # yields while it reads
        line = event.start_mark.line + 1 if event.start_mark else 1
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise ConfigError(f"{path}:{line}: a second document", "a file has one: drop the '---'")
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise ConfigError(f"{path}:{line}: an anchor or alias (& or *)", "write the value out, or quote it")
        tag = getattr(event, "tag", None)
        if tag not in (None, "!"):
            raise ConfigError(f"{path}:{line}: the tag {tag!r}", "plain values only: take the '!' out")
        if isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            depth += 1
            if depth > MAX_DEPTH:
                raise ConfigError(f"{path}:{line}: nested more than {MAX_DEPTH} deep", "no key is that deep")
        if isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            depth -= 1


def _convert(path: Path, node: yaml.Node, key: str, line: int) -> Value:
    if isinstance(node, yaml.ScalarNode):
        empty = node.style is None and node.tag == "tag:yaml.org,2002:null"
        return Value(path, line, key, None if empty else str(node.value))
    if isinstance(node, yaml.SequenceNode):
        entries = [_convert(path, e, f"{key}[{i}]", e.start_mark.line + 1) for i, e in enumerate(node.value)]
        return Value(path, line, key, entries)
    mapping: dict[str, Value] = {}
    for name_node, value_node in node.value:
        here = name_node.start_mark.line + 1
        if not isinstance(name_node, yaml.ScalarNode):
            raise ConfigError(f"{path}:{here}: {key}: a key that is not a word", "write 'key: value'")
        name = str(name_node.value)
        if name in mapping:
            raise ConfigError(
                f"{path}:{here}: {_join(key, name)}: written twice, first on line {mapping[name].line}", "keep one"
            )
        mapping[name] = _convert(path, value_node, _join(key, name), here)
    return Value(path, line, key, mapping)


def _malformed(path: Path, error: yaml.MarkedYAMLError) -> ConfigError:
    mark = error.problem_mark or error.context_mark
    line = mark.line + 1 if mark else 1
    problem = " ".join((error.problem or "cannot be read").split())
    fix = "indent with spaces" if "\\t" in problem else "check indentation, colons and quotes there and just above"
    return ConfigError(f"{path}:{line}: malformed YAML ({problem})", fix)


def _join(key: str, name: str) -> str:
    return f"{key}.{name}" if key else name


def _kind(value: Value) -> str:
    if value.raw is None:
        return "nothing"
    if isinstance(value.raw, str):
        return f"{value.raw[:40]!r}"
    return "a mapping" if isinstance(value.raw, Mapping) else "a list"
