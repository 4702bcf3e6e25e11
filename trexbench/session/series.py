"""Runs of packets: a single one, or several in a session that they share."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..config.model import PlanDefaults
from ..core.errors import BenchError, ConfigError
from ..core.load.profile import mode_of_size
from ..core.result import RunResult
from ..core.units import Rate
from .keep import Measured, Output
from .loop import Interrupted, as_error
from .opening import open_session
from .options import Case, Setup
from .request import DEFAULTS, Request, make_request, require_observed

DEFAULT_MODE = "1flow-64b"
SETTLE_S = 3.0


def measure(request: Request, output: Output) -> Measured[RunResult]:
    """Carry the request out. An error before the first sample is raised, a later one is part of the result."""
    with open_session(request, output.say) as session:
        return session.measure(request, output)


@dataclass(frozen=True)
class Series:
    """Several runs. failures: name and error of those that ended early, or never began."""

    runs: list[Measured[RunResult]]
    failures: list[tuple[str, BenchError | Interrupted]]

    @property
    def error(self) -> BenchError | Interrupted | None:
        """The interruption that ended the series, else the first failure."""
        errors = [error for _, error in self.failures]
        return next((error for error in errors if isinstance(error, Interrupted)), errors[0] if errors else None)

    @property
    def results(self) -> list[RunResult]:
        return [run.result for run in self.runs]


def measure_series(requests: Sequence[tuple[str, Request]], output: Output) -> Series:
    """Measure one run per named request in one session; they may differ only in what is sent.

    The session is opened again after a failure, which costs the other runs nothing; an interruption ends the series.
    """
    done, waiting = Series([], []), deque(requests)
    while waiting:
        left, (name, request) = len(waiting), waiting[0]
        error: BenchError | Interrupted | None = None
        try:
            with open_session(request, output.say) as session:
                while waiting and error is None:
                    name, request = waiting.popleft()
                    output.say(f"{len(requests) - len(waiting)} of {len(requests)}: {name}")
                    run = session.measure(request, output)
                    if run.path is not None:
                        output.say(f"result   {run.path}")
                    done.runs.append(run)
                    error = run.error
        except (BenchError, Interrupted, KeyboardInterrupt) as raised:
            error = error or as_error(raised)
        if error is not None:
            done.failures.append((name, error))
        if len(waiting) == left or isinstance(error, Interrupted):
            break
    return done


def rate_requests(case: Case, rates: Sequence[Rate], hold_s: float | None, setup: Setup) -> list[tuple[str, Request]]:
    """Make one named request of ``efficiency`` for each rate, by default with one flow of 64 B."""
    if case.telemetry == "off":
        raise ConfigError("--telemetry off leaves nothing to report", "leave it out")
    mode = case.mode or (None if case.profile else DEFAULT_MODE)
    wished = PlanDefaults(hold_s=hold_s, warmup=DEFAULTS.warmup, warmup_s=SETTLE_S)
    request = make_request("efficiency", replace(case, mode=mode), wished, setup)
    require_observed(request.dut, "efficiency")
    request = replace(request, telemetry=case.telemetry or (None if setup.apply else "hold"))
    return [(f"rate {rate}", replace(request, wished=replace(wished, ramp_to=rate))) for rate in rates]


def size_requests(
    verb: str, case: Case, sizes: Sequence[int], wished: PlanDefaults, setup: Setup
) -> list[tuple[str, Request]]:
    """Make one request, named by its mode, for each frame size in bytes with FCS."""
    if case.mode or case.profile:
        raise ConfigError("--sizes names the traffic", "leave out --mode and --profile")
    if "size" in (case.tunables or {}):
        raise ConfigError("--sizes and the tunable size exclude each other", "leave one of them out")
    modes = [mode_of_size(size).name for size in sizes]
    return [(mode, make_request(verb, replace(case, mode=mode), wished, setup)) for mode in modes]
