"""Settings of a Linux DUT besides addresses and routes: irqbalance, queues, interrupts, RPS, clocks, offloads; pure.

Each is set only where the config's ``linux:`` section, or ``rx_queues``, asks for it. find_spreading says which CPU
serves each receive queue, and how NICs select a queue.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...config.settings import KEEP
from ...core.dut.rss import PortHash, QueuePlace, Spreading
from ...core.errors import DutError
from ...host.files import mask, parse_cpus, parse_mask
from ..settings import Change, Command, Mismatch, Wanted, counted

Facts = Mapping[str, Any]

GONE = ("Cannot find device", "does not exist")
"""Output of ip for an interface that no longer exists, where nothing is left to undo."""
GOVERNORS = "/sys/devices/system/cpu/cpufreq"
_VANISHED = ("No such file or directory",)
"""Output of tee for an interrupt or a queue that no longer exists."""


def host_changes(wanted: Wanted, facts: Facts) -> list[Change]:
    """Stop irqbalance and set the governors. An irqbalance that systemd did not start is only a mismatch."""
    settings, changes = wanted.config.linux, []
    if settings.irqbalance == "off" and facts["irqbalance"]["unit"] == "active":
        do = Command(("systemctl", "stop", "irqbalance"), "it would move interrupts during the test")
        undo = Command(("systemctl", "start", "irqbalance"), "it was running")
        changes.append(Change("irqbalance", "running", "stopped", (do,), (undo,)))
    for policy, former in (facts["governors"] or {}).items() if settings.governor != KEEP else ():
        path = f"{GOVERNORS}/{policy}/scaling_governor"
        changes += write(f"governor of {policy}", path, former, settings.governor, "one clock throughout")
    return changes


def require_queues(wanted: Wanted, facts: Facts) -> None:
    """Raise DutError, before anything is changed, where a port cannot have the receive queues asked for."""
    if wanted.rx_queues is None:
        return
    for port in wanted.config.ports:
        link = facts["interfaces"][port.interface]
        most = most_queues(link)
        if wanted.rx_queues > most or (wanted.rx_queues < most and link["channels"] is None):
            offers = counted(most, "receive queue")
            offers = f"at most {offers}" if link["channels"] else f"{offers}, and their number cannot be set"
            raise DutError(
                f"{wanted.config.name}: {wanted.rx_queues} receive queues are asked for, {port.interface} has {offers}",
                "ask for another number with --rx-queues",
            )


def queue_changes(wanted: Wanted, facts: Facts) -> list[Change]:
    """Set the number of queues in use, and offloads."""
    changes = []
    for name, link in _links(wanted, facts):
        changes += _channels(name, link, wanted.rx_queues) + _offloads(wanted, name, link)
    return changes


def _links(wanted: Wanted, facts: Facts) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the test's interfaces that exist, without a tunnel's: it has no queues of its own."""
    for name in wanted.without_tunnel.interfaces:
        if (link := facts["interfaces"].get(name)) is not None:
            yield name, link


def _offloads(wanted: Wanted, name: str, link: Mapping[str, Any]) -> list[Change]:
    changes = []
    for feature, on in wanted.config.linux.offloads:
        former = (link["offloads"] or {}).get(feature)
        if former is not on:
            do = Command(("ethtool", "-K", name, feature, _switch(on)), "as the config asks")
            undo = Command(("ethtool", "-K", name, feature, _switch(bool(former))), "as it was")
            was = None if former is None else _switch(former)
            variant = wanted.variant if feature in dict(wanted.config.chosen.offloads) else None
            what = f"{feature} of {name}"
            changes.append(Change(what, was, _switch(on), (do,), (undo,) if was else (), variant=variant))
    return changes


def placement_changes(wanted: Wanted, facts: Facts) -> list[Change]:
    """Set the CPUs of the interrupts, and of RPS, of the queues that are in use now."""
    changes = []
    for name, irq, cpu in _wanted_irqs(wanted, facts):
        if parse_cpus(irq["cpus"]) != [cpu]:
            what = f"interrupt {irq['irq']} ({irq['name']}) of {name}"
            path = f"/proc/irq/{irq['irq']}/smp_affinity_list"
            for change in write(what, path, irq["cpus"], str(cpu), f"queue {irq['queue']} on CPU {cpu}"):
                changes.append(replace(change, was=f"CPUs {irq['cpus']}", wanted=f"CPU {cpu}"))
    # a lab that steers by RPS sets masks itself; queues that are added later get the same ones
    if wanted.config.linux.rps == KEEP and lab_of(wanted).get("steer") != "rps":
        return changes
    cpus = [] if wanted.config.linux.rps == "off" else sorted(forwarding_cpus(wanted, facts))
    why = "hand its packets to these CPUs" if cpus else "leave packets on the CPU that received them"
    for name, link in _links(wanted, facts):
        for queue, former in link["rps_cpus"].items():
            if parse_mask(former) != cpus:
                path = f"/sys/class/net/{name}/queues/{queue}/rps_cpus"
                changes += write(f"RPS of {name} {queue}", path, former, mask(cpus), why)
    return changes


def compare_tuning(wanted: Wanted, facts: Facts) -> list[Mismatch]:
    """List what the config asks for of this module's settings, and no change can bring about."""
    settings, wrong = wanted.config.linux, list[Mismatch]()
    running = facts["irqbalance"]["running"]
    if settings.irqbalance == "off" and running is not False and facts["irqbalance"]["unit"] != "active":
        found = "running" if running else "unknown"
        wrong.append(Mismatch("irqbalance", "stopped", found, "stop it by hand: systemd did not start it"))
    if settings.governor != KEEP and not facts["governors"]:
        wrong.append(Mismatch("governor of any CPU", settings.governor, "no cpufreq"))
    placed = {name for name, _, _ in _wanted_irqs(wanted, facts)}
    for name, _ in _links(wanted, facts):
        if settings.irqs == "spread" and name not in placed:
            wish = "one for each receive queue"
            wrong.append(Mismatch(f"interrupts of {name}", wish, "none named so", "set linux.irqs: keep"))
    return wrong


def queues_in_use(link: Mapping[str, Any]) -> int:
    """Number of receive queues in use; from /sys where the device does not show its channels."""
    channels = link["channels"]
    return sum(channels["now"].get(kind, 0) for kind in ("rx", "combined")) if channels else len(link["rps_cpus"])


def most_queues(link: Mapping[str, Any]) -> int:
    """Most receive queues a device can have: combined ones where it has both kinds, since those are set."""
    channels = link["channels"]
    if not channels:
        return len(link["rps_cpus"])
    most = channels["max"]
    return int(most.get("combined") or most.get("rx") or 0)


def lab_of(wanted: Wanted) -> Mapping[str, Any]:
    """Placement of this DUT's lab on its cores; empty without a lab, or in a VM that has cores of its own."""
    lab = wanted.host_facts.get("lab")
    return lab if isinstance(lab, Mapping) and not wanted.config.in_vm else {}


def forwarding_cpus(wanted: Wanted, facts: Facts) -> Sequence[int]:
    """CPUs of the config, else the lab's, else all that are online; empty where they are not known."""
    return wanted.config.linux.cpus or lab_of(wanted).get("router_cpus") or facts["cpus_online"] or ()


def write(what: str, path: str, former: object, new: object, why: str, variant: str | None = None) -> list[Change]:
    """Change the value of a file in /proc or /sys, unless it is as wanted. former: None where it is not known."""
    if former == new:
        return []
    was = None if former is None else str(former)
    back = (tee(path, was, fine_if=_VANISHED),) if was else ()
    return [Change(what, was, str(new), (tee(path, new, why),), back, variant=variant)]


def tee(path: str, value: object, why: str = "as it was", fine_if: tuple[str, ...] = ()) -> Command:
    return Command(("tee", path), why, input=f"{value}\n", fine_if=fine_if)


def _channels(name: str, link: Mapping[str, Any], queues: int | None) -> list[Change]:
    """Set the number of receive queues; the undo also restores RPS masks and interrupts of the queues it removes."""
    if queues is None or queues_in_use(link) == queues:
        return []
    channels = link["channels"] or {"max": {}, "now": {}}
    kind = "combined" if channels["max"].get("combined") else "rx"
    former = int(channels["now"].get(kind) or 0)
    keeps = (link.get("driver") or {}).get("driver") == "virtio_net" and bool((link.get("rss") or {}).get("table"))
    back = list(_use_queues(name, kind, queues, former, keeps, "as it was"))
    for queue, cpus in link["rps_cpus"].items():
        if parse_mask(cpus):
            back.append(tee(f"/sys/class/net/{name}/queues/{queue}/rps_cpus", cpus, fine_if=_VANISHED))
    for irq in link["irqs"]:
        back.append(tee(f"/proc/irq/{irq['irq']}/smp_affinity_list", irq["cpus"], fine_if=_VANISHED))
    do = _use_queues(name, kind, former, queues, keeps, "receive queues, as asked for")
    what = f"receive queues of {name}"
    return [Change(what, str(queues_in_use(link)), str(queues), do, tuple(back) if former else (), reveals=True)]


def _use_queues(name: str, kind: str, former: int, queues: int, keeps: bool, why: str) -> tuple[Command, ...]:
    """Set the number of queues. keeps: as virtio_net (Linux 6.1), the driver keeps a hash table its device forgets."""
    use = Command(("ethtool", "-L", name, kind, str(queues)), why)
    spread = Command(("ethtool", "-X", name, "equal", str(queues)), "a table of these queues")
    if not keeps:
        return (use,)
    return (spread, use, spread) if queues < former else (use, spread)


def _wanted_irqs(wanted: Wanted, facts: Facts) -> Iterator[tuple[str, Mapping[str, Any], int]]:
    """Yield interface, interrupt, and the CPU that is to serve it."""
    if wanted.config.linux.irqs != "spread":
        return
    cpus = forwarding_cpus(wanted, facts)
    for name, link in _links(wanted, facts) if cpus else ():
        for irq in link["irqs"]:
            if irq["queue"] is not None and irq["queue"] < queues_in_use(link):
                yield name, irq, cpus[irq["queue"] % len(cpus)]


def _switch(on: bool) -> str:
    return "on" if on else "off"


def find_spreading(wanted: Wanted, facts: Mapping[str, Any]) -> Spreading:
    """Find which CPU serves each receive queue, how NICs select a queue, and which CPUs forward."""
    ports, lab = sorted(wanted.without_tunnel.config.ports, key=lambda port: port.tester), lab_of(wanted)
    links = [
        (at, port.tester, link) for at, port in enumerate(ports) if (link := facts["interfaces"].get(port.interface))
    ]
    queues = tuple(
        QueuePlace(tester, queue, _worker(link, queue, at, lab))
        for at, tester, link in links
        for queue in range(queues_in_use(link))
    )
    hashes = tuple(_hash(tester, link) for _, tester, link in links)
    steered = lab.get("steer") in ("cpumap", "rps") or lab.get("threaded")
    cpus = [lab.get("sender_cpu")] if lab and not steered else forwarding_cpus(wanted, facts)
    return Spreading(queues, hashes, tuple(f"cpu{cpu}" for cpu in cpus if cpu is not None))


def _worker(link: Mapping[str, Any], queue: int, index: int, lab: Mapping[str, Any]) -> str | None:
    """Find the CPU that does most of the work: the one that RPS hands it to, else the one of the interrupt."""
    if handed_on := parse_mask(link["rps_cpus"].get(f"rx-{queue}")):
        return _only(handed_on)
    if lab:  # a veth has no interrupt
        router, sender = lab.get("router_cpus") or [], lab.get("sender_cpu")
        if lab.get("steer") == "cpumap":  # as trexbench.lab.build steers
            return f"cpu{router[(queue + index) % len(router)]}" if router else None
        if lab.get("threaded"):  # NAPI threads may run on any of router_cpus
            return _only(router)
        return None if sender is None else f"cpu{sender}"
    served = [irq for irq in link["irqs"] if irq["queue"] == queue]
    if len(served) != 1:
        return None
    # an interrupt that was moved gets there when it occurs next: until then the CPU in effect is the former one
    return _only(parse_cpus(served[0]["cpus"])) or _only(parse_cpus(served[0]["effective"]))


def _only(cpus: Sequence[int] | None) -> str | None:
    return f"cpu{cpus[0]}" if cpus and len(cpus) == 1 else None


def _hash(port: int, link: Mapping[str, Any]) -> PortHash:
    rss = link["rss"]
    if link["kind"] == "veth":
        why = "a veth has no hash: the sending CPU selects the queue (its number modulo the number of queues)"
        return PortHash(port, None, reason=why)
    if rss is None:
        return PortHash(port, None, reason="ethtool -x does not show this device's hash")
    six = tuple(rss["ipv6_fields"] or ()) if "ipv6_fields" in rss else None
    fields, table = tuple(rss.get("fields") or ()), tuple(rss["table"] or ())
    reason = ""
    if rss["function"] not in ("toeplitz", None):
        reason = f"its hash is {rss['function']}, not plain Toeplitz"
    elif (link.get("driver") or {}).get("driver") == "mlx5_core":  # en/tir.c; ethtool shows it since Linux 6.15
        reason = "mlx5_core makes its hash symmetric"
    elif rss["key"] is None:
        reason = "ethtool -x does not show its key"
    elif not table or len(table) & (len(table) - 1):
        reason = f"its indirection table has {len(table)} entries, no power of two"
    elif not fields and not six:
        reason = "ethtool -n does not show which fields of UDP it hashes"
    return PortHash(port, None if reason else rss["key"], fields, table, reason, six)
