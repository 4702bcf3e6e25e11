"""Fills in a draft of a DUT config by asking the DUT and the tester."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from ..config.draft import UNKNOWN, Draft
from ..config.endpoints import TransportConfig
from ..core.errors import BenchError, DutError
from ..dut import driver_of
from ..dut.settings import Listing
from ..generator.trex.connect import ServerAddress, describe
from ..lock import run_dir
from ..transport import Transport, open_transport
from ..transport.words import shown


def ask_dut(draft: Draft, timeout_s: float = 20.0) -> Draft:
    """Fill in the DUT's interfaces, and the queues of those without an address; DutError if it cannot be asked."""
    listing = driver_of(draft.driver).listing
    if listing is None or draft.host == UNKNOWN:
        return draft
    transport = open_transport(TransportConfig("ssh", host=draft.host, user=draft.user), run_dir())
    try:
        done = transport.run(listing.argv, timeout_s)
        if done.returncode:
            raise DutError(f"{shown(listing.argv)} on {draft.host}: {done.complaint}", "is the driver the right one?")
        interfaces = listing.read(done.stdout)
        free = [port for port in interfaces if not port.in_use]
        queues = [port.queues or _queues(listing, port.name, transport, timeout_s) for port in free]
        draft = replace(draft, there=tuple(port.name for port in interfaces), free=tuple(port.name for port in free))
        return replace(draft, queues=min((count for count in queues if count), default=None))
    finally:
        transport.close()


def _queues(listing: Listing, interface: str, transport: Transport, timeout_s: float) -> int | None:
    """Read the interface's number of queues; None if it cannot be set or is not reported."""
    if listing.queues is None:
        return None
    argv, read = listing.queues
    try:
        return read(transport.run((*argv, interface), timeout_s).stdout)
    except DutError:
        return None


def ask_tester(draft: Draft, endpoint: ServerAddress, ports: Sequence[int], trex_dir: Path | None) -> Draft:
    """Fill in the MACs of the tester's ports, and the speed of the slowest."""
    facts = describe(endpoint, trex_dir)
    chosen = [port for port in ports if port in facts.ports]
    slowest = round(min(map(facts.speed_bps, chosen), default=0) / 1e6)
    speed = f"{slowest / 1000:g}gbit" if slowest else None
    macs = {port: mac for port, mac in facts.macs.items() if port in chosen}
    return replace(draft, macs=macs, speed=draft.speed or speed)


def filled(draft: Draft, ask: Callable[[Draft], Draft], say: Callable[[str], None]) -> Draft:
    """Fill in the draft; where nobody answers return it as it is, and say why."""
    try:
        return ask(draft)
    except BenchError as error:
        say(f"not filled in: {error}")
        return draft
