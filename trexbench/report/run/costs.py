"""Cost of packets to a DUT, as text, tables and plots: at one rate, and at several side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ...core.dut.cycles import Cost
from ...core.dut.runtime import WorkerEfficiency
from ...core.result import RunResult
from ...core.units import format_pps, format_share
from ..plots import PlotAxis, PlotFigure, PlotLine, decades
from ..sheet import Item, Sheet, figure, format_sheet, make_sheet, of_pps, of_share
from ..words import format_cycles, or_dash

NO_CYCLES = "no cycles per packet"
COSTS = (
    "Offered [pps]; Forwarded [pps]; Loss [%]; Cycles/packet; With polling^1; Vectors/call^2; Clocks [MHz]^3; "
    "Energy [\u00b5J/packet]^4"
)


def cost_words(cost: Cost, cpus: bool = True) -> str:
    """The cost at one rate in a line: cycles per packet, vectors, clocks, energy; or why there is no figure."""
    if cost.cycles_per_packet is None:
        reasons = [c.text for c in cost.warnings if c.code.startswith("no-") or c.code == "budget-exceeds-clock"]
        return f"{NO_CYCLES}: {reasons[0].replace(f'{NO_CYCLES}: ', '')}" if reasons else NO_CYCLES
    words = [f"{format_cycles(cost.cycles_per_packet)} cycles/packet"]
    if cost.with_polling is not None:
        words[0] += f" ({format_cycles(cost.with_polling)} with polling)"
    words[0] += f" at {format_pps(cost.forwarded_pps)}"
    if cost.vectors_per_call is not None:
        words.append(f"{cost.vectors_per_call:.2f} vectors/call")
    for budget in cost.budgets:
        if budget.effective_hz is not None:
            megahertz = f"{budget.effective_hz / 1e6:.0f} of {budget.clock_hz / 1e6:.0f} MHz"
            words.append(f"{budget.worker} accounts for {megahertz}")
    if cost.cpus and cpus:
        words.append(f"busy {', '.join(f'cpu{cpu.cpu} {format_share(cpu.busy)}' for cpu in cost.cpus)}")
    if cost.perf_cycles_per_packet is not None:
        words.append(f"perf counts {format_cycles(cost.perf_cycles_per_packet)}")
    if cost.uj_per_packet is not None and cost.power_w is not None:
        words.append(f"{cost.uj_per_packet:.2f} uJ/packet at {cost.power_w:.1f} W")
    return ", ".join([*words, f"from {cost.source}"])


def known_costs(result: RunResult) -> tuple[Cost, ...]:
    """The run's costs that have a figure."""
    return tuple(cost for cost in result.costs if cost.cycles_per_packet is not None and cost.forwarded_pps)


def format_costs(costs: Sequence[Cost], room: int | None = None) -> str:
    """Format a table of nodes and a summary line for each rate, then a table of all rates. room: as of room_of."""
    blocks = (*map(_block, costs), format_sheet(cost_sheet(costs), room))
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def cost_sheet(costs: Sequence[Cost]) -> Sheet:
    """Table of the costs, a row per rate."""
    return make_sheet(COSTS, map(cost_items, costs), "cycles", "Cost of a packet")


def cost_items(cost: Cost) -> Iterator[Item]:
    """Yield the items of COSTS."""
    yield from map(of_pps, (cost.offered_pps, cost.forwarded_pps))
    yield of_share(cost.loss)
    yield from (figure(value, format_cycles) for value in (cost.cycles_per_packet, cost.with_polling))
    yield figure(cost.vectors_per_call, "{:.2f}".format)
    yield figure(cost.effective_hz, lambda hertz: f"{hertz / 1e6:.0f} MHz", 1e-6)
    yield figure(cost.uj_per_packet, "{:.2f} uJ".format)


def cost_plots(costs: Sequence[Cost]) -> Iterator[PlotFigure]:
    """Plot cycles per packet over the forwarded rate, and vectors per call if the DUT counts them."""
    polls = any(cost.with_polling is not None for cost in costs)
    cycles = _cost_line("without polling" if polls else "cycles/packet", costs, lambda cost: cost.cycles_per_packet)
    polling = _cost_line("with polling", costs, lambda cost: cost.with_polling)
    vectors = _cost_line("vectors/call", costs, lambda cost: cost.vectors_per_call or None, "{:.4g}".format)
    positive = [value for value in (*cycles.y, *polling.y) if value > 0]
    ticks = decades(format_cycles, range(8)) if positive and max(positive) > 10 * min(positive) else ()
    forwarded = PlotAxis("forwarded, Mpps", decades("{:g}".format, range(-6, 4)))
    yield PlotFigure(forwarded, PlotAxis("cycles/packet", ticks), [line for line in (cycles, polling) if line.x])
    if vectors.x:
        powers = [(2.0**power, f"{2**power}") for power in range(12)]
        yield PlotFigure(forwarded, PlotAxis("vectors/call", powers), [vectors])


def _cost_line(
    name: str, costs: Sequence[Cost], of: Callable[[Cost], float | None], form: Callable[[float], str] = format_cycles
) -> PlotLine:
    points = sorted((cost.forwarded_pps / 1e6, value) for cost in costs if (value := of(cost)) is not None)
    values = [value for _, value in points]
    words = [form(value) for value in values]
    return PlotLine(name, [rate for rate, _ in points], values, words, (), bounds=[False] * len(points), words=words)


def _block(cost: Cost) -> Iterator[str]:
    yield f"{format_pps(cost.offered_pps)} offered"
    for worker in cost.workers:
        yield from _nodes(worker)
    for cpu in cost.cpus:
        clock = f" of {cpu.clock_hz / 1e6:.0f} MHz" if cpu.clock_hz else ""
        packets = f", {format_share(cpu.packet_busy)} on packets" if cpu.packet_busy is not None else ""
        yield f"  cpu{cpu.cpu:<4} {format_share(cpu.busy)} busy{clock}{packets}"
    yield f"  {cost_words(cost, cpus=False)}"
    yield from (f"  warning: {warning.text}" for warning in cost.warnings)


def _nodes(worker: WorkerEfficiency) -> Iterator[str]:
    if worker.reason is not None:
        yield f"  {worker.worker}: {worker.reason}"
        return
    yield f"  {worker.worker:<32}{'Clocks':>12}{'Vectors/Call':>14}"
    for node in sorted(worker.nodes, key=lambda node: node.name):
        vectors = or_dash(node.vectors_per_call, "{:.2f}".format)
        yield f"    {node.name:<30}{node.cycles_per_packet:>12.2e}{vectors:>14}"
    polling = ", ".join(node.name for node in worker.nodes if node.is_input) or "input nodes"
    yield (
        f"    {worker.pps or 0.0:.6g} packets/sec, at {worker.cycles_with_polling or 0.0:.1f} cycles/packet,"
        f" {worker.cycles_per_packet or 0.0:.0f} cycles/packet not counting {polling}"
    )
