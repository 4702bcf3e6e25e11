"""A WAN by netem and tbf of a Linux host in the path: journalled, read back, changed while it is there, undone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType

from ..config.model import DutConfig
from ..core.errors import BenchError, DutError
from ..core.tcp.wan import Wan
from ..dut import Change, Wanted
from ..dut.apply import revert, run
from ..dut.linux.parse import parse_links
from ..dut.linux.wan import Qdisc, commands, deviations, foreign, ours, parse_qdiscs, parts, removal
from ..transport import run_checked
from .dut import ConnectedDut, connect_dut
from .temporary import NAME, Temporary
from .wan import NETEM, carrier_of

_WHAT = "WAN on"
"""Prefix of its changes' names in the journal, before the interface."""


def wan_host_wanted(config: DutConfig) -> Wanted | None:
    """The WAN host, of which nothing but the line is wanted; None: the config names none."""
    if config.wan_host is None:
        return None
    host = DutConfig(f"{config.name}-wan", config.file, "linux", transport=config.wan_host.transport)
    return Wanted(host, forwards=False)


@contextmanager
def netem_line(config: DutConfig, dut: ConnectedDut, doing: str, packets: bool = False) -> Iterator[NetemLine]:
    """The config's line until the end of the block, on its WAN host, which is opened and locked, or else on this DUT.

    packets: see carrier_of.
    """
    carrier = carrier_of(config, packets)
    if config.wan is None or carrier is None:
        raise DutError(f"{config.name} has no WAN, or no Linux host that could make it", "state wan: and wan_host:")
    if (wanted := wan_host_wanted(config)) is None:
        with NetemLine(dut, carrier.interfaces, config.wan) as line:
            yield line
        return
    with connect_dut(wanted, doing, what=carrier.what) as host, NetemLine(host, carrier.interfaces, config.wan) as line:
        yield line


class NetemLine:
    """On these interfaces of this host, each of which has the direction that leaves by it; there inside the block.

    What a killed run has left of such a line is undone first. DutError for an interface whose root qdisc somebody else
    has set, and where the line is not read back as it was set.
    """

    by = NETEM

    def __init__(self, host: ConnectedDut, interfaces: Sequence[str], wan: Wan) -> None:
        self._host, self._wan = host, wan
        self._mtus: dict[str, int] = dict.fromkeys(interfaces, 0)
        self._made = Temporary(host)

    def __enter__(self) -> NetemLine:
        host = self._host
        revert(host.dut, host.transport, host.journal, only=_is_line)
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._made.__exit__(kind, error, traceback)

    def set(self, wan: Wan) -> None:
        """Live: packets that are in the line stay there, unless it is to have other parts (a rate where none was).

        Where it fails, the former one is put back as far as the host lets it.
        """
        former = self._wan
        try:
            self._change(wan)
        except BenchError:
            with suppress(BenchError):  # the first error is the one to tell
                self._change(former)
            raise

    def _change(self, wan: Wan) -> None:
        for interface, mtu in self._mtus.items():
            there = [one.kind for one in ours(self._read(interface))]
            wanted = parts(wan, mtu)
            alike = there == [one.kind for one in wanted]
            if not alike:
                run(self._host.transport, removal(interface))
            for command in commands(wan, interface, mtu, "change" if alike else "add"):
                run(self._host.transport, command)
            self._require(wan, interface)
        self._wan = wan

    def not_carried(self) -> int:
        """The kernel loses none."""
        return 0

    def _make(self, interface: str) -> None:
        there = self._read(interface)
        if (other := foreign(there)) is not None:
            raise DutError(
                f"{interface} on {self._host.transport.place} has a qdisc of its own ({other.kind} {other.handle})",
                f"take it away for the test (tc qdisc del dev {interface} root), or name a wan_host:",
            )
        was = next((one.kind for one in there if one.root), "none")
        do, undo = commands(self._wan, interface, self._mtus[interface]), (removal(interface),)
        self._made.make(Change(f"{_WHAT} {interface}", was, str(self._wan), do, undo, variant=NAME))
        self._require(self._wan, interface)

    def _require(self, wan: Wan, interface: str) -> None:
        off = "; ".join(deviations(wan, self._mtus[interface], self._read(interface)))
        if off:
            raise DutError(
                f"the WAN on {interface} of {self._host.transport.place} is not {wan}: {off}", "dmesg may say why"
            )

    def _read(self, interface: str) -> tuple[Qdisc, ...]:
        return parse_qdiscs(run_checked(self._host.transport, ("tc", "-j", "-s", "qdisc", "show", "dev", interface)))


def _is_line(change: Change) -> bool:
    return change.variant == NAME and change.what.startswith(_WHAT)
