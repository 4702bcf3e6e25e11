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
"""Placeholder in words, lines and patterns for the MAC of this port of the tester."""
_LONGEST = 1000
Argvs = tuple[tuple[str, ...], ...]
"""Commands in order, each as its words; a line of a CLI is one word."""


def _word(value: Value) -> str:
    raw = value.text()
    if not raw or len(raw) > _LONGEST or not raw.isprintable():
        raise ConfigError(f"{raw[:40]!r} cannot be a part of a command", f"one line, {_LONGEST} characters at most")
    return raw


@r.takes(title="one or more commands")
def commands(value: Value) -> Argvs:
    """Read the words of a command, as in [ip, link, show]; a list of such lists; or lines of a CLI."""
    if isinstance(value.raw, str):
        lines = [line.strip() for line in value.raw.splitlines() if line.strip()]
        return tuple((_word(Value(value.file, value.line, value.key, line)),) for line in lines or [""])
    items = value.items("word")
    nested = [isinstance(item.raw, Sequence) and not isinstance(item.raw, str) for item in items]
    if not items or (any(nested) and not all(nested)):
        raise ConfigError("neither a command nor a list of commands", "write its words as [ip, link, show]")
    return tuple(commands(item)[0] for item in items) if nested[0] else (r.each_of(items, _word),)


@r.takes(title="a command")
def command(value: Value) -> tuple[str, ...]:
    """Read one command, as its words or as a line of a CLI."""
    first, *others = commands(value)
    if others:
        raise ConfigError("more than one command", "name one")
    return first


def pattern(*groups: int) -> Callable[[Value], str]:
    """Reader of a regular expression with one of these numbers of groups; none given: any number."""

    @r.takes(**r.ONE_VALUE, title="a pattern")
    def read(value: Value) -> str:
        count, _ = named_groups(value.text())
        if groups and count not in groups:
            raise ConfigError(f"{value.text()[:80]!r} has {count} groups", r"put one pair of brackets: rx: (\d+)")
        return value.text()

    return read


@r.takes(**r.ONE_VALUE, title="a pattern")
def cpu_pattern(value: Value) -> str:
    """Read a regular expression for one CPU's times, with groups named busy..., idle..., packet..., and cpu."""
    _, names = named_groups(value.text())
    if not all(any(name.startswith(kind) for name in names) for kind in ("busy", "idle")):
        raise ConfigError("a CPU's times have no group busy or none idle", r"write (?P<busy>\d+) and (?P<idle>\d+)")
    return value.text()


@dataclass(frozen=True)
class Step:
    """A setting of the DUT."""

    what: Annotated[str, _word]  # its name in plans and facts
    run: Annotated[Argvs, commands]
    """Commands that make the setting."""
    check: Annotated[tuple[str, ...], command]
    """Command whose output shows if the setting is made."""
    matches: Annotated[str, pattern()]
    """Pattern found in the check's output if and only if the setting is made."""
    undo: Annotated[Argvs, commands]
    """Commands by which revert undoes ``run``."""
    undone_if: Annotated[str | None, _word] = None
    """Words in the output of ``undo`` that mean that nothing was left to undo."""
    lasts: Annotated[bool, r.boolean] = False
    """True if the setting outlives a restart of the DUT."""
    timeout_s: Annotated[float, r.seconds, "timeout"] = 15.0
    """Longest time of each of its commands."""


@dataclass(frozen=True)
class Probe:
    """A fact to read back and attest."""

    what: Annotated[str, _word]  # its name among the facts
    run: Annotated[tuple[str, ...], command]  # command that prints it
    matches: Annotated[str, pattern()]
    """Pattern whose first group, or whole match, is the fact."""


@dataclass(frozen=True)
class PacketPatterns:
    """Totals of the packets of an interface."""

    port: Annotated[int, r.integer(0, 127)]
    """Tester's port that the interface faces."""
    rx: Annotated[str | None, pattern(1)] = None  # its group is the total of packets received
    tx: Annotated[str | None, pattern(1)] = None  # its group is the total of packets sent


@dataclass(frozen=True)
class DropPattern:
    """A total of lost frames."""

    name: Annotated[str, _word]
    """Name of the counter; rx or tx in it says at which end of an interface it counts."""
    matches: Annotated[str, pattern(1)]  # its group is the total
    port: Annotated[int | None, r.integer(0, 127)] = None
    """Tester's port that the interface faces; None: the total is the whole DUT's."""


@dataclass(frozen=True)
class Counters:
    """A command, and patterns of the counters in its output."""

    run: Annotated[tuple[str, ...], command]  # command that prints them
    packets: Annotated[tuple[PacketPatterns, ...], list_of("port", section(PacketPatterns, "packets of a port"))] = ()
    drops: Annotated[tuple[DropPattern, ...], list_of("counter", section(DropPattern, "a drop counter"))] = ()
    cpus: Annotated[str | None, cpu_pattern] = None
    """Pattern that matches once for each CPU, in units of ``tick``. Groups: ``cpu`` is its number; ``idle...``,
    ``busy...`` and ``packet...`` (busy with packets) are times, which add up to the whole."""
    time: Annotated[str | None, pattern(1)] = None
    """Pattern whose group is the DUT's clock in seconds, so that rates are exact."""


@dataclass(frozen=True)
class CommandsSettings:
    """Commands that set the DUT up, read it back and count."""

    apply: Annotated[tuple[Step, ...], list_of("step", section(Step, "a step"))] = ()
    verify: Annotated[tuple[Probe, ...], list_of("reading", section(Probe, "a reading"))] = ()
    counters: Annotated[tuple[Counters, ...], list_of("command", section(Counters, "counters"))] = ()
    identity: Annotated[Probe | None, section(Probe, "an identity")] = None
    """Fact that changes whenever the DUT restarts, which undoes all settings that do not last; None: it is taken not
    to restart."""
    clock_hz: Annotated[float | None, r.clock, "clock"] = None
    """Clock rate of the CPUs, without which there are no cycles per packet."""
    tick_s: Annotated[float, r.seconds, "tick"] = 0.01
    """Unit of the CPUs' times that ``cpus`` finds."""
