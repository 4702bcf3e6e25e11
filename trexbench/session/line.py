"""The WAN of a run, by what can make it here, until the end of the block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..config.model import DutConfig
from ..lab import RunningLab
from .cableline import CableLine
from .dut import ConnectedDut
from .netem import netem_line
from .wan import CABLE, StandingWan, WanUse


@contextmanager
def open_line(
    config: DutConfig, use: WanUse, dut: ConnectedDut, lab: RunningLab | None, doing: str, packets: bool = False
) -> Iterator[StandingWan | None]:
    """None where there is none. lab: was brought up with the line, where its cable makes it. packets: see find_wan."""
    if use.wan is None:
        yield None
    elif use.by == CABLE:
        assert lab is not None
        cable = CableLine(lab, "tester" if packets else "server")
        cable.set(use.wan)  # a lab that stays has the last run's
        yield cable
    else:
        with netem_line(config, dut, doing, packets) as line:
            yield line
