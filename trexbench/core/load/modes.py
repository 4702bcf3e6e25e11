"""The name of traffic in results: the mode or profile, with the tunables that differ from its own. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

from ..errors import ConfigError
from ..names import is_name
from .profile import resolve_mode

MOST_LETTERS = 60
"""A longer name, or one not valid as a file name, has a digest of the tunables instead."""


def traffic_name(base: str, own: Mapping[str, str], tunables: Mapping[str, str]) -> str:
    """``var2-imix,size=64``: with tunables unlike the mode's own it is other traffic, with its own history."""
    changed = ",".join(f"{name}={value}" for name, value in sorted(tunables.items()) if own.get(name) != value)
    if not changed:
        return base
    name = f"{base},{changed}"
    return name if len(name) <= MOST_LETTERS and is_name(name) else f"{base},{sha256(changed.encode()).hexdigest()[:8]}"


def is_mode(name: str) -> bool:
    """Test whether a mode has this name; an alias does not count."""
    try:
        return resolve_mode(name).name == name
    except ConfigError:
        return False


def full_mode_name(mode: str) -> str:
    """The name in results of a mode or its alias, with its tunables; any other name stays as it is."""
    base, comma, tunables = mode.partition(",")
    try:
        return f"{resolve_mode(base).name}{comma}{tunables}"
    except ConfigError:
        return mode
