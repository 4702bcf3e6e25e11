"""Links of a fleet: from testers' ports to DUTs' interfaces, by cable or through a switch that joins them by VLAN."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from ..core.errors import ConfigError
from ..core.names import nearest
from ..core.units import format_bits
from . import readers as r
from .check_endpoints import check_form, check_way
from .commands import Argvs, command, commands, pattern
from .endpoints import TransportConfig
from .model import DutConfig
from .readers import section
from .yamltree import Value

NAME = r.pattern(r"[A-Za-z0-9][A-Za-z0-9_-]*", "the name of a tester or a switch", "t1", 40)
_END = r.pattern(
    r"[A-Za-z0-9][A-Za-z0-9._-]*:[A-Za-z0-9_.:/-]+", "an end of a link", "t1:0 or netgate-vpp:ix0: a name and a port"
)
_VLAN = r.integer(1, 4094)
PORT, VLAN = "{port}", "{vlan}"
"""Placeholders in a switch's commands for its port and the VLAN."""
_WAYS = ("netns", "local", "ssh", "cli")


@dataclass(frozen=True)
class FleetTester:
    """A tester of a fleet."""

    name: Annotated[str, NAME]  # as in ``links``
    ports: Annotated[tuple[int, ...], r.integers(0, 127)]  # by their numbers in its TRex
    speed_bps: Annotated[float | None, r.speed, "speed"] = None
    """Line rate of each port (L1 bit/s); None: as the DUTs'."""


@dataclass(frozen=True)
class FleetSwitch:
    """A switch that joins testers to DUTs."""

    name: Annotated[str, NAME]  # as in ``links``
    transport: Annotated[TransportConfig, section(TransportConfig, "a transport")]  # by netns, local, ssh or cli
    setting: Annotated[Argvs, commands, "set"]
    """Commands that put its port ``{port}`` into the VLAN ``{vlan}``."""
    unsetting: Annotated[Argvs, commands, "unset"]
    """Commands that take its port ``{port}`` out of the VLAN."""
    undone_if: Annotated[str | None, r.text] = None
    """Words in the output of ``unset`` that mean that nothing was left to undo."""
    timeout_s: Annotated[float, r.seconds, "timeout"] = 15.0
    """Longest time of each command."""
    check: Annotated[tuple[str, ...] | None, command] = None
    """Command that shows the port and its VLANs; None: nothing is read back."""
    matches: Annotated[str | None, pattern()] = None
    """Pattern found in the check's output if and only if the port is in the VLAN."""


@dataclass(frozen=True)
class Link:
    """A cable between two ports."""

    ends: tuple[str, str]
    vlan: int | None = None
    """VLAN by which the switch at one end joins the DUT's port at the other to testers."""

    def __str__(self) -> str:
        return " - ".join(self.ends)


@r.takes(type="array", items={"anyOf": [_END, _VLAN]}, minItems=2, maxItems=3)
def read_link(value: Value) -> Link:
    items = value.items("end")
    if not 2 <= len(items) <= 3 or (items[2:] and not str(items[2].raw).strip().isdigit()):
        what = "a link has two, and a VLAN if it is a DUT's to a switch"
        raise ConfigError(f"{len(items)} ends", f"{what}: write it as [t1:0, netgate-vpp:ix0]")
    first, second = r.each_of(items[:2], _END)
    return Link((first, second), items[2].read(_VLAN) if items[2:] else None)


@dataclass(frozen=True)
class Join:
    """A tester's port and a DUT's interface that a switch joins."""

    switch: FleetSwitch
    tester: str
    """The tester's port, as in ``t1:0``."""
    tester_port: str
    """The switch's port to the tester."""
    dut: str
    """The DUT's interface, as in ``netgate-vpp:ix0``."""
    dut_port: str
    """The switch's port to the DUT."""
    vlan: int

    @property
    def ports(self) -> tuple[tuple[str, str], ...]:
        """The switch's ports, each after the name of the tester or DUT at its other end."""
        return (box_of(self.tester), self.tester_port), (box_of(self.dut), self.dut_port)

    def __str__(self) -> str:
        return f"{self.tester} - {self.tester_port}, VLAN {self.vlan}, {self.dut_port} - {self.dut}"


@dataclass
class Wiring:
    """Boxes of a fleet and the cables between them; links are added as they are checked."""

    testers: Mapping[str, FleetTester]
    duts: Mapping[str, DutConfig]
    switches: Mapping[str, FleetSwitch]
    cables: set[tuple[str, str]] = field(default_factory=set)
    """Pairs of a tester and the end at the DUT."""
    plugged: dict[str, tuple[str, str, int | None]] = field(default_factory=dict)
    """End at a tester or a DUT -> the switch, its port, and the VLAN of a DUT's port."""

    @property
    def boxes(self) -> Mapping[str, Mapping[str, object]]:
        """Boxes by kind and name."""
        return {"tester": self.testers, "DUT": self.duts, "switch": self.switches}

    def kinds_of(self, link: Link) -> dict[str, str]:
        """Map the kinds of known boxes (tester, DUT, switch) at the ends of a link to the ends."""
        return {kind: end for end in link.ends for kind, boxes in self.boxes.items() if box_of(end) in boxes}

    def path(self, tester: str, dut: str) -> tuple[Join, ...] | None:
        """Return the joins by which a tester reaches a DUT: none by cables alone; None where it does not reach it."""
        joins, cables = list[Join](), self.duts[dut].cables
        for cable in cables:
            end, own = f"{dut}:{cable.interface}", f"{tester}:{cable.tester}"
            if (tester, end) in self.cables:
                continue
            there, here = self.plugged.get(end), self.plugged.get(own)
            if there is None or here is None or there[0] != here[0] or self.speeds_apart(tester, dut):
                return None
            assert there[2] is not None
            joins.append(Join(self.switches[there[0]], own, here[1], end, there[1], there[2]))
        return tuple(joins) if cables else None

    def speeds_apart(self, tester: str, dut: str) -> str:
        """Describe both speeds where they are known and differ; else return nothing."""
        own, other = self.testers[tester].speed_bps, self.duts[dut].speed_bps
        if not own or not other or own == other:
            return ""
        return f"speeds differ: {format_bits(own)} of {tester}, {format_bits(other)} of {dut}"

    def unreached(self, dut: str) -> str:
        """Explain why no tester reaches the DUT."""
        cables = self.duts[dut].cables
        plugs = {self.plugged[end][0] for cable in cables if (end := f"{dut}:{cable.interface}") in self.plugged}
        testers = {box_of(end) for end, plug in self.plugged.items() if plug[0] in plugs} & self.testers.keys()
        apart = [words for tester in sorted(testers) if (words := self.speeds_apart(tester, dut))]
        return apart[0] if apart else "no tester is wired to all its ports"


def box_of(end: str) -> str:
    return end.partition(":")[0]


def check_switches(items: Sequence[Value], switches: Sequence[FleetSwitch]) -> Iterator[ConfigError]:
    """Yield errors of each switch: in its transport, and commands not in the form that this takes."""
    for item, switch in zip(items, switches, strict=True):
        way = switch.transport.type
        yield from check_way(item.at("transport"), way, "a switch", _WAYS)
        if (switch.check is None) != (switch.matches is None):
            remedy = "write both, to have what was set read back, or neither"
            yield item.wrong(f"{switch.name} has one of check and matches", remedy)
        needs = {"set": (PORT, VLAN), "unset": (PORT,)} | ({"check": (PORT,)} if switch.check is not None else {})
        if switch.matches is not None and VLAN not in switch.matches:
            yield item.at("matches").wrong(f"it has no {VLAN}", f"write '{VLAN}' where the switch prints it")
        for key, needed in needs.items():
            words = [text.text() for text in item.at(key).texts()]
            for name in needed:
                if not any(name in word for word in words):
                    yield item.at(key).wrong(f"no command has {name}", f"write '{name}' where the switch takes it")
        yield from check_form(map(item.at, needs), way, "[vlan-set, '{port}', '{vlan}']")


def check_links(items: Sequence[Value], links: Sequence[Link], wiring: Wiring) -> Iterator[ConfigError]:
    """Yield errors of each link, and add the links without any to the wiring."""
    taken, vlans = dict[str, int](), dict[tuple[str, int], int]()
    for item, link in zip(items, links, strict=True):
        pairs = list(zip(item.items("end"), link.ends, strict=False))
        wrong = [error for value, end in pairs for error in _check_end(value, end, wiring)]
        wrong = wrong or list(_check_pair(item, link, wiring))
        for value, end in pairs:
            if end in taken and not wrong:
                what = f"port {end} has a link on line {taken[end]} already"
                wrong.append(value.wrong(what, "a port has one cable: remove one"))
        taken |= dict.fromkeys(link.ends, item.line)
        wrong = wrong or list(_add(item, link, wiring, vlans))
        yield from wrong


def _add(item: Value, link: Link, wiring: Wiring, vlans: dict[tuple[str, int], int]) -> Iterator[ConfigError]:
    """Add a link whose ends are known, or yield why it cannot be. vlans: switch and VLAN -> line of the link."""
    kinds = wiring.kinds_of(link)
    if "switch" in kinds:
        switch, _, port = kinds.pop("switch").partition(":")
        (end,) = kinds.values()
        if link.vlan is not None:
            if (switch, link.vlan) in vlans:
                what = f"VLAN {link.vlan} of {switch} is used on line {vlans[switch, link.vlan]} already"
                yield item.wrong(what, "give each port of a DUT a VLAN of its own")
                return
            vlans[switch, link.vlan] = item.line
        wiring.plugged[end] = (switch, port, link.vlan)
        return
    tester, _, port = kinds["tester"].partition(":")
    name, _, interface = kinds["DUT"].partition(":")
    dut = wiring.duts[name]
    (stated,) = (cable.tester for cable in dut.cables if cable.interface == interface)
    if port == str(stated):
        wiring.cables.add((tester, kinds["DUT"]))
    else:
        what = f"port {port} of {tester}, where {dut.file} has tester: {stated} for {interface}"
        yield item.wrong(what, f"link {tester}:{stated}, or correct the DUT's config")


def _check_pair(item: Value, link: Link, wiring: Wiring) -> Iterator[ConfigError]:
    """Require a tester and a DUT of one speed; or one of them and a switch, with a VLAN if it is a DUT."""
    first, second = map(box_of, link.ends)
    kinds = {kind: box_of(end) for kind, end in wiring.kinds_of(link).items()}
    remedy = "a link joins two of a tester, a DUT and a switch: name one end of each"
    if first == second:
        yield item.wrong(f"a loop: both ends are at {first}", remedy)
    elif len(kinds) < 2:
        (kind,) = kinds
        if kind == "switch":
            remedy = "trunks are not supported: wire a DUT and its testers to one switch"
        yield item.wrong(f"joins two {kind}{'es' if kind == 'switch' else 's'}", remedy)
    elif kinds.keys() == {"DUT", "switch"}:
        if link.vlan is None:
            remedy = f"write it as [{', '.join(link.ends)}, 101]"
            yield item.wrong("no VLAN, by which the switch joins the port to testers", remedy)
    elif link.vlan is not None:
        yield item.wrong(f"VLAN {link.vlan}", "only a DUT's link to a switch has one: remove it")
    elif "switch" not in kinds and (words := wiring.speeds_apart(kinds["tester"], kinds["DUT"])):
        where = wiring.duts[kinds["DUT"]].file
        yield item.wrong(words, f"wire ports of one speed, or correct speed: here or in {where}")


def _check_end(value: Value, end: str, wiring: Wiring) -> Iterator[ConfigError]:
    box, _, port = end.partition(":")
    kinds = [kind for kind, boxes in wiring.boxes.items() if box in boxes]
    if len(kinds) > 1:
        yield value.wrong(f"{box} is a {' and a '.join(kinds)}", f"rename the {kinds[0]}")
    elif kinds in (["tester"], ["DUT"]):
        if box in wiring.testers:
            ports, has, where = [str(number) for number in wiring.testers[box].ports], "it has", "its ports"
        else:
            dut, has = wiring.duts[box], "its config has"
            ports, where = [cable.interface for cable in dut.cables if cable.interface], str(dut.file)
        if port not in ports:
            remedy = f"{has} {', '.join(ports) or 'none that is named'}: name one, or add it to {where}"
            yield value.wrong(f"{box} has no port {port}", remedy)
    elif not kinds:
        known = [name for boxes in wiring.boxes.values() for name in boxes]
        yield value.wrong(f"nothing is called {box}", f"{nearest(box, known)}there are: {', '.join(known)}")
