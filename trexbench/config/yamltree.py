"""YAML files as values that know their file, line and key.

Scalars stay text until a reader converts them, so that ``no``, ``1e3`` and ``12:34:56`` are taken as written. Anchors,
aliases and tags are refused: a configuration of one page needs none, and with them a small file can grow huge.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import yaml

from ..core.errors import ConfigError, ConfigErrors
from ..core.names import nearest

MAX_BYTES = 256 * 1024
MAX_DEPTH = 12

T = TypeVar("T")


@dataclass(frozen=True)
class Value:
    """A node of the tree."""

    file: Path
    line: int
    """Line of the file, from 1."""
    key: str
    """Keys from the root to this node, joined by dots."""
    raw: Mapping[str, Value] | Sequence[Value] | str | None
    """Contents; None where nothing was written."""

    def wrong(self, message: str, remedy: str) -> ConfigError:
        """Return the error that this node has a wrong value."""
        return ConfigError(f"{self.file}:{self.line}: {self.key + ': ' if self.key else ''}{message}", remedy)

    def read(self, reader: Callable[[Value], T]) -> T:
        """Apply the reader; add file, line and key to its ConfigError if it has none yet."""
        if self.raw is None:
            sign = "dash" if self.key.endswith("]") else "colon"
            raise self.wrong(f"nothing after the {sign}", "give it a value, or remove the line")
        try:
            return reader(self)
        except ConfigError as error:
            here = f"{self.file}:{self.line}: {self.key + ': ' if self.key else ''}"
            errors = [e if str(e).startswith(f"{self.file}:") else ConfigError(f"{here}{e}") for e in error.each]
        raise as_one(errors)

    def mapping(self, what: str, known: Sequence[str] = ()) -> Mapping[str, Value]:
        """Return the mapping; ConfigError for anything else. known: possible keys, for the message."""
        if not isinstance(self.raw, Mapping):
            keys = f"keys under it: {', '.join(known)}" if known else "'name: value' lines under it"
            raise self.wrong(f"{_kind(self)} where {what} should be", f"write {keys}")
        return self.raw

    def unknown(self, known: Sequence[str], also: Sequence[str] = ()) -> Iterator[ConfigError]:
        """Yield an error for each unknown key of this mapping. also: known keys that are not suggested."""
        for key, value in self.raw.items() if isinstance(self.raw, Mapping) else ():
            if key not in (*known, *also):
                yield value.wrong("unknown key", nearest(key, known).strip() or f"known here: {', '.join(known)}")

    def items(self, what: str) -> Sequence[Value]:
        """Return the list; ConfigError for anything else."""
        if isinstance(self.raw, (Mapping, str)) or self.raw is None:
            raise self.wrong(f"{_kind(self)} where a list of {what} should be", f"write '- ' before each {what}")
        return self.raw

    def text(self) -> str:
        """Return the scalar as text without surrounding spaces; ConfigError for anything else."""
        if not isinstance(self.raw, str):
            raise self.wrong(f"{_kind(self)} where one value should be", "write the value on the line of its key")
        return self.raw.strip()

    def at(self, *path: str) -> Value:
        """Return the node below these keys, or the last one on the way there: the place to name in a message."""
        inner = self.raw.get(path[0]) if path and isinstance(self.raw, Mapping) else None
        return self if inner is None else inner.at(*path[1:])

    def texts(self) -> Iterator[Value]:
        """Yield every scalar below this node, or the node itself."""
        if isinstance(self.raw, str):
            yield self
        elif self.raw is not None:
            for inner in self.raw.values() if isinstance(self.raw, Mapping) else self.raw:
                yield from inner.texts()

    def leaves(self, *names: str) -> Iterator[Value]:
        """Yield the values under any of these keys, however deep, in the file's order."""
        if isinstance(self.raw, str) or self.raw is None:
            return
        for name, inner in self.raw.items() if isinstance(self.raw, Mapping) else (("", one) for one in self.raw):
            if name in names:
                yield inner
            else:
                yield from inner.leaves(*names)

    def has(self, key: str) -> bool:
        return isinstance(self.raw, Mapping) and key in self.raw

    def missing(self, keys: Sequence[str], what: str) -> ConfigError:
        """Return the error that these keys of a mapping are missing. what: kind of the mapping."""
        names, lines = (" and ".join(f"{text % key!r}" for key in keys) for text in ("%s", "%s: ..."))
        verb, them = ("is", "it") if len(keys) == 1 else ("are", "them")
        return self.wrong(f"{names} {verb} missing", f"{what} needs {them}: add {lines}")


def as_one(errors: Sequence[ConfigError], where: str = "") -> ConfigError:
    """Join errors into one. where: command that lists them all."""
    errors = list({str(error): error for error in errors}.values())  # one value may be read as two settings
    return errors[0] if len(errors) == 1 else ConfigErrors(errors, where)


def raise_any(errors: Iterable[ConfigError], where: str = "") -> None:
    """Raise these errors as one, if there are any."""
    if errors := list(errors):
        raise as_one(errors, where)


def read_each(parts: Iterable[tuple[Value, Callable[[Value], T]]], errors: Iterable[ConfigError] = ()) -> list[T]:
    """Read each part with its reader; raise their errors together, after the given ones."""
    results, wrong = list[T](), list(errors)
    for value, reader in parts:
        try:
            results.append(value.read(reader))
        except ConfigError as error:
            wrong += error.each
    raise_any(wrong)
    return results


def parse(path: Path, text: str) -> Value:
    """Parse a YAML text of one document, read from ``path``; ConfigError, with its line, for anything else."""
    try:
        loader = _StrictLoader(text)
        loader.name = str(path)
        node = loader.get_node() if loader.check_node() else None
        if loader.check_node():
            line = loader.peek_event().start_mark.line + 1  # type: ignore[no-untyped-call]
            raise ConfigError(f"{path}:{line}: a second document", "a file has one: drop the '---'")
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        problem = " ".join((error.problem or "cannot be read").split())
        fix = "indent with spaces" if "\\t" in problem else "check indentation, colons and quotes there and just above"
        raise ConfigError(f"{path}:{line}: malformed YAML ({problem})", fix) from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not YAML ({' '.join(str(error).split())})", "save it as plain text") from None
    if node is None:
        raise ConfigError(f"{path}:1: the file is empty", "start from one that is shipped")
    return _convert(path, node, "", node.start_mark.line + 1)


def read_text(path: Path, what: str) -> str:
    """Read a small UTF-8 file; ConfigError for anything else, such as a pipe, which may never end. what: its kind."""
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):
            raise ConfigError(f"{path}: not a regular file", f"name the file of a {what}")
        if about.st_size > MAX_BYTES:
            raise ConfigError(f"{path}: too large for a {what} (over {MAX_BYTES} bytes)", f"name the file of a {what}")
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}", "name a readable file") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        byte = f"0x{data[error.start]:02x}"
        raise ConfigError(f"{path}:{line}: not UTF-8 text (byte {byte})", "save it as UTF-8") from None


class _StrictLoader(yaml.SafeLoader):
    depth = 0
    """Depth of nesting, at most MAX_DEPTH, so that no file exhausts the stack."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        where = f"{self.name}:{event.start_mark.line + 1}"
        if isinstance(event, yaml.AliasEvent) or event.anchor:
            raise ConfigError(f"{where}: an anchor or alias (& or *)", "write the value out, or quote it")
        if event.tag not in (None, "!"):
            raise ConfigError(f"{where}: the tag {event.tag!r}", "plain values only: remove the '!'")
        if self.depth >= MAX_DEPTH and isinstance(event, yaml.CollectionStartEvent):
            raise ConfigError(f"{where}: nested more than {MAX_DEPTH} deep", "no key is that deep")
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


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
            twice = f"written twice, first on line {mapping[name].line}"
            raise ConfigError(f"{path}:{here}: {_join(key, name)}: {twice}", "keep one")
        mapping[name] = _convert(path, value_node, _join(key, name), here)
    return Value(path, line, key, mapping)


def _join(key: str, name: str) -> str:
    # Messages are one printable line, whatever a key contains.
    shown = name if name.isprintable() and len(name) <= 80 else repr(name[:80])
    return f"{key}.{shown}" if key else shown


def _kind(value: Value) -> str:
    if value.raw is None:
        return "nothing"
    if isinstance(value.raw, str):
        return f"{value.raw[:40]!r}"
    return "a mapping" if isinstance(value.raw, Mapping) else "a list"
