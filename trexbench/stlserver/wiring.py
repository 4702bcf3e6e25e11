"""Which ports are wired to one another through the DUT, and ports that are only simulated."""

from __future__ import annotations

from collections.abc import Sequence

from .engine import EngineError, EnginePort

Pairs = Sequence[tuple[int, int]]
"""Ports that are wired to one another through the DUT; every port is in one pair at most."""


def partners(ports: int, pairs: Pairs | None = None) -> dict[int, int]:
    """By port, the other port of its pair. pairs: None for 0-1, 2-3 and so on; EngineError for impossible ones."""
    if pairs is None:
        pairs = [(first, first + 1) for first in range(0, ports - 1, 2)]
    found = {port: other for one, two in pairs for port, other in ((one, two), (two, one))}
    if len(found) != 2 * len(pairs) or not found.keys() <= set(range(ports)):
        raise EngineError(f"pairs {list(pairs)} of {ports} ports: name each port once, from 0 to {ports - 1}")
    return found


def simulated_ports(
    name: str,
    ports: int,
    speed_bps: float,
    pairs: Pairs | None = None,
    dst_macs: Sequence[str | None] | None = None,
) -> tuple[EnginePort, ...]:
    """Ports of an engine that sends nothing: ``name`` and their number. dst_macs: by port, else made up."""
    partner_of = partners(ports, pairs)
    return tuple(
        EnginePort(
            index=port,
            name=f"{name}{port}",
            driver="net_simulated",
            speed_bps=speed_bps,
            src_mac=f"02:00:00:00:{port + 1:02x}:02",
            dst_mac=dst_macs[port] if dst_macs else f"02:00:00:00:{port + 1:02x}:01",
            src_ipv4=f"100.65.{port + 1}.2",
            dst_ipv4=f"100.65.{port + 1}.1",
            partner=partner_of.get(port),
        )
        for port in range(ports)
    )
