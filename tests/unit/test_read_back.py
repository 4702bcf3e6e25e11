"""A DUT whose system undoes settings by itself is read back after a run, too: what becomes of the run then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from trexbench.core.errors import DutChanged, DutLost, GeneratorLost
from trexbench.dut.settings import Attestation, Mismatch
from trexbench.session.loop import Outcome
from trexbench.session.measure import Session

FOUND = Attestation("box", "pfsense", True, {})
CHANGED = Attestation("box", "pfsense", True, {}, (Mismatch("firewall", "disabled", "enabled"),))


def after(read_back: Callable[[], Attestation] | None, outcome: Outcome) -> Outcome:
    nothing: Any = None
    session = Session(nothing, None, nothing, nothing, FOUND, None, print, read_back=read_back)
    return session._read_back(outcome)


def lost() -> Attestation:
    raise DutLost("the connection to box was lost")


def test_a_dut_that_is_as_it_was_changes_nothing() -> None:
    outcome = Outcome(())
    assert after(lambda: FOUND, outcome) is outcome and after(None, outcome) is outcome


def test_a_dut_that_has_changed_makes_the_run_void() -> None:
    error = after(lambda: CHANGED, Outcome(())).error
    assert isinstance(error, DutChanged) and error.exit_code == 6
    words = "box is no longer what its config says: firewall: wanted disabled, found enabled: what was measured is void"
    assert str(error).startswith(words)


def test_a_dut_that_cannot_be_read_is_a_warning() -> None:
    (warning,) = after(lost, Outcome(())).warnings
    assert warning.code == "not-attested" and "after the run: the connection to box was lost" in warning.text


def test_a_run_that_failed_anyway_keeps_its_reason() -> None:
    outcome = Outcome((), GeneratorLost("TRex went away"))
    assert after(lambda: pytest.fail("nobody asks"), outcome) is outcome
