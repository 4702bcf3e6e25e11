"""A tester measured without a DUT: its ports cabled back to back, through a lab's bypass, or simulated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..config.endpoints import TransportConfig
from ..config.model import UNREACHED, Cable, DutConfig, PlanDefaults
from ..config.twin import TwinSpec
from ..core.calibration import Calibration, calibrate
from .keep import Output
from .options import Case, Setup
from .process import utc_now
from .request import Request, request_of
from .series import Series, measure_series
from .testers import name_of_tester, save

NAME = "back-to-back"
"""Name of the absent DUT in results."""
_CABLE = TwinSpec(workers=2, clock_hz=1e12, packet_cycles=1.0, ring=65536, latency_s=1e-6)
"""Router that stands for a cable with --sim, too fast to be a limit."""
_SAMPLING = ("warmup", "warmup_s", "sample_s", "window_s")
"""Fields of a DUT's plan that set how its runs settle and are sampled: only a tester measured alike is comparable."""


def without_dut(base: DutConfig | None, ports: Sequence[int]) -> DutConfig:
    """Make a config without a DUT, with tester, ports, speed, lab, warm-up, sample and window of ``base``, if any.

    In the lab a bypass replaces the router.
    """
    own, lab = base or DutConfig(NAME, Path(NAME), "none", cables=(Cable(0), Cable(1))), None
    if own.lab is not None:
        lab = replace(own.lab, router="bypass", steer="none", threaded=False)
    return DutConfig(
        name=NAME,
        file=Path(NAME),
        driver="none",
        cables=tuple(map(Cable, ports)) or own.cables,
        transport=TransportConfig(UNREACHED, host=NAME),
        generator=own.generator,
        speed_bps=own.speed_bps,
        plan=PlanDefaults(**{name: getattr(own.plan, name) for name in _SAMPLING}),
        lab=lab,
        twin=_CABLE if own.twin is None else replace(_CABLE, tester=own.twin.tester),
        description="the tester's own ports, cabled back to back",
    )


def calibrate_tester(
    config: DutConfig, modes: Sequence[str], wished: PlanDefaults, setup: Setup, output: Output
) -> tuple[Series, Calibration | None]:
    """Measure each mode one way and both; return the calibration, too, if any run was measured, and keep it.

    It replaces an earlier calibration, also of other modes.
    """
    requests: list[tuple[str, Request]] = []
    for mode in modes:
        for bidir in (False, True):
            request = request_of(config, "ramp", Case(NAME, mode, bidir=bidir), wished, setup)
            requests.append((f"{request.mode} {request.direction_name}", request))
    done = measure_series(requests, output)
    results = [run.result for run in done.runs if run.error is None]
    if not results:
        return done, None
    first = results[0]
    version = f"{first.generator['kind']} {first.generator['server'].get('version')}"
    limits = tuple(limit for result in results for limit in calibrate(result))
    calibration = Calibration(name_of_tester(config, setup), utc_now(), version, first.simulated, limits)
    if not first.simulated:
        save(calibration)
    return done, calibration
