"""What a Linux DUT is set to besides addresses and routes, pure: irqbalance, queues, interrupts, RPS, clocks, offloads.

Each only where the config's ``linux:`` section, or ``rx_queues``, asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..config.settings import KEEP
from ..core.errors import DutError
from . import parse_linux_nic as nic
from .model import Command, Mismatch, Step, Wanted

Facts = Mapping[str, Any]

GOVERNORS = "/sys/devices/system/cpu/cpufreq"
_VANISHED = ("No such file or directory",)
"""What tee says of an interrupt or a queue that is no longer there."""


def host_steps(wanted: Wanted, facts: Facts) -> list[Step]:
    """irqbalance and the governor. An irqbalance that systemd did not start is left for compare to name."""
    settings, found = wanted.config.linux, []
    if settings.irqbalance == "off" and facts["irqbalance"]["unit"] == "active":
        do = Command(("systemctl", "stop", "irqbalance"), "it would move interrupts during the test")
        undo = Command(("systemctl", "start", "irqbalance"), "it was running")
        found.append(Step("irqbalance", "running", "stopped", (do,), (undo,)))
    if settings.governor != KEEP:
        for policy, governor in (facts["governors"] or {}).items():
            if governor != settings.governor:
                path = f"{GOVERNORS}/{policy}/scaling_governor"
                step = write(f"governor of {policy}", path, governor, settings.governor, "one clock throughout")
                found.append(step)
    return found


def require_queues(wanted: Wanted, facts: Facts) -> None:
    """DutError where a port cannot have as many receive queues as are wished; before anything is touched."""
    if wanted.rx_queues is None:
        return
    for port in wanted.config.ports:
        link = facts["interfaces"][port.interface]
        most = most_queues(link)
        if wanted.rx_queues > most or (wanted.rx_queues < most and link["channels"] is None):
            offers = f"{most} receive queue{'' if most == 1 else 's'}"
            offers = f"at most {offers}" if link["channels"] else f"{offers}, and they cannot be set"
            raise DutError(
                f"{wanted.config.name}: {wanted.rx_queues} receive queues are wished, {port.interface} has {offers}",
                "ask for another number with --rx-queues",
            )


def queue_steps(wanted: Wanted, facts: Facts) -> list[Step]:
    """The number of queues in use, and offloads."""
    found = []
    for port in wanted.config.ports:
        name, link = port.interface, facts["interfaces"][port.interface]
        if wanted.rx_queues is not None and queues_in_use(link) != wanted.rx_queues:
            found.append(_channels(name, link, wanted.rx_queues))
        for feature, on in wanted.config.linux.offloads:
            former = (link["offloads"] or {}).get(feature)
            if former is not on:
                do = Command(("ethtool", "-K", name, feature, _switch(on)), "as the config asks")
                undo = Command(("ethtool", "-K", name, feature, _switch(bool(former))), "as it was")
                was = None if former is None else _switch(former)
                found.append(Step(f"{feature} of {name}", was, _switch(on), (do,), (undo,) if was else ()))
    return found


def placement_steps(wanted: Wanted, facts: Facts) -> list[Step]:
    """Interrupts and RPS of the queues that are in use now."""
    found = []
    for name, irq, cpu in _wanted_irqs(wanted, facts):
        if nic.parse_cpus(irq["cpus"]) != [cpu]:
            what = f"interrupt {irq['irq']} ({irq['name']}) of {name}"
            path = f"/proc/irq/{irq['irq']}/smp_affinity_list"
            found.append(write(what, path, irq["cpus"], str(cpu), f"queue {irq['queue']} on CPU {cpu}"))
    for name, queue, former, cpus in _wanted_rps(wanted, facts):
        if nic.parse_mask(former) != cpus:
            path = f"/sys/class/net/{name}/queues/{queue}/rps_cpus"
            why = "hand its packets to these CPUs" if cpus else "leave packets on the CPU that got them"
            found.append(write(f"RPS of {name} {queue}", path, former, nic.mask(cpus), why))
    return found


def compare_tuning(wanted: Wanted, facts: Facts) -> list[Mismatch]:
    """Everything of this module that the facts do not show."""
    settings, wrong = wanted.config.linux, []
    running = facts["irqbalance"]["running"]
    if settings.irqbalance == "off" and running is not False:
        found = "running" if running else "not told"
        wrong.append(Mismatch("irqbalance", "stopped", found, "stop it by hand; systemd does not know it"))
    if settings.governor != KEEP:
        governors = facts["governors"] or {"any CPU": "no cpufreq"}
        wrong += [
            Mismatch(f"governor of {policy}", settings.governor, governor)
            for policy, governor in governors.items()
            if governor != settings.governor
        ]
    for port in wanted.config.ports:
        link = facts["interfaces"].get(port.interface)
        if link is not None:
            wrong += _compare_port(wanted, port.interface, link)
    return wrong + _compare_placement(wanted, facts)


def queues_in_use(link: Mapping[str, Any]) -> int:
    """Receive queues; of a device that does not tell its channels, those that /sys shows."""
    channels = link["channels"]
    return _receiving(channels["now"]) if channels else len(link["rps_cpus"])


def most_queues(link: Mapping[str, Any]) -> int:
    """Of a device that has queues of both kinds, the combined ones, which are those that are set."""
    channels = link["channels"]
    if not channels:
        return len(link["rps_cpus"])
    most = channels["max"]
    return int(most.get("combined") or most.get("rx") or 0)


def lab_of(wanted: Wanted) -> Mapping[str, Any]:
    """How the lab of this DUT is placed, as far as the DUT is one of a lab."""
    lab = wanted.host_facts.get("lab")
    return lab if isinstance(lab, Mapping) else {}


def forwarding_cpus(wanted: Wanted, facts: Facts) -> Sequence[int]:
    """Those of the config, else the lab's, else all that are online; empty where they are not known."""
    return wanted.config.linux.cpus or lab_of(wanted).get("router_cpus") or facts["cpus_online"] or ()


def write(what: str, path: str, former: str | None, new: str, why: str) -> Step:
    """A file of /proc or /sys that says something else than it shall."""
    undo = Command(("tee", path), "as it was", input=f"{former}\n", fine_if=_VANISHED)
    return Step(what, former, new, (Command(("tee", path), why, input=f"{new}\n"),), (undo,) if former else ())


def _channels(name: str, link: Mapping[str, Any], queues: int) -> Step:
    """Queues that go take their RPS masks and their interrupts' CPUs with them: the undoing puts those back as well."""
    kind = "combined" if link["channels"]["max"].get("combined") else "rx"
    former = int(link["channels"]["now"].get(kind) or 0)
    back = [Command(("ethtool", "-L", name, kind, str(former)), "as it was")]
    for queue, mask in link["rps_cpus"].items():
        if nic.parse_mask(mask):
            path = f"/sys/class/net/{name}/queues/{queue}/rps_cpus"
            back.append(Command(("tee", path), "as it was", input=f"{mask}\n", fine_if=_VANISHED))
    for irq in link["irqs"]:
        path = f"/proc/irq/{irq['irq']}/smp_affinity_list"
        back.append(Command(("tee", path), "as it was", input=f"{irq['cpus']}\n", fine_if=_VANISHED))
    do = Command(("ethtool", "-L", name, kind, str(queues)), "receive queues, as wished")
    what = f"receive queues of {name}"
    return Step(what, str(queues_in_use(link)), str(queues), (do,), tuple(back) if former else (), reveals=True)


def _compare_port(wanted: Wanted, name: str, link: Mapping[str, Any]) -> list[Mismatch]:
    wrong = []
    if wanted.rx_queues is not None and queues_in_use(link) != wanted.rx_queues:
        remedy = f"it has at most {most_queues(link)}"
        found = str(queues_in_use(link))
        wrong.append(Mismatch(f"receive queues of {name}", str(wanted.rx_queues), found, remedy))
    for feature, on in wanted.config.linux.offloads:
        found_on = (link["offloads"] or {}).get(feature)
        if found_on is not on:
            shown = "not told" if found_on is None else _switch(found_on)
            wrong.append(Mismatch(f"{feature} of {name}", _switch(on), shown))
    return wrong


def _compare_placement(wanted: Wanted, facts: Facts) -> list[Mismatch]:
    wrong, placed = [], set()
    for name, irq, cpu in _wanted_irqs(wanted, facts):
        placed.add(name)
        if nic.parse_cpus(irq["cpus"]) != [cpu]:
            what = f"interrupt {irq['irq']} ({irq['name']}) of {name}"
            wrong.append(Mismatch(what, f"CPU {cpu}", f"CPUs {irq['cpus']}"))
    if wanted.config.linux.irqs == "spread":
        for port in wanted.config.ports:
            if facts["interfaces"].get(port.interface) and port.interface not in placed:
                what, wish = f"interrupts of {port.interface}", "one for each receive queue"
                wrong.append(Mismatch(what, wish, "none that says so", "set linux.irqs: keep"))
    for name, queue, former, cpus in _wanted_rps(wanted, facts):
        if nic.parse_mask(former) != cpus:
            wrong.append(Mismatch(f"RPS of {name} {queue}", nic.mask(cpus), str(former)))
    return wrong


def _wanted_irqs(wanted: Wanted, facts: Facts) -> Iterator[tuple[str, Mapping[str, Any], int]]:
    """Interface, interrupt, and the CPU that it shall be served by."""
    if wanted.config.linux.irqs != "spread":
        return
    cpus = forwarding_cpus(wanted, facts)
    for port in wanted.config.ports:
        link = facts["interfaces"].get(port.interface)
        for irq in link["irqs"] if link and cpus else ():
            if irq["queue"] is not None and irq["queue"] < queues_in_use(link):
                yield port.interface, irq, cpus[irq["queue"] % len(cpus)]


def _wanted_rps(wanted: Wanted, facts: Facts) -> Iterator[tuple[str, str, str, list[int]]]:
    """Interface, queue, the mask it has, and the CPUs it shall have.

    A lab that steers by RPS has its own masks, which queues that come later shall have, too.
    """
    steered = lab_of(wanted).get("steer") == "rps"
    if wanted.config.linux.rps == KEEP and not steered:
        return
    cpus = [] if wanted.config.linux.rps == "off" else sorted(forwarding_cpus(wanted, facts))
    for port in wanted.config.ports:
        link = facts["interfaces"].get(port.interface)
        for queue, former in (link["rps_cpus"] if link else {}).items():
            yield port.interface, queue, former, cpus


def _receiving(counts: Mapping[str, int]) -> int:
    return counts.get("rx", 0) + counts.get("combined", 0)


def _switch(on: bool) -> str:
    return "on" if on else "off"
