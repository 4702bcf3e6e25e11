"""Nights of TCP beside published figures, as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core.history.night import CellRecord, Night
from ...core.history.rows import RunRow
from ...core.means import bounded_median
from ...core.tcp.cpu import COLUMNS
from ...core.tcp.limit import TcpLimit
from ...core.units import format_scaled, round_down
from ..room import wrapped
from ..sheet import Item, Sheet, figure, format_sheet, make_sheet, of_share, of_text
from ..words import SIMULATED, format_count, mark_banners, starred
from .text import of_mega

_HEADS = (
    "::Cell; Published [Mbit/s]; Measured [Mbit/s]; Ratio; :Limit; Busy cores^1; Ping idle [ms]^2; Ping loaded [ms]^2; "
    "Power idle [W]^3; Power loaded [W]^3; Payload per CPU second [bit]^4"
)
_CPUS = "::Cell; :CPU of the; Published [% of a core]; Measured [% of a core]; Ratio"
CPU_NAMES = dict(
    zip(COLUMNS, ("client's tunnel", "client's program", "far end's tunnel", "server's program"), strict=True)
)
_LIMITS = {limit.value: limit.words for limit in TcpLimit}
NEAR = 0.05


@dataclass(frozen=True)
class PublishedCell:
    """A cell's figures beside those that others published."""

    cell: CellRecord
    published: float | None
    """In Mbit/s; None: nothing was published."""
    row: RunRow | None
    """None: not measured."""
    scale: float = 1.0
    """Share of line rate and buffers measured with; below 1 if those asked for were not available."""
    published_cpu: Mapping[str, float] = field(default_factory=dict)
    """Shares of one core by core.tcp.cpu.COLUMNS; so are the measured ones in ``cpu``."""
    cpu: Mapping[str, float] = field(default_factory=dict)
    bits_per_cpu_second: float | None = None

    @property
    def mbps(self) -> float | None:
        """Measured rate in Mbit/s; None where it was not measured."""
        bps = None if self.row is None else self.row.get("total_bps")
        return None if bps is None else bps / 1e6

    @property
    def at_least(self) -> bool:
        """True if that is a lower bound."""
        return self.row is not None and self.row.at_least

    @property
    def ratio(self) -> float | None:
        """Measured over published, scaled likewise; None where one of them is missing."""
        return self.mbps / self.published / self.scale if self.mbps is not None and self.published else None

    def to_dict(self) -> dict[str, Any]:
        cpu = {"cpu": dict(self.cpu), "bits_per_cpu_second": self.bits_per_cpu_second}
        return {
            "cell": str(self.cell),
            "published_mbps": self.published,
            "measured_mbps": self.mbps,
            "at_least": self.at_least,
            "limit": None if self.row is None else self.row.limit,
            "ratio": self.ratio,
            **({"scale": self.scale} if self.scale != 1.0 else {}),
            **(cpu if self.cpu else {}),
            **({"published_cpu": dict(self.published_cpu)} if self.published_cpu else {}),
        }

    @property
    def cpu_ratios(self) -> Mapping[str, float | None]:
        """Measured over published, by column; None where the measured one is missing."""
        own = self.cpu
        return {name: own[name] / share if name in own else None for name, share in self.published_cpu.items() if share}


def published_sheets(
    lines: Sequence[PublishedCell], marked: Callable[[str, str], Item] = lambda name, _: of_text(name)
) -> list[Sheet]:
    """Make tables of the cells in this order: rates in Mbit/s, pings in ms; and CPU of processes where there is any.

    marked: makes an item of a cell's name and its mark.
    """
    names = [marked(one.cell.known_by, "" if one.row is None else one.row.cell.mark) for one in lines]
    pairs = [*zip(names, lines, strict=True)]
    rates = make_sheet(_HEADS, (_row(*pair) for pair in pairs), "published", "Beside published figures, in Mbit/s")
    if not any(one.published_cpu or "client_tunnel" in one.cpu for one in lines):
        return [rates]
    cpus = (row for pair in pairs for row in _cpu_rows(*pair))
    return [rates, make_sheet(_CPUS, cpus, "published-cpu", "CPU of processes beside published figures")]


def table_head(night: Night, lines: Sequence[PublishedCell]) -> list[str]:
    """Lines above the table: the night, its banners, and the ratios of all cells together."""
    return [_title(night), *_banners(night, lines), *_ratio_lines(lines)]


def _title(night: Night) -> str:
    """The night, and the units, which heads have only as CSV."""
    return f"{night.suite}, night of {night.night}: rates in Mbit/s, pings in ms"


def _banners(night: Night, lines: Sequence[PublishedCell]) -> list[str]:
    return [SIMULATED] if night.simulated else mark_banners(line.row.cell for line in lines if line.row is not None)


def format_table(night: Night, lines: Sequence[PublishedCell], room: int | None = None) -> str:
    """Format the table, and below it the ratios of all cells together. room: as of room_of."""
    banners = [f"{line}\n" for line in starred(_banners(night, lines))]
    rates, *cpus = published_sheets(lines)
    text = [*banners, _title(night), "", *format_sheet(rates, room), "", *wrapped(_ratio_lines(lines), room)]
    for sheet in cpus:
        text += ["", sheet.caption, "", *format_sheet(sheet, room), "", *_cpu_words(lines)]
    return "\n".join(text).rstrip() + "\n"


def _ratio_lines(lines: Sequence[PublishedCell]) -> list[str]:
    ratios = [(one.ratio, one.at_least) for one in lines if one.ratio is not None]
    near = sum(abs(ratio - 1) <= NEAR for ratio, _ in ratios)
    words = f"{near} of {format_count(len(ratios), 'published figure')} within {100 * NEAR:g} %"
    together = [f"{words}, median ratio {_of_ratio(*bounded_median(ratios)).text}"] if ratios else []
    return together + [
        f"{one.cell.known_by}: line and buffers were scaled to {one.scale:.3g}, so its ratio is to {one.scale:.3g} of "
        f"the published figure"
        for one in lines
        if one.scale != 1.0
    ]


def _cpu_words(lines: Sequence[PublishedCell]) -> Iterator[str]:
    if ratios := [ratio for one in lines for ratio in one.cpu_ratios.values()]:
        known = [ratio for ratio in ratios if ratio is not None]
        near = sum(abs(ratio - 1) <= NEAR for ratio in known)
        count, missing = format_count(len(ratios), "published CPU figure"), len(ratios) - len(known)
        words = f"{near} of {count} within {100 * NEAR:g} %{f', {missing} not measured' if missing else ''}"
        yield words if known else f"none of {count} was measured"


def _of_ratio(ratio: float | None, bound: bool) -> Item:
    return figure(ratio, lambda known: f"{round_down(known, 3) if bound else known:.3f}", bound=bound)


def _cpu_rows(name: Item, line: PublishedCell) -> Iterator[tuple[Item | str, ...]]:
    for key, words in CPU_NAMES.items():
        both = line.published_cpu.get(key), line.cpu.get(key)
        if both != (None, None):
            yield name, words, *map(of_share, both), figure(line.cpu_ratios.get(key), "{:.3f}".format)


def _row(name: Item, line: PublishedCell) -> Iterator[Item | str]:
    row = line.row

    def of(column: str) -> float | None:
        return None if row is None else row.get(column)

    yield name
    yield figure(line.published, "{:g}".format)
    yield of_mega(of("total_bps"), bound=line.at_least)
    yield _of_ratio(line.ratio, line.at_least)
    yield line.cell.state.value if row is None else of_text(row.limit, [_LIMITS.get(row.limit, row.limit)])
    cores, bps = of("cores_per_gbps"), of("total_bps")
    yield figure(None if cores is None or bps is None else cores * bps / 1e9, "{:.2f}".format)
    for column in ("ping_idle_s", "ping_loaded_s"):
        yield figure(of(column), lambda one: f"{1000 * one:.3f} ms", 1000)
    for column in ("idle_power_w", "power_w"):
        yield figure(of(column), "{:.1f} W".format)
    yield figure(line.bits_per_cpu_second, lambda bits: format_scaled(bits, "bit", 3))
