"""Which CPU serves each receive queue of a Linux DUT, and how its NICs select a queue; from its facts, pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...core.dut.rss import PortHash, QueuePlace, Spreading
from ...host.files import parse_cpus, parse_mask
from ..model import Wanted
from .tuning import forwarding_cpus, lab_of, queues_in_use

_VETH = "a veth has no hash: the sending CPU selects the queue (its number modulo the number of queues)"


def find_spreading(wanted: Wanted, facts: Mapping[str, Any]) -> Spreading:
    queues: list[QueuePlace] = []
    hashes: list[PortHash] = []
    for index, port in enumerate(sorted(wanted.without_tunnel.config.ports, key=lambda one: one.tester)):
        link = facts["interfaces"].get(port.interface)
        if link is None:
            continue
        for queue in range(queues_in_use(link)):
            worker = _worker(link, queue, index, lab_of(wanted))
            queues.append(QueuePlace(port.tester, queue, worker))
        hashes.append(_hash(port.tester, link))
    return Spreading(tuple(queues), tuple(hashes), _workers(wanted, facts))


def _worker(link: Mapping[str, Any], queue: int, index: int, lab: Mapping[str, Any]) -> str | None:
    """The CPU that does most of the work: the one that RPS hands it to, else the one of the interrupt."""
    handed_on = parse_mask(link["rps_cpus"].get(f"rx-{queue}"))
    if handed_on:
        return _only(handed_on)
    if lab:
        return _lab_worker(queue, index, lab)
    served = [irq for irq in link["irqs"] if irq["queue"] == queue]
    if len(served) != 1:
        return None
    # an interrupt that was moved gets there when it occurs next: until then the CPU in effect is the former one
    return _only(parse_cpus(served[0]["cpus"])) or _only(parse_cpus(served[0]["effective"]))


def _lab_worker(queue: int, index: int, lab: Mapping[str, Any]) -> str | None:
    """A veth has no interrupt. cpumap: as trexbench.lab.build steers. NAPI threads may run on any of router_cpus."""
    router = lab.get("router_cpus") or []
    if lab.get("steer") == "cpumap":
        return f"cpu{router[(queue + index) % len(router)]}" if router else None
    if lab.get("threaded"):
        return _only(router)
    sender = lab.get("sender_cpu")
    return None if sender is None else f"cpu{sender}"


def _workers(wanted: Wanted, facts: Mapping[str, Any]) -> tuple[str, ...]:
    lab = lab_of(wanted)
    steered = lab.get("steer") in ("cpumap", "rps") or lab.get("threaded")
    cpus = [lab.get("sender_cpu")] if lab and not steered else forwarding_cpus(wanted, facts)
    return tuple(f"cpu{cpu}" for cpu in cpus if cpu is not None)


def _only(cpus: Sequence[int] | None) -> str | None:
    return f"cpu{cpus[0]}" if cpus and len(cpus) == 1 else None


def _hash(port: int, link: Mapping[str, Any]) -> PortHash:
    rss = link["rss"]
    if link["kind"] == "veth":
        return PortHash(port, None, reason=_VETH)
    if rss is None:
        return PortHash(port, None, reason="ethtool -x does not show this device's hash")
    six = tuple(rss["ipv6_fields"] or ()) if "ipv6_fields" in rss else None
    fields, table = tuple(rss.get("fields") or ()), tuple(rss["table"] or ())
    reason = ""
    if rss["function"] not in ("toeplitz", None):
        reason = f"its hash is {rss['function']}, not Toeplitz"
    elif rss["key"] is None:
        reason = "ethtool -x does not show its key"
    elif not table or len(table) & (len(table) - 1):
        reason = f"its indirection table has {len(table)} entries, no power of two"
    elif not fields and not six:
        reason = "ethtool -n does not show which fields of UDP it hashes"
    return PortHash(port, None if reason else rss["key"], fields, table, reason, six)
