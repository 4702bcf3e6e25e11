"""Find differences between two run documents that may explain their figures: DUT, tester, programs, conditions. Pure.

Documents of any version and kind are read as they were stored; what is missing counts as absent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

LONGEST = 80
"""Most characters of a value; of longer ones those around the first that differs are shown."""
_VOLATILE = re.compile(
    r"uptime|pids?|(?:.*_)?time(?:stamp)?|date|started|finished|since|count(?:er)?s?|(?:rx|tx)?_?(?:packets|bytes|errors)"
    r"|drops|load(?:avg)?|temperature.*|celsius|.*sha256|digest|boot_id|irq|state|unknown|hostname|address"
    r"|planned|id|night|label|suite|(?:m|c)hz",
    re.IGNORECASE,
)
"""Names of what changes by itself, or cannot matter."""
_SECRET = re.compile(r"passw|secret|token|credential|private|psk|//[^/ ]*@", re.IGNORECASE)
"""Names, or addresses, that may hold a secret."""
_NAMES = ("name", "interface", "direction", "port", "queue", "to", "prefix")
"""Keys by which the entries of a list are matched."""
_CONFIG, _TEXT = "DUT's config file", "text"
_READ = ("DUT", "generator", "tester", "endpoints")
"""Parts read from machines: a fact missing from one document was not read by its version of trexbench."""
_ABSENT = object()


@dataclass(frozen=True)
class Difference:
    """A value that differs; None: absent."""

    path: tuple[str, ...]
    """From the part of the test downwards: ``("DUT", "interfaces", "ix0", "mtu")``."""
    before: str | None
    after: str | None


def compare_documents(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Difference, ...]:
    """Find all differences, the DUT's first; in each part from the top level (versions) down.

    If dut.config is a mapping, its values are compared; of a text it is only reported that it differs.
    """
    alike: dict[tuple[object, ...], list[Difference]] = {}  # those of several interfaces, or the like
    for (part, old), (_, new) in zip(_parts(before), _parts(after), strict=True):
        for difference in sorted(_differences(old, new, (part,)), key=lambda difference: len(difference.path)):
            path, values = difference.path, (difference.before, difference.after)
            alike.setdefault((path[:2], path[3:], values) if len(path) > 3 else (path, values), []).append(difference)
    joined = []
    for first, *others in alike.values():
        path = first.path
        if others and len(path) > 3:
            path = (*path[:2], ", ".join(difference.path[2] for difference in (first, *others)), *path[3:])
        joined.append(replace(first, path=path))
    return tuple(joined)


def _parts(document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the parts to compare, by their name in reports."""
    dut, host, generator, command, plan = (
        _mapping(document.get(name)) for name in ("dut", "host", "generator", "command", "plan")
    )
    facts, versions, config = dut.get("facts"), dict(_mapping(host.get("versions"))), dut.get("config")
    read = isinstance(facts, Mapping) and "not attested" not in facts
    yield "DUT", facts if read else "not read back"
    yield "DUT", dut.get("platform")
    yield _CONFIG, config if isinstance(config, Mapping) else {_TEXT: config}
    yield "trexbench", {"version": versions.pop("trexbench", None)}
    yield "generator", {key: value for key, value in generator.items() if key not in ("host", "calibration")}
    yield "tester", {**{key: value for key, value in host.items() if key not in ("versions", "platform")}, **versions}
    yield "tester", host.get("platform")
    yield "endpoints", document.get("endpoints")
    yield "run", {**{key: command.get(key) for key in ("tunables", "telemetry")}, **plan}
    yield "set-up", document.get("setup")


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _differences(before: Any, after: Any, path: tuple[str, ...], every: bool = False) -> Iterator[Difference]:
    """Yield what differs below ``path``. every: also volatile values and secrets."""
    if before == after or (len(path) == 1 and None in (before, after)):
        return  # a part that older documents do not have
    old, new = _by_name(before), _by_name(after)
    if old is not None and new is not None:
        for name in _read_by_both(old, new) if path[0] in _READ else dict.fromkeys((*old, *new)):
            if every or not (_VOLATILE.fullmatch(name) or _SECRET.search(name)):
                yield from _differences(old.get(name, _ABSENT), new.get(name, _ABSENT), (*path, name), every)
    elif len(path) == 1:
        yield Difference(path, *("read back" if isinstance(part, Mapping) else str(part) for part in (before, after)))
    elif path == (_CONFIG, _TEXT):
        yield Difference((_CONFIG,), "as it was", "changed")
    else:
        words = _words(before), _words(after)
        if words[0] != words[1] and (every or not any(_SECRET.search(word or "") for word in words)):
            pairs = zip(*(word or "" for word in words), strict=False)
            at = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
            yield Difference(path, *(word and _cut(word, at) for word in words))


def _by_name(value: Any) -> Mapping[str, Any] | None:
    """Index a mapping, or a list of mappings by a key that tells them apart; None for anything else."""
    if isinstance(value, Mapping):
        return {str(key): entry for key, entry in value.items()}
    if not isinstance(value, list | tuple) or not value or not all(isinstance(entry, Mapping) for entry in value):
        return None
    for key in _NAMES:
        names = [str(entry.get(key)) for entry in value]
        if all(key in entry for entry in value) and len(set(names)) == len(names):
            return dict(zip(names, value, strict=True))
    return {str(at): entry for at, entry in enumerate(value)}


def agree(first: Any, second: Any) -> bool:
    """Test whether facts of two documents agree, as far as both have read them."""
    return not any(_differences(first, second, ("DUT", "facts"), every=True))


def _read_by_both(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Select the names to compare: all in a table, whose entries (interfaces, routes) come and go, else common ones."""
    is_table = all(entry is None or isinstance(entry, Mapping) for entry in (*old.values(), *new.values()))
    return (name for name in dict.fromkeys((*old, *new)) if is_table or (name in old and name in new))


def _words(value: Any) -> str | None:
    """Format a value in a line; None: absent, empty, or not known."""
    if value is _ABSENT or value is None:
        return None
    if isinstance(value, list) and not any(isinstance(entry, Mapping) for entry in value):
        value = ", ".join(map(str, value)) or "none"
    text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    return " ".join(text.split()) or None


def _cut(text: str, at: int) -> str:
    """Cut a long text to what is around this character."""
    begin = max(0, min(at, len(text)) - LONGEST // 2) if len(text) > LONGEST else 0
    part = text[begin:][: LONGEST - 6] if len(text) > LONGEST else text
    return f"{'...' * (begin > 0)}{part}{'...' * (begin + len(part) < len(text))}"
