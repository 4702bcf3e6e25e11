"""What may stand behind an option: rates, durations, shares, speeds, ports, modes and DUTs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import click
from click.shell_completion import CompletionItem

from ..core.errors import ConfigError
from ..core.known import is_date
from ..core.profile import MODES, resolve_mode
from ..core.units import Rate, parse_duration, parse_rate, parse_share

_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")


class Parsed(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.4 only
    """A type by the function that reads it; its ConfigError becomes click's."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except ConfigError as error:
            self.fail(str(error), param, ctx)


def _warmup(text: str) -> tuple[Rate, float | None]:
    rate, colon, duration = text.partition(":")
    return parse_rate(rate), parse_duration(duration) if colon else None


def _ports(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise ConfigError(f"ports {text!r} not understood", "write them as 0,1 or 0,1,2,3")
    return tuple(int(part) for part in parts)


def _tunables(text: str) -> dict[str, str]:
    """size=64,vm=var2"""
    found = {}
    for item in text.split(","):
        name, equals, value = item.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise ConfigError(f"tunable {item!r} not understood", "write them as size=64,vm=var2")
        found[name.strip()] = value.strip()
    return found


def _label(text: str) -> str:
    if not _LABEL.fullmatch(text) or is_date(text) or text == "latest" or text.endswith(".json"):
        raise ConfigError(
            f"label {text[:80]!r} would not be found again",
            "take up to 64 of A-Z a-z 0-9 . _ + -, as in kernel-6.18; no date, no name of a document, and not latest",
        )
    return text


RATE = Parsed("RATE", parse_rate)
WARMUP = Parsed("RATE[:TIME]", _warmup)
DURATION = Parsed("TIME", parse_duration)
SHARE = Parsed("SHARE", parse_share)
PORTS = Parsed("0,1", _ports)
LABEL = Parsed("LABEL", _label)
TUNABLES = Parsed("NAME=VALUE,...", _tunables)


def mode_named(mode: str | None) -> str | None:
    """A mode's own name, by its name or an alias; others, as a profile of one's own, stay as they are."""
    try:
        return mode and resolve_mode(mode).name
    except ConfigError:
        return mode


def complete_modes(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    names = {name: mode.summary for mode in MODES for name in (mode.name, *mode.aliases)}
    return [CompletionItem(name, help=text) for name, text in names.items() if name.startswith(incomplete)]


def complete_suites(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of suites; where none begins like this, it is a file's."""
    from ..config.read_suite import find_suites

    names = [CompletionItem(name) for name in sorted(find_suites()) if name.startswith(incomplete)]
    return names or [CompletionItem(incomplete, type="file")]


def complete_duts(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from ..config import find_configs

    try:
        return [CompletionItem(name) for name in sorted(find_configs()) if name.startswith(incomplete)]
    except ConfigError:
        return []
