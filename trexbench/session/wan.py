"""The WAN in the path of a run, by netem and tbf of a Linux host: tried, made, read back, and removed again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from ..config.endpoints import TransportConfig
from ..config.model import DutConfig
from ..core.errors import DutError
from ..core.tcp.wan import Wan
from ..dut import Change, Wanted
from ..dut.apply import revert
from ..dut.linux.parse import parse_links
from ..dut.linux.wan import Qdisc, commands, deviations, foreign, parse_qdiscs, parts, removal
from ..transport import Transport, run_checked
from .dut import ConnectedDut, connect_dut, reached
from .temporary import NAME, Temporary

TRIAL_S = 60.0
_TRY = ("unshare", "--net", "sh", "-c", "tc -batch - && tc -j -s qdisc show dev lo")
"""Makes the qdiscs on the loopback of a network namespace of its own, which is gone afterwards."""
_MTU = 1500
_WHAT = "WAN on"
"""Prefix of a line's changes in the journal, before the interface."""


@dataclass(frozen=True)
class WanCarrier:
    """The Linux host whose interfaces make the WAN."""

    what: str
    """Role of the host, in messages."""
    transport: TransportConfig
    interfaces: tuple[str, ...]
    """Interfaces that the test's traffic leaves by."""


def carrier_of(config: DutConfig, packets: bool = False) -> WanCarrier | None:
    """Find the WAN host, else the DUT with its interfaces towards both endpoints; None: no Linux is in the path.

    packets: take its ports towards the tester instead. An interface that leads to both ends is listed once: all
    traffic leaves by it once each way, so that it, too, has half of the delay; its rate is then that of both ways
    together, like that of a one-armed router's cable.
    """
    if config.wan_host is not None:
        return WanCarrier("the WAN host", config.wan_host.transport, config.wan_host.interfaces)
    if config.driver != "linux":
        return None
    if packets or config.endpoints is None:
        names = tuple(port.interface for port in config.ports)
    else:
        names = tuple(side.interface for side in config.endpoints.sides)
    return WanCarrier("the DUT", config.transport, names) if names else None


def made_by(wan: Wan) -> str:
    """Kind of the root qdisc: ``netem``, with tbf beneath it for a rate, or ``tbf`` for a rate alone."""
    return parts(wan, _MTU)[0].kind


def require_wan(config: DutConfig, packets: bool = False) -> None:
    """DutError, with what it lacks, if the host in the path cannot make the config's WAN."""
    if config.wan is None or config.in_vm:  # a guest's kernel may not run yet: what it lacks shows with the line
        return
    carrier = carrier_of(config, packets)
    if carrier is None:
        raise _no_carrier(config)
    if config.lab is not None:  # its namespaces may not exist yet; its kernel is this one
        carrier = replace(carrier, transport=TransportConfig("local"))
    _try(carrier, config.wan)


def _no_carrier(config: DutConfig) -> DutError:
    return DutError(f"{config.name} has no Linux host that could make its WAN", "state wan_host:")


def _try(carrier: WanCarrier, wan: Wan) -> None:
    qdiscs = parts(wan, _MTU)
    with reached(carrier.transport) as transport:
        done = transport.run(_TRY, TRIAL_S, "".join(f"{' '.join(qdisc.argv('lo')[1:])}\n" for qdisc in qdiscs))
        place = f"{carrier.what} ({transport.place})"
    if done.returncode == 0:
        if off := "; ".join(deviations(wan, _MTU, parse_qdiscs(done.stdout))):
            raise DutError(f"{place} does not read a WAN of {wan} back: {off}", _REMEDY)
        return
    said = (done.stderr.strip() or done.stdout.strip()).splitlines()
    what = f"{place} cannot make a WAN of {wan} by {' and '.join(qdisc.kind for qdisc in qdiscs)}"
    if any("tc: not found" in line or "tc: command not found" in line for line in said):
        raise DutError(f"{what}: tc is not installed", "install the package iproute2, or name a wan_host:")
    raise DutError(f"{what} ({said[0][:120] if said else f'exit code {done.returncode}'})", _REMEDY)


_REMEDY = "modprobe sch_netem sch_tbf, install the kernel's package that has them, or name a wan_host: that has"


def wan_host_wanted(config: DutConfig) -> Wanted | None:
    """The WAN host, of which nothing but the line is wanted; None: the config names none."""
    if config.wan_host is None:
        return None
    host = DutConfig(f"{config.name}-wan", config.file, "linux", transport=config.wan_host.transport)
    return Wanted(host, forwards=False)


@contextmanager
def open_line(config: DutConfig, dut: ConnectedDut, doing: str, packets: bool = False) -> Iterator[Wan | None]:
    """Make the config's line, if it has one, until the end of the block.

    It is on the WAN host, which is opened and locked, or else on this DUT. packets: see carrier_of.
    """
    carrier = carrier_of(config, packets)
    if config.wan is None:
        yield None
    elif carrier is None:
        raise _no_carrier(config)
    elif (wanted := wan_host_wanted(config)) is None:
        with netem_line(dut, carrier.interfaces, config.wan) as line:
            yield line
    else:
        with (
            connect_dut(wanted, doing, what=carrier.what) as host,
            netem_line(host, carrier.interfaces, config.wan) as line,
        ):
            yield line


@contextmanager
def netem_line(host: ConnectedDut, interfaces: Sequence[str], wan: Wan) -> Iterator[Wan]:
    """Make a line by qdiscs on these interfaces, each for the direction that leaves by it, until the end of the block.

    A line that a killed run has left is removed first. DutError for an interface whose root qdisc somebody else has
    set, and if the line is not read back as it was set.
    """
    revert(
        host.dut,
        host.transport,
        host.journal,
        only=lambda change: change.variant == NAME and change.what.startswith(_WHAT),
    )
    links = parse_links(run_checked(host.transport, ("ip", "-json", "-details", "link", "show")))
    with Temporary(host) as made:
        for interface in interfaces:
            if interface not in links:
                raise DutError(f"interface {interface} is not on {host.transport.place}", "correct the config")
            _make(host.transport, made, interface, int(links[interface]["mtu"] or 0), wan)
        yield wan


def _make(transport: Transport, made: Temporary, interface: str, mtu: int, wan: Wan) -> None:
    def read() -> tuple[Qdisc, ...]:
        return parse_qdiscs(run_checked(transport, ("tc", "-j", "-s", "qdisc", "show", "dev", interface)))

    qdiscs = read()
    if (other := foreign(qdiscs)) is not None:
        raise DutError(
            f"{interface} on {transport.place} has a qdisc of its own ({other.kind} {other.handle})",
            f"remove it for the test (tc qdisc del dev {interface} root), or name a wan_host:",
        )
    was = next((qdisc.kind for qdisc in qdiscs if qdisc.root), "none")
    do, undo = commands(wan, interface, mtu), (removal(interface),)
    made.make(Change(f"{_WHAT} {interface}", was, str(wan), do, undo, variant=NAME))
    if off := "; ".join(deviations(wan, mtu, read())):
        raise DutError(f"the WAN on {interface} of {transport.place} is not {wan}: {off}", "dmesg may say why")
