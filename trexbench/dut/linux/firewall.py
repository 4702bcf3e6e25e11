"""A variant's packet filter and NAT on Linux, pure: rules as nft takes them, how they are taken away again.

Everything is in table ``inet trexbench`` of nft: what is the user's is neither read nor changed. Rules are known again
by an empty chain that has their digest in its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from ...config.endpoints import PPP_INTERFACE
from ...config.firewall import NONE, STATEFUL, TABLE
from ...core.errors import DutError
from ..model import Change, Command, Wanted

Facts = Mapping[str, Any]
Rules = Mapping[str, int]
"""By place (``inet forward``): how many rules there are."""

NFT = "nft"
_GONE = ("No such file", "does not exist")
"""Output of nft where nothing is left to remove."""


@dataclass(frozen=True)
class RuleLoad:
    """Rules for nft to load."""

    text: str
    """Its input, which replaces what is there in one step."""
    rules: Rules
    """To be read back afterwards."""

    trial = (NFT, "--check", "-f", "-")
    """Succeeds where nft and the kernel can do it, and changes nothing."""


def load_of(wanted: Wanted) -> RuleLoad | None:
    """The variant's rules; None where it has none."""
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
        parts.append(_flowtable([wanted.routed(port) for port in wanted.without_tunnel.config.ports]))
        rules[f"{TABLE}_offload"] = 1
    body = "\n".join(parts)
    made = f"made_{sha256(body.encode()).hexdigest()[:12]}"
    # added, so that there is one to be deleted
    text = f"table inet {TABLE}\ndelete table inet {TABLE}\ntable inet {TABLE} {{\n{body}\n  chain {made} {{ }}\n}}\n"
    return RuleLoad(text, {f"inet {name}": count for name, count in {**rules, made: 0}.items()})


def _ports(wanted: Wanted) -> list[str]:
    """Where packets of IP arrive. The tunnel's first, PPPoE's last: the last one is where NAT is."""
    names = [wanted.routed(port) for port in wanted.config.ports]
    names = sorted(names, key=lambda name: wanted.tunnel is None or name != wanted.tunnel.name)
    return [*names, PPP_INTERFACE] if wanted.config.chosen.pppoe else names


def _chain(name: str, hook: str, lines: list[str]) -> str:
    inner = "\n".join(f"    {line}" for line in lines)
    return f"  chain {name} {{\n    type {hook}; policy accept;\n{inner}\n  }}"


def _flowtable(devices: list[str]) -> str:
    """A table of connections between these interfaces, and the rule that puts each that is established into it."""
    names = ", ".join(f'"{name}"' for name in devices)
    table = f"  flowtable {TABLE}_flows {{\n    hook ingress priority 0; devices = {{ {names} }};\n  }}"
    line = f"meta l4proto {{ tcp, udp }} flow add @{TABLE}_flows"
    return f"{table}\n{_chain(f'{TABLE}_offload', 'filter hook forward priority 0', [line])}"


def firewall_changes(wanted: Wanted, facts: Facts) -> list[Change]:
    """The variant's rules put in the place of others of ours, or of none; and these removed where none are wanted.

    facts: ``own_rules`` are those that are there.
    """
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
            raise DutError(f"{wanted.config.name}: no kernel setting {name} is there", f"correct {where}")
