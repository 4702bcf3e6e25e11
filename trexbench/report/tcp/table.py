"""Nights of TCP beside published figures, as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from ...core.history.night import CellRecord, Night
from ...core.history.rows import RunRow
from ...core.tcp.cpu import COLUMNS
from ...core.units import format_scaled
from ..room import wrapped
from ..sheet import Item, Sheet, figure, format_sheet, make_sheet
from ..words import SIMULATED, format_count, mark_banners, or_dash, starred

_HEADS = (
    "::cell; published [Mbit/s]; measured [Mbit/s]; ratio; :limit; busy cores^1; ping idle [ms]^2; loaded [ms]^2; "
    "power idle [W]^3; loaded [W]^3"
)
_CPUS = "::cell; client's tunnel; client; server's tunnel; server; per CPU-second^1"
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
    def ratio(self) -> float | None:
        """Measured over published, scaled likewise; None where one of them is missing."""
        return self.mbps / self.published / self.scale if self.mbps is not None and self.published else None

    def to_dict(self) -> dict[str, Any]:
        cpu = {"cpu": dict(self.cpu), "bits_per_cpu_second": self.bits_per_cpu_second}
        return {
            "cell": str(self.cell),
            "published_mbps": self.published,
            "measured_mbps": self.mbps,
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


def published_sheet(lines: Sequence[PublishedCell]) -> Sheet:
    """Table of the cells in this order, rates in Mbit/s, pings in ms."""
    return make_sheet(_HEADS, map(_row, lines), "published", "Beside what was published")


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
    table = format_sheet(published_sheet(lines), room)
    ratios = wrapped(_ratio_lines(lines), room)
    return "\n".join([*banners, _title(night), "", *table, "", *ratios, *_cpu_lines(lines, room)]).rstrip() + "\n"


def _ratio_lines(lines: Sequence[PublishedCell]) -> list[str]:
    ratios = [one.ratio for one in lines if one.ratio is not None]
    near = sum(abs(ratio - 1) <= NEAR for ratio in ratios)
    words = f"{near} of {format_count(len(ratios), 'published figure')} within {100 * NEAR:g} %"
    together = [f"{words}, median ratio {median(ratios):.3f}"] if ratios else []
    return together + [
        f"{one.cell.known_by}: line and buffers were scaled to {one.scale:.3g}, so its ratio is to {one.scale:.3g} of "
        f"the published figure"
        for one in lines
        if one.scale != 1.0
    ]


def _cpu_lines(lines: Sequence[PublishedCell], room: int | None) -> Iterator[str]:
    """Yield the table of the processes' CPU, where a tunnel's were read or any were published."""
    if not any(one.published_cpu or "client_tunnel" in one.cpu for one in lines):
        return
    yield from ("", "CPU of processes, % of one core: measured, published", "")
    yield from format_sheet(make_sheet(_CPUS, map(_cpu_row, lines)), room)
    if ratios := [ratio for one in lines for ratio in one.cpu_ratios.values()]:
        known = [ratio for ratio in ratios if ratio is not None]
        near = sum(abs(ratio - 1) <= NEAR for ratio in known)
        count, missing = format_count(len(ratios), "published CPU figure"), len(ratios) - len(known)
        words = f"{near} of {count} within {100 * NEAR:g} %{f', {missing} not measured' if missing else ''}"
        yield from ("", words if known else f"none of {count} was measured")


def _cpu_row(line: PublishedCell) -> Iterator[str]:
    yield line.cell.known_by
    for name in COLUMNS:
        both = (line.cpu.get(name), line.published_cpu.get(name))
        yield " ".join(or_dash(one, lambda share: f"{100 * share:.2f}") for one in both)
    yield or_dash(line.bits_per_cpu_second, lambda one: format_scaled(one, "bit", 3))


def _row(line: PublishedCell) -> Iterator[Item | str]:
    row = line.row

    def of(column: str) -> float | None:
        return None if row is None else row.get(column)

    yield line.cell.known_by
    yield figure(line.published, "{:g}".format)
    yield figure(line.mbps, "{:.1f}".format, bound=row is not None and row.at_least)
    yield figure(line.ratio, "{:.3f}".format)
    yield line.cell.state.value if row is None else row.limit
    cores, bps = of("cores_per_gbps"), of("total_bps")
    yield figure(None if cores is None or bps is None else cores * bps / 1e9, "{:.2f}".format)
    for column in ("ping_idle_s", "ping_loaded_s"):
        yield figure(of(column), lambda one: f"{1000 * one:.3f} ms", 1000)
    for column in ("idle_power_w", "power_w"):
        yield figure(of(column), "{:.1f} W".format)
