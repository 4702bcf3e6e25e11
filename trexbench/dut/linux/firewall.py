"""Packet filter and NAT of a variant on Linux, pure: rules as nft takes them, and their removal.

All rules are in nft's table ``inet trexbench``: the user's are neither read nor changed. An empty chain with the rules'
digest in its name identifies them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from ...config.endpoints import PPP_INTERFACE
from ...config.firewall import NONE, STATEFUL, TABLE
from ...core.errors import DutError
from ..settings import Change, Command, Wanted

Facts = Mapping[str, Any]
Rules = Mapping[str, int]
"""Number of rules by chain (``inet forward``)."""

NFT = "nft"
_GONE = ("No such file", "does not exist")
"""Output of nft where nothing is left to remove."""


@dataclass(frozen=True)
class RuleLoad:
    """Rules for nft to load."""

    text: str
    """Input of nft, which replaces former rules in one step."""
    rules: Rules
    """Rules that must be read back afterwards."""

    trial = (NFT, "--check", "-f", "-")
    """Command that succeeds where nft and the kernel can load the rules, and changes nothing."""


def load_of(wanted: Wanted) -> RuleLoad | None:
    """Build the variant's rules; None where it has none."""
    variant = wanted.config.chosen
    if not variant.filters:
        return None
    parts, rules = list[str](), dict[str, int]()
    if variant.firewall.file is not None:
        parts.append(variant.firewall.file.body)
        rules |= variant.firewall.file.rules
    elif variant.firewall.name != NONE:
        known = ["ct state established,related counter accept"] if variant.firewall.name == STATEFUL else []
        new = "ct state new " if known else ""
        lines = [*known, *(f'iifname "{name}" {new}counter accept' for name in _ports(wanted))]
        parts.append(_chain("forward", "filter hook forward priority 0", lines))
        rules["forward"] = len(lines)
    if variant.pppoe:
        chain = f"{TABLE}_mss"
        line = f'oifname "{PPP_INTERFACE}" tcp flags syn counter tcp option maxseg size set rt mtu'
        parts.append(_chain(chain, "filter hook forward priority -150", [line]))
        rules[chain] = 1
    if variant.nat or variant.pppoe:
        chain = f"{TABLE}_nat"
        line = f'oifname "{_ports(wanted)[-1]}" counter masquerade'
        parts.append(_chain(chain, "nat hook postrouting priority 100", [line]))
        rules[chain] = 1
    if variant.flow_offload:
        # a table of connections between these interfaces, and the rule that adds each established one to it
        names = ", ".join(f'"{wanted.routed(port)}"' for port in wanted.without_tunnel.config.ports)
        parts.append(f"  flowtable {TABLE}_flows {{\n    hook ingress priority 0; devices = {{ {names} }};\n  }}")
        line = f"meta l4proto {{ tcp, udp }} flow add @{TABLE}_flows"
        parts.append(_chain(f"{TABLE}_offload", "filter hook forward priority 0", [line]))
        rules[f"{TABLE}_offload"] = 1
    body = "\n".join(parts)
    made = f"made_{sha256(body.encode()).hexdigest()[:12]}"
    # the table is added first, so that there is one to delete
    text = f"table inet {TABLE}\ndelete table inet {TABLE}\ntable inet {TABLE} {{\n{body}\n  chain {made} {{ }}\n}}\n"
    return RuleLoad(text, {f"inet {name}": count for name, count in {**rules, made: 0}.items()})


def _ports(wanted: Wanted) -> list[str]:
    """List the interfaces where IP packets arrive: the tunnel's first, PPPoE's last, since NAT is on the last one."""
    names = [wanted.routed(port) for port in wanted.config.ports]
    names.sort(key=lambda name: wanted.tunnel is None or name != wanted.tunnel.name)
    return [*names, PPP_INTERFACE] if wanted.config.chosen.pppoe else names


def _chain(name: str, hook: str, lines: list[str]) -> str:
    inner = "\n".join(f"    {line}" for line in lines)
    return f"  chain {name} {{\n    type {hook}; policy accept;\n{inner}\n  }}"


def firewall_changes(wanted: Wanted, facts: Facts) -> list[Change]:
    """Replace trexbench's own rules by the variant's, or remove them where it has none."""
    there: Rules = facts.get("own_rules", {}).get(NFT, {})
    load = load_of(wanted)
    if there == (load.rules if load is not None else {}):
        return []
    gone = Command((NFT, "delete", "table", "inet", TABLE), "nothing of trexbench is left", fine_if=_GONE)
    was = _shown(there) if there else "none"
    if load is None:
        return [Change("rules of trexbench", was, "none", (gone,), ())]
    do = Command((NFT, "-f", "-"), f"the rules of variant {wanted.config.variant}", input=load.text)
    return [Change("rules of trexbench", was, _shown(load.rules), (do,), (gone,), variant=wanted.variant)]


def _shown(rules: Rules) -> str:
    made = next((place for place in rules if "made" in place), "")
    marked = made.rpartition("made_")[2] or "not marked"
    return f"{NFT}: {sum(rules.values())} rules in {len(rules) - bool(made)} chains ({marked})"


def sysctl_file(name: str) -> str:
    return f"/proc/sys/{name.replace('.', '/')}"


def require_sysctls(wanted: Wanted, facts: Facts) -> None:
    """DutError, before anything is changed, for a kernel setting that the DUT does not have."""
    for name, _ in wanted.config.chosen.sysctls:
        if facts["sysctls"].get(name) is None:
            where = f"variants.{wanted.config.variant}.sysctls"
            raise DutError(f"{wanted.config.name}: there is no kernel setting {name}", f"correct {where}")
