"""Reverts a DUT, its endpoints and WAN host, left configured by a dead tester, by the journals beside the leases."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ..config.fleet import Fleet
from ..config.lookup import load_dut
from ..dut.apply import revert
from ..dut.journal import JOURNAL_DIR_ENV, FileJournal, journal_dir
from ..results.store import safe_name
from ..session.dut import connect_target
from ..session.options import Target
from ..session.tcp.hosts import revert_endpoints
from .guard import LeaseGuard
from .leases import LEFT_BEHIND, LeaseFolder, leased


def revert_changes(request: Any) -> None:
    """Undo what the journal holds of this request's DUT; DutError names what could not be undone."""
    name = request.dut.name
    if request.sim or not request.apply:
        return
    if FileJournal(name, journal_dir()).entries():
        target = Target(name, configs_dir=request.configs_dir, prefix=request.prefix)
        with connect_target(target, "revert", lambda *_: {}) as connected:
            revert(connected.dut, connected.transport, connected.journal)
    deque(revert_endpoints(load_dut(name, request.configs_dir, request.prefix)), maxlen=0)


@contextlib.contextmanager
def lease_to_revert(below: Path, dut: str, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the DUT's lease for the block; DutLeased if a tester keeps renewing it. below: ``results/.fleet``.

    If the block succeeds nothing is left for the next holder to undo.
    """
    folder = LeaseFolder(below / "leases", safe_name(dut, "._-"))
    latest = folder.latest()
    length_s = (latest.length_s if latest is not None else 0.0) or Fleet.lease_s
    if latest is not None and latest.length_s:
        say(
            f"waits up to {LEFT_BEHIND * length_s:g} s for the lease of {dut}, which {latest.holder} has or left behind"
        )
    holder = f"revert-{secrets.token_hex(4)}"
    with leased(folder, holder, length_s, LeaseGuard(), cell="revert", patience=LEFT_BEHIND) as lease:
        yield
        lease.abandoned = False


@contextlib.contextmanager
def changes_of_fleet(below: Path) -> Iterator[None]:
    """Use the journals of a fleet as this process's own for the block. below: ``results/.fleet``."""
    former = os.environ.get(JOURNAL_DIR_ENV)
    os.environ[JOURNAL_DIR_ENV] = str(below)
    try:
        yield
    finally:
        os.environ.pop(JOURNAL_DIR_ENV)
        if former is not None:
            os.environ[JOURNAL_DIR_ENV] = former
