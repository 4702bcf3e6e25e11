"""Read VPP's counters, with one command since it forwards meanwhile.

A drop is counted at the port that saw the frame last, once:

- ``rx-miss``: the NIC's ring was full, as DPDK counts it; ``rx-error``: broken on the wire; ``drops``: VPP dropped what
  this port had received.
- rx-no-buf is left out: DPDK counts it per attempt, and its frames are in rx-miss. So is tx-error: until 26.06 it has
  frames for an interface that is down, which are in ``drops``, too.
- ``show errors`` has reasons for drops, and much that is no loss. Only what a full transmit ring refuses is read from
  it: VPP counts a frame in ``tx packets`` before the driver refuses it (vnet/interface_output.c), so it is subtracted
  there. virtio has it in ``drops``, too.
- ``af_packet ring``: what af_packet's receive ring refuses has no counter; it is what the Linux interface has received
  and VPP has not.
"""

from __future__ import annotations

import re
from collections import Counter
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
_ARRIVED = "statistics/rx_packets"
_LOST = ("rx-miss", "rx-error", "drops")
_HARMLESS = "rx_l3_l4_xsum_error"
"""Frames with a wrong checksum, which are forwarded: ixgbe counts them as errors, but for the 82599, which takes UDP's
checksum of 0 for one (DPDK's ixgbe_dev_stats_get)."""
_OF_NIC = re.compile("rx_phy_discard_packets|rx_discards_phy|rx_q([0-9]{1,4})_no_bufs")
"""Counters of the NIC that ``rx-miss`` leaves out: mlx5's port, by DPDK's names, and buffers that vmxnet3 lacked."""
_REFUSED = (
    *("Tx packet drops (dpdk tx failure)", "no free tx slots", "no free TX slots"),
    *("tx frame not ready", "tx ring overrun"),
)
"""Drivers' words for a full transmit ring, TX being atlantic's (src/drivers, 26.06). af_packet drops a frame whose slot
is not ready, and calls it an overrun only where a vector is as long as the ring (plugins/af_packet/device.c)."""


def read_counters(transport: Transport, config: DutConfig, clear: bool) -> Observation:
    """Read all counters; DutError where VPP does not answer at all."""
    # The runtime first, since it covers the time until now. ``show hardware-interfaces`` fetches the NIC's counters,
    # from which ``show interface`` is then computed.
    commands = [RUNTIME, HARDWARE, INTERFACES, ERRORS, CPU]
    if config.vpp.interfaces == "af_packet":
        # Linux's counters right after VPP's: what arrives in between is in one of them only
        commands[3:3] = [linux_file(port.interface, _ARRIVED) for port in config.ports]
    return observed(config, ask(transport, config.vpp.socket, [*commands, CLEAR] if clear else commands))


def observed(config: DutConfig, answers: Mapping[str, str]) -> Observation:
    """Parse VPP's output by command; what cannot be parsed is reported as missing and affects nothing else. Pure."""
    gathering, af_packet = Gathering(), config.vpp.interfaces == "af_packet"
    missing = gathering.missing

    def of(command: str, parse: Callable[[str], T]) -> T | None:
        return gathering.part(command, lambda: parse(answers[command]), None)

    threads, clock = of(RUNTIME, parse_runtime), of(CPU, show.parse_clock)
    interfaces, hardware = of(INTERFACES, show.parse_interfaces), of(HARDWARE, show.parse_hardware)
    errors = of(ERRORS, show.parse_errors)
    if answers.get(CLEAR, "").strip():
        missing.append(Missing(CLEAR, answers[CLEAR].strip()))
    ports, queues, drops = list[PortCount](), list[QueueCount](), list[DropCount]()
    for port in config.ports:
        name, interface = port.interface, (interfaces or {}).get(port.interface)
        if interface is not None:
            refused = Counter[str]()
            for row in errors or ():
                refused[row.reason] += row.count if row.node == f"{name}-tx" and row.reason in _REFUSED else 0
            sent = _count(interface, "tx packets") - refused.total()
            ports.append(PortCount(port.tester, _count(interface, "rx packets"), max(0, sent)))
            counters = hardware[name].counters if hardware is not None and name in hardware else {}
            harmless = counters.get(_HARMLESS, 0)
            others = {"drops": refused.total() if name.startswith("virtio-") else 0}
            others["rx-error"] = harmless if harmless <= _count(interface, "rx-error") else 0
            drops += _drops(port, interface, others)
            drops += (DropCount(reason, count, port.tester) for reason, count in (+refused).items())
            if af_packet:
                lost = _ring_losses(port, interface, answers.get(linux_file(name, _ARRIVED), ""))
                drops += [lost] if isinstance(lost, DropCount) else []
                missing += [lost] if isinstance(lost, Missing) else []
        elif interfaces is not None:
            missing.append(Missing(f"counters of {name}", "VPP has no such interface"))
        if hardware is not None and name in hardware:
            for counter, count in hardware[name].counters.items():
                if match := _OF_NIC.fullmatch(counter):
                    label, queue = ("rx_no_bufs", int(match[1])) if match[1] else (counter, None)
                    drops.append(DropCount(label, count, port.tester, queue))
            counted = list(_queues(port, hardware[name], interface))
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
    return interface.counters.get(name, 0)  # VPP prints no counter that is zero


def _drops(port: Port, interface: show.Interface, others: Mapping[str, int]) -> Iterator[DropCount]:
    """Yield a port's drops. others: frames in each counter that are not lost, or that another counter has."""
    for name in _LOST:
        yield DropCount(name, max(0, _count(interface, name) - others.get(name, 0)), port.tester)


def _ring_losses(port: Port, interface: show.Interface, arrived: str) -> DropCount | Missing:
    total, fetched = number(arrived.strip()), _count(interface, "rx packets")
    if total is None or total < fetched:
        what = f"losses of af_packet under {interface.name}"
        return Missing(what, f"Linux counts {arrived.strip() or 'nothing'}, VPP {fetched}")
    return DropCount("af_packet ring", total - fetched, port.tester)


def _queues(port: Port, hardware: show.Hardware, interface: show.Interface | None) -> Iterator[QueueCount]:
    # VPP prints no queue without packets: it counts as zero where others are printed, or the port received nothing
    counted = show.queue_packets(hardware)
    received = None if interface is None else _count(interface, "rx packets")
    if not counted and hardware.queues == 1 and received is not None:
        counted = {0: received}
    if counted or (received == 0 and hardware.counters):
        for queue in range(max(hardware.queues or 0, *(index + 1 for index in counted), 0)):
            yield QueueCount(port.tester, queue, counted.get(queue, 0))
