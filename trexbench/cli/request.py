"""What the user asked for, merged with what the DUT's config and the tool's defaults say: the plan. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from ..config import DutConfig, PlanDefaults
from ..core.errors import ConfigError
from ..core.plan import Plan, pair_directions
from ..core.profile import Profile
from ..core.units import Rate, format_bits

DEFAULTS = PlanDefaults(
    warmup=Rate(1000.0, "pps"),
    warmup_s=10.0,
    ramp_to=Rate(97.0, "percent"),
    ramp_s=600.0,
    hold_s=30.0,
    confirm_s=10.0,
    latency_s=0.0,
    drain_s=1.0,
    sample_s=1.0,
    window_s=1.0,
    loss=0.001,
    windows=3,
    stop_on_saturation=False,
)


@dataclass(frozen=True)
class Request:
    """One run, as asked. profile_file: the STL profile; mode: its name in results; labels: the user's, a suite's."""

    verb: str
    dut: DutConfig
    mode: str
    profile_file: Path
    tunables: Mapping[str, str]
    bidir: bool
    wished: PlanDefaults
    ports: tuple[int, ...]
    server: str | None = None
    rpc_port: int | None = None
    pub_port: int | None = None
    trex_dir: Path | None = None
    apply: bool = True
    force: bool = False
    rx_queues: int | None = None
    sim: bool = False
    speedup: float = 1.0
    seed: int | None = None
    telemetry: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """Of the plan: a ``ramp``, or one rate at once."""
        return "ramp" if self.verb == "ramp" else "saturate"

    @property
    def telemetry_mode(self) -> str:
        """When the DUT's counters are read: as asked; else in the hold, but of a DUT that we leave alone not at all."""
        return self.telemetry or ("hold" if self.apply else "off")

    @property
    def uses_lab(self) -> bool:
        """The DUT's own lab is brought up, unless the user named another server, or none is wanted."""
        return self.dut.lab is not None and self.server is None and not self.sim

    @property
    def queues(self) -> int | None:
        """Receive queues per port; None: as the DUT has them."""
        return choose_queues(self.dut, self.rx_queues)

    @property
    def direction_name(self) -> str:
        return "bidir" if self.bidir else "unidir"


@dataclass(frozen=True)
class Rates:
    """A wish in frames per second, for frames of this mean size on a line of this speed."""

    mean_frame_bytes: float
    line_bps: float
    line_pps: float
    target_pps: float
    warmup_pps: float


def merged(*layers: PlanDefaults) -> PlanDefaults:
    """The first layer that says something wins, key by key."""
    result = layers[-1]
    for layer in reversed(layers[:-1]):
        said = {f.name: getattr(layer, f.name) for f in fields(layer) if getattr(layer, f.name) is not None}
        result = replace(result, **said)
    return result


def line_rate_bps(dut: DutConfig, port_speeds_bps: Mapping[int, float]) -> float:
    """L1 speed that the run is measured against: the slowest port's, or the DUT's where that is lower."""
    known = [speed for speed in port_speeds_bps.values() if speed > 0]
    if dut.speed_bps is not None:
        known.append(dut.speed_bps)
    if not known:
        raise ConfigError(
            f"the speed of ports {','.join(map(str, port_speeds_bps))} is unknown", f"state speed: in {dut.file}"
        )
    return min(known)


def check_wishes(request: Request) -> None:
    """ConfigError for wishes that no line rate could make right; before anything is opened."""
    expected_s(request)


def expected_s(request: Request) -> float:
    """How long the run takes by its own clock, its confirmation's first trial included; ConfigError as check_wishes."""
    choose_queues(request.dut, request.rx_queues)
    wish = merged(request.wished, request.dut.plan, DEFAULTS)
    anything = Rates(mean_frame_bytes=64.0, line_bps=1e15, line_pps=1e12, target_pps=1e12, warmup_pps=1e3)
    return _plan(request, wish, anything).duration_s


def choose_queues(dut: DutConfig, wished: int | None) -> int | None:
    """Receive queues per port: as wished, else the first that the DUT's config names; None leaves it to the DUT.

    ConfigError for more, or others, than the config offers.
    """
    if wished is not None and wished not in dut.offered_queues:
        there = ", ".join(map(str, dut.offered_queues))
        raise ConfigError(
            f"{dut.name} is not measured with {wished} receive queues: its config offers {there}",
            f"choose one of them, or state rx_queues: in {dut.file}",
        )
    return wished or (dut.rx_queues[0] if dut.rx_queues else None)


def build_plan(request: Request, profile: Profile, speed_bps: float) -> Plan:
    """The plan in numbers; ConfigError where the wishes contradict each other."""
    wish = merged(request.wished, request.dut.plan, DEFAULTS)
    mean, line = profile.mean_frame_bytes, profile.line_rate_pps(speed_bps)
    assert wish.warmup is not None and wish.ramp_to is not None  # DEFAULTS says them all
    target = wish.ramp_to.to_pps(mean, speed_bps)
    if target > line * (1 + 1e-9):
        raise ConfigError(
            f"{wish.ramp_to} is {target:.0f} pps, over the line rate of {line:.0f} pps at {format_bits(speed_bps)}",
            "lower --ramp-to" if request.kind == "ramp" else "lower --rate",
        )
    return _plan(request, wish, Rates(mean, speed_bps, line, min(target, line), wish.warmup.to_pps(mean, speed_bps)))


def _plan(request: Request, wish: PlanDefaults, rates: Rates) -> Plan:
    return Plan(
        kind=request.kind,
        directions=pair_directions(request.ports, request.bidir),
        line_rate_bps=rates.line_bps,
        mean_frame_bytes=rates.mean_frame_bytes,
        line_rate_pps=rates.line_pps,
        target_pps=rates.target_pps,
        warmup_pps=rates.warmup_pps,
        **{
            name: getattr(wish, name)
            for name in (
                *("warmup_s", "ramp_s", "hold_s", "confirm_s", "latency_s"),
                *("drain_s", "sample_s", "window_s", "windows"),
            )
        },
        loss_threshold=wish.loss if wish.loss is not None else 0.0,
        stop_on_saturation=bool(wish.stop_on_saturation),
    )
