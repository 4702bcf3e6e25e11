"""What packets cost a DUT, in words and tables: one stretch after the other, and several rates side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..core.cycles import Cost
from ..core.efficiency import WorkerEfficiency
from ..core.units import format_pps, format_share

NONE = "-"
NO_CYCLES = "no cycles per packet"


def cost_words(cost: Cost, cpus: bool = True) -> str:
    """One stretch in a line: cycles per packet, vectors, clocks, energy; or that there is no figure."""
    if cost.cycles_per_packet is None:
        reasons = [c.text for c in cost.caveats if c.code.startswith("no-") or c.code == "budget-exceeds-clock"]
        return f"no cycles per packet: {reasons[0].removeprefix('no cycles per packet: ')}" if reasons else NO_CYCLES
    words = [f"{format_cycles(cost.cycles_per_packet)} cycles/packet"]
    if cost.with_polling is not None:
        words[0] += f" ({format_cycles(cost.with_polling)} with polling)"
    words[0] += f" at {format_pps(cost.forwarded_pps)}"
    if cost.vectors_per_call is not None:
        words.append(f"{cost.vectors_per_call:.2f} vectors/call")
    words += list(_clocks(cost, cpus))
    if cost.perf_cycles_per_packet is not None:
        words.append(f"perf counts {format_cycles(cost.perf_cycles_per_packet)}")
    if cost.uj_per_packet is not None and cost.power_w is not None:
        words.append(f"{cost.uj_per_packet:.2f} uJ/packet at {cost.power_w:.1f} W")
    return ", ".join([*words, f"from {cost.source}"])


def format_cycles(value: float) -> str:
    """Digits as they deserve: 358, 4943, 1 514 943."""
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}".replace(",", " ")


def _clocks(cost: Cost, cpus: bool) -> Iterator[str]:
    for budget in cost.budgets:
        if budget.effective_hz is not None:
            yield f"{budget.worker} accounts for {budget.effective_hz / 1e6:.0f} of {budget.clock_hz / 1e6:.0f} MHz"
    if cost.cpus and cpus:
        busy = [f"cpu{one.cpu} {format_share(one.busy)}" for one in cost.cpus]
        yield f"busy {', '.join(busy)}"


def format_costs(costs: Sequence[Cost]) -> str:
    """The interlude of the seed: a table of nodes for every rate, its summary line, then all rates side by side."""
    blocks = ["\n".join(_block(cost)) for cost in costs]
    return "\n\n".join([*blocks, "\n".join(_table(costs))]) + "\n"


def _block(cost: Cost) -> Iterator[str]:
    yield f"{format_pps(cost.offered_pps)} offered"
    for worker in cost.workers:
        yield from _nodes(worker)
    for one in cost.cpus:
        clock = f" of {one.clock_hz / 1e6:.0f} MHz" if one.clock_hz else ""
        packets = f", {format_share(one.packet_busy)} on packets" if one.packet_busy is not None else ""
        yield f"  cpu{one.cpu:<4} {format_share(one.busy)} busy{clock}{packets}"
    yield f"  {cost_words(cost, cpus=False)}"
    yield from (f"  doubt: {caveat.text}" for caveat in cost.caveats)


def _nodes(worker: WorkerEfficiency) -> Iterator[str]:
    if worker.reason is not None:
        yield f"  {worker.worker}: {worker.reason}"
        return
    yield f"  {worker.worker:<32}{'Clocks':>12}{'Vectors/Call':>14}"
    for node in sorted(worker.nodes, key=lambda node: node.name):
        vectors = NONE if node.vectors_per_call is None else f"{node.vectors_per_call:.2f}"
        yield f"    {node.name:<30}{node.cycles_per_packet:>12.2e}{vectors:>14}"
    polling = ", ".join(node.name for node in worker.nodes if node.is_input) or "input nodes"
    yield (
        f"    {worker.pps or 0.0:.6g} packets/sec, at {worker.cycles_with_polling or 0.0:.1f} cycles/packet,"
        f" {worker.cycles_per_packet or 0.0:.0f} cycles/packet not counting {polling}"
    )


_HEAD = ("offered", "forwarded", "loss", "cycles/packet", "with polling", "vectors/call", "clocks, MHz", "uJ/packet")


def _table(costs: Sequence[Cost]) -> Iterator[str]:
    rows = [_HEAD, *(_row(cost) for cost in costs)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(_HEAD))]
    for row in rows:
        yield "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))


def _row(cost: Cost) -> tuple[str, ...]:
    return (
        format_pps(cost.offered_pps),
        format_pps(cost.forwarded_pps),
        NONE if cost.loss is None else format_share(cost.loss),
        NONE if cost.cycles_per_packet is None else format_cycles(cost.cycles_per_packet),
        NONE if cost.with_polling is None else format_cycles(cost.with_polling),
        NONE if cost.vectors_per_call is None else f"{cost.vectors_per_call:.2f}",
        NONE if cost.effective_hz is None else f"{cost.effective_hz / 1e6:.0f}",
        NONE if cost.uj_per_packet is None else f"{cost.uj_per_packet:.2f}",
    )
