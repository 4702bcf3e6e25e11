"""Output of VPP's show commands -> facts. Pure; absent is None, never zero; DutError for other text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ...core.errors import DutError
from ...host.files import number


@dataclass(frozen=True)
class Thread:
    """One of ``show threads``; kind: ``workers`` for those that forward, empty for the main one."""

    name: str
    kind: str
    lcore: int | None


@dataclass(frozen=True)
class Interface:
    """One of ``show interface``. counters: as VPP names them (rx packets, drops, rx-miss ...); it leaves out zeros."""

    name: str
    up: bool
    mtu: int
    counters: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Hardware:
    """One of ``show hardware-interfaces``. link: it has a carrier. speed: as printed, None where VPP does not know it.

    queues: receive queues; max_queues: how many the device can have. counters: DPDK's, by name with underscores.
    """

    name: str
    link: bool
    speed: str | None = None
    driver: str | None = None
    queues: int | None = None
    max_queues: int | None = None
    descriptors: int | None = None
    pci: str | None = None
    mac: str | None = None
    counters: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Placed:
    """One receive queue of ``show interface rx-placement``; mode is polling, interrupt or adaptive."""

    interface: str
    queue: int
    worker: str
    mode: str


@dataclass(frozen=True)
class VppNeighbour:
    mac: str
    static: bool


@dataclass(frozen=True)
class NodeError:
    """One row of ``show errors``; many are no losses at all."""

    count: int
    node: str
    reason: str


_VERSION = re.compile(r"^Version:\s+(\S+)", re.M)
_PID = re.compile(r"^Current PID:\s+([0-9]{1,10})\s*$", re.M)
_CLOCK = re.compile(r"^Base frequency:\s+([0-9]{1,3}\.[0-9]{1,6}) GHz\s*$", re.M)
_THREAD = re.compile(r"([0-9]{1,5})\s+(\S+)\s+(?:([a-z][a-z-]*)\s+)?([0-9]{1,10})\s+[a-z]+ \([0-9]{1,3}\)\s*(.*)")
_INTERFACE = re.compile(r"(\S+)\s+[0-9]{1,10}\s+([a-z][a-z-]*)\s+([0-9]{1,6})(?:/[0-9]{1,6}){3}\s*(.*)")
_COUNTER = re.compile(r"(\S.*?)\s+([0-9]{1,20})")
_ADDRESSES_OF = re.compile(r"(\S+) \((?:up|dn)\):")
_IP = r"[0-9.]{7,15}|[0-9a-f]{0,4}:[0-9a-f:.]{1,41}"
_ADDRESS = re.compile(rf"L3 ((?:{_IP})/[0-9]{{1,3}})(?: .*)?")
_NEIGHBOUR = re.compile(
    rf"\s*[0-9.]{{1,30}}\s+({_IP})\s+(?:([A-Z]{{1,4}})\s+)?([0-9a-fA-F]{{2}}(?::[0-9a-fA-F]{{2}}){{5}})\s+(\S+)\s*"
)
_PLACED_THREAD = re.compile(r"Thread [0-9]{1,5} \((\S+)\):")
_PLACED = re.compile(r"(\S+) queue ([0-9]{1,5}) \(([a-z]+)\)")
_HARDWARE = re.compile(r"(\S+)\s+[0-9]{1,10}\s+(up|down|slave)\s+\S.*")
_HARDWARE_QUEUE = re.compile(r"[0-9]{1,5}\s+\S+\s+\([0-9]{1,5}\)\s+[a-z]+")
_RX_QUEUES = re.compile(r"rx: queues ([0-9]{1,5}) \(max ([0-9]{1,5})\), desc ([0-9]{1,6}) .*")
_RX_QUEUES_OLD = re.compile(r"rx queues ([0-9]{1,5}), rx desc ([0-9]{1,6}), .*")
_NATIVE_RX = re.compile(r"RX Queue ([0-9]{1,4}):")
_NATIVE_LISTED = re.compile(r"([0-9]{1,4}) : ([0-9]{1,20})")
_PCI = re.compile(r"pci: .*\baddress ([0-9a-f]{4}):([0-9a-f]{2}):([0-9a-f]{2})\.0?([0-9a-f]) .*")
_ERROR = re.compile(r"([0-9]{1,20})\s+(\S+)\s{2,}(\S.*?)(?:\s{2,}(?:info|error|warn|unknown))?")
_ERROR_TIGHT = re.compile(r"([0-9]{1,20})\s+(\S+)\s+(\S.*?)(?:\s+(?:info|error|warn|unknown))?")


def parse_version(text: str) -> tuple[str, int]:
    """``show version verbose``: release and process id."""
    version, pid = _VERSION.search(text), _PID.search(text)
    if not version or not pid:
        raise wrong("show version verbose", text, "says nothing of a version and a PID")
    return version[1], int(pid[1])


def parse_clock(text: str) -> float:
    """``show cpu``: Hz of the counter that VPP counts its clocks in."""
    found = _CLOCK.search(text)
    if not found or not float(found[1]):
        raise wrong("show cpu", text, "says nothing of a base frequency")
    return float(found[1]) * 1e9


def parse_threads(text: str) -> tuple[Thread, ...]:
    """``show threads``."""
    head = "ID Name Type LWP Sched Policy (Priority) lcore Core Socket State"
    rows = [_row("show threads", line, "is no thread", _THREAD) for line in _table("show threads", text, head)]
    return tuple(Thread(row[2], row[3] or "", number(row[5].partition(" ")[0])) for row in rows)


def parse_interfaces(text: str) -> dict[str, Interface]:
    """``show interface`` by name."""
    found, command = {}, "show interface"
    for head, lines in _blocks(command, text, "Name Idx State MTU (L3/IP4/IP6/MPLS) Counter Count"):
        row = _row(command, head, "is no interface", _INTERFACE)
        counters = [_row(command, line, "is no counter", _COUNTER) for line in (row[4], *lines) if line]
        found[row[1]] = Interface(row[1], row[2] == "up", int(row[3]), {one[1]: int(one[2]) for one in counters})
    return found


def parse_addresses(text: str) -> dict[str, list[str]]:
    """``show interface address``: addresses with their lengths, by interface."""
    found: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in text.splitlines():
        if begun := _ADDRESSES_OF.fullmatch(line.rstrip()):
            current = found.setdefault(begun[1], [])
        elif current is None and line.strip():
            raise wrong("show interface address", line, "belongs to no interface")
        elif current is not None and (address := _ADDRESS.fullmatch(line.strip())):
            current.append(address[1])
    if not found:
        raise wrong("show interface address", text, "names no interface")
    return found


def parse_neighbours(text: str) -> dict[str, VppNeighbour]:
    """``show ip neighbors``: of both families, by ``address%interface``; nothing is printed where there are none."""
    found = {}
    lines = [line for line in text.splitlines() if line.strip()]
    if lines and lines[0].split()[1:] != ["IP", "Flags", "Ethernet", "Interface"]:
        raise wrong("show ip neighbors", text, "has no heading")
    for line in lines:
        if row := _NEIGHBOUR.fullmatch(line):
            found[f"{row[1]}%{row[4]}"] = VppNeighbour(row[3].lower(), "S" in (row[2] or ""))
    return found


def parse_placement(text: str) -> tuple[Placed, ...]:
    """``show interface rx-placement``: the node's name is printed only where it differs from the one before."""
    found, worker = [], None
    for line in text.splitlines():
        rest = line.strip()
        if begun := _PLACED_THREAD.fullmatch(rest):
            worker = begun[1]
        elif (row := _PLACED.fullmatch(rest)) and worker is not None:
            found.append(Placed(row[1], int(row[2]), worker, row[3]))
        elif rest and not (worker is not None and rest.startswith("node ")):
            raise wrong("show interface rx-placement", line, "is no queue")
    return tuple(found)


def parse_errors(text: str) -> tuple[NodeError, ...]:
    """``show errors``; a node counts the same reason once per thread, in a row of its own each."""
    rows = [
        _row("show errors", line, "is no counter", _ERROR, _ERROR_TIGHT)
        for line in _table("show errors", text, "Count Node Reason Severity", "Count Node Reason")
    ]
    return tuple(NodeError(int(row[1]), row[2], row[3]) for row in rows)


def parse_hardware(text: str) -> dict[str, Hardware]:
    """``show hardware-interfaces`` by name; what only some devices print is optional, all else is ignored."""
    found, command = {}, "show hardware-interfaces"
    for head, lines in _blocks(command, text, "Name Idx Link Hardware"):
        row = _row(command, head, "is no interface", _HARDWARE)
        found[row[1]] = _hardware(row[1], row[2] == "up", lines)
    return found


def _hardware(name: str, link: bool, lines: list[str]) -> Hardware:
    """One device, of the lines under its name."""
    speed = next((line[12:] for line in lines if line.startswith("Link speed: ")), None)
    ethernet = next((at for at, line in enumerate(lines) if line.startswith("Ethernet address ")), None)
    mac = lines[ethernet].split()[-1].lower() if ethernet is not None else None
    driver = lines[ethernet + 1] if ethernet is not None and ethernet + 1 < len(lines) else None
    told, older, pci = (
        next((found for line in lines if (found := pattern.fullmatch(line))), None)
        for pattern in (_RX_QUEUES, _RX_QUEUES_OLD, _PCI)
    )
    listed = sum(1 for line in lines if _HARDWARE_QUEUE.fullmatch(line))
    return Hardware(
        name,
        link,
        speed=None if speed == "unknown" else speed,
        driver=driver,
        queues=listed or (int(told[1]) if told else int(older[1]) if older else None),
        max_queues=int(told[2]) if told else None,
        descriptors=int(told[3]) if told else int(older[2]) if older else None,
        pci=f"{pci[1]}:{pci[2]}:{pci[3]}.{pci[4]}" if pci else None,
        mac=mac,
        counters=dict(_counted(lines)),
    )


def _counted(lines: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Counters of one device by name with underscores. VPP's own drivers print a part for each way or queue."""
    listed, queue = False, None
    for line in lines:
        if line == "RX QUEUE : Total Packets":  # virtio
            listed = True
        elif begun := _NATIVE_RX.fullmatch(line):
            queue = begun[1]
        elif line.startswith(("TX QUEUE", "TX Queue")):
            listed, queue = False, None
        elif row := _NATIVE_LISTED.fullmatch(line):
            if listed:
                yield f"rx_q{row[1]}_packets", int(row[2])
        elif counter := _COUNTER.fullmatch(line):
            if queue is None:
                yield re.sub(r"[ -]+", "_", counter[1]), int(counter[2])
            elif counter[1] == "ucast packets":
                yield f"rx_q{queue}_packets", int(counter[2])


def queue_packets(hardware: Hardware) -> dict[int, int]:
    """Packets of each receive queue, where its driver counts them (DPDK's rx_q0packets until 20.11)."""
    named = ((re.fullmatch(r"rx_q([0-9]{1,4})_?packets", name), n) for name, n in hardware.counters.items())
    return {int(match[1]): count for match, count in named if match}


def _row(command: str, line: str, otherwise: str, *forms: re.Pattern[str]) -> re.Match[str]:
    """The match of the first form that fits the line; DutError, which says ``otherwise``, where none does."""
    for form in forms:
        if found := form.fullmatch(line.strip()):
            return found
    raise wrong(command, line, otherwise)


def _blocks(command: str, text: str, head: str) -> list[tuple[str, list[str]]]:
    """The lines after the heading that are not indented, each with the indented ones that follow it, stripped."""
    found: list[tuple[str, list[str]]] = []
    for line in _table(command, text, head):
        if not line[0].isspace():
            found.append((line, []))
        elif found:
            found[-1][1].append(line.strip())
        else:
            raise wrong(command, line, "belongs to no interface")
    return found


def _table(command: str, text: str, *heads: str) -> Iterator[str]:
    """The lines after the heading, which must be there."""
    lines = iter(text.splitlines())
    for line in lines:
        if " ".join(line.split()) in heads:
            break
        if line.strip():
            raise wrong(command, line, "is where its heading should be")
    else:
        raise wrong(command, text, "has no heading")
    yield from (line for line in lines if line.strip())


def wrong(command: str, printed: str, what: str) -> DutError:
    """The error for output that cannot be parsed; only its first line is quoted."""
    shown = (printed.strip().splitlines() or ["nothing"])[0].strip()[:60]
    return DutError(f"{command}: {shown!r} {what}", "give the whole output of vppctl, of VPP 21.01 or later")
