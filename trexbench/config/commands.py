"""The ``commands:`` section of a DUT config: a DUT that is set up, read back and counted by commands of the user's."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

from ..core.errors import ConfigError
from ..core.patterns import named_groups
from . import readers as r
from .readers import list_of, section
from .yamltree import Value

TESTER_MAC = re.compile(r"\{mac ([0-9]+)\}")
"""In words, lines and patterns: the MAC of this port of the tester."""
_LONGEST = 1000
Argvs = tuple[tuple[str, ...], ...]
"""Commands in their order, each as its words; a line of a CLI is one word."""


def _word(value: Value) -> str:
    raw = value.text()
    if not raw or len(raw) > _LONGEST or not raw.isprintable():
        raise ConfigError(f"{raw[:40]!r} cannot be a part of a command", f"one line, {_LONGEST} characters at most")
    return raw


def commands(value: Value) -> Argvs:
    """The words of a command, as in [ip, link, show]; a list of such lists; or lines of a CLI."""
    if isinstance(value.raw, str):
        lines = [line.strip() for line in value.raw.splitlines() if line.strip()]
        return tuple((_word(Value(value.file, value.line, value.key, line)),) for line in lines or [""])
    items = value.items("word")
    nested = [isinstance(item.raw, Sequence) and not isinstance(item.raw, str) for item in items]
    if not items or (any(nested) and not all(nested)):
        raise ConfigError("neither a command nor a list of commands", "write its words as [ip, link, show]")
    return tuple(commands(item)[0] for item in items) if nested[0] else (r.each_of(items, _word),)


def command(value: Value) -> tuple[str, ...]:
    """One command, as its words or as a line of a CLI."""
    found = commands(value)
    if len(found) > 1:
        raise ConfigError("more than one command", "name one")
    return found[0]


def pattern(*groups: int) -> Callable[[Value], str]:
    """A regular expression with so many groups."""

    def read(value: Value) -> str:
        count, _ = named_groups(value.text())
        if groups and count not in groups:
            raise ConfigError(f"{value.text()[:80]!r} has {count} groups", r"put one pair of brackets: rx: (\d+)")
        return value.text()

    return read


def cpu_pattern(value: Value) -> str:
    """A regular expression for one CPU's times: named groups busy..., idle..., packet..., and cpu."""
    _, names = named_groups(value.text())
    if not all(any(name.startswith(kind) for name in names) for kind in ("busy", "idle")):
        raise ConfigError("a CPU's times have no group busy or none idle", r"write (?P<busy>\d+) and (?P<idle>\d+)")
    return value.text()


@dataclass(frozen=True)
class Step:
    """One setting. check: shows whether it is made, which it is where ``matches`` is found in what is printed.

    undo: run by revert where apply ran ``run``. undone_if: words in its output that mean that nothing was left to undo.
    lasts: outlives a restart of the DUT. timeout_s: of each of its
    commands.
    """

    what: Annotated[str, _word]
    run: Annotated[Argvs, commands]
    check: Annotated[tuple[str, ...], command]
    matches: Annotated[str, pattern()]
    undo: Annotated[Argvs, commands]
    undone_if: Annotated[str | None, _word] = None
    lasts: Annotated[bool, r.boolean] = False
    timeout_s: Annotated[float, r.seconds, "timeout"] = 15.0


@dataclass(frozen=True)
class Probe:
    """Something to read back: the pattern's first group, or all of it, is the fact that is attested."""

    what: Annotated[str, _word]
    run: Annotated[tuple[str, ...], command]
    matches: Annotated[str, pattern()]


@dataclass(frozen=True)
class PacketPatterns:
    """Packets of the interface that faces the tester's port, as totals."""

    port: Annotated[int, r.integer(0, 127)]
    rx: Annotated[str | None, pattern(1)] = None
    tx: Annotated[str | None, pattern(1)] = None


@dataclass(frozen=True)
class DropPattern:
    """A total of lost frames. name: says by rx or tx at which end of an interface. port: None for the whole DUT."""

    name: Annotated[str, _word]
    matches: Annotated[str, pattern(1)]
    port: Annotated[int | None, r.integer(0, 127)] = None


@dataclass(frozen=True)
class Counters:
    """A command, and the counters in what it prints. time: the DUT's clock, in seconds; cpus: see cpu_pattern."""

    run: Annotated[tuple[str, ...], command]
    packets: Annotated[tuple[PacketPatterns, ...], list_of("port", section(PacketPatterns, "packets of a port"))] = ()
    drops: Annotated[tuple[DropPattern, ...], list_of("counter", section(DropPattern, "a drop counter"))] = ()
    cpus: Annotated[str | None, cpu_pattern] = None
    time: Annotated[str | None, pattern(1)] = None


@dataclass(frozen=True)
class CommandsSettings:
    """identity: what changes when the DUT restarts. clock_hz: of its CPUs. tick_s: the unit of their times."""

    apply: Annotated[tuple[Step, ...], list_of("step", section(Step, "a step"))] = ()
    verify: Annotated[tuple[Probe, ...], list_of("reading", section(Probe, "a reading"))] = ()
    counters: Annotated[tuple[Counters, ...], list_of("command", section(Counters, "counters"))] = ()
    identity: Annotated[Probe | None, section(Probe, "an identity")] = None
    clock_hz: Annotated[float | None, r.clock, "clock"] = None
    tick_s: Annotated[float, r.seconds, "tick"] = 0.01
