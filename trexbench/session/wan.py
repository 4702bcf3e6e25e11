"""The WAN in the path of a run: what makes it, found out by trying; made, changed, and taken away again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from ..config.endpoints import TransportConfig
from ..config.model import DutConfig
from ..core.errors import DutError
from ..core.tcp.wan import Wan
from ..dut.linux.wan import deviations, parse_qdiscs, parts
from .dut import reached

TRIAL_S = 60.0
NETEM, CABLE = "netem", "cable"
_TRY = ("unshare", "--net", "sh", "-c", "tc -batch - && tc -j -s qdisc show dev lo")
"""On the loopback of a network of its own, with all of it gone afterwards."""
_MTU = 1500


class StandingWan(Protocol):
    """A WAN that is there."""

    @property
    def by(self) -> str:
        """Maker of the line: ``netem`` or ``cable``."""

    def set(self, wan: Wan) -> None:
        """Another delay, rate, queue, loss; DutError where it does not take them, or does not read them back."""

    def not_carried(self) -> int:
        """Frames since it was made that it should have carried and did not: neither queue nor loss took them."""


@dataclass(frozen=True)
class WanUse:
    """by: what can make the line of the config; empty: it has none."""

    wan: Wan | None = None
    by: str = ""


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


def find_wan(config: DutConfig, packets: bool = False) -> WanUse:
    """netem (with tbf, or tbf alone for a rate) where the host in the path has it, else the cable of a lab.

    DutError, with what the host lacks, where there is neither.
    """
    if config.wan is None:
        return WanUse()
    carrier = carrier_of(config, packets)
    if carrier is not None and config.lab is not None:  # its namespaces may not be there yet; its kernel is this one
        carrier = replace(carrier, transport=TransportConfig("local"))
    lack = _lack(carrier, config.wan) if carrier is not None else DutError("nothing in the path can make a WAN", "")
    if lack is None:
        return WanUse(config.wan, NETEM)
    if config.lab is not None:
        return WanUse(config.wan, CABLE)
    raise lack


def _lack(carrier: WanCarrier, wan: Wan) -> DutError | None:
    """Return what keeps the host from making this line; None: nothing, as reading it back shows."""
    asked = parts(wan, _MTU)
    with reached(carrier.transport) as transport:
        done = transport.run(_TRY, TRIAL_S, "".join(f"{' '.join(one.argv('add', 'lo')[1:])}\n" for one in asked))
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
