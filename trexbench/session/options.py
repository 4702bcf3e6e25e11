"""Options of runs of packets: the command line and Python's arguments are made of these declarations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar

from ..config import option as o
from ..config.model import MOST_QUEUES, MOST_WINDOWS, DutConfig, PlanDefaults
from ..config.suite import Instead
from ..core.errors import ConfigError
from ..core.units import Rate
from ..core.verdict.parts import RunWarning

METHODS = {"continuous": "search", "mlrsearch": "mlrsearch"}
"""Strategy by method of searching."""


@dataclass(frozen=True, kw_only=True)
class TesterChoice:
    """The tester that is used; None: as in the DUT's config, or its lab's.

    server: Host of the TRex server{server}.
    rpc_port: RPC (sync) port of the TRex server. Default: the DUT config's, else 4501.
    pub_port: Event (async) port of the TRex server. Default: the DUT config's, else 4500.
    trex_dir: Directory of a TRex installation: its client is used, and in a lab its server. Default:
        $TREXBENCH_TREX_DIR, else the client installed with trexbench.
    """

    heading: ClassVar[o.Heading] = o.Heading.THROUGH

    server: Annotated[str | None, o.HOST, o.USUAL] = None
    rpc_port: Annotated[int | None, o.Limits(1, 65535)] = None
    pub_port: Annotated[int | None, o.Limits(1, 65535)] = None
    trex_dir: Annotated[Path | None, o.Form(envvar="TREXBENCH_TREX_DIR")] = None


@dataclass(frozen=True, kw_only=True)
class Target(TesterChoice):
    """A DUT as a user names it, and the tester that knows MACs that the config lacks.

    configs_dir: Directory of the DUT configs. Default: $TREXBENCH_DUT_CONFIGS, else ./dut_configs and those shipped.
    prefix: Prefix of the lab's namespaces, to run labs side by side: tbx2. Default: the DUT config's.
    variant: Variant of the DUT, one that its config describes. Default: none, the DUT without any.
    rx_queues: Receive queues per port, one of the numbers in the DUT's config. Default: the first of them.
    """

    name: Annotated[str, o.PYTHON_ONLY] = field(kw_only=False)
    configs_dir: Path | None = None
    prefix: Annotated[str | None, o.PREFIX] = None
    variant: o.Name = None
    rx_queues: Annotated[int | None, o.Limits(1, MOST_QUEUES)] = None


@dataclass(frozen=True, kw_only=True)
class Case:
    """Which DUT is measured, and with which traffic; None leaves it to the DUT's config.

    dut: The device under test: a name in dut_configs/, or a file.
    mode: What to send: var2-1514b, var2-imix, var2-64b, 1flow-64b, var2-<n>b with frames of n bytes, or an alias.
    profile: STL profile to send instead of a mode: a file, or a name in $TREXBENCH_STL_PROFILES, else ./stl_profiles
        and those shipped.
    tunables: Tunables of the mode or profile: size=128,vm=random.
    bidir: Send both ways at once. Default: only from the first port of each pair to the second.
    ports: The tester's ports, in pairs. Default: all in the DUT's config.
    rx_queues: Receive queues per port, one of the numbers in the DUT's config. Default: the first of them.
    variant: Variant of the DUT, one that its config describes. Default: none, the DUT without any.
    wan: Long line behind the DUT: its delay and rate, as 20ms,1gbit. Default: the DUT config's.
    telemetry: When to read the DUT's own counters: hold (before, after and in holds; the default), ramp (in the ramp,
        too), or off.
    """

    heading: ClassVar[o.Heading] = o.Heading.THROUGH

    dut: Annotated[str, o.Form("NAME", usual=True)] = field(kw_only=False)
    mode: Annotated[str | None, o.Form("MODE", usual=True), o.Heading.WHAT] = field(default=None, kw_only=False)
    profile: Annotated[str | None, o.Form("FILE"), o.Heading.WHAT] = None
    tunables: Annotated[Mapping[str, str] | None, o.TUNABLES, o.Form(letter="-t"), o.Heading.WHAT] = None
    bidir: Annotated[bool, o.USUAL, o.Heading.WHAT] = False
    ports: Annotated[tuple[int, ...] | None, o.PORTS] = None
    rx_queues: Annotated[int | None, o.Limits(1, MOST_QUEUES)] = None
    variant: o.Name = None
    wan: o.Line = None
    telemetry: Annotated[str | None, ("hold", "ramp", "off")] = None


@dataclass(frozen=True, kw_only=True)
class Setup(o.CommonOptions, TesterChoice):
    """Options for runs, the same for all of a night.

    no_apply: Leave DUTs as they are. Results are marked as not attested.
    sim: Simulate tester and DUT (by the twin in its config): no root, no network, no packet. Results are marked.
    force: Take the tester's ports even if somebody else owns them.
    """

    apply: bool = True
    force: bool = False

    def __post_init__(self) -> None:
        """ConfigError for options that contradict --sim, or mean nothing without it."""
        others = ("--server", self.server), ("--rpc-port", self.rpc_port), ("--pub-port", self.pub_port)
        self.require_simulated(*others, ("--force", self.force), ("--no-apply", not self.apply))


@dataclass(frozen=True, kw_only=True)
class RunRequest(o.CommonOptions):
    """A run of any load, as asked."""

    dut: DutConfig
    verb: str
    labels: Mapping[str, str] = field(default_factory=dict)
    """The user's, and a suite's."""
    doubts: tuple[RunWarning, ...] = ()
    """Warnings about the tester."""


@dataclass(frozen=True, kw_only=True)
class PlanWish:
    """Figures of a run's plan; None: as the DUT's config says, or else the strategy."""

    heading: ClassVar[o.Heading] = o.Heading.LENGTH
    figures: ClassVar[Mapping[str, str]] = {}
    """Figures of the plan whose options have other names."""

    def plan(self) -> PlanDefaults:
        """Return the figures as a plan's defaults."""
        return o.of_options(PlanDefaults, self, self.figures)


@dataclass(frozen=True, kw_only=True)
class HoldWish(PlanWish):
    """Figures of runs that hold their target.

    hold: Time to stay at the target. Default: 30s.
    warmup: Low rate at first, and its duration, to prove that frames return. Default: 1kpps:10s.
    loss: Share of the frames that a direction may lose. Default: 0.1%.
    windows: Number of windows (of 1 s) in a row with more loss that mean saturation. Default: 3.
    sample: Time between readings of the tester's counters, 50ms to 10s. Default: 1s.
    """

    hold: Annotated[o.Time, o.USUAL] = None
    warmup: o.Warmup = None
    warmup_duration: Annotated[o.Time, o.PYTHON_ONLY] = None
    loss: o.Share = None
    windows: Annotated[int | None, o.Limits(1, MOST_WINDOWS), o.Form("N")] = None
    sample: o.Time = None


@dataclass(frozen=True, kw_only=True)
class RampWish(HoldWish):
    """Figures of ``ramp``.

    ramp_to: Highest rate per direction, as 1.2mpps or 5gbpsl1. Default: 97% of line rate; nearer to it the generator's
        own queues overflow, which looks like loss in the DUT.
    ramp_duration: Time from zero to that rate. Default: 600s.
    confirm: Duration of the trial that confirms the rate found. Default: 10s; 0: no trial, and no recheck.
    latency: Then measure latency at 10, 50 and 90 % of the throughput, for this long each; without TIME: 10s. Default:
        off.
    """

    ramp_to: Annotated[o.AnyRate, o.USUAL, o.Heading.WHAT] = None
    ramp_duration: Annotated[o.Time, o.USUAL] = None
    confirm: o.Time = None
    latency: Annotated[o.Time, o.Form(bare="10s", usual=True)] = None


@dataclass(frozen=True, kw_only=True)
class SearchWish(PlanWish):
    """Figures of ``search``.

    ramp_to: Highest rate per direction, as 1.2mpps or 5gbpsl1. Default: 97% of line rate; nearer to it the generator's
        own queues overflow, which looks like loss in the DUT.
    loss: Goals: shares of the frames that may be lost, each with a throughput of its own; 0,0.5% finds NDR and
        PDR. Default: 0.1%.
    width: Width to which each goal's interval is narrowed, as a share of the rate. Default: 0.5%.
    warmup: Low rate at first, and its duration, to prove that frames return. Default: 1kpps:2s.
    confirm: Duration of the last trial, of the first goal's rate, in which a packet's cost is counted. Default: 5s; 0:
        no trial.
    soak: Shortest duration of that trial, for a DUT that slows down when hot, or a policer's burst; without TIME:
        60s. Default: off.
    method: Method of searching: continuous never stops the traffic; mlrsearch is FD.io's own library with CSIT's
        settings, in trials with silence between them, and takes several times as long.
    """

    ramp_to: Annotated[o.AnyRate, o.Heading.WHAT] = None
    loss: Annotated[Sequence[o.Amount] | None, o.GOALS, o.USUAL] = None
    width: Annotated[o.Share, o.USUAL] = None
    warmup: o.Warmup = None
    warmup_duration: Annotated[o.Time, o.PYTHON_ONLY] = None
    confirm: o.Time = None
    soak: Annotated[o.Time, o.Form(bare="60s", usual=True)] = None
    method: Annotated[str, tuple(METHODS), o.Form(shown=True)] = "continuous"
    figures: ClassVar[Mapping[str, str]] = {"loss": "goals"}

    def plan(self) -> PlanDefaults:
        """Return the figures as a plan's defaults; ConfigError for those that the method does not have."""
        figures = super().plan()
        if self.method == "mlrsearch" and (figures.confirm_s is not None or figures.soak_s is not None):
            option = "--soak" if figures.confirm_s is None else "--confirm"
            raise ConfigError(f"{option} and --method mlrsearch exclude each other", "its trials are not confirmed")
        return figures


@dataclass(frozen=True, kw_only=True)
class SaturateWish(HoldWish):
    """Figures of ``saturate``.

    rate: Offered load per direction.
    """

    rate: Annotated[o.Amount, o.RATE, o.Form(shown=True, usual=True), o.Heading.WHAT] = "100%"
    figures: ClassVar[Mapping[str, str]] = {"rate": "ramp_to"}


@dataclass(frozen=True, kw_only=True)
class EfficiencyWish(PlanWish):
    """Figures of ``efficiency``.

    rates: Offered loads per direction, one after the other.
    hold: Time for which each rate is held and counted. Default: 30s.
    """

    rates: Annotated[Sequence[o.Amount], o.RATES, o.Form(shown=True, usual=True), o.Heading.WHAT] = "1kpps,1%,10%,97%"
    hold: Annotated[o.Time, o.USUAL] = None

    @property
    def offered(self) -> Sequence[Rate]:
        """The rates as values."""
        rates: Sequence[Rate] = o.RATES.read(self.rates)
        return rates


@dataclass(frozen=True, kw_only=True)
class NightWords(Instead):
    """Options of a night.

    date: The night's date, as 2026-11-21. Default: today's (UTC).
    """

    date: Annotated[str | None, o.DATE, o.USUAL] = None
