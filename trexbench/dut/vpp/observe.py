"""VPP's own counters, read with one command, since it forwards meanwhile.

The drop counters, no frame in two of them, by the port that saw the frame last: ``rx-miss`` (the NIC's ring was full,
as DPDK counts it), ``rx-error`` (broken on the wire), ``drops`` (VPP dropped what this port had received),
``tx-error`` (this port could not send it). Left out: rx-no-buf, which DPDK counts per attempt, while its frames are in
rx-miss; and ``show errors``, whose rows are reasons for drops (and much that is no loss: "total received block" is an
error to VPP), except for what a full transmit ring refuses: af_packet's is counted nowhere else, that of VPP's own
drivers among ``tx packets`` too, and virtio's among ``drops``, from which it is taken. What af_packet's receive ring
refuses has no counter: it is what the Linux interface has received and VPP has not, ``af_packet ring``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from ...config.model import DutConfig, Port
from ...core.dut.telemetry import DropCount, Gathering, Missing, Observation, PortCount, QueueCount
from ...host.files import number
from ...transport import Transport
from . import parse_show as show
from .commands import linux_file
from .facts import ask
from .parse import parse_runtime

T = TypeVar("T")

RUNTIME, HARDWARE, INTERFACES = "show runtime", "show hardware-interfaces", "show interface"
ERRORS, CPU = "show errors", "show cpu"
CLEAR = "clear runtime"
_LOST = ("rx-miss", "rx-error", "drops", "tx-error")
_REFUSED = {"af_packet": "tx ring overrun", "native": "no free tx slots"}
"""Reason of an error: a full transmit ring, by the kind of interface."""
_RING_FULL = "af_packet ring"


def read_counters(transport: Transport, config: DutConfig, clear: bool) -> Observation:
    """One reading; DutError where VPP does not answer at all.

    The runtime first, since it covers the time until now; ``show hardware-interfaces`` fetches the NIC's counters, from
    which ``show interface`` is then computed.
    """
    commands = [RUNTIME, HARDWARE, INTERFACES, CPU]
    if config.vpp.interfaces == "native":
        commands.append(ERRORS)
    elif config.vpp.interfaces == "af_packet":
        # Linux's counters right after VPP's: what arrives in between is in only one of them
        commands[3:3] = [*(_arrived(port) for port in config.ports), ERRORS]
    return observed(config, ask(transport, config.vpp.socket, [*commands, CLEAR] if clear else commands))


def observed(config: DutConfig, said: Mapping[str, str]) -> Observation:
    """VPP's output as counters; one that cannot be parsed is named as missing and affects no other. Pure."""
    gathering, af_packet = Gathering(), config.vpp.interfaces == "af_packet"
    missing = gathering.missing

    def of(command: str, parse: Callable[[str], T]) -> T | None:
        return gathering.part(command, lambda: parse(said[command]), None)

    threads, clock = of(RUNTIME, parse_runtime), of(CPU, show.parse_clock)
    interfaces, hardware = of(INTERFACES, show.parse_interfaces), of(HARDWARE, show.parse_hardware)
    errors = of(ERRORS, show.parse_errors) if ERRORS in said else None
    reason = _REFUSED.get(config.vpp.interfaces, "")
    if said.get(CLEAR, "").strip():
        missing.append(Missing(CLEAR, said[CLEAR].strip()))
    ports, queues, drops = list[PortCount](), list[QueueCount](), list[DropCount]()
    for port in config.ports:
        name, found = port.interface, (interfaces or {}).get(port.interface)
        if found is not None:
            refused = None if errors is None else _refused(found, reason, errors)
            twice = 0 if af_packet or refused is None else refused
            sent = _count(found, "tx packets") - twice
            ports.append(PortCount(port.tester, _count(found, "rx packets"), max(0, sent)))
            drops += _drops(port, found, twice if name.startswith("virtio-") else 0)
            drops += [] if refused is None else [DropCount(reason, refused, port.tester)]
            if af_packet:
                lost = _ring(port, found, said.get(_arrived(port), ""))
                drops += [lost] if isinstance(lost, DropCount) else []
                missing += [lost] if isinstance(lost, Missing) else []
        elif interfaces is not None:
            missing.append(Missing(f"counters of {name}", "VPP has no such interface"))
        if hardware is not None and name in hardware:
            counted = list(_queues(port, hardware[name], found))
            queues += counted
            if not counted:
                why = f"{hardware[name].driver or 'its driver'} does not count them"
                missing.append(Missing(f"packets of each queue of {name}", why))
    return Observation(
        threads=threads or (),
        clock_hz=clock,
        ports=tuple(ports),
        queues=tuple(queues),
        drops=tuple(drops),
        missing=tuple(missing),
    )


def _count(interface: show.Interface, name: str) -> int:
    """VPP prints no counter that is zero: what is missing for an interface that exists is zero."""
    return interface.counters.get(name, 0)


def _drops(port: Port, interface: show.Interface, twice: int) -> Iterator[DropCount]:
    """twice: frames that are among its drops and counted elsewhere."""
    for name in _LOST:
        yield DropCount(name, max(0, _count(interface, name) - (twice if name == "drops" else 0)), port.tester)


def _refused(interface: show.Interface, reason: str, errors: tuple[show.NodeError, ...]) -> int:
    """Frames for which its transmit ring had no room."""
    return sum(one.count for one in errors if one.node == f"{interface.name}-tx" and one.reason == reason)


def _arrived(port: Port) -> str:
    return linux_file(port.interface, "statistics/rx_packets")


def _ring(port: Port, interface: show.Interface, arrived: str) -> DropCount | Missing:
    total, fetched = number(arrived.strip()), _count(interface, "rx packets")
    if total is None or total < fetched:
        told = arrived.strip() or "nothing"
        return Missing(f"losses of af_packet under {interface.name}", f"Linux counts {told}, VPP {fetched}")
    return DropCount(_RING_FULL, total - fetched, port.tester)


def _queues(port: Port, hardware: show.Hardware, interface: show.Interface | None) -> Iterator[QueueCount]:
    """VPP prints no queue without packets: it counts as zero where others are printed, or the port received nothing."""
    counted = show.queue_packets(hardware)
    received = None if interface is None else _count(interface, "rx packets")
    if not counted and hardware.queues == 1 and received is not None:
        counted = {0: received}
    if counted or (received == 0 and hardware.counters):
        for queue in range(max(hardware.queues or 0, *(one + 1 for one in counted), 0)):
            yield QueueCount(port.tester, queue, counted.get(queue, 0))
