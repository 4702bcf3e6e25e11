"""The course of a run of any load: it is begun, kept in a document and shown while it goes on, and ended."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from ..core.errors import BenchError
from ..core.load.sample import Sample
from ..core.run import Run
from ..core.strategy.base import LoadStep
from ..core.typed import Status
from ..core.verdict.parts import RunWarning
from ..results.store import RunWriter
from ..signals import uninterrupted
from .loop import Interrupted, as_error
from .options import RunRequest
from .process import host_facts, utc_now

R = TypeVar("R", bound=Run)
Say = Callable[[str], None]
Show = Callable[[Any], AbstractContextManager[Any]]
"""Opens what shows a run while it is measured: a sink of samples, a TcpDisplay. It handles its own failures."""
Begun = Callable[[Path], None]
"""Gets the path of a run's document once it exists."""


@dataclass(frozen=True)
class Output:
    """Receivers of runs and of messages about them."""

    results: Path | None = None
    """Directory of the runs' documents; None keeps none."""
    say: Say = lambda _: None
    """Gets a line per step."""
    warn: Say = lambda _: None
    """Gets a line for each failure that ends no measurement."""
    show: Show | None = None


@dataclass(frozen=True)
class Measured(Generic[R]):
    """One run as it ended. error: that ended it early; None: the plan was carried out. path: of its document."""

    result: R
    error: BenchError | Interrupted | None
    path: Path | None


def envelope_of(
    request: RunRequest, traffic: str, dut: Mapping[str, Any], warnings: Sequence[RunWarning]
) -> dict[str, Any]:
    """Arguments that a run of any load begins with, but for its command.

    traffic: a word for its id. dut: facts besides its config.
    """
    started, config = utc_now(), request.dut
    return {
        "id": f"{started}-{config.name}-{traffic}-{os.getpid()}",
        "started": started,
        "status": Status.RUNNING,
        "dut": {"name": config.name, "description": config.description, "config": config.text, **dut},
        "host": host_facts(),
        "simulated": request.sim,
        "warnings": (*request.doubts, *warnings),
    }


@dataclass
class Underway(Generic[R]):
    """A run that goes on; a sink that keeps its samples."""

    run: R
    """The run with all that was measured so far."""
    writer: RunWriter | None
    display: Any = None
    """Display that Output.show opened, if any."""
    error: BenchError | Interrupted | None = None
    """Error that ended it early."""

    def sampled(self, samples: Sequence[Sample], step: LoadStep) -> None:
        if self.writer is not None:
            self.writer.sampled(samples, step)

    def add(self, **parts: Sequence[Any]) -> None:
        """Append these to the run's parts of the same names, and keep it."""
        joined: dict[str, Any] = {name: (*getattr(self.run, name), *values) for name, values in parts.items()}
        with uninterrupted():
            self.run = replace(self.run, **joined)
            if self.writer is not None:
                self.writer.update(self.run)


def carry_out(
    run: R, drive: Callable[[Underway[R]], None], output: Output, begun: Begun = lambda _: None
) -> Measured[R]:
    """Begin the run, drive it, end it. An error before it has begun is raised, a later one is part of the result."""
    underway, path = Underway(run, None if output.results is None else RunWriter(output.results, output.warn)), None
    has_begun = False
    with ExitStack() as shown:
        try:
            with uninterrupted():  # a run that was begun is also ended
                if underway.writer is not None:
                    underway.writer.check()
                    path = underway.writer.begin(run).path
                if path is not None:
                    begun(path)
                if output.show is not None:
                    underway.display = shown.enter_context(output.show(run))
                has_begun = True
            drive(underway)
        except (Exception, Interrupted, KeyboardInterrupt) as raised:
            if not has_begun:
                raise
            underway.error = underway.error or as_error(raised)
        with uninterrupted():  # the run is kept, whatever signal comes now
            shown.close()
            error = underway.error
            status = Status.COMPLETE if error is None else Status.INCOMPLETE
            reason = None if error is None else str(error)
            run = replace(underway.run, status=status, reason=reason, finished=utc_now())
            if underway.writer is not None:
                path = underway.writer.end(run)
    return Measured(run, error, path)
