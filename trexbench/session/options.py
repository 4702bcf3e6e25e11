"""Options of runs of packets: the command line and Python's arguments are made of these declarations."""

from __future__ import annotations

import math
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

    server: The TRex server{server}.
    rpc_port: Its RPC port (4501).
    pub_port: Its event port (4500).
    trex_dir: A TRex installation: its client is used, and in a lab its server.
    """

    heading: ClassVar[o.Heading] = o.Heading.THROUGH

    server: Annotated[str | None, o.Form("HOST", usual=True)] = None
    rpc_port: Annotated[int | None, o.Limits(1, 65535)] = None
    pub_port: Annotated[int | None, o.Limits(1, 65535)] = None
    trex_dir: Annotated[Path | None, o.Form(envvar="TREXBENCH_TREX_DIR")] = None


@dataclass(frozen=True, kw_only=True)
class Target(TesterChoice):
    """A DUT as a user names it, and the tester that knows MACs that the config lacks.

    configs_dir: The directory of the DUT configs.
    prefix: Of the lab's namespaces, for labs side by side: tbx2. Default: as the DUT's config says.
    variant: One of the variants in the DUT's config; none, the default: without any.
    rx_queues: Receive queues per port: one of the counts in the DUT's config.
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
    profile: An STL profile of your own instead of a mode.
    tunables: Tunables of the mode or profile: size=128,vm=random.
    bidir: Bidirectional: both ports send at once; default: unidirectional, first port to second.
    ports: The tester's ports, in pairs; default: as in the DUT's config.
    rx_queues: Receive queues per port: one of the counts in the DUT's config.
    variant: One of the variants in the DUT's config; none, the default: without any.
    wan: A long line behind the DUT: 20ms,1gbit; of TCP with losses, too: loss=0.01%. Default: as the config says.
    telemetry: When the DUT's own counters are read: before, after and in holds (default), also during the ramp, never.
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

    no_apply: Do not configure DUTs; results are marked as not attested.
    sim: Simulate tester and DUT (its config's twin): no root, no network, no packet. Marked as simulated.
    force: Take the ports even if somebody else owns them.
    """

    apply: bool = True
    force: bool = False

    def __post_init__(self) -> None:
        """ConfigError for options that contradict --sim, or mean nothing without it."""
        others = ("--server", self.server), ("--rpc-port", self.rpc_port), ("--pub-port", self.pub_port)
        self.require_simulated(*others, ("--force", self.force), ("--no-apply", not self.apply))
        if self.speedup is not None and not 0 < self.speedup < math.inf:
            raise ConfigError(f"--speedup of {self.speedup:g}", "name a number above 0")


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

    hold: Stay at the target for this long (30).
    warmup: Low rate first, to prove that frames return: 1kpps:10s.
    loss: More loss than this is bad, per direction (0.1%).
    windows: N bad windows of 1 s in a row mean saturation (3).
    sample: Time between samples, 50ms to 10s (1s).
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

    ramp_to: Target per direction: 97%, 1.2mpps, 5gbpsl1 ... Default 97 % of line rate:
        nearer to line rate a generator's own queues overflow, and its losses look like the DUT's.
    ramp_duration: From zero to the target (600).
    confirm: After saturation, hold the last good rate again this long (10; 0: no).
    latency: Then measure latency at 10, 50 and 90 % of the throughput found, for so long each (10s; default: off).
    stop_on_saturation: End the ramp once every direction is saturated.
    """

    ramp_to: Annotated[o.AnyRate, o.USUAL, o.Heading.WHAT] = None
    ramp_duration: Annotated[o.Time, o.USUAL] = None
    confirm: o.Time = None
    latency: Annotated[o.Time, o.Form(bare="10s", usual=True)] = None
    stop_on_saturation: bool | None = None


@dataclass(frozen=True, kw_only=True)
class SearchWish(PlanWish):
    """Figures of ``search``.

    ramp_to: Target per direction: 97%, 1.2mpps, 5gbpsl1 ... Default 97 % of line rate:
        nearer to line rate a generator's own queues overflow, and its losses look like the DUT's.
    loss: Goals: the most that may be lost, each with a throughput of its own. 0,0.5% is NDR and PDR. Default: 0.1%.
    width: How narrow each goal's interval is to be, as a share of the rate (0.5%).
    warmup: Low rate first, to prove that frames return: 1kpps:2s.
    confirm: At last hold the first goal's rate this long and count what a packet costs the DUT (5; 0: no).
    soak: Hold it this long instead, for a DUT that slows down when it is hot, or a policer's burst (60s; suites do).
    method: continuous: the traffic never stops. mlrsearch: FD.io's own library with CSIT's settings, in trials with
        silence between them; it takes several times as long.
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
    hold: How long each rate is held and counted (30).
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

    date: The night's date, as in 2026-11-21; default: today's (UTC).
    retry_after: Pause before a second try after a fault of the tester (10).
    """

    date: Annotated[str | None, o.DATE, o.USUAL] = None
    retry_after: Annotated[o.Amount | None, o.DURATION] = 10.0
