"""A router that is configured by hand: nothing is set on it, nothing is read back, and it counts nothing for us."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.dut.telemetry import Missing, Observation
from ...transport import Transport
from ..model import Attestation, Change, DutDriver, Wanted, not_attested

BY_HAND = "driver: none: the DUT is configured by hand, nothing of it was set, read back or counted"


class UnmanagedDut:
    def __init__(self, wanted: Wanted, transport: Transport) -> None:
        self._wanted = wanted

    def identity(self) -> str:
        return ""

    def plan(self) -> Sequence[Change]:
        return ()

    def verify(self) -> Attestation:
        return not_attested(self._wanted.config, BY_HAND)

    def observe(self, clear: bool = False) -> Observation:
        """Nothing, and why; a power meter beside it adds its reading."""
        return Observation(missing=(Missing("the DUT's counters", "driver: none reads none"),))


DRIVER = DutDriver(UnmanagedDut)
