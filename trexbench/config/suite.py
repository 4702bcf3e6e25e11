"""A suite: which cells are measured in a night. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Annotated

from ..core.errors import ConfigError
from ..core.history.cell import TCP_KIND, Cell
from ..core.load.profile import resolve_mode
from ..core.strategy.table import STRATEGIES, has_curve
from ..core.tcp.cpu import COLUMNS
from ..core.tcp.model import ENGINES, TcpMode, Way
from ..core.tcp.wan import Wan
from . import option as o
from . import readers as r
from .endpoints import tunnel, wan
from .model import MOST_QUEUES, PlanDefaults, plan_defaults
from .variants import NO_VARIANT, VARIANT_NAME
from .yamltree import Value

_NAME = r.pattern(r"[A-Za-z0-9][A-Za-z0-9._-]*", "the name of a DUT", "netgate-vpp, for dut_configs/netgate-vpp.yaml")


def _packets_mode(text: str) -> str | None:
    with suppress(ConfigError):
        return resolve_mode(text).name
    return None


@dataclass(frozen=True)
class SuiteMethod:
    """Way of measuring a suite's cells."""

    mode: Callable[[str], str | TcpMode | None]
    """Read the name of a mode; None for what is no mode of this method."""
    example: str
    """Name of such a mode."""
    directed: bool = False
    """True if a mode itself says in which direction it is sent."""
    suite: Callable[..., Suite] | None = None
    """Class of its suites, with the keys that only they have; None: Suite."""


_PACKETS = SuiteMethod(_packets_mode, "var2-64b")
METHODS: dict[str, SuiteMethod] = {
    **{kind: _PACKETS for kind in STRATEGIES if has_curve(kind)},
    TCP_KIND: SuiteMethod(TcpMode.parse, "reverse-ipv4", directed=True),
}
"""The strategies that seek a knee, and TCP between two hosts."""


def _mode(value: Value) -> str | TcpMode:
    text = value.text()
    known = (found for one in METHODS.values() if (found := one.mode(text)) is not None)
    return next(known, None) or resolve_mode(text).name


@r.takes(enum=list(METHODS))
def _method(value: Value) -> str:
    return r.choice(*METHODS)(value)


_modes = r.list_of("mode", _mode, str)


def _is_bidir(mode: str | TcpMode) -> bool:
    return isinstance(mode, TcpMode) and mode.way is Way.BIDIR


def _variants(value: Value) -> tuple[str | None, ...]:
    found = r.list_of("variant", r.pattern(VARIANT_NAME, "a variant's name", "stateful"), str)(value)
    return tuple(None if name == NO_VARIANT else name for name in found)


@dataclass(frozen=True)
class SuiteDut:
    """A DUT of the suite. rx_queues: it is measured with each of these; empty: as its config says.

    variants, modes: likewise; empty: as the suite says. None stands for the DUT without any variant.
    """

    name: Annotated[str, _NAME]
    rx_queues: Annotated[tuple[int, ...], r.integers(1, MOST_QUEUES)] = ()
    variants: Annotated[tuple[str | None, ...], _variants] = ()
    modes: Annotated[tuple[str | TcpMode, ...], _modes] = ()

    @property
    def known_by(self) -> str:
        """A DUT may stand in a suite twice, with other variants."""
        return f"{self.name} {' '.join(map(str, self.variants))}".strip()


@dataclass(frozen=True)
class TcpWishes:
    """Parameters of TCP in a suite. tunnel, wan: None: as each DUT's config says."""

    time: Annotated[float, r.seconds] = 60.0
    interval: Annotated[float, r.seconds] = 1.0
    omit: Annotated[float, r.seconds] = 0.0
    repeat: Annotated[int, r.integer(1, 1000)] = 1
    ping: Annotated[int, r.integer(0, 10_000)] = 10
    cc: Annotated[str | None, r.pattern(r"[a-z0-9_]{1,15}", "a congestion control", "cubic")] = None
    zerocopy: Annotated[bool, r.boolean] = False
    pin: Annotated[bool, r.boolean] = False
    engine: Annotated[str, r.choice(*ENGINES)] = ENGINES[0]
    tunnel: Annotated[str | None, tunnel] = None
    wan: Annotated[Wan | None, wan] = None


def _dut(value: Value) -> SuiteDut:
    return SuiteDut(_NAME(value)) if isinstance(value.raw, str) else r.section(SuiteDut, "a DUT")(value)


def _bidir(value: Value) -> bool:
    return r.choice("uni", "bidir")(value) == "bidir"


_MBPS, _PERCENT = r.number(0, 1e7), r.number(0, 1e5)


@dataclass(frozen=True)
class Published:
    """Figures measured by others. mbps: Mbit/s. The rest: % of one core, as core.tcp.cpu.COLUMNS; None: not known."""

    mbps: Annotated[float, _MBPS]
    client_tunnel: Annotated[float | None, _PERCENT] = None
    client: Annotated[float | None, _PERCENT] = None
    server_tunnel: Annotated[float | None, _PERCENT] = None
    server: Annotated[float | None, _PERCENT] = None

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
    """Options in place of what a suite says.

    dut: In place of the suite's DUTs.
    variant: In place of its variants; none: without one.
    time: Of each way of TCP, in place of the suite's.
    """

    dut: Annotated[Sequence[str], o.Form("NAME", repeated=True, usual=True)] = ()
    variant: Annotated[Sequence[str], o.Form("NAME", repeated=True, usual=True)] = ()
    time: Annotated[o.Time, o.USUAL] = None

    @property
    def is_empty(self) -> bool:
        return not self.dut and not self.variant and self.time is None


AS_IT_IS = Instead()


@dataclass(frozen=True)
class Suite:
    """One suite file; ``name`` is the file's. method: the strategy by which each cell is measured.

    variants: each DUT is measured in each of these unless it names its own; None: without any. directions: of packets.
    plan: of packets, tcp: of TCP. published: what others measured, by ``DUT [variant] mode``.
    keep_nights: how many ``nightly`` keeps when it prunes; None: all.
    """

    name: str
    file: Path
    duts: Annotated[tuple[SuiteDut, ...], r.list_of("DUT", _dut, lambda dut: dut.known_by)]
    modes: Annotated[tuple[str | TcpMode, ...], _modes] = ()
    directions: Annotated[tuple[bool, ...], r.list_of("direction", _bidir, lambda bidir: ("uni", "bidir")[bidir])] = ()
    method: Annotated[str, _method] = "ramp"
    variants: Annotated[tuple[str | None, ...], _variants] = ()
    description: Annotated[str, r.text] = ""
    plan: Annotated[PlanDefaults, plan_defaults] = field(default_factory=PlanDefaults)
    tcp: Annotated[TcpWishes, r.section(TcpWishes, "TCP")] = field(default_factory=TcpWishes)
    published: Annotated[tuple[tuple[str, Published], ...], _PUBLISHED] = ()
    keep_nights: Annotated[int | None, r.integer(1, 100_000)] = None

    def with_instead(self, instead: Instead) -> Suite:
        """Return the suite with these in place of its own; ConfigError for a time in a suite that is not of TCP."""
        found = self
        if instead.dut:
            tests = dict.fromkeys(replace(dut, name="") for dut in self.duts)
            found = replace(found, duts=tuple(replace(one, name=name) for name in instead.dut for one in tests))
        if instead.variant:
            variants = tuple(None if name == NO_VARIANT else name for name in instead.variant)
            found = replace(found, duts=tuple(replace(one, variants=variants) for one in found.duts))
        if (time_s := o.DURATION.read(instead.time)) is not None:
            if self.method != TCP_KIND:
                raise ConfigError(f"--time is for suites of TCP, and {self.name} is none", "leave it out")
            interval_s = min(self.tcp.interval, time_s / 10)
            found = replace(found, tcp=replace(self.tcp, time=time_s, interval=interval_s))
        return found

    def require_fit(self, root: Value) -> None:
        """ConfigError where modes and directions are not those of the method. root: of the suite's file."""
        method = METHODS[self.method]
        for dut in self.duts:
            if not (dut.modes or self.modes):
                raise root.wrong("'modes' is missing", f"name those of the suite, or of {dut.name}")
        for mode in dict.fromkeys((*self.modes, *(mode for dut in self.duts for mode in dut.modes))):
            if method.mode(str(mode)) is None:
                remedy = f"name such as {method.example}"
                raise root.at("modes").wrong(f"{mode} is no mode of method: {self.method}", remedy)
        if method.directed and self.directions:
            what, remedy = f"does not fit method: {self.method}", "take it out: each mode names its own"
            raise root.at("directions").wrong(what, remedy)
        if not method.directed and not self.directions:
            raise root.wrong("'directions' is missing", "name uni, bidir or both: [uni, bidir]")

    @property
    def cells(self) -> tuple[Cell, ...]:
        """One for each run, in the order they are run: DUT, variant and queues change as rarely as possible."""
        found = (
            Cell(dut.name, mode, bidir or _is_bidir(mode), queues, self.method, variant=variant)
            for dut in self.duts
            for variant in (dut.variants or self.variants or (None,))
            for queues in (dut.rx_queues or (None,))
            for bidir in self.directions or (False,)
            for mode in dut.modes or self.modes
        )
        return tuple(dict.fromkeys(found))


def sessions(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Consecutive cells with the same DUT, variant and queues, which share one session."""
    return [list(group) for _, group in groupby(cells, key=lambda cell: (cell.dut, cell.variant, cell.rx_queues))]
