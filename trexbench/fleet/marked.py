"""Runs whose documents get a warning more, of any load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..core.load.sample import Sample
from ..core.run import Run
from ..core.strategy.base import LoadStep
from ..core.verdict.model import RunWarning
from ..session.run import Recorder
from ..suite.jobs import SuiteLoad


@dataclass(frozen=True)
class MarkingRecorder:
    """A recorder of runs with this warning."""

    recorder: Recorder
    warning: RunWarning

    def begin(self, run: Run) -> Any:
        return self.recorder.begin(self._marked(run))

    def sampled(self, samples: Sequence[Sample], step: LoadStep) -> None:
        self.recorder.sampled(samples, step)

    def update(self, run: Run) -> None:
        self.recorder.update(self._marked(run))

    def end(self, run: Run) -> None:
        self.recorder.end(self._marked(run))

    def _marked(self, run: Run) -> Run:
        return replace(run, warnings=(self.warning, *run.warnings))


def marked(load: SuiteLoad, text: str) -> SuiteLoad:
    """The load, with this warning in every document of it."""

    def carry_out(opened: Any, request: Any, recorder: Recorder) -> tuple[Any, Any]:
        return load.carry_out(opened, request, MarkingRecorder(recorder, RunWarning("fleet", text)))

    return replace(load, carry_out=carry_out)
