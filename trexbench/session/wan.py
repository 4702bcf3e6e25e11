"""The WAN in the path of a run, by netem and tbf of a Linux host: tried, made, read back, and taken away again."""

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
from ..transport import run_checked
from .dut import ConnectedDut, connect_dut, reached
from .temporary import NAME, Temporary

TRIAL_S = 60.0
_TRY = ("unshare", "--net", "sh", "-c", "tc -batch - && tc -j -s qdisc show dev lo")
"""On the loopback of a network of its own, with all of it gone afterwards."""
_MTU = 1500
_WHAT = "WAN on"
"""Prefix of a line's changes in the journal, before the interface."""


@dataclass(frozen=True)
class WanCarrier:
    """The Linux host whose interfaces make the WAN: what it is, and those that the test's traffic leaves by."""

    what: str
    transport: TransportConfig
    interfaces: tuple[str, ...]


def carrier_of(config: DutConfig, packets: bool = False) -> WanCarrier | None:
    """The WAN host, else the DUT with its interfaces towards both endpoints; None: no Linux is in the path.

    packets: its ports towards the tester, in place of the endpoints. One interface to both ends is there once: all that
    passes the DUT leaves by it once each way, so that it, too, has half of the delay; the rate is then that of both
    ways together, as that of a one-armed router's cable is.
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
    """Return the kind of the root qdisc: ``netem``, with tbf beneath it for a rate, or ``tbf`` for a rate alone."""
    return parts(wan, _MTU)[0].kind


def require_wan(config: DutConfig, packets: bool = False) -> None:
    """DutError, with what it lacks, where the host in the path cannot make the config's WAN."""
    if config.wan is None or config.in_vm:  # a guest's kernel may not run yet: what it lacks shows with the line
        return
    carrier = carrier_of(config, packets)
    if carrier is None:
        raise _no_carrier(config)
    if config.lab is not None:  # its namespaces may not be there yet; its kernel is this one
        carrier = replace(carrier, transport=TransportConfig("local"))
    if (lack := _lack(carrier, config.wan)) is not None:
        raise lack


def _no_carrier(config: DutConfig) -> DutError:
    return DutError(f"{config.name} has no Linux host that could make its WAN", "state wan_host:")


def _lack(carrier: WanCarrier, wan: Wan) -> DutError | None:
    """Return what keeps the host from making this line; None: nothing, as reading it back shows."""
    asked = parts(wan, _MTU)
    with reached(carrier.transport) as transport:
        done = transport.run(_TRY, TRIAL_S, "".join(f"{' '.join(one.argv('lo')[1:])}\n" for one in asked))
        place = f"{carrier.what} ({transport.place})"
    kinds, said = " and ".join(one.kind for one in asked), (done.stderr.strip() or done.stdout.strip()).splitlines()
    if done.returncode == 0:
        off = "; ".join(deviations(wan, _MTU, parse_qdiscs(done.stdout)))
        return DutError(f"{place} does not read a WAN of {wan} back: {off}", _REMEDY) if off else None
    what = f"{place} cannot make a WAN of {wan} by {kinds}"
    if any("tc: not found" in line or "tc: command not found" in line for line in said):
        return DutError(f"{what}: tc is not installed", "install the package iproute2, or name a wan_host:")
    return DutError(f"{what} ({said[0][:120] if said else f'exit code {done.returncode}'})", _REMEDY)


_REMEDY = "modprobe sch_netem sch_tbf, install the kernel's package that has them, or name a wan_host: that has"


def wan_host_wanted(config: DutConfig) -> Wanted | None:
    """The WAN host, of which nothing but the line is wanted; None: the config names none."""
    if config.wan_host is None:
        return None
    host = DutConfig(f"{config.name}-wan", config.file, "linux", transport=config.wan_host.transport)
    return Wanted(host, forwards=False)


@contextmanager
def open_line(config: DutConfig, dut: ConnectedDut, doing: str, packets: bool = False) -> Iterator[NetemLine | None]:
    """The config's line until the end of the block; None where it has none.

    It is on the WAN host, which is opened and locked, or else on this DUT. packets: see carrier_of.
    """
    carrier = carrier_of(config, packets)
    if config.wan is None:
        yield None
    elif carrier is None:
        raise _no_carrier(config)
    elif (wanted := wan_host_wanted(config)) is None:
        with NetemLine(dut, carrier.interfaces, config.wan) as line:
            yield line
    else:
        with (
            connect_dut(wanted, doing, what=carrier.what) as host,
            NetemLine(host, carrier.interfaces, config.wan) as line,
        ):
            yield line


class NetemLine:
    """On these interfaces of this host, each of which has the direction that leaves by it; there inside the block.

    What a killed run has left of such a line is undone first. DutError for an interface whose root qdisc somebody else
    has set, and where the line is not read back as it was set.
    """

    def __init__(self, host: ConnectedDut, interfaces: Sequence[str], wan: Wan) -> None:
        self._host, self.wan, self.by = host, wan, made_by(wan)
        self._mtus: dict[str, int] = dict.fromkeys(interfaces, 0)
        self._made = Temporary(host)

    def __enter__(self) -> NetemLine:
        host = self._host
        revert(
            host.dut,
            host.transport,
            host.journal,
            only=lambda change: change.variant == NAME and change.what.startswith(_WHAT),
        )
        links = parse_links(run_checked(host.transport, ("ip", "-json", "-details", "link", "show")))
        try:
            for interface in self._mtus:
                if interface not in links:
                    raise DutError(f"interface {interface} is not on {host.transport.place}", "correct the config")
                self._mtus[interface] = int(links[interface]["mtu"] or 0)
                self._make(interface)
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._made.__exit__(kind, error, trace)

    def _make(self, interface: str) -> None:
        there = self._read(interface)
        if (other := foreign(there)) is not None:
            raise DutError(
                f"{interface} on {self._host.transport.place} has a qdisc of its own ({other.kind} {other.handle})",
                f"take it away for the test (tc qdisc del dev {interface} root), or name a wan_host:",
            )
        was = next((one.kind for one in there if one.root), "none")
        do, undo = commands(self.wan, interface, self._mtus[interface]), (removal(interface),)
        self._made.make(Change(f"{_WHAT} {interface}", was, str(self.wan), do, undo, variant=NAME))
        if off := "; ".join(deviations(self.wan, self._mtus[interface], self._read(interface))):
            what = f"the WAN on {interface} of {self._host.transport.place} is not {self.wan}: {off}"
            raise DutError(what, "dmesg may say why")

    def _read(self, interface: str) -> tuple[Qdisc, ...]:
        return parse_qdiscs(run_checked(self._host.transport, ("tc", "-j", "-s", "qdisc", "show", "dev", interface)))
