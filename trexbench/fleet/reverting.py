"""A DUT, with its endpoints and WAN host, that a dead tester left configured, as journals beside the leases say."""

from __future__ import annotations

from collections import deque
from typing import Any

from ..config.lookup import load_dut
from ..dut.apply import revert
from ..dut.journal import FileJournal, journal_dir
from ..session.dut import connect_target
from ..session.options import Target
from ..session.tcp.endpoints import revert_endpoints


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
