"""A DUT's counts between two readings, as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...core.dut.runtime import of_threads
from ...core.dut.telemetry import CpuTime, Observation
from ...core.units import format_pps, format_share

DETAILS = 12
"""Most lines of details."""


def format_counters(before: Observation, after: Observation, apart_s: float) -> str:
    """Format rates per port and queue, drops, busy CPUs, VPP's cycles per packet, details, and what was not read."""
    lines = [f"in {apart_s:.2f} s", *_ports(before, after, apart_s), *_drops(before, after)]
    lines += [*_cpus(before.cpus, after.cpus), *_threads(after)]
    if after.perf_hz is not None:
        lines.append(f"perf stat    {after.perf_hz / 1e6:.0f} million cycles/s")
    if after.power_w is not None:
        lines.append(f"power        {after.power_w:.1f} W")
    lines += _details(before, after)
    lines += [f"not read     {missing.what}: {missing.reason}" for missing in after.missing]
    return "\n".join(lines) + "\n"


def _ports(before: Observation, after: Observation, apart_s: float) -> Iterator[str]:
    old = {port.port: port for port in before.ports}
    for now in after.ports:
        then = old.get(now.port)
        received = _rate(then.rx_packets if then else None, now.rx_packets, apart_s)
        sent = _rate(then.tx_packets if then else None, now.tx_packets, apart_s)
        yield f"port {now.port:<7} received {received}, sent {sent}"
    queues = {(port.port, port.queue): port.packets for port in before.queues}
    for queue in after.queues:
        rate = _rate(queues.get((queue.port, queue.queue)), queue.packets, apart_s)
        yield f"  queue {queue.queue:<4} {rate}"


def _drops(before: Observation, after: Observation) -> Iterator[str]:
    """Yield the counters that both readings have and that moved."""
    old = {(drop.name, drop.port, drop.queue): drop.count for drop in before.drops}
    both = ((drop, old.get((drop.name, drop.port, drop.queue))) for drop in after.drops)
    moved = [(drop, drop.count - then) for drop, then in both if then is not None]
    for drop, count in moved:
        if count:
            where = "" if drop.port is None else f" on port {drop.port}"
            where += "" if drop.queue is None else f" queue {drop.queue}"
            yield f"dropped      {count if count > 0 else 'unknown (the counter went back)'} {drop.name}{where}"
    if moved and not any(count for _, count in moved):
        yield f"dropped      nothing ({len(moved)} counters)"


def _cpus(before: Sequence[CpuTime], after: Sequence[CpuTime]) -> Iterator[str]:
    old = {cpu.cpu: cpu for cpu in before}
    for now in after:
        then = old.get(now.cpu)
        if then is not None and now.total_s > then.total_s:
            busy = (now.busy_s - then.busy_s) / (now.total_s - then.total_s)
            clock = f" of {now.clock_hz / 1e6:.0f} MHz" if now.clock_hz else ""
            yield f"cpu {now.cpu:<8} {format_share(busy)} busy{clock}"


def _threads(after: Observation) -> Iterator[str]:
    for worker in of_threads(after.threads) if after.threads else ():
        if worker.reason is not None or worker.pps is None or worker.cycles_per_packet is None:
            yield f"{worker.worker:<12} {worker.reason}"
            continue
        vectors = f", {worker.vectors_per_call:.2f} vectors/call" if worker.vectors_per_call else ""
        cycles = f"{worker.cycles_per_packet:.0f} cycles/packet, {worker.cycles_with_polling or 0:.0f} with polling"
        yield f"{worker.worker:<12} {format_pps(worker.pps)}, {cycles}{vectors}"


def _details(before: Observation, after: Observation) -> Iterator[str]:
    """Yield the counters that rose, most first; one that went back has wrapped at 32 bits."""
    old = {one.name: one.count for one in before.details}
    risen = [(old[one.name] - one.count, one.name) for one in after.details if one.count > old.get(one.name, one.count)]
    yield from (f"counted      {-fallen} {name}" for fallen, name in sorted(risen)[:DETAILS])
    if len(risen) > DETAILS:
        yield f"             and {len(risen) - DETAILS} more"


def _rate(then: int | None, now: int | None, apart_s: float) -> str:
    if then is None or now is None:
        return "unknown"
    return format_pps((now - then) / apart_s) if now >= then else "unknown (the counter went back)"
