"""Keys that belong together, addresses that fit together; what DUT and endpoints are both checked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

from ..core.errors import ConfigError
from .readers import Address, Interface
from .yamltree import Value

REACHED = ("netns", "local", "ssh")
"""Transports by which Linux hosts are reached."""
IN_LAB, IN_VM = ("netns",), ("console", "ssh")
"""Transports by which hosts of a lab are reached, and a virtual machine there."""
_OF_CLI = ("platform", "password_env", "password_file", "key_file", "refusal")
_TRANSPORT_KEYS = {
    "netns": ("namespace",),
    "local": (),
    "ssh": ("host", "user", "port"),
    "cli": ("host", "user", "port", *_OF_CLI),
    "console": ("namespace",),
}
_NEEDED = {"netns": ("namespace",), "local": (), "ssh": ("host",), "cli": ("host", "platform"), "console": ()}


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


def check_way(value: Value, kind: str, owner: str, ways: Sequence[str], in_lab: bool = False) -> Iterator[ConfigError]:
    """Yield the errors of a transport of this type, where ``owner`` can be reached in these ways."""
    owner = f"{owner} of a lab" if in_lab else owner
    if kind not in ways:
        able = ", ".join(ways)
        yield value.at("type").wrong(f"{owner} is reached by {able}, not {kind}", f"write type: {' or '.join(ways)}")
    yield from check_keys(value, kind, _TRANSPORT_KEYS, f"a {kind} transport", () if in_lab else _NEEDED[kind])
    if value.has("password_env") and value.has("password_file"):
        yield value.at("password_file").wrong("two places for one password", "take one of them out")
    if in_lab and value.has("namespace"):
        yield value.at("namespace").wrong("a lab names its own namespace", "take it out; lab.prefix decides the name")


def check_hops(here: Value, own: Sequence[Interface], hops: Sequence[Address], whose: str) -> Iterator[ConfigError]:
    """Nothing where each of the interface's addresses has one hop in its network; here: where the hops are written."""
    of_version = {each.version: each for each in own}
    for hop in hops:
        base = of_version.pop(hop.version, None)
        if base is None or hop not in base.network:
            networks = " or ".join(str(each.network) for each in own)
            yield here.wrong(f"{hop} is not in {networks}", f"pick an address of {networks}")
        elif hop == base.ip:
            yield here.wrong(f"{hop} is {whose} own address", f"pick another of {base.network}")
    for base in of_version.values():
        yield here.wrong(f"no address in {base.network}", f"add one: the other end's, in {base.network}")


def check_apart(
    here: Value, own: Sequence[Interface], others: Sequence[Interface], whose: str
) -> Iterator[ConfigError]:
    """One for each network of ``own``, written here, that overlaps one of the others."""
    for each, other in product(own, others):
        if each.version == other.version and each.network.overlaps(other.network):
            what = f"{each.network} overlaps {other.network} of {whose}"
            yield here.wrong(what, "give each cable a network of its own")


def check_families(
    items: Sequence[Value], addresses: Sequence[Sequence[Interface]], others: str
) -> Iterator[ConfigError]:
    """One for each item without an address of a family that another has."""
    versions = [{each.version for each in own} for own in addresses]
    for item, there in zip(items, versions, strict=True):
        for family in sorted(set().union(*versions) - there):
            yield item.at("address").wrong(f"no IPv{family} address, but {others} one", "give each one, or none")
