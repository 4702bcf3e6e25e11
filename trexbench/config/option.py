"""Options, declared once as fields of a dataclass, from which the command line and Python's arguments are made.

A field's text for --help is a line ``name: text`` of the class's docstring, or ``no_name: text`` where the option turns
it off; its written form is part of its type.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from datetime import date
from functools import cache
from inspect import cleandoc, get_annotations, signature
from numbers import Integral, Real
from os import PathLike, fspath
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar, get_type_hints

from ..core.errors import ConfigError
from ..core.history.known import is_date, parse_date
from ..core.names import HOST as HOST_NAME
from ..core.names import shown
from ..core.tcp.tunnel import parse_tunnel
from ..core.tcp.wan import Wan, parse_size, parse_wan
from ..core.units import Rate, parse_duration, parse_rate, parse_share, parse_speed
from .heading import Heading as Heading

T = TypeVar("T")
SPEEDUP, NIGHT_SPEEDUP = 100.0, 10_000.0
"""Default simulated seconds per real second of a run, and of a night's runs."""
_PREFIX = re.compile(r"[a-z][a-z0-9-]{0,39}")
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
_PLAIN: Mapping[Any, tuple[Any, str]] = {
    made: (accepted, words)
    for type_, accepted, words in (
        (int, Integral, "use a whole number"),
        (float, Real, "use a number"),
        (str, str, "use text"),
        (bool, bool, "use True or False"),
    )
    for made in (type_, type_ | None)
}
"""Type of a field -> what Python may give for it, and the remedy where something else is given."""
_HELP = re.compile(r"^(\w+): (.*(?:\n +.*)*)", re.MULTILINE)
"""A line of a docstring that is a field's help, with the indented lines that continue it."""


@dataclass(frozen=True)
class Written:
    """A type of value that users write as text, and in Python also as a number or date."""

    shape: str
    """Placeholder in --help."""
    parse: Callable[[str], Any]
    """Parser, which raises ConfigError for any other text."""
    number: str = "{}"
    """Format that turns a number into such text."""
    each: Written | None = None
    """Type of a list's values."""
    parts: tuple[str, ...] = ()
    """Names of the fields that of_options makes of the value's parts; empty: the value is one field."""

    def read(self, value: Any) -> Any:
        """Parse a text, number or date, or each one in a list; any other value is returned as it is."""
        if self.each is not None and isinstance(value, Iterable) and not isinstance(value, str):
            return tuple(map(self.each.read, value))
        if isinstance(value, (Real, date)):
            value = str(value) if isinstance(value, (bool, date)) else self.number.format(value)
        return self.parse(value) if isinstance(value, str) else value


@dataclass(frozen=True)
class Limits:
    """Range of a number."""

    low: float
    high: float | None = None
    """Largest number; None: unlimited."""
    whole: bool = True
    """False for numbers with a fraction."""


@dataclass(frozen=True)
class Form:
    """Peculiarities of an option of the command line."""

    metavar: str | None = None
    """Placeholder in --help; None: the type's."""
    letter: str = ""
    """Short form, as in ``-t``."""
    bare: str | None = None
    """Value of the option when given without one; None: it needs one."""
    shown: bool = False
    """True if --help shows the field's default."""
    repeated: bool = False
    """True if the option may be repeated, with one value of the list each time."""
    envvar: str | None = None
    """Environment variable that sets it where the option is not given."""
    python_only: bool = False
    """True for an argument of Python's functions without an option."""
    usual: bool = False
    """True if --help lists it, however many options its verb has."""


class Field(NamedTuple):
    """A field that a user may set."""

    help: str
    kind: Written | Limits | tuple[str, ...] | None
    """Written form, range, or words to choose from; None: any value of its type."""
    form: Form
    type: Any
    default: Any
    heading: Heading


@cache
def declared(cls: Any) -> dict[str, Field]:
    """Map names to fields, a class's own before those of its bases.

    A field without a Heading of its own has the ``heading`` of the class that declares it.
    """
    hints = get_type_hints(cls, include_extras=True)
    defaults = {field.name: field.default for field in fields(cls)}
    docstrings = (cleandoc(base.__doc__ or "") for base in reversed(cls.__mro__))
    helps = {name: " ".join(text.split()) for doc in docstrings for name, text in _HELP.findall(doc)}
    declared_in = {name: base for base in reversed(cls.__mro__) for name in get_annotations(base) if name in defaults}
    options = {}
    for name in dict.fromkeys(name for base in cls.__mro__ for name in get_annotations(base) if name in defaults):
        extras = getattr(hints[name], "__metadata__", ())
        kind = next((extra for extra in extras if isinstance(extra, (Written, Limits, tuple))), None)
        form = next((extra for extra in extras if isinstance(extra, Form)), Form())
        of_class = getattr(declared_in[name], "heading", Heading.OTHER)
        heading = next((extra for extra in extras if isinstance(extra, Heading)), of_class)
        about, type_ = helps.get(name) or helps.get(f"no_{name}", ""), getattr(hints[name], "__origin__", hints[name])
        options[name] = Field(about, kind, form, type_, defaults[name], heading)
    return options


def read_options(made: Callable[..., T], *arguments: Any, **named: Any) -> T:
    """Make a dataclass from values as users write them in Python; ConfigError for one that is not understood."""
    bound = signature(made).bind(*arguments, **named)
    bound.apply_defaults()
    for field_name, (_, kind, form, type_, default, _) in declared(made).items():
        value, name = bound.arguments[field_name], field_name.replace("_", "-")
        if isinstance(value, PathLike):
            value = fspath(value)
        if value is None and default is not MISSING:
            value = default
        if isinstance(kind, Written):
            if type_ in (str | None, Amount | None) and not isinstance(value, (str, Real, date, type(None))):
                raise ConfigError(f"--{name} of {shown(value)}", "use text or a number")
            try:
                value = kind.read(value)
            except ConfigError as error:
                raise ConfigError(f"--{name}: {error}") from None
            if value == () != default:
                raise ConfigError(f"--{name} of []", "name at least one")
        elif form.repeated and isinstance(value, str):
            value = (value,)  # not its letters
        elif isinstance(kind, tuple) and value is not None:
            value = str(value)
            if value not in kind:
                raise ConfigError(f"unknown --{name} {shown(value)}", f"name {', '.join(kind[:-1])} or {kind[-1]}")
        elif value is not None and type_ == Path | None:
            value = Path(value)
        elif value is not None and type_ in _PLAIN:
            accepted, remedy = _PLAIN[type_]
            if not isinstance(value, accepted) or (isinstance(value, bool) and accepted is not bool):
                raise ConfigError(f"--{name} of {shown(value)}", remedy)
        bound.arguments[field_name] = value
    return made(*bound.args, **bound.kwargs)


def of_options(cls: Callable[..., T], options: Any, names: Mapping[str, str] | None = None, **more: Any) -> T:
    """Make a dataclass from the options that it has fields for. names: option -> field, where the names differ.

    A field of seconds has a name that ends in ``_s``: ramp_s is made from the option ramp_duration.
    """
    kinds, values = {name: option.kind for name, option in declared(options.__class__).items()}, dict[str, Any]()
    for name, value in vars(options).items():
        kind = kinds.get(name)
        if isinstance(kind, Written) and kind.parts:
            values |= zip(kind.parts, value or (None,) * len(kind.parts), strict=True)
            continue
        of_time = f"{name.removesuffix('_duration')}_s" if kind is DURATION else name
        field = (names or {}).get(name, of_time)
        values[field] = values.get(field) if value is None else value  # a part of an option before it
    return cls(**{one.name: values[one.name] for one in fields(cls) if one.name in values} | more)  # type: ignore[arg-type]


def listed(what: str, parse: Callable[[str], Any]) -> Callable[[str], tuple[Any, ...]]:
    """Parser of different values, separated by commas."""

    def parse_all(text: str) -> tuple[Any, ...]:
        values = tuple(map(parse, text.split(",")))
        if len(set(values)) != len(values):
            raise ConfigError(f"a {what} is repeated in {text}", "name each once")
        return values

    return parse_all


def _warmup(text: str) -> tuple[Rate, float | None]:
    rate, colon, duration = text.partition(":")
    return parse_rate(rate), parse_duration(duration) if colon else None


def _ports(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise ConfigError(f"ports {text!r} not understood", "write them as 0,1 or 0,1,2,3")
    return tuple(int(part) for part in parts)


def _tunables(text: str) -> dict[str, str]:
    tunables = {}
    for item in text.split(","):
        name, _, value = map(str.strip, item.partition("="))
        if not name or not value:
            raise ConfigError(f"tunable {item!r} not understood", "write them as size=64,vm=var2")
        tunables[name] = value
    return tunables


def _label(text: str) -> str:
    if not _LABEL.fullmatch(text) or is_date(text) or text == "latest" or text.endswith(".json"):
        raise ConfigError(
            f"label {text[:80]!r} would not be found again",
            "write up to 64 of A-Z a-z 0-9 . _ + -, as in kernel-6.18; no date, no file name, not latest",
        )
    return text


def _prefix(text: str) -> str:
    if not _PREFIX.fullmatch(text):
        raise ConfigError(f"{text[:80]!r} is not a prefix for namespaces", "write up to 40 of a-z 0-9 -, as in tbx2")
    return text


def _host(text: str) -> str:
    if not re.fullmatch(HOST_NAME, text):
        raise ConfigError(f"{text[:80]!r} is not a host name or address", "write 192.0.2.10 or trex1.lab")
    return text


RATE = Written("RATE", parse_rate, "{:f}pps")
RATES = Written("RATE,...", listed("rate", parse_rate), each=RATE)
WARMUP = Written("RATE[:TIME]", _warmup, "{:f}pps", parts=("warmup", "warmup_s"))
DURATION = Written("TIME", parse_duration, "{:f}")
SHARE = Written("SHARE", parse_share)
GOALS = Written("SHARE,...", listed("goal", parse_share), each=SHARE)
SPEED = Written("SPEED", parse_speed)
SIZE = Written("SIZE", parse_size)
SIZES = Written("SIZE,...", listed("size", parse_size), each=SIZE)
DATE = Written("DATE", parse_date)
PORTS = Written("0,1", _ports)
LABEL = Written("LABEL", _label)
PREFIX = Written("PREFIX", _prefix)
HOST = Written("HOST", _host)
TUNABLES = Written("NAME=VALUE,...", _tunables)
WAN = Written("DELAY,RATE,...", parse_wan)
TUNNEL = Written("KIND[,BETWEEN][,mtu=N][,cipher=C]", lambda text: str(parse_tunnel(text)))

Amount = str | float
"""Rate, time or share: text as on the command line, or a number."""
AnyRate = Annotated[Amount | None, RATE]
Time = Annotated[Amount | None, DURATION]
Share = Annotated[Amount | None, SHARE]
Warmup = Annotated[Amount | None, WARMUP]
Sizes = Annotated[Sequence[str | int], SIZES, Form(repeated=True)]
Line = Annotated[str | Wan | None, WAN]
Name = Annotated[str | None, Form("NAME")]
PYTHON_ONLY, USUAL = Form(python_only=True), Form(usual=True)


@dataclass(frozen=True, kw_only=True)
class CommonOptions:
    """Options of every measurement.

    sim: Simulate the sender and the DUT (by the twin in its config). Results are marked.
    configs_dir: Directory of the DUT configs. Default: $TREXBENCH_DUT_CONFIGS, else ./dut_configs and those shipped.
    prefix: Prefix of the lab's namespaces, to run labs side by side: tbx2. Default: the DUT config's.
    speedup: With --sim: simulated seconds per real second. Default: {speedup:g}.
    seed: With --sim: seed of the noise. Default: the twin's; in suites 1.
    label: Word stored with {kept}, to search and compare by, as kernel-6.18.
    """

    heading: ClassVar[Heading] = Heading.THROUGH

    sim: Annotated[bool, USUAL] = False
    configs_dir: Path | None = None
    prefix: Annotated[str | None, PREFIX] = None
    speedup: Annotated[float | None, Limits(1, 10000, whole=False)] = None
    seed: Annotated[int | None, Limits(0)] = None
    label: Annotated[str | None, LABEL, Heading.OUTPUT] = None

    @property
    def pace(self) -> float:
        """Simulated seconds per real second; 1 for what is real."""
        return (self.speedup or SPEEDUP) if self.sim else 1.0

    def require_simulated(self, *others: tuple[str, object]) -> None:
        """Raise ConfigError for options that need --sim. others: options that exclude it, and their values."""
        if self.speedup is not None and not 0 < self.speedup < math.inf:
            raise ConfigError(f"--speedup of {self.speedup:g}", "name a number above 0")
        for name, given in others:
            if self.sim and given:
                raise ConfigError(f"--sim and {name} exclude each other", "leave one of them out")
        for name, number in (("--speedup", self.speedup), ("--seed", self.seed)):
            if not self.sim and number is not None:
                raise ConfigError(f"{name} means nothing without --sim", "add --sim, or leave it out")
