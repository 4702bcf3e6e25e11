"""A DUT, with its endpoints and WAN host, that a dead tester left configured, as journals beside the leases say."""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..config.lookup import load_dut
from ..core.errors import TesterBusy
from ..dut.apply import revert
from ..dut.journal import JOURNAL_DIR_ENV, FileJournal, journal_dir
from ..results.store import safe_name
from ..session.dut import connect_target
from ..session.options import Target
from ..session.tcp.endpoints import revert_endpoints
from .leases import LeaseFolder, end_words


def revert_changes(request: Any) -> None:
    """Undo what the journal has of this request's DUT, if anything; DutError names what could not be undone."""
    name = request.dut.name
    if request.sim or not request.apply:
        return
    if FileJournal(name, journal_dir()).entries():
        target = Target(name, configs_dir=request.configs_dir, prefix=request.prefix)
        with connect_target(target, "revert", lambda *_: {}) as found:
            revert(found.dut, found.transport, found.journal)
    deque(revert_endpoints(load_dut(name, request.configs_dir, request.prefix)), maxlen=0)


@contextlib.contextmanager
def changes_of_fleet(below: Path, dut: str) -> Iterator[None]:
    """Make the journals of a fleet this process's own until the end of the block; TesterBusy if a tester has the DUT.

    below: ``results/.fleet``.
    """
    record = LeaseFolder(below / "leases", safe_name(dut, "._-")).latest()
    if record is not None and record.length_s > 0 and record.until >= end_words(0.0):
        raise TesterBusy(f"{dut} is leased by {record.holder} until {record.until}", "wait for it to end")
    former = os.environ.get(JOURNAL_DIR_ENV)
    os.environ[JOURNAL_DIR_ENV] = str(below)
    try:
        yield
    finally:
        os.environ.pop(JOURNAL_DIR_ENV)
        if former is not None:
            os.environ[JOURNAL_DIR_ENV] = former
