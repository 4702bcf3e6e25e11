"""Switch ports, joined to a DUT for a cell: leased with the tester, journalled before they are set, undone after.

Each tester and each DUT has a journal of its ports at each switch, ``results/.fleet/switches/<switch>/changes/``,
written by whoever has it leased. Settings of a dead tester are undone by whoever leases it, or its DUT, next.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from ..config.fleet import Fleet
from ..config.wiring import PORT, VLAN, FleetSwitch, Join
from ..core.errors import BenchError, DutError
from ..core.patterns import find
from ..dut.apply import revert, run
from ..dut.journal import Entry, FileJournal
from ..dut.settings import Change, Command
from ..session.dut import reached
from ..transport import Transport
from ..transport.words import shown
from .guard import LeaseGuard
from .leases import LEFT_BEHIND, PATIENCE, Lease, LeaseFolder, leased

PORTS = "ports"
"""Folder of the leases of testers' switch ports, each under the tester's name."""


@dataclass(frozen=True)
class PortTaker:
    """A tester that joins ports. token: unique to this try of a cell; below: ``results/.fleet``."""

    tester: str
    token: str
    lease_s: float
    below: Path
    guard: LeaseGuard

    def leasing(self, tester: str, patience: float = PATIENCE) -> AbstractContextManager[Lease]:
        """Lease a tester's ports."""
        folder = LeaseFolder(self.below / PORTS, tester)
        return leased(folder, f"{self.tester}-{self.token}", self.lease_s, self.guard, patience=patience)


@contextlib.contextmanager
def joined_ports(fleet: Fleet, dut: str, held: Lease, taker: PortTaker) -> Iterator[None]:
    """Join the tester's ports to the DUT's for the block. held: the lease of the DUT.

    DutError if a switch cannot be set, or what another tester left there cannot be undone.
    """
    joins = fleet.joins(taker.tester, dut)
    if not joins:
        yield
        return
    with taker.leasing(taker.tester) as lease, contextlib.ExitStack() as opened:
        switches = dict.fromkeys(join.switch for join in joins)
        there = {switch: opened.enter_context(reached(switch.transport)) for switch in switches}
        for switch, transport in there.items():
            for owner in (taker.tester, dut):
                _undo(switch, transport, owner, taker.below)
            _undo_strays(fleet, switch, transport, taker, joins)
        lease.abandoned = False
        try:
            for join in joins:
                _set(join, there[join.switch], taker.below)
            yield
        finally:
            if not (lease.is_lost or held.is_lost):  # otherwise they may be somebody else's by now
                _leave(there, (taker.tester, dut), taker)


def changes_of(join: Join) -> Iterator[tuple[str, Change]]:
    """Yield the changes of the switch that join two ports, each with the tester or DUT whose port it is."""
    switch = join.switch
    fine = (switch.undone_if,) if switch.undone_if else ()
    for owner, port in join.ports:
        what = f"{switch.name} port {port}"
        do = (Command(_filled(argv, port, join), what, timeout_s=switch.timeout_s) for argv in switch.setting)
        undo = (
            Command(_filled(argv, port, join), f"undo: {what}", fine_if=fine, timeout_s=switch.timeout_s)
            for argv in switch.unsetting
        )
        yield owner, Change(what, None, _vlan_words(join), tuple(do), tuple(undo))


def _filled(argv: Sequence[str], port: str, join: Join) -> tuple[str, ...]:
    return tuple(word.replace(PORT, port).replace(VLAN, str(join.vlan)) for word in argv)


def _vlan_words(join: Join) -> str:
    return f"VLAN {join.vlan}"


def journal_of(switch: FleetSwitch, owner: str, below: Path) -> FileJournal:
    """Return the journal of the ports that a tester or a DUT has at the switch."""
    return FileJournal(owner, below / "switches" / switch.name)


class _Ports:
    """Target whose restarts are unknown, so that no journal entry counts as forgotten."""

    def identity(self) -> str:
        return ""


def _set(join: Join, transport: Transport, below: Path) -> None:
    for owner, change in changes_of(join):
        journal_of(join.switch, owner, below).add(Entry("", transport.place, change))
        for command in change.do:
            run(transport, command)
    for _, port in join.ports:
        _read_back(join, port, transport)


def _read_back(join: Join, port: str, transport: Transport) -> None:
    """Raise DutError unless the switch shows that its port is in the VLAN, if the fleet says how it shows that."""
    switch = join.switch
    if switch.check is None or switch.matches is None:
        return
    argv = _filled(switch.check, port, join)
    printed = transport.run(argv, switch.timeout_s)
    (looked_for,) = _filled((switch.matches,), re.escape(port), join)
    if find(looked_for, printed.stdout) is None:
        what = f"{switch.name} port {port} is not in VLAN {join.vlan}: {shown(argv)} prints no /{looked_for}/"
        raise DutError(f"{what} ({printed.complaint[:80]})", "correct set or matches: of the switch in fleet.yaml")


def _undo(switch: FleetSwitch, transport: Transport, owner: str, below: Path) -> None:
    journal = journal_of(switch, owner, below)
    if journal.entries():
        revert(_Ports(), transport, journal)


def _leave(there: Mapping[FleetSwitch, Transport], owners: Sequence[str], taker: PortTaker) -> None:
    """Undo everything. A failure stays in its journal, and is reported, but costs no measured cell."""
    for switch, transport in there.items():
        for owner in owners:
            try:
                _undo(switch, transport, owner, taker.below)
            except BenchError as error:
                print(f"tester {taker.tester}: {error}", file=sys.stderr, flush=True)


def _undo_strays(
    fleet: Fleet, switch: FleetSwitch, transport: Transport, taker: PortTaker, joins: Sequence[Join]
) -> None:
    """Undo other testers' ports in VLANs of the DUT that this one has leased: they died there.

    DutLeased for one that has come back: by the next try it has undone them itself.
    """
    vlans = {_vlan_words(join) for join in joins if join.switch == switch}
    for other in fleet.testers:
        entries = journal_of(switch, other.name, taker.below).entries()
        if other.name != taker.tester and any(entry.change.wanted in vlans for entry in entries):
            with taker.leasing(other.name, LEFT_BEHIND) as lease:
                _undo(switch, transport, other.name, taker.below)
                lease.abandoned = False
