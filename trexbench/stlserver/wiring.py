"""Which ports are wired to one another through the DUT, and ports that are only simulated."""

from __future__ import annotations

from .engine import EnginePort


def partners(ports: int) -> dict[int, int]:
    """By port, the other one of its pair: 0 and 1, 2 and 3 and so on; one that is left over has none."""
    return {port: port ^ 1 for port in range(ports) if port ^ 1 < ports}


def simulated_ports(name: str, ports: int, speed_bps: float) -> tuple[EnginePort, ...]:
    """Ports of an engine that sends nothing: ``name`` and their number."""
    partner_of = partners(ports)
    return tuple(
        EnginePort(
            index=port,
            name=f"{name}{port}",
            driver="net_simulated",
            speed_bps=speed_bps,
            src_mac=f"02:00:00:00:{port + 1:02x}:02",
            dst_mac=f"02:00:00:00:{port + 1:02x}:01",
            src_ipv4=f"100.65.{port + 1}.2",
            dst_ipv4=f"100.65.{port + 1}.1",
            partner=partner_of.get(port),
        )
        for port in range(ports)
    )
