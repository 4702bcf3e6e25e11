"""CPU time that the processes of client, server and router would have taken in a simulated leg."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..config.twin_tcp import PacketCost
from ..core.tcp.model import HostReading, Leg, Processes, ProcessTime, Way
from .tcp import Instant
from .tcp_limits import TcpModel, ways_of

PROGRAM, TUNNEL = 1, 2
"""Numbers of the processes."""


def processes_of(model: TcpModel, leg: Leg, end: Instant) -> Mapping[str, Processes]:
    """By host, from the begin of the leg to this reading, which is its last."""
    received = {Way.FORWARD: _received(end.server), Way.REVERSE: _received(end.client)}
    bits = {way: 8 * received[way] for way in ways_of(leg)}
    hosts = ("client", "server", *(["dut"] if end.dut is not None else []))
    return {host: Processes(end.at_s, tuple(_took(model, leg, host, bits, end.at_s))) for host in hosts}


def _received(host: HostReading) -> int:
    return sum(one.payload_bytes for one in host.streams if not one.sends)


def _took(model: TcpModel, leg: Leg, host: str, bits: Mapping[Way, float], over_s: float) -> Iterator[ProcessTime]:
    if (tunnel := model.tunnel_cost(host, leg.version)) is not None and model.chosen.tunnel is not None:
        core = model.cores if host == "dut" else len(bits)
        yield _process(TUNNEL, model.chosen.tunnel.kind, "tunnel", [(tunnel, sum(bits.values()))], over_s, (core,))
    if host != "dut":
        spent = [(model.program_cost(host, way, leg.version), carried) for way, carried in bits.items()]
        yield _process(PROGRAM, "simulated", "endpoint", spent, over_s, tuple(range(len(bits))))


def _process(
    number: int, name: str, role: str, spent: list[tuple[PacketCost, float]], over_s: float, cpus: tuple[int, ...]
) -> ProcessTime:
    user_s = sum(cost.user_s * bits for cost, bits in spent)
    system_s = sum(cost.system_s * bits for cost, bits in spent)
    most = min(1.0, over_s * len(cpus) / (user_s + system_s)) if user_s + system_s else 1.0
    return ProcessTime(number, name, most * user_s, most * system_s, 0.0, cpus, role=role)
