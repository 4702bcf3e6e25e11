"""Output of a DUT -> its counters, by the patterns of its config; pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ...config.commands import CommandsSettings, Counters
from ...core.dut.telemetry import CpuTime, DropCount, Missing, Observation, PortCount
from ...core.errors import DutError
from ...core.patterns import find, find_all

_GROUPED = re.compile(r"(?<=\d)[ ,'_](?=\d)")
"""Separator between the digits of a large number, as in RouterOS's ``14 256 002``."""


def observation(settings: CommandsSettings, printed: Sequence[str | None]) -> Observation:
    """One reading. printed: by each of the settings' commands, None where it failed; what is not found is missing."""
    finder = _Finder()
    packets: dict[int, dict[str, int | None]] = {}
    drops: list[DropCount] = []
    cpus: list[CpuTime] = []
    at_s: float | None = None
    for one, text in zip(settings.counters, printed, strict=True):
        if text is None:
            continue
        for port in one.packets:
            for end, pattern in (("rx", port.rx), ("tx", port.tx)):
                if pattern is not None:
                    found = finder.total(pattern, text, f"packets of port {port.port}, {end}")
                    packets.setdefault(port.port, {})[end] = found
        for drop in one.drops:
            count = finder.total(drop.matches, text, drop.name)
            if count is not None:
                drops.append(DropCount(drop.name, count, drop.port))
        cpus += finder.cpus(one, text, settings)
        if one.time is not None:
            at_s = finder.number(one.time, text, "the DUT's clock")
    return Observation(
        at_s=at_s,
        cpus=tuple(cpus),
        ports=tuple(PortCount(port, ends.get("rx"), ends.get("tx")) for port, ends in sorted(packets.items())),
        drops=tuple(drops),
        missing=tuple(finder.missing),
    )


class _Finder:
    def __init__(self) -> None:
        self.missing: list[Missing] = []

    def number(self, pattern: str, text: str, what: str) -> float | None:
        """None, and listed as missing, where the pattern finds nothing or no number."""
        try:
            found = find(pattern, text)
        except DutError as error:
            self.missing.append(Missing(what, str(error)))
            return None
        try:
            return _number(found or "")
        except ValueError:
            reason = f"/{pattern}/ found nothing" if found is None else f"/{pattern}/ found {found[:40]!r}, no number"
            self.missing.append(Missing(what, reason))
            return None

    def total(self, pattern: str, text: str, what: str) -> int | None:
        found = self.number(pattern, text, what)
        return None if found is None else int(found)

    def cpus(self, one: Counters, text: str, settings: CommandsSettings) -> list[CpuTime]:
        if one.cpus is None:
            return []
        try:
            found = [_cpu(at, groups, settings) for at, groups in enumerate(find_all(one.cpus, text))]
        except (DutError, ValueError) as error:
            self.missing.append(Missing("CPU time", str(error)))
            return []
        if not found:
            self.missing.append(Missing("CPU time", f"/{one.cpus}/ found nothing"))
        return found


def _number(text: str) -> float:
    """ValueError for what is none, infinity included."""
    found = float(_GROUPED.sub("", text.strip()))
    if not 0 <= found < 1 << 64:
        raise ValueError(f"{text[:40]!r} is no count")
    return found


def _cpu(at: int, groups: Mapping[str, str], settings: CommandsSettings) -> CpuTime:
    """at: its number where the DUT does not say."""

    def seconds(*kinds: str) -> float:
        named = [value for name, value in groups.items() if name.startswith(kinds)]
        return sum(_number(value or "0") for value in named) * settings.tick_s

    busy, has_packet = seconds("busy", "packet"), any(name.startswith("packet") for name in groups)
    packet = seconds("packet") if has_packet else None
    return CpuTime(int(groups.get("cpu") or at), busy + seconds("idle"), busy, packet, settings.clock_hz)
