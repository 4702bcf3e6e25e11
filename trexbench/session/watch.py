"""Reads the DUT's counters during a run, without delaying it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from ..core.dut.telemetry import POWER, DutReading, Missing, Moment, Observation
from ..core.errors import BenchError
from ..core.load.sample import Phase, Sample
from ..core.protocols import Clock
from ..core.strategy.base import LoadStep, Strategy
from ..core.verdict.parts import RunWarning

if TYPE_CHECKING:
    from ..host.power import PowerMeter

TICK_EVERY_S = 5.0
"""Time between readings during a ramp."""
MARGIN = 1.5
"""Time before a hold's end at which its last reading starts, in durations of a reading."""
PATIENCE_S = 60.0
"""Longest wait for a reading in the background."""

HELD = (Phase.HOLD, Phase.CONFIRM)


class Observed(Protocol):
    """A DUT whose counters can be read; see dut.settings.Dut. May raise BenchError."""

    def observe(self, clear: bool = False) -> Observation: ...


class Watcher:
    """A sink that reads the DUT's counters: in silence before and after, and at the begin and end of every hold.

    mode: with ``ramp`` also during the ramp, with ``off`` never. background: read in a thread of its own, which calls
    ``prepare`` first, so that samples stay on time. around: read in the silence before and after each trial of the
    confirmation, and in holds only if there is none, for a DUT that loses frames while it is read. A reading that
    fails becomes a warning.
    """

    def __init__(
        self,
        dut: Observed | None,
        plan: Strategy,
        clock: Clock,
        mode: str,
        background: bool = True,
        prepare: Callable[[], None] = lambda: None,
        around: bool = False,
    ) -> None:
        self._dut, self._plan, self._clock, self._mode = dut, plan, clock, mode if dut is not None else "off"
        self._background, self._prepare, self._around = background, prepare, around
        self._thread: threading.Thread | None = None
        self._begun: tuple[Phase, int] | None = None
        self._ended: tuple[Phase, int] | None = None
        self._around_any = False
        self._tick_s = 0.0
        self._took_s = 0.0
        self._failures: list[str] = []
        self.dut_readings: list[DutReading] = []

    @property
    def warnings(self) -> tuple[RunWarning, ...]:
        """Warnings about counters that could not be read, each reason once."""
        return tuple(RunWarning("telemetry", text) for text in dict.fromkeys(self._failures))

    def start(self) -> None:
        """Read before the first frame."""
        if self._mode != "off":
            self._read(Moment.START, None, 0, clear=True)

    def finish(self) -> None:
        """Read after the last frame."""
        if self._mode == "off":
            return
        if self._thread is not None:
            self._thread.join(PATIENCE_S)
            if self._thread.is_alive():
                self._failures.append("the DUT is still being read from the hold")
                return
        self._read(Moment.FINISH, None, 0)
        if self._around and self._plan.length_s(Phase.CONFIRM) and not self._around_any:
            text = "a virtual machine is read around trials, and there was none: --confirm 0 reads it in the hold"
            self._failures.append(f"no cycles per packet: {text}")

    def sampled(self, samples: Sequence[Sample], step: LoadStep) -> None:
        if self._mode == "off":
            return
        last = samples[-1]
        place = (last.phase, last.trial)
        if self._around and not last.asked_pps:
            self._read_around(samples)
        elif self._around and last.phase in HELD and self._plan.length_s(Phase.CONFIRM):
            return
        elif last.phase in HELD:
            if self._begun != place:
                self._begun = place
                self._read_aside(Moment.BEGIN, last)
            elif self._ended != place and self._left_s(samples) <= MARGIN * max(self._plan.sample_s, self._took_s):
                self._ended = place
                self._read_aside(Moment.END, last)
        elif self._mode == "ramp" and last.phase is Phase.RAMP and last.t_s >= self._tick_s:
            self._tick_s = last.t_s + TICK_EVERY_S
            self._read_aside(Moment.TICK, last)

    def _read_around(self, samples: Sequence[Sample]) -> None:
        """Read in silence, for the end of the trial that is over and the begin of the one that follows."""
        last, following = samples[-1], self._plan.next_step(samples)
        if self._thread is not None:
            self._thread.join(PATIENCE_S)
        if last.phase is Phase.CONFIRM_DRAIN:
            self._around_any = True
            self._read(Moment.END, Phase.CONFIRM, last.trial)
        if following is not None and following.phase is Phase.CONFIRM:
            self._read(Moment.BEGIN, Phase.CONFIRM, following.trial, clear=True)

    def _left_s(self, samples: Sequence[Sample]) -> float:
        """Seconds left in the current hold or trial."""
        last = samples[-1]
        before = (sample for sample in reversed(samples) if (sample.phase, sample.trial) != (last.phase, last.trial))
        return next(before, samples[0]).t_s + self._plan.length_s(last.phase) - last.t_s

    def _read_aside(self, moment: Moment, sample: Sample) -> None:
        arguments = (moment, sample.phase, sample.trial, moment in (Moment.BEGIN, Moment.TICK))
        if not self._background:
            self._read(*arguments)
        elif self._thread is not None and self._thread.is_alive():
            self._failures.append(
                f"the {sample.phase.value}'s {moment.value} was not read: the reading before it was not over"
            )
        else:

            def read() -> None:
                self._prepare()
                self._read(*arguments)

            self._thread = threading.Thread(target=read, name="watcher", daemon=True)
            self._thread.start()

    def _read(self, moment: Moment, phase: Phase | None, trial: int, clear: bool = False) -> None:
        assert self._dut is not None  # else the mode is off
        begun_s = self._clock.now()
        try:
            observation = self._dut.observe(clear)
        except BenchError as error:
            where = f"in the {phase.value}" if phase else "in silence"
            self._failures.append(f"the DUT's counters were not read ({moment.value}, {where}): {error}")
            return
        except Exception as error:  # a defect of trexbench must not end the run, nor stay unnoticed
            self._failures.append(f"the DUT's counters were not read: {type(error).__name__}: {error}")
            return
        self._took_s = self._clock.now() - begun_s
        self.dut_readings.append(DutReading(moment, begun_s, self._took_s, observation, phase, trial))


@dataclass(frozen=True)
class WithMeter:
    """A DUT whose power is read with its counters; if the meter fails, the power is listed as missing."""

    dut: Observed
    meter: PowerMeter

    def observe(self, clear: bool = False) -> Observation:
        observation = self.dut.observe(clear)
        try:
            reading = self.meter()
        except BenchError as error:
            return replace(observation, missing=(*observation.missing, Missing(POWER, str(error))))
        return replace(observation, power_w=reading.power_w, energy_j=reading.energy_j)
