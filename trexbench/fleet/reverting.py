"""A DUT that a dead tester left configured, as its journal beside the leases says."""

from __future__ import annotations

from typing import Any

from ..dut.apply import revert
from ..dut.journal import FileJournal, journal_dir
from ..session.dut import connect_target
from ..session.options import Target


def revert_changes(request: Any) -> None:
    """Undo what the journal has of this request's DUT, if anything; DutError names what could not be undone."""
    name = request.dut.name
    if request.sim or not request.apply or not FileJournal(name, journal_dir()).entries():
        return
    target = Target(name, configs_dir=request.configs_dir, prefix=request.prefix)
    with connect_target(target, "revert", lambda *_: {}) as found:
        revert(found.dut, found.transport, found.journal)
