"""Fills a draft of a DUT config with what the DUT and the tester answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from ..config.draft import UNKNOWN, Draft
from ..config.endpoints import TransportConfig
from ..core.errors import BenchError, DutError
from ..dut import driver_of
from ..dut.model import Listing
from ..generator.trex.connect import ServerAddress, describe
from ..lock import run_dir
from ..transport import Transport, open_transport
from ..transport.words import shown

_SPEED_WORDS = {100: "100mbit", 1000: "1gbit", 2500: "2.5gbit"}


def ask_dut(draft: Draft, timeout_s: float = 20.0) -> Draft:
    """With the DUT's interfaces, and the queues of those that no address is on; DutError where it cannot be asked."""
    listing = driver_of(draft.driver).listing
    if listing is None or draft.host == UNKNOWN:
        return draft
    transport = open_transport(TransportConfig("ssh", host=draft.host, user=draft.user), run_dir())
    try:
        done = transport.run(listing.argv, timeout_s)
        if done.returncode:
            raise DutError(f"{shown(listing.argv)} on {draft.host}: {done.complaint}", "is the driver the right one?")
        there = listing.read(done.stdout)
        free = [one for one in there if not one.in_use]
        queues = [one.queues or _queues(listing, one.name, transport, timeout_s) for one in free]
        draft = replace(draft, there=tuple(one.name for one in there), free=tuple(one.name for one in free))
        return replace(draft, queues=min((count for count in queues if count), default=None))
    finally:
        transport.close()


def _queues(listing: Listing, interface: str, transport: Transport, timeout_s: float) -> int | None:
    """None where it does not tell: its number of queues cannot be set, or nothing there knows it."""
    if listing.queues is None:
        return None
    argv, read = listing.queues
    try:
        return read(transport.run((*argv, interface), timeout_s).stdout)
    except DutError:
        return None


def ask_tester(draft: Draft, endpoint: ServerAddress, ports: Sequence[int], trex_dir: Path | None) -> Draft:
    """With the MACs of the tester's ports, and the speed of the slowest."""
    facts = describe(endpoint, trex_dir)
    chosen = [port for port in ports if port in facts.ports]
    slowest = round(min(map(facts.speed_bps, chosen), default=0) / 1e6)
    speed = _SPEED_WORDS.get(slowest, f"{slowest / 1000:g}gbit") if slowest else None
    macs = {port: mac for port, mac in facts.macs.items() if port in chosen}
    return replace(draft, macs=macs, speed=draft.speed or speed)


def filled(draft: Draft, ask: Callable[[Draft], Draft], say: Callable[[str], None]) -> Draft:
    """The draft with the answers; as it is, and a line why, where nobody answers."""
    try:
        return ask(draft)
    except BenchError as error:
        say(f"not filled in: {error}")
        return draft
