"""Suites: the cells that are measured in a night."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import groupby
from pathlib import Path
from typing import Annotated

from ..core.errors import ConfigError
from ..core.history.cell import TCP_KIND, Cell
from ..core.load.profile import resolve_mode
from ..core.names import shown
from ..core.strategy.kinds import STRATEGIES, has_curve
from ..core.tcp.cpu import COLUMNS
from ..core.tcp.plan import ENGINES, TcpMode, Way
from ..core.tcp.wan import Wan
from . import option as o
from . import readers as r
from .endpoints import tunnel, wan
from .model import MOST_QUEUES, PlanDefaults, plan_defaults
from .variants import NO_VARIANT, VARIANT_NAME
from .yamltree import Value

DUT_NAME = r.pattern(r"[A-Za-z0-9][A-Za-z0-9._-]*", "the name of a DUT", "netgate-vpp, in a to z, digits and . _ -")


def _packets_mode(text: str) -> str | None:
    try:
        return resolve_mode(text).name
    except ConfigError:
        return None


@dataclass(frozen=True)
class SuiteMethod:
    """A method of measuring a suite's cells."""

    mode: Callable[[str], str | TcpMode | None]
    """Reader of a mode's name; returns None for what is no mode of this method."""
    example: str
    """Name of such a mode."""
    directed: bool = False
    """True if a mode itself names its direction."""
    suite: Callable[..., Suite] | None = None
    """Class of its suites, with the keys that only they have; None: Suite."""


_PACKETS = SuiteMethod(_packets_mode, "var2-64b")
METHODS: dict[str, SuiteMethod] = {
    **{kind: _PACKETS for kind in STRATEGIES if has_curve(kind)},
    TCP_KIND: SuiteMethod(TcpMode.parse, "reverse-ipv4", directed=True),
}
"""Strategies that seek a knee, and TCP between two hosts."""


@r.takes(**r.ONE_VALUE, title="a mode")
def _mode(value: Value) -> str | TcpMode:
    text = value.text()
    modes = (method.mode(text) for method in METHODS.values())
    found = next((mode for mode in modes if mode is not None), None)
    if found is None and text.partition("-")[0] in [way.value for way in Way]:
        remedy = "one of TCP is forward, reverse or bidir, with -ipv4 or -ipv6, as in reverse-ipv6-4-streams-pinned"
        raise value.wrong(f"unknown mode {shown(text)}", remedy)
    return found or resolve_mode(text).name


@r.takes(enum=list(METHODS))
def _method(value: Value) -> str:
    return r.choice(*METHODS)(value)


_modes = r.list_of("mode", _mode, str)


def _unused_keys(kind: str) -> list[str]:
    """List the keys of ``plan`` without effect on runs of this strategy."""
    used = {"warmup", "ramp_to", "loss", "goals", *(one.name for one in fields(STRATEGIES[kind]))}
    if "width" in used:  # a search holds no target
        used.remove("hold_s")
    return [key for name, (key, _, _) in r.keys_of(PlanDefaults).items() if name not in used]


def _is_bidir(mode: str | TcpMode) -> bool:
    return isinstance(mode, TcpMode) and mode.way is Way.BIDIR


_names = r.list_of("variant", r.pattern(VARIANT_NAME, "a variant's name", "stateful"), str)


@r.takes(anyOf=[_names])
def _variants(value: Value) -> tuple[str | None, ...]:
    names = _names(value)
    return tuple(None if name == NO_VARIANT else name for name in names)


@dataclass(frozen=True)
class SuiteDut:
    """A DUT of the suite."""

    name: Annotated[str, DUT_NAME]  # of its config in dut_configs
    rx_queues: Annotated[tuple[int, ...], r.integers(1, MOST_QUEUES)] = ()
    """Numbers of receive queues per port to measure it with; none: the default of its config."""
    variants: Annotated[tuple[str | None, ...], _variants] = ()
    """Variants to measure it in (``none``: without any); unset: the suite's."""
    modes: Annotated[tuple[str | TcpMode, ...], _modes] = ()
    """Modes to measure it with; unset: the suite's."""

    @property
    def known_by(self) -> str:
        """Name and variants: a suite may list a DUT twice, with other variants."""
        return f"{self.name} {' '.join(map(str, self.variants))}".strip()


@dataclass(frozen=True)
class TcpWishes:
    """Parameters of TCP in a suite."""

    time: Annotated[float, r.seconds] = 60.0  # counted length of each leg
    interval: Annotated[float, r.seconds] = 1.0  # between readings
    omit: Annotated[float, r.seconds] = 0.0  # time at the start of each leg that is not counted
    repeat: Annotated[int, r.integer(1, 1000)] = 1  # number of times that each leg is measured
    ping: Annotated[int, r.integer(0, 10_000)] = 10  # echo requests, one a second, before the legs and beside each
    cc: Annotated[str | None, r.pattern(r"[a-z0-9_]{1,15}", "a congestion control", "cubic")] = None
    """Congestion control of legs whose mode names none; None: the hosts' own."""
    zerocopy: Annotated[bool, r.boolean] = False  # send by sendfile, as iperf3 -Z does
    pin: Annotated[bool, r.boolean] = False  # keep each endpoint's program on one of its CPUs
    engine: Annotated[str, r.choice(*ENGINES)] = ENGINES[0]
    """Program that sends and receives: trexbench's own, which needs python3 on the hosts, or their iperf3."""
    tunnel: Annotated[str | None, tunnel] = None
    """Tunnel to test through; None: as each DUT's config says."""
    wan: Annotated[Wan | None, wan] = None
    """WAN to test over; None: as each DUT's config says."""


def _dut(value: Value) -> SuiteDut:
    return SuiteDut(DUT_NAME(value)) if isinstance(value.raw, str) else r.section(SuiteDut, "a DUT")(value)


@r.takes(enum=["uni", "bidir"])
def _bidir(value: Value) -> bool:
    return r.choice("uni", "bidir")(value) == "bidir"


_MBPS, _PERCENT = r.number(0, 1e7), r.number(0, 1e5)


@dataclass(frozen=True)
class Published:
    """Figures measured by others: throughput, and CPU usage in % of one core."""

    mbps: Annotated[float, _MBPS]
    """Throughput in Mbit/s."""
    client_tunnel: Annotated[float | None, _PERCENT] = None  # of the tunnel's program on the client
    client: Annotated[float | None, _PERCENT] = None  # of the program that sends or receives there
    server_tunnel: Annotated[float | None, _PERCENT] = None  # of the tunnel's program at its other end
    server: Annotated[float | None, _PERCENT] = None  # of the program that sends or receives on the server

    @property
    def cpu(self) -> dict[str, float]:
        """Known CPU figures, as shares of one core."""
        return {name: value / 100 for name in COLUMNS if (value := getattr(self, name)) is not None}


def _published(value: Value) -> Published:
    whole = r.section(Published, "published figures")
    return whole(value) if isinstance(value.raw, dict) else Published(_MBPS(value))


_PUBLISHED = r.pairs("cell", r"[A-Za-z0-9][A-Za-z0-9._ -]*", "'raspberry-pi forward-ipv4': 65.6", _published)


@dataclass(frozen=True, kw_only=True)
class Instead:
    """Options that override a suite.

    dut: DUT to measure instead of the suite's; may be repeated.
    variant: Variant to measure instead of the suite's (none: the DUT without any); may be repeated.
    time: Counted duration of each leg of TCP, instead of the suite's.
    """

    dut: Annotated[Sequence[str], o.Form("NAME", repeated=True, usual=True)] = ()
    variant: Annotated[Sequence[str], o.Form("NAME", repeated=True, usual=True)] = ()
    time: Annotated[o.Time, o.USUAL] = None


AS_IT_IS = Instead()


@dataclass(frozen=True)
class Suite:
    """A suite file."""

    name: str
    """Name of the file without its ending."""
    file: Path
    duts: Annotated[tuple[SuiteDut, ...], r.list_of("DUT", _dut, lambda dut: dut.known_by)]
    """DUTs to measure, each by its name or with what is special about it."""
    modes: Annotated[tuple[str | TcpMode, ...], _modes] = ()
    """Modes as for --mode, for TCP as in reverse-ipv6-4-streams; required unless each DUT names its own."""
    directions: Annotated[tuple[bool, ...], r.list_of("direction", _bidir, lambda bidir: ("uni", "bidir")[bidir])] = ()
    """Directions of packets: uni, bidir or both; required unless the method is ``tcp``, whose modes name their own."""
    method: Annotated[str, _method] = "ramp"
    """Strategy by which each cell is measured; ``mlrsearch`` is ``trexbench search --method mlrsearch``."""
    variants: Annotated[tuple[str | None, ...], _variants] = ()
    """Variants to measure each DUT in unless it names its own; None, and the word ``none``: without any."""
    description: Annotated[str, r.text] = ""  # for lists
    plan: Annotated[PlanDefaults, plan_defaults] = field(default_factory=PlanDefaults)
    """Figures of runs of packets, in place of the DUTs' own."""
    tcp: Annotated[TcpWishes, r.section(TcpWishes, "TCP")] = field(default_factory=TcpWishes)
    """Options of runs of TCP."""
    published: Annotated[tuple[tuple[str, Published], ...], _PUBLISHED] = ()
    """Figures measured by others, by ``DUT [variant] mode``: throughput in Mbit/s, or with CPU usage."""
    keep_nights: Annotated[int | None, r.integer(1, 100_000)] = None
    """Number of this suite's nights that ``nightly`` keeps when it prunes; None: all."""

    def with_instead(self, instead: Instead) -> Suite:
        """Return the suite with these in place of its own; ConfigError for a time in a suite that is not of TCP."""
        duts, tcp = self.duts, self.tcp
        if instead.dut:
            tests = dict.fromkeys(replace(dut, name="") for dut in duts)
            duts = tuple(replace(test, name=name) for name in instead.dut for test in tests)
        if instead.variant:
            variants = tuple(None if name == NO_VARIANT else name for name in instead.variant)
            duts = tuple(replace(dut, variants=variants) for dut in duts)
        if (time_s := o.DURATION.read(instead.time)) is not None:
            if self.method != TCP_KIND:
                raise ConfigError(f"--time is for TCP suites only, and {self.name} is none", "leave it out")
            tcp = replace(tcp, time=time_s, interval=min(tcp.interval, time_s / 10))
        return replace(self, duts=duts, tcp=tcp)

    def require_fit(self, root: Value) -> None:
        """Raise ConfigError unless modes and directions fit the method. root: node of the suite's file."""
        method = METHODS[self.method]
        for dut in self.duts:
            if not (dut.modes or self.modes):
                raise root.wrong("'modes' is missing", f"name those of the suite, or of {dut.name}")
        for mode in dict.fromkeys((*self.modes, *(mode for dut in self.duts for mode in dut.modes))):
            if method.mode(str(mode)) is None:
                what = f"{mode} is not a mode of method: {self.method}"
                raise root.at("modes").wrong(what, f"name modes such as {method.example}")
        of_packets = {"directions": "each mode names its own", "plan": "its parameters are those of packets"}
        unfit = of_packets if method.directed else {"tcp": "its parameters are those of TCP"}
        for key in filter(root.has, unfit):
            raise root.at(key).wrong(f"does not fit method: {self.method}", f"remove it: {unfit[key]}")
        for key in () if method.directed else filter(root.at("plan").has, _unused_keys(self.method)):
            remedy = "remove it: its runs do not use it"
            raise root.at("plan", key).wrong(f"does not fit method: {self.method}", remedy)
        if not method.directed and not self.directions:
            raise root.wrong("'directions' is missing", "name uni, bidir or both: [uni, bidir]")

    @property
    def cells(self) -> tuple[Cell, ...]:
        """One cell per run, in the order of the runs: DUT, variant and queues change as rarely as possible."""
        cells = (
            Cell(dut.name, mode, bidir or _is_bidir(mode), queues, self.method, variant=variant)
            for dut in self.duts
            for variant in (dut.variants or self.variants or (None,))
            for queues in (dut.rx_queues or (None,))
            for bidir in self.directions or (False,)
            for mode in dut.modes or self.modes
        )
        return tuple(dict.fromkeys(cells))


def sessions(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Consecutive cells with the same DUT, variant and queues, which share one session."""
    return [list(group) for _, group in groupby(cells, key=lambda cell: (cell.dut, cell.variant, cell.rx_queues))]
