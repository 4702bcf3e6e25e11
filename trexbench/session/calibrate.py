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
"""Name in results for the absent DUT."""
_CABLE = TwinSpec(workers=2, clock_hz=1e12, packet_cycles=1.0, ring=65536, latency_s=1e-6)
"""Router that --sim puts in the place of a cable, too fast to be a limit."""
_TAKEN = ("warmup", "warmup_s", "sample_s", "window_s")
"""Fields of a DUT's plan that set how its runs settle and are sampled: a tester measured alike can be compared."""


def without_dut(base: DutConfig | None, ports: Sequence[int]) -> DutConfig:
    """A config without any DUT. base: gives tester, ports, speed, lab (with a bypass in the router's place), warm-up,
    sample and window."""
    cables = tuple(Cable(port) for port in ports) or (base.cables if base is not None else (Cable(0), Cable(1)))
    config = DutConfig(
        name=NAME,
        file=Path(NAME),
        driver="none",
        cables=cables,
        transport=TransportConfig(UNREACHED, host=NAME),
        twin=_CABLE,
        description="the tester's own ports, cabled back to back",
    )
    if base is None:
        return config
    lab = None if base.lab is None else replace(base.lab, router="bypass", steer="none", threaded=False)
    twin = replace(_CABLE, tester=base.twin.tester) if base.twin is not None else _CABLE
    plan = PlanDefaults(**{name: getattr(base.plan, name) for name in _TAKEN})
    return replace(config, generator=base.generator, speed_bps=base.speed_bps, lab=lab, twin=twin, plan=plan)


def calibrate_tester(
    config: DutConfig, modes: Sequence[str], wished: PlanDefaults, setup: Setup, output: Output
) -> tuple[Series, Calibration | None]:
    """Each mode one way and both, and what is known of the tester then: kept where any run was measured.

    It replaces what an earlier calibration found, also of other modes.
    """
    requests: list[tuple[str, Request]] = []
    for mode in modes:
        for bidir in (False, True):
            request = request_of(config, "ramp", Case(NAME, mode, bidir=bidir), wished, setup)
            requests.append((f"{request.mode} {request.direction_name}", request))
    done = measure_series(requests, output)
    results = [one.result for one in done.runs if one.error is None]
    if not results:
        return done, None
    first = results[0]
    tester = name_of_tester(config, setup)
    version = f"{first.generator['kind']} {first.generator['server'].get('version')}"
    found = tuple(limit for result in results for limit in calibrate(result))
    made = Calibration(tester, utc_now(), version, first.simulated, found)
    if not first.simulated:
        save(made)
    return done, made
