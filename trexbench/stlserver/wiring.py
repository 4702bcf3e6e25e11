"""Which ports are wired to one another through the DUT and share a core, and ports that are only simulated."""

from __future__ import annotations

from .engine import EnginePort


def partners(ports: int) -> dict[int, int]:
    """By port, the other one of its pair: 0 and 1, 2 and 3 and so on; one that is left over has none."""
    return {port: port ^ 1 for port in range(ports) if port ^ 1 < ports}


def core_of(port: int) -> int:
    """The sending core of a port: as in TRex, ports 0-1, 2-3 and so on share one each, whatever they are wired to."""
    return port // 2


def core_count(ports: int) -> int:
    """Number of sending cores that so many ports have; at least one."""
    return max(1, core_of(ports + 1))


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
