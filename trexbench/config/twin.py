"""The ``twin:`` section of a DUT's file: the router that ``--sim`` puts in its place, and the tester before it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TesterSpec:
    """How the simulated TRex itself falls short; by default it does not. Rates in frames per second.

    tx_limit_pps, rx_limit_pps: of each port. overload: what its sending core does beyond the limit: ``stretch`` (time
    gets longer, as TRex does: fewer frames, no queue_full) or ``queue-full`` (frames are dropped and counted). Frames
    beyond rx_limit_pps are counted in ierrors. skew_s: the counters of different ports are read this far apart at most.
    """

    tx_limit_pps: float | None = None
    rx_limit_pps: float | None = None
    overload: str = "stretch"
    skew_s: float = 0.0
