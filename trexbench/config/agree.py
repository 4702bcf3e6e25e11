"""Keys that belong together: those that have no effect where they stand, and those that are needed and missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..core.errors import ConfigError
from .yamltree import Value

_OF_CLI = ("platform", "password_env", "password_file", "key_file", "refusal")
_TRANSPORT_KEYS = {
    "netns": ("namespace",),
    "local": (),
    "ssh": ("host", "user", "port"),
    "cli": ("host", "user", "port", *_OF_CLI),
}
_NEEDED = {"netns": ("namespace",), "local": (), "ssh": ("host",), "cli": ("host", "platform")}


def idle(
    value: Value, keys: Iterable[str], owner: str, remedy: str = "take it out, or change the type"
) -> Iterator[ConfigError]:
    """One for any of these keys, which have no effect there."""
    for key in keys:
        if value.has(key):
            yield value.at(key).wrong(f"has no effect on {owner}", remedy)


def check_keys(
    value: Value, kind: str, keys_of: Mapping[str, Sequence[str]], owner: str, needed: Sequence[str]
) -> Iterator[ConfigError]:
    """Keys of other kinds, and those of its own that are needed and missing."""
    others = dict.fromkeys(key for keys in keys_of.values() for key in keys if key not in keys_of[kind])
    yield from idle(value, others, owner)
    missing = [key for key in needed if not value.has(key)]
    if missing:
        yield value.missing(missing, owner)


def check_way(transport: Value, kind: str, in_lab: str) -> Iterator[ConfigError]:
    """Yield the errors of a transport of this type. in_lab: its owner, where that is part of a lab; else empty."""
    yield from check_keys(transport, kind, _TRANSPORT_KEYS, f"a {kind} transport", () if in_lab else _NEEDED[kind])
    if transport.has("password_env") and transport.has("password_file"):
        yield transport.at("password_file").wrong("two places for one password", "take one of them out")
    if in_lab and kind != "netns":
        yield transport.at("type").wrong(f"{in_lab} is reached by netns, not {kind}", "write type: netns")
    if in_lab and transport.has("namespace"):
        remedy = "take it out; lab.prefix decides the name"
        yield transport.at("namespace").wrong("a lab names its own namespace", remedy)
