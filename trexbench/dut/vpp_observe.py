"""What VPP counts about itself, read in one go, since it forwards meanwhile.

What is lost, no frame in two of them, and by the port that saw it last: ``rx-miss`` (the NIC's ring was full, or so
says DPDK), ``rx-error`` (broken on the wire), ``drops`` (VPP dropped what this port had received), ``tx-error`` (this
port could not take it). Not among them: rx-no-buf, which DPDK counts per attempt, the frames being missed by the ring
then; and ``show errors``, whose rows give reasons for drops (and for much that is no loss: "total received block" is
an error to VPP), but for what af_packet's full transmit ring refuses, which stands nowhere else. What its receive ring
refused nobody counts: it is what the Linux interface has received and VPP has not, ``af_packet ring``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from ..config import DutConfig, Port
from ..core.errors import DutError
from ..core.telemetry import DropCount, Missing, Observation, PortCount, QueueCount
from ..transport import Transport
from . import parse_linux
from .parse_vpp import parse_runtime
from .parse_vpp_show import (
    Hardware,
    Interface,
    NodeError,
    parse_clock,
    parse_errors,
    parse_hardware,
    parse_interfaces,
    queue_packets,
)
from .vpp_commands import linux_file
from .vpp_facts import ask

T = TypeVar("T")

RUNTIME, HARDWARE, INTERFACES, ERRORS, CPU = (
    *("show runtime", "show hardware-interfaces", "show interface", "show errors", "show cpu"),
)
CLEAR = "clear runtime"
_LOST = ("rx-miss", "rx-error", "drops", "tx-error")
_RING_OVERRUN = "tx ring overrun"
_RING_FULL = "af_packet ring"


def look(transport: Transport, config: DutConfig, clear: bool) -> Observation:
    """One look: the runtime first, as it ages; what ``show hardware-interfaces`` fetches from the NIC before what
    ``show interface`` adds up from it. DutError where VPP does not answer at all.
    """
    commands = [RUNTIME, HARDWARE, INTERFACES, CPU]
    if config.vpp.interfaces == "af_packet":
        # Linux's counts right after VPP's: what arrives between the two is in only one of them
        commands[3:3] = [*(_arrived(port) for port in config.ports), ERRORS]
    return observed(config, ask(transport, config.vpp.socket, [*commands, CLEAR] if clear else commands))


def observed(config: DutConfig, said: Mapping[str, str]) -> Observation:
    """VPP's answers as counts; what one of them does not say is named, and stops no other. Pure."""
    missing: list[Missing] = []

    def of(command: str, parse: Callable[[str], T]) -> T | None:
        try:
            return parse(said[command])
        except DutError as error:
            missing.append(Missing(command, str(error)))
            return None

    threads, clock = of(RUNTIME, parse_runtime), of(CPU, parse_clock)
    interfaces, hardware = of(INTERFACES, parse_interfaces), of(HARDWARE, parse_hardware)
    errors = of(ERRORS, parse_errors) if config.vpp.interfaces == "af_packet" else None
    if said.get(CLEAR, "").strip():
        missing.append(Missing(CLEAR, said[CLEAR].strip()))
    found = Observation(threads=threads or (), clock_hz=clock)
    for port in config.ports:
        name = port.interface
        if interfaces is not None and name not in interfaces:
            missing.append(Missing(f"counters of {name}", "VPP has no such interface"))
        elif interfaces is not None:
            found = _with_port(found, port, interfaces[name], errors)
            if config.vpp.interfaces == "af_packet":
                ring = _ring(port, interfaces[name], said.get(_arrived(port), ""))
                found = replace(found, drops=(*found.drops, ring)) if isinstance(ring, DropCount) else found
                missing += [ring] if isinstance(ring, Missing) else []
        if hardware is not None and name in hardware:
            counted = tuple(_queues(port, hardware[name], (interfaces or {}).get(name)))
            found = replace(found, queues=found.queues + counted)
            if not counted:
                missing.append(Missing(f"packets of each queue of {name}", _why_not(hardware[name])))
    return replace(found, missing=tuple(missing))


def _with_port(
    found: Observation, port: Port, interface: Interface, errors: tuple[NodeError, ...] | None
) -> Observation:
    """VPP prints no counter that is zero: of an interface that is there, what is not printed is zero."""
    counters = interface.counters
    count = PortCount(port.tester, counters.get("rx packets", 0), counters.get("tx packets", 0))
    drops = [DropCount(name, counters.get(name, 0), port.tester) for name in _LOST]
    if errors is not None:
        mine = (one.count for one in errors if one.node == f"{interface.name}-tx" and one.reason == _RING_OVERRUN)
        drops.append(DropCount(_RING_OVERRUN, sum(mine), port.tester))
    return replace(found, ports=(*found.ports, count), drops=(*found.drops, *drops))


def _arrived(port: Port) -> str:
    return linux_file(port.interface, "statistics/rx_packets")


def _ring(port: Port, interface: Interface, arrived: str) -> DropCount | Missing:
    total, fetched = parse_linux.number(arrived.strip()), interface.counters.get("rx packets", 0)
    if total is None or total < fetched:
        told = arrived.strip() or "nothing"
        return Missing(f"losses of af_packet under {interface.name}", f"Linux counts {told}, VPP {fetched}")
    return DropCount(_RING_FULL, total - fetched, port.tester)


def _queues(port: Port, hardware: Hardware, interface: Interface | None) -> Iterator[QueueCount]:
    """A queue that has delivered nothing is not printed: it counts as zero where others are, or nothing came at all."""
    counted = queue_packets(hardware)
    if not counted and hardware.queues == 1 and interface is not None:
        counted = {0: interface.counters.get("rx packets", 0)}
    quiet = interface is not None and not interface.counters.get("rx packets", 0) and hardware.counters
    if not counted and not quiet:
        return
    for queue in range(max(hardware.queues or 0, *(one + 1 for one in counted), 0)):
        yield QueueCount(port.tester, queue, counted.get(queue, 0))


def _why_not(hardware: Hardware) -> str:
    return f"{hardware.driver or 'its driver'} does not count them"
