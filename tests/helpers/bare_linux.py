"""A Linux on which nothing is set, as the driver's facts, for tests of what it plans then."""

from __future__ import annotations

from typing import Any

from trexbench.dut import Change, Wanted
from trexbench.dut.linux.changes import FAMILIES, forwarding_of, plan
from trexbench.dut.linux.tcp import redirect_files


def plan_bare_linux(wanted: Wanted) -> list[Change]:
    """Return the changes to a Linux on which nothing is set; of its CPUs and interrupts nothing is known."""
    most = {"combined" if wanted.config.lab is None else "rx": wanted.rx_queues or 1}
    down: dict[str, Any] = {"admin_up": False, "addresses": [], "offloads": None, "rps_cpus": {}, "irqs": []}
    down["channels"] = {"max": most, "now": {}}
    facts = {
        **{family.forward: 0 for family in FAMILIES.values()},
        **{forwarding_of(version): {} for version in FAMILIES},
        "ipv6_off": {},
        "irqbalance": {"running": True, "unit": "active"},
        "governors": None,
        "cpus_online": None,
        "links": wanted.interfaces,
        "interfaces": dict.fromkeys(wanted.interfaces, down),
        "neighbours": {},
        "routes": [],
        "redirects": dict.fromkeys(redirect_files(wanted), 1),
        "sysctls": {name: "unknown" for name, _ in wanted.config.chosen.sysctls},
    }
    return plan(wanted, facts)
