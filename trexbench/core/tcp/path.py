"""The path of a test's traffic besides the DUT. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from ..typed import Count
from .wan import Wan


@dataclass(frozen=True)
class TrafficPath:
    """Parts of the path besides the DUT: a line, a tunnel, a PPPoE session."""

    wan: Wan | None = None  # line behind the DUT; None: none
    wan_by: str = ""  # means by which the line is made, as ``netem``
    tunnel: str = ""  # its kind, as ``wireguard``; empty: none
    tunnel_between: str = ""  # its ends, as ``client-server``; empty: none, or the DUT and the server (6in4)
    tunnel_by: str = ""  # its program or device, as ``OpenVPN 2.6.14``
    tunnel_mtu: Count | None = None  # inside the tunnel; None: none, or 6in4
    pppoe: bool = False  # a session between DUT and server

    def __str__(self) -> str:
        """``WAN 20ms,1gbit by netem, openvpn client-dut by OpenVPN 2.6.14``."""
        line = f"WAN {self.wan.asked}" if self.wan is not None else ""
        tunnel = " ".join(filter(None, (self.tunnel, self.tunnel_between)))
        parts = [" by ".join(filter(None, pair)) for pair in ((line, self.wan_by), (tunnel, self.tunnel_by))]
        parts.append(f"inside an MTU of {self.tunnel_mtu}" if self.tunnel_mtu is not None else "")
        return ", ".join(filter(None, (*parts, "PPPoE" if self.pppoe else "")))


def paths_apart(before: TrafficPath | None, after: TrafficPath | None) -> tuple[str, str]:
    """Format two paths that differ: ``("over WAN 20ms,1gbit by netem", "over no WAN")``."""
    there = before or after or TrafficPath()
    none = "no WAN" if there.wan is not None else "no tunnel" if there.tunnel else "no PPPoE"
    return f"over {before or none}", f"over {after or none}"
