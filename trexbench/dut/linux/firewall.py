"""A variant's packet filter and NAT on Linux, pure: rules as nft or iptables take them, how they are taken away again.

Everything is in table ``inet trexbench`` of nft, or in chains of iptables whose names begin with ``trexbench-``: what
is the user's is neither read nor changed. Rules are known again by an empty chain that has their digest in its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any

from ...config.firewall import NONE, STATEFUL, TABLE, Chain, RulesFile, names
from ...config.pppoe import PPP_INTERFACE
from ...core.errors import DutError
from ..model import Change, Command, Wanted

Facts = Mapping[str, Any]
Rules = Mapping[str, int]
"""By place (``inet forward``, ``IPv4 filter trexbench-FORWARD``): how many rules there are."""

NFT = "nft"
TOOLS = (NFT, "iptables", "iptables-legacy")
"""In this order they are tried."""
_PREFIX = f"{TABLE}-"
_GONE = ("No such file", "No chain/target/match by that name", "does not exist", "Couldn't load target", "Bad rule")
"""Output of the tools where nothing is left to remove."""
_JUMP = re.compile(r"(?P<option>(?:^|\s)(?:-j|-g|--jump|--goto)\s+)(?P<chain>\S+)")
_SAVED = re.compile(r"-A (?P<chain>\S+)(?P<rest>.*)")


@dataclass(frozen=True)
class RuleLoad:
    """Rules for one tool to load. texts: input by command. rules: what is to be read back afterwards."""

    tool: str
    texts: Mapping[tuple[str, ...], str]
    rules: Rules

    @property
    def trials(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Commands that succeed where the tool and the kernel can do it, and change nothing; each with its input."""
        for argv, text in self.texts.items():
            yield (*argv[:1], "--check" if self.tool == NFT else "--test", *argv[1:]), text


def loads(wanted: Wanted) -> list[RuleLoad]:
    """The variant's rules for each tool that takes their form, in the order in which they are tried; may be empty."""
    if not wanted.config.chosen.filters:
        return []
    return [load for tool in TOOLS if (load := (_nft(wanted) if tool == NFT else _iptables(wanted, tool)))]


def _ports(wanted: Wanted) -> list[str]:
    """Where packets of IP arrive. The tunnel's first, PPPoE's last: the last one is where NAT is."""
    names = [wanted.routed(port) for port in wanted.config.ports]
    names = sorted(names, key=lambda name: wanted.tunnel is None or name != wanted.tunnel.name)
    return [*names, PPP_INTERFACE] if wanted.config.chosen.pppoe else names


def _digest(body: str) -> str:
    return sha256(body.encode()).hexdigest()[:12]


def _file(wanted: Wanted, form: str) -> RulesFile | None:
    files = wanted.config.chosen.firewall.files
    return next((one for one in files if getattr(one, form) is not None), None)


def _nft(wanted: Wanted) -> RuleLoad | None:
    """None where the rules are a file of iptables."""
    variant = wanted.config.chosen
    parts, rules = list[str](), dict[str, int]()
    if variant.firewall.files:
        found = _file(wanted, "nft")
        if found is None or found.nft is None:
            return None
        parts.append(found.nft[0])
        rules |= found.nft[1]
    elif variant.firewall.name != NONE:
        known = ["ct state established,related counter accept"] if variant.firewall.name == STATEFUL else []
        new = "ct state new " if known else ""
        lines = [*known, *(f'iifname "{name}" {new}counter accept' for name in _ports(wanted))]
        parts.append(_nft_chain("forward", "filter hook forward priority 0", lines))
        rules["forward"] = len(lines)
    if variant.pppoe:
        chain = f"{TABLE}_mss"
        line = f'oifname "{PPP_INTERFACE}" tcp flags syn counter tcp option maxseg size set rt mtu'
        parts.append(_nft_chain(chain, "filter hook forward priority -150", [line]))
        rules[chain] = 1
    if variant.nat or variant.pppoe:
        chain = f"{TABLE}_nat"
        line = f'oifname "{_ports(wanted)[-1]}" counter masquerade'
        parts.append(_nft_chain(chain, "nat hook postrouting priority 100", [line]))
        rules[chain] = 1
    if variant.flow_offload:
        parts.append(_flowtable([wanted.routed(port) for port in wanted.without_tunnel.config.ports]))
        rules[f"{TABLE}_offload"] = 1
    body = "\n".join(parts)
    made = f"made_{_digest(body)}"
    # added, so that there is one to be deleted: what is there is replaced in one step
    text = f"table inet {TABLE}\ndelete table inet {TABLE}\ntable inet {TABLE} {{\n{body}\n  chain {made} {{ }}\n}}\n"
    return RuleLoad(NFT, {(NFT, "-f", "-"): text}, {f"inet {name}": n for name, n in {**rules, made: 0}.items()})


def _nft_chain(name: str, hook: str, lines: list[str]) -> str:
    inner = "\n".join(f"    {line}" for line in lines)
    return f"  chain {name} {{\n    type {hook}; policy accept;\n{inner}\n  }}"


def _flowtable(devices: list[str]) -> str:
    """A table of connections between these interfaces, and the rule that puts each that is established into it."""
    names = ", ".join(f'"{name}"' for name in devices)
    table = f"  flowtable {TABLE}_flows {{\n    hook ingress priority 0; devices = {{ {names} }};\n  }}"
    line = f"meta l4proto {{ tcp, udp }} flow add @{TABLE}_flows"
    return f"{table}\n{_nft_chain(f'{TABLE}_offload', 'filter hook forward priority 0', [line])}"


def _iptables(wanted: Wanted, tool: str) -> RuleLoad | None:
    """None where the rules are a file of nft, or offload flows, which only nft can set."""
    if wanted.config.chosen.flow_offload:
        return None
    firewall = wanted.config.chosen.firewall
    found = _file(wanted, "iptables")
    if firewall.files and (found is None or found.iptables is None):
        return None
    texts, rules = dict[tuple[str, ...], str](), dict[str, int]()
    for version in wanted.config.versions:
        own = found.iptables.get(version, {}) if found is not None and found.iptables is not None else {}
        tables = {name: dict(chains) for name, chains in own.items()}
        if not firewall.files and firewall.name != NONE:
            tables["filter"] = {"FORWARD": Chain("ACCEPT", tuple(_own_rules(wanted)))}
        if wanted.config.chosen.pppoe:
            rule = f"-o {PPP_INTERFACE} -p tcp -m tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu"
            _append(tables, "mangle", "FORWARD", rule)
        if wanted.config.chosen.nat or wanted.config.chosen.pppoe:
            _append(tables, "nat", "POSTROUTING", f"-o {_ports(wanted)[-1]} -j MASQUERADE")
        tables.setdefault("filter", {})
        text, placed = _saved(tables)
        texts[restore(tool, version), "--noflush"] = text
        rules |= {f"IPv{version} {place}": count for place, count in placed.items()}
    return RuleLoad(tool, {(argv[0], argv[1]): text for argv, text in texts.items()}, rules)


def _append(tables: dict[str, dict[str, Chain]], table: str, name: str, rule: str) -> None:
    chains = tables.setdefault(table, {})
    former = chains.get(name, Chain("ACCEPT"))
    chains[name] = Chain(former.policy, (*former.rules, rule))


def _own_rules(wanted: Wanted) -> Iterator[str]:
    state = ""
    if wanted.config.chosen.firewall.name == STATEFUL:
        yield "-m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT"
        state = "-m conntrack --ctstate NEW "
    for name in _ports(wanted):
        yield f"-i {name} {state}-j ACCEPT"


def _saved(tables: Mapping[str, Mapping[str, Chain]]) -> tuple[str, dict[str, int]]:
    """Return iptables-restore's input, in chains of our own that the kernel's jump to first, and the rules by place."""
    text, rules = "", dict[str, int]()
    digest = _digest(repr(tables))
    for table, chains in tables.items():
        own = set(names(chains))
        lines, jumps = list[str](), list[str]()
        for name, chain in chains.items():
            place = f"{_PREFIX}{name}"
            added = [_JUMP.sub(partial(_prefixed, own), rule) for rule in chain.rules]
            if chain.policy not in ("-", "ACCEPT"):
                added.append(f"-j {chain.policy}")
            lines += [f"-A {place} {rule}" for rule in added]
            rules[f"{table} {place}"] = len(added)
            if chain.policy != "-":
                jumps.append(f"-I {name} 1 -j {place}")
                rules[f"{table} {name}"] = 1
        if table == "filter":
            rules[f"{table} {_PREFIX}made-{digest}"] = 0
        places = [place.split()[1] for place in rules if place.startswith(f"{table} {_PREFIX}")]
        declared = [f":{place} - [0:0]" for place in places]
        text += "\n".join([f"*{table}", *declared, *lines, *jumps, "COMMIT", ""])
    return text, rules


def _prefixed(own: set[str], match: re.Match[str]) -> str:
    chain = match["chain"]
    return match["option"] + (f"{_PREFIX}{chain}" if chain in own else chain)


def restore(tool: str, version: int) -> str:
    return _program(tool, version, "-restore")


def save(tool: str, version: int) -> str:
    """The program that lists the rules of this version of IP."""
    return _program(tool, version, "-save")


def _program(tool: str, version: int, verb: str = "") -> str:
    return f"{tool.replace('iptables', 'ip6tables') if version == 6 else tool}{verb}"


def parse_saved(text: str) -> dict[str, int]:
    """``iptables-save``: the rules in chains of our own, and the jumps to them, by table and chain."""
    found: dict[str, int] = {}
    table = ""
    for line in text.splitlines():
        if line.startswith("*"):
            table = line[1:].strip()
        elif line.startswith(f":{_PREFIX}"):
            found.setdefault(f"{table} {line[1:].split()[0]}", 0)
        elif (match := _SAVED.fullmatch(line)) and _PREFIX in line:
            place = f"{table} {match['chain']}"
            found[place] = found.get(place, 0) + 1
    return found


def firewall_changes(wanted: Wanted, facts: Facts) -> list[Change]:
    """The variant's rules put in the place of others of ours, or of none; and these removed where none are wanted.

    facts: ``own_rules`` are those that are there, by tool; ``rules_by``: the tool that works here.
    """
    there: Mapping[str, Rules] = {tool: rules for tool, rules in facts.get("own_rules", {}).items() if rules}
    load = next((one for one in loads(wanted) if one.tool == facts.get("rules_by")), None)
    if there == ({load.tool: load.rules} if load is not None else {}):
        return []
    former = [command for tool, rules in there.items() for command in removal(tool, rules)]
    was = "; ".join(f"{tool}: {_shown(rules)}" for tool, rules in there.items()) or "none"
    if load is None:
        return [Change("rules of trexbench", was, "none", tuple(former), ())]
    do = [
        Command(argv, f"the rules of variant {wanted.config.variant}", input=text) for argv, text in load.texts.items()
    ]
    undo = removal(load.tool, load.rules)
    if load.tool == NFT:  # which replaces its own in one step
        former = [command for tool, rules in there.items() if tool != NFT for command in removal(tool, rules)]
    shown = f"{load.tool}: {_shown(load.rules)}"
    return [Change("rules of trexbench", was, shown, (*former, *do), tuple(undo), variant=wanted.variant)]


def _shown(rules: Rules) -> str:
    made = next((place for place in rules if "made" in place), "")
    total = sum(count for place, count in rules.items())
    return f"{total} rules in {len(rules) - bool(made)} chains ({made.rpartition('made')[2][1:] or 'not marked'})"


def removal(tool: str, rules: Rules) -> list[Command]:
    """Commands that take these rules away; nothing is left of them, and none of the user's is touched."""
    why = "nothing of trexbench is left"
    if tool == NFT:
        return [Command((NFT, "delete", "table", "inet", TABLE), why, fine_if=_GONE)]
    jumps, flushed, removed = list[tuple[str, ...]](), list[tuple[str, ...]](), list[tuple[str, ...]]()
    for place in rules:
        family, table, chain = place.split()
        argv = (_program(tool, int(family[-1])), "-t", table)
        if chain.startswith(_PREFIX):
            flushed.append((*argv, "-F", chain))
            removed.append((*argv, "-X", chain))
        else:
            jumps += [(*argv, "-D", chain, "-j", f"{_PREFIX}{chain}")] * rules[place]
    return [Command(argv, why, fine_if=_GONE) for argv in (*jumps, *flushed, *removed)]


def sysctl_file(name: str) -> str:
    return f"/proc/sys/{name.replace('.', '/')}"


def require_sysctls(wanted: Wanted, facts: Facts) -> None:
    """DutError, before anything is changed, for a kernel setting that the DUT does not have."""
    for name, _ in wanted.config.chosen.sysctls:
        if facts["sysctls"].get(name) is None:
            where = f"variants.{wanted.config.variant}.sysctls"
            raise DutError(f"{wanted.config.name}: no kernel setting {name} is there", f"correct {where}")
