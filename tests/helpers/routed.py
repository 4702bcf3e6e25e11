"""Linux routers of any number of ports, with what the modes need: addresses of both families, and a route per port."""

from __future__ import annotations

import re
from pathlib import Path

_LAB = Path(__file__).resolve().parents[2] / "dut_configs" / "lab-linux.yaml"
_VARIANTS = re.compile(r"^( *)variants:.*\n(?:\1 +.*\n)+", re.M)


def plain_lab() -> str:
    """The text of lab-linux without its variants and those of its twin."""
    text, count = _VARIANTS.subn("", _LAB.read_text())
    assert count == 2
    return text


def routed(transport: str, ports: int = 2, vlan: str = "") -> str:
    """The text of a config: interfaces d0, d1 and so on; vlan: that of every port, `vlan: 100,`."""
    lines = ["driver: linux", transport, "ports:"]
    for port in range(ports):
        v4, v6 = f"100.65.{port + 1}.", f"2001:2:0:{port + 1}::"
        lines += [
            f'  - {{tester: {port}, interface: d{port}, address: [{v4}1/24, "{v6}1/64"], {vlan}',
            f'     neighbour: {{address: [{v4}2, "{v6}2"]}}}}',
        ]
    lines.append("routes:")
    for port in range(ports):
        net, pair = (48 if port % 2 else 16), port // 2
        lines.append(f"  - {{to: {net}.{pair}.0.0/16, via: 100.65.{port + 1}.2}}")
        lines.append(f'  - {{to: "2001:2:{pair:x}:{net}::/64", via: "2001:2:0:{port + 1}::2"}}')
    return "\n".join(lines) + "\n"
