"""Requests for runs, made of the user's options, and their plans, with the DUT's config and the defaults filled in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ..config.lookup import find_profile, load_dut
from ..config.model import DRIVERS, DutConfig, PlanDefaults
from ..config.option import WAN
from ..core.errors import ConfigError
from ..core.load.plan import Direction, Offer, pair_directions, require
from ..core.load.profile import MODES, Profile, resolve_mode, traffic_name
from ..core.load.sample import Phase
from ..core.names import REMEDY, is_name, shown
from ..core.strategy.base import Strategy
from ..core.strategy.kinds import STRATEGIES
from ..core.strategy.saturate import Saturate
from ..core.tcp.tunnel import NO_TUNNEL, hosts_of, parse_tunnel
from ..core.units import Rate, format_bits
from .options import Case, RunRequest, Setup

DEFAULTS = PlanDefaults(warmup=Rate(1000.0, "pps"), ramp_to=Rate(97.0, "percent"), loss=0.001)

NIGHT_DEFAULTS = PlanDefaults(soak_s=60.0)
"""Defaults for a suite's cells, after those of suite and DUT's config."""


@dataclass(frozen=True, kw_only=True)
class Request(Setup, RunRequest):
    """One run, as asked."""

    mode: str
    """Name in results of the STL profile."""
    profile_file: Path
    tunables: Mapping[str, str]
    bidir: bool
    wished: PlanDefaults
    ports: tuple[int, ...]
    rx_queues: int | None = None
    telemetry: str | None = None

    @property
    def kind(self) -> str:
        """Kind of strategy: the verb's; for a verb without one (``efficiency``) a single rate at once."""
        return self.verb if self.verb in STRATEGIES else Saturate.kind

    @property
    def target_option(self) -> str:
        """Command-line option of the target."""
        return STRATEGIES[self.kind].target_option if self.verb == self.kind else "--rates"

    @property
    def telemetry_mode(self) -> str:
        """Phase in which the DUT's counters are read: as asked, else the hold; none if the DUT is left as it is."""
        return self.telemetry or ("hold" if self.apply and self.dut.is_observed else "off")

    @property
    def uses_lab(self) -> bool:
        """True if the DUT has a lab and the user neither named another server nor simulates."""
        return self.dut.lab is not None and self.server is None and not self.sim

    @property
    def queues(self) -> int | None:
        """Receive queues per port; None leaves them as they are."""
        return choose_queues(self.dut, self.rx_queues)

    @property
    def direction_name(self) -> str:
        return "bidir" if self.bidir else "unidir"


def make_request(verb: str, case: Case, wished: PlanDefaults, setup: Setup) -> Request:
    """Make the request for a run; ConfigError names what is wrong with it."""
    return request_of(load_dut(case.dut, setup.configs_dir, setup.prefix), verb, case, wished, setup)


def request_of(dut: DutConfig, verb: str, case: Case, wished: PlanDefaults, setup: Setup) -> Request:
    """Make the request for a DUT whose config is loaded; ConfigError as make_request."""
    base, file, own = _profile_of(case)
    if dut.endpoints is not None and not dut.ports:
        raise ConfigError(f"{dut.file} names no ports for packets", "measure it with trexbench tcp, or add ports:")
    dut = dut.with_variant(case.variant).with_wan(WAN.read(case.wan))
    obstacle = "dials in to the server of TCP tests" if dut.chosen.pppoe else ""
    if (tunnel := dut.chosen.tunnel) is not None and tunnel != NO_TUNNEL:
        obstacle = f"puts a tunnel between {hosts_of(parse_tunnel(tunnel).between)}"
    if obstacle:
        what = f"variant {dut.variant} of {dut.name} {obstacle}, where the tester sends nothing"
        raise ConfigError(what, "use another variant, or measure it with trexbench tcp")
    if setup.sim and dut.variant is not None:
        _ = dut.chosen_twin  # refuses a variant that the twin does not describe, before anything is opened
    for what, called, where in (("DUT", dut.name, dut.file), ("profile", base, file)):
        if not is_name(called):
            raise ConfigError(
                f"{shown(str(where))}: {shown(called)} cannot be the name of a {what}", f"rename it: {REMEDY}"
            )
    if case.telemetry in ("hold", "ramp"):
        require_observed(dut, f"--telemetry {case.telemetry}")
    tunables = {**own, **(case.tunables or {})}
    return Request(
        **vars(setup),
        verb=verb,
        dut=dut,
        mode=traffic_name(base, own, tunables),
        profile_file=file,
        tunables=tunables,
        bidir=case.bidir,
        wished=wished,
        ports=case.ports or dut.tester_ports,
        rx_queues=case.rx_queues,
        telemetry=case.telemetry,
        labels={"label": setup.label} if setup.label else {},
    )


def require_observed(dut: DutConfig, doing: str) -> None:
    """ConfigError if neither the DUT's counters nor its power can be read."""
    if not dut.is_observed:
        raise ConfigError(
            f"{doing}: {dut.name} has driver: {dut.driver}, which reads no counters, and no power meter",
            f"use another driver, or state power: in {dut.file}",
        )


def _profile_of(case: Case) -> tuple[str, Path, Mapping[str, str]]:
    """Find the profile's name in results, its file, and the tunables that belong to the name."""
    if case.mode and case.profile:
        raise ConfigError("--mode and --profile exclude each other", "name one of them")
    if case.profile:
        file = find_profile(case.profile)
        return file.stem, file, {}
    if not case.mode:
        known = ", ".join(mode.name for mode in MODES)
        raise ConfigError("no traffic is named", f"--mode with one of {known}; or --profile FILE")
    mode = resolve_mode(case.mode)
    return mode.name, find_profile(mode.profile), dict(mode.tunables)


def merged(*layers: PlanDefaults) -> PlanDefaults:
    """Merge layers of defaults: for each field the first layer with a value counts."""
    values: dict[str, Any] = {}
    for layer in reversed(layers):
        values |= {name: value for name, value in vars(layer).items() if value is not None}
    return PlanDefaults(**values)


def line_rate_bps(dut: DutConfig, direction: Direction, port_speeds_bps: Mapping[int, float]) -> float:
    """L1 speed that a direction is measured against: the lowest of its ports', the DUT's and the WAN's."""
    known = [speed for port in (direction.tx, direction.rx) if (speed := port_speeds_bps[port]) > 0]
    if dut.speed_bps is not None:
        known.append(dut.speed_bps)
    if dut.wan is not None and dut.wan.rate_bps is not None:  # of frames alone: at L1 it carries a little more
        known.append(dut.wan.rate_bps)
    if not known:
        raise ConfigError(
            f"the speed of ports {direction.tx} and {direction.rx} is unknown", f"state speed: in {dut.file}"
        )
    return min(known)


def expected_s(request: Request) -> float:
    """Duration of the run in seconds by its own clock, its confirmation's first trial included.

    ConfigError for options that are wrong at any line rate, so that they are refused before anything is opened.
    """
    choose_queues(request.dut, request.rx_queues)
    wish = merged(request.wished, request.dut.plan, DEFAULTS)
    directions = pair_directions(request.ports, request.bidir)
    return _plan(request, wish, [Offer(direction, 1e15, 64.0, 1e12, 1e12, 1e3) for direction in directions]).duration_s


def choose_queues(dut: DutConfig, wished: int | None) -> int | None:
    """Receive queues per port: as wished, else the first that the DUT's config offers; None leaves it to the DUT.

    ConfigError for a number that the config does not offer.
    """
    if wished is not None and not DRIVERS[dut.driver].knows_system:
        raise ConfigError(f"--rx-queues {wished}: driver: {dut.driver} of {dut.name} sets no queues", "leave it out")
    if wished is not None:
        dut.require_queues(wished)
    return wished or (dut.rx_queues[0] if dut.rx_queues else None)


def build_plan(request: Request, profiles: Mapping[int, Profile], port_speeds_bps: Mapping[int, float]) -> Strategy:
    """Make the plan, each direction by its own line and profile. profiles: by sending port.

    ConfigError for options that contradict each other.
    """
    wish = merged(request.wished, request.dut.plan, DEFAULTS)
    offers = []
    for direction in pair_directions(request.ports, request.bidir):
        speed_bps = line_rate_bps(request.dut, direction, port_speeds_bps)
        offers.append(_offer(request, wish, direction, profiles[direction.tx], speed_bps))
    return _plan(request, wish, offers)


def _offer(request: Request, wish: PlanDefaults, direction: Direction, profile: Profile, speed_bps: float) -> Offer:
    mean, line = profile.mean_frame_bytes, profile.line_rate_pps(speed_bps)
    assert wish.warmup is not None and wish.ramp_to is not None  # DEFAULTS has them
    target = wish.ramp_to.to_pps(mean, speed_bps)
    if target > line * (1 + 1e-9):
        raise ConfigError(
            f"{wish.ramp_to} is {target:.0f} pps, over the line rate of {line:.0f} pps at {format_bits(speed_bps)}",
            f"lower {request.target_option}",
        )
    warmup = wish.warmup.to_pps(mean, speed_bps)
    if request.verb != request.kind:  # it has no option for the warm-up
        warmup = min(warmup, target)
    return Offer(direction, speed_bps, mean, line, min(target, line), warmup)


def _plan(request: Request, wish: PlanDefaults, offers: Sequence[Offer]) -> Strategy:
    """Make the strategy of those options that it has fields for."""
    strategy = STRATEGIES[request.kind]
    strategy.check_installed()
    wishes = {field.name: getattr(wish, field.name, None) for field in fields(strategy)}
    known = {name: value for name, value in wishes.items() if value is not None}
    loss = wish.goals[0] if wish.goals else wish.loss
    assert loss is not None  # DEFAULTS has one
    require(loss < 1, f"--loss of {100 * loss:g} %", "nothing would be bad: use a share below 100%")
    plan = strategy(offers=tuple(offers), loss_threshold=loss, **known)
    trial_s, least_s = plan.length_s(Phase.CONFIRM), 2 * plan.sample_s  # a trial's first sample includes the start
    if 0 < trial_s < least_s:
        option = "--soak" if trial_s == wish.soak_s else "--confirm"
        raise ConfigError(f"{option} of {trial_s:g} s is shorter than two samples", f"use at least {least_s:g} s, or 0")
    return plan
