"""Parse the output of VPP's show commands. Pure; absent is None, never zero; DutError for other text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ...core.errors import DutError
from ...host.files import number


@dataclass(frozen=True)
class Thread:
    """One thread of ``show threads``."""

    name: str
    kind: str
    """``workers`` for one that forwards, empty for the main one."""
    lcore: int | None


@dataclass(frozen=True)
class Interface:
    """One interface of ``show interface``, with counters by VPP's names (rx-miss); VPP leaves out zeros."""

    name: str
    up: bool
    mtu: int
    counters: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Hardware:
    """One device of ``show hardware-interfaces``."""

    name: str
    link: bool
    speed: str | None = None
    driver: str | None = None
    queues: int | None = None
    """Receive queues in use; ``max_queues``: how many it can have."""
    max_queues: int | None = None
    descriptors: int | None = None
    pci: str | None = None
    mac: str | None = None
    counters: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Placed:
    """One receive queue of ``show interface rx-placement``; mode: polling, interrupt or adaptive."""

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
    """One row of ``show errors``; many are no losses."""

    count: int
    node: str
    reason: str


_VERSION = re.compile(r"^Version:\s+(\S+)", re.M)
_PID = re.compile(r"^Current PID:\s+([0-9]{1,10})\s*$", re.M)
_CLOCK = re.compile(r"^Base frequency:\s+([0-9]{1,3}\.[0-9]{1,6}) GHz\s*$", re.M)
_THREAD = re.compile(
    r"[0-9]{1,5}\s+(\S+)\s+(?:([a-z][a-z-]*)\s+)?[0-9]{1,10}\s+(?:(-?[0-9]{1,5})\s+)?"
    r"[a-z]+ \((?:[0-9]{1,3}|n/a)\)\s*(\S*).*"
)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
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
_NATIVE_DRIVER = re.compile(r"Driver is '([^']+)', .*")
_OF_QUEUE = {"ucast packets": "packets", "No Bufs": "no_bufs"}
"""vmxnet3's words for one queue (plugins/vmxnet3/format.c), and DPDK's."""
_NATIVE_LISTED = re.compile(r"([0-9]{1,4}) : ([0-9]{1,20})")
_PCI = re.compile(r"pci: .*\baddress ([0-9a-f]{4}):([0-9a-f]{2}):([0-9a-f]{2})\.0?([0-9a-f]) .*")
_ERROR = re.compile(r"([0-9]{1,20})\s+(\S+)\s{2,}(\S.*?)(?:\s{2,}(?:info|error|warn|unknown))?")
_ERROR_TIGHT = re.compile(r"([0-9]{1,20})\s+(\S+)\s+(\S.*?)(?:\s+(?:info|error|warn|unknown))?")


def parse_version(text: str) -> tuple[str, int]:
    """Parse ``show version verbose``: release and process id."""
    version, pid = _VERSION.search(text), _PID.search(text)
    if not version or not pid:
        raise wrong("show version verbose", text, "says nothing of a version and a PID")
    return version[1], int(pid[1])


def parse_clock(text: str) -> float:
    """Parse ``show cpu``: Hz of the counter that VPP counts its clocks in.

    Until 25.06 VPP prints two decimals: too few for an ARM's, of 25 MHz (vppinfra/time.h).
    """
    match = _CLOCK.search(text)
    if not match:
        raise wrong("show cpu", text, "says nothing of a base frequency")
    if int(match[1].replace(".", "")) < 10:
        raise DutError(f"show cpu: {match[1]} GHz is too coarse", "VPP 25.10 prints more digits")
    return float(match[1]) * 1e9


def parse_threads(text: str) -> tuple[Thread, ...]:
    """Parse ``show threads``.

    Since 25.06 it has one more column with ``cpu { relative }`` in startup.conf, since 26.10 others, and colours.
    """
    command, head = "show threads", "ID Name Type LWP Sched Policy (Priority) lcore Core Socket State"
    later = "ID Name LWP CPU Sched Loops Epolls Sleeps FdWakeups WakeReq Wakeups"
    threads = list[Thread]()
    for line in _table(command, _COLOUR.sub("", text), head, f"{head} Relative Core", later):
        row = _row(command, line, "is no thread", _THREAD)
        kind, lcore = row[2] or "", number(row[4])
        if row[3] is not None:  # 26.10: all but the first forward; not pinned is -1
            kind, lcore = "workers" if threads else "", number(row[3].replace("-1", ""))
        threads.append(Thread(row[1], kind, lcore))
    return tuple(threads)


def parse_interfaces(text: str) -> dict[str, Interface]:
    """Parse ``show interface``: interfaces by name."""
    interfaces, command = {}, "show interface"
    for head, lines in _blocks(command, text, "Name Idx State MTU (L3/IP4/IP6/MPLS) Counter Count"):
        row = _row(command, head, "is no interface", _INTERFACE)
        counters = [_row(command, line, "is not a counter", _COUNTER) for line in (row[4], *lines) if line]
        values = {counter[1]: int(counter[2]) for counter in counters}
        interfaces[row[1]] = Interface(row[1], row[2] == "up", int(row[3]), values)
    return interfaces


def parse_addresses(text: str) -> dict[str, list[str]]:
    """Parse ``show interface address``: addresses with their lengths, by interface."""
    addresses: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in text.splitlines():
        if heading := _ADDRESSES_OF.fullmatch(line.rstrip()):
            current = addresses.setdefault(heading[1], [])
        elif current is None and line.strip():
            raise wrong("show interface address", line, "belongs to no interface")
        elif current is not None and (address := _ADDRESS.fullmatch(line.strip())):
            current.append(address[1])
    if not addresses:
        raise wrong("show interface address", text, "names no interface")
    return addresses


def parse_neighbours(text: str) -> dict[str, VppNeighbour]:
    """Parse ``show ip neighbors`` of both families, by ``address%interface``; VPP prints nothing if there are none."""
    neighbours = {}
    lines = [line for line in text.splitlines() if line.strip()]
    if lines and lines[0].split()[1:] != ["IP", "Flags", "Ethernet", "Interface"]:
        raise wrong("show ip neighbors", text, "has no heading")
    for line in lines:
        if row := _NEIGHBOUR.fullmatch(line):
            neighbours[f"{row[1]}%{row[4]}"] = VppNeighbour(row[3].lower(), "S" in (row[2] or ""))
    return neighbours


def parse_placement(text: str) -> tuple[Placed, ...]:
    """Parse ``show interface rx-placement``, which prints a node's name only where it differs from the one before."""
    placed, worker = [], None
    for line in text.splitlines():
        rest = line.strip()
        if heading := _PLACED_THREAD.fullmatch(rest):
            worker = heading[1]
        elif (row := _PLACED.fullmatch(rest)) and worker is not None:
            placed.append(Placed(row[1], int(row[2]), worker, row[3]))
        elif rest and not (worker is not None and rest.startswith("node ")):
            raise wrong("show interface rx-placement", line, "is no queue")
    return tuple(placed)


def parse_errors(text: str) -> tuple[NodeError, ...]:
    """Parse ``show errors``; a node has a row for each reason and thread."""
    rows = [
        _row("show errors", line, "is not a counter", _ERROR, _ERROR_TIGHT)
        for line in _table("show errors", text, "Count Node Reason Severity", "Count Node Reason")
    ]
    return tuple(NodeError(int(row[1]), row[2], row[3]) for row in rows)


def parse_hardware(text: str) -> dict[str, Hardware]:
    """Parse ``show hardware-interfaces``: devices by name; what only some devices print is optional."""
    devices, command = {}, "show hardware-interfaces"
    for head, lines in _blocks(command, text, "Name Idx Link Hardware"):
        row = _row(command, head, "is no interface", _HARDWARE)
        devices[row[1]] = _hardware(row[1], row[2] == "up", lines)
    return devices


def _hardware(name: str, link: bool, lines: list[str]) -> Hardware:
    speed = next((line[12:] for line in lines if line.startswith("Link speed: ")), None)
    ethernet = next((at for at, line in enumerate(lines) if line.startswith("Ethernet address ")), None)
    mac = lines[ethernet].split()[-1].lower() if ethernet is not None else None
    driver = lines[ethernet + 1] if ethernet is not None and ethernet + 1 < len(lines) else None
    stated, older, pci, native = (
        next(filter(None, map(pattern.fullmatch, lines)), None)
        for pattern in (_RX_QUEUES, _RX_QUEUES_OLD, _PCI, _NATIVE_DRIVER)
    )
    listed = sum(bool(_HARDWARE_QUEUE.fullmatch(line)) for line in lines)
    return Hardware(
        name,
        link,
        speed=None if speed == "unknown" else speed,
        driver=native[1] if native else driver,
        queues=listed or (int(stated[1]) if stated else int(older[1]) if older else None),
        max_queues=int(stated[2]) if stated else None,
        descriptors=int(stated[3]) if stated else int(older[2]) if older else None,
        pci=f"{pci[1]}:{pci[2]}:{pci[3]}.{pci[4]}" if pci else None,
        mac=mac,
        counters=dict(_counters(lines)),
    )


def _counters(lines: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Yield a device's counters, named with underscores; VPP's own drivers print a part for each direction or queue."""
    listed, queue = False, None
    for line in lines:
        if line == "RX QUEUE : Total Packets":  # virtio
            listed = True
        elif heading := _NATIVE_RX.fullmatch(line):
            queue = heading[1]
        elif line.startswith(("TX QUEUE", "TX Queue")):
            listed, queue = False, None
        elif row := _NATIVE_LISTED.fullmatch(line):
            if listed:
                yield f"rx_q{row[1]}_packets", int(row[2])
        elif counter := _COUNTER.fullmatch(line):
            if queue is None:
                yield re.sub(r"[ -]+", "_", counter[1]), int(counter[2])
            elif counter[1] in _OF_QUEUE:
                yield f"rx_q{queue}_{_OF_QUEUE[counter[1]]}", int(counter[2])


def queue_packets(hardware: Hardware) -> dict[int, int]:
    """Packets of each receive queue, where its driver counts them (rx_q0packets in DPDK until 20.11)."""
    named = ((re.fullmatch(r"rx_q([0-9]{1,4})_?packets", name), n) for name, n in hardware.counters.items())
    return {int(match[1]): count for match, count in named if match}


def _row(command: str, line: str, otherwise: str, *forms: re.Pattern[str]) -> re.Match[str]:
    """Match the line with the first form that fits; DutError, which says ``otherwise``, where none does."""
    for form in forms:
        if match := form.fullmatch(line.strip()):
            return match
    raise wrong(command, line, otherwise)


def _blocks(command: str, text: str, head: str) -> list[tuple[str, list[str]]]:
    """Split the lines after the heading into those that are not indented, each with the indented ones below it."""
    blocks: list[tuple[str, list[str]]] = []
    for line in _table(command, text, head):
        if not line[0].isspace():
            blocks.append((line, []))
        elif blocks:
            blocks[-1][1].append(line.strip())
        else:
            raise wrong(command, line, "belongs to no interface")
    return blocks


def _table(command: str, text: str, *heads: str) -> Iterator[str]:
    """Yield the lines after the heading, which must be there."""
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
    """Error for output that cannot be parsed, with its first line."""
    shown = (printed.strip().splitlines() or ["nothing"])[0].strip()[:60]
    return DutError(f"{command}: {shown!r} {what}", "give the whole output of vppctl, of VPP 21.01 or later")
