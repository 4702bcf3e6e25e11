"""Options that several verbs share: their value types, and the objects that verbs get from them."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from ..config.lookup import DUTS, SUITES, Catalogue
from ..config.model import MOST_QUEUES, PlanDefaults
from ..core.errors import ConfigError
from ..core.history.known import is_date, parse_date
from ..core.load.profile import LISTED_MODES
from ..core.tcp.wan import parse_wan
from ..core.units import Rate, parse_duration, parse_rate, parse_share, parse_speed
from ..session.request import SPEEDUP, Case, Setup
from .output import tell_more

F = TypeVar("F", bound=Callable[..., Any])
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")


class Parsed(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.4 only
    """An option's type, made of the function that parses it; its ConfigError becomes click's."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except ConfigError as error:
            self.fail(str(error), param, ctx)


class Finite(click.FloatRange):
    """A range of numbers without NaN, which click takes to be in every range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is not a number", param, ctx)
        return number


def _warmup(text: str) -> tuple[Rate, float | None]:
    rate, colon, duration = text.partition(":")
    return parse_rate(rate), parse_duration(duration) if colon else None


def _ports(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise ConfigError(f"ports {text!r} not understood", "write them as 0,1 or 0,1,2,3")
    return tuple(int(part) for part in parts)


def _tunables(text: str) -> dict[str, str]:
    """``size=64,vm=var2``"""
    found = {}
    for item in text.split(","):
        name, equals, value = item.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise ConfigError(f"tunable {item!r} not understood", "write them as size=64,vm=var2")
        found[name.strip()] = value.strip()
    return found


def _label(text: str) -> str:
    if not _LABEL.fullmatch(text) or is_date(text) or text == "latest" or text.endswith(".json"):
        raise ConfigError(
            f"label {text[:80]!r} would not be found again",
            "take up to 64 of A-Z a-z 0-9 . _ + -, as in kernel-6.18; no date, no file name, not latest",
        )
    return text


RATE = Parsed("RATE", parse_rate)
WARMUP = Parsed("RATE[:TIME]", _warmup)
DURATION = Parsed("TIME", parse_duration)
SHARE = Parsed("SHARE", parse_share)
SPEED = Parsed("SPEED", parse_speed)
DATE = Parsed("DATE", parse_date)
PORTS = Parsed("0,1", _ports)
LABEL = Parsed("LABEL", _label)
TUNABLES = Parsed("NAME=VALUE,...", _tunables)


def complete_modes(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    names = {name: mode.summary for mode in LISTED_MODES for name in (mode.name, *mode.aliases)}
    return [CompletionItem(name, help=text) for name, text in names.items() if name.startswith(incomplete)]


def complete_traffic(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of modes; files where no name begins like this."""
    return complete_modes(ctx, param, incomplete) or [CompletionItem(incomplete, type="file")]


def complete_suites(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of suites; files where no name begins like this."""
    return _complete_names(SUITES, incomplete) or [CompletionItem(incomplete, type="file")]


def complete_duts(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return _complete_names(DUTS, incomplete)


def _complete_names(catalogue: Catalogue, incomplete: str) -> list[CompletionItem]:
    try:
        return [CompletionItem(name) for name in sorted(catalogue.files()) if name.startswith(incomplete)]
    except (ConfigError, OSError):
        return []


def gathered(name: str, make: Callable[..., Any], *options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Hand these options to a verb as one argument of this name, which ``make`` builds from their values."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def called(**values: Any) -> Any:
            own = {param.name: values.pop(param.name) for param in params}
            return function(**{name: make(**own)}, **values)

        decorated: Any = functools.reduce(lambda inner, option: option(inner), reversed(options), called)
        params = decorated.__click_params__[-len(options) :]  # click's decorators add theirs at the end
        return decorated  # type: ignore[no-any-return]  # a callback of click: it is called by name

    return decorate


def path_option(name: str, help: str, dir_okay: bool = True, **more: Any) -> Callable[[F], F]:
    """An option that takes a path."""
    return click.option(name, type=click.Path(path_type=Path, dir_okay=dir_okay), help=help, **more)


def results_option(help: str = "The directory of the stored runs.") -> Callable[[F], F]:
    return path_option("--results", help, default=Path("results"), show_default=True)


CONFIGS = path_option("--configs-dir", "The directory of the DUT configs.")
RX_QUEUES = click.option(
    "--rx-queues",
    type=click.IntRange(1, MOST_QUEUES),
    help="Receive queues per port: one of the counts in the DUT's config.",
)
VARIANT = click.option(
    "--variant", metavar="NAME", help="One of the variants in the DUT's config; none, the default: without any."
)
WAN = click.option(
    "--wan",
    type=Parsed("DELAY,RATE,...", parse_wan),
    help="A long line behind the DUT: 20ms,1gbit; of TCP with losses, too: loss=0.01%. Default: as the config says.",
)
TREX_DIR = path_option(
    "--trex-dir",
    "A TRex installation: its client is used, and in a lab its server.",
    envvar="TREXBENCH_TREX_DIR",
)
RPC_PORT = click.option("--rpc-port", type=click.IntRange(1, 65535), help="Its RPC port (4501).")
PUB_PORT = click.option("--pub-port", type=click.IntRange(1, 65535), help="Its event port (4500).")
TUNABLES_OPTION = click.option(
    "-t", "--tunables", type=TUNABLES, help="Tunables of the mode or profile: size=128,vm=random."
)
JSON = click.option("--json", "as_json", is_flag=True, help="JSON on standard output.")
BRIEF = click.option(
    "--brief", is_flag=True, help="Ten lines at most: rates, limits, cost, warnings, and where the result is."
)


def require_one_form(as_json: bool, brief: bool) -> None:
    if as_json and brief:
        raise ConfigError("--json and --brief exclude each other", "leave one of them out")


def _verbose(ctx: click.Context, _param: click.Parameter, wished: bool) -> None:
    if wished:
        ctx.call_on_close(tell_more())


VERBOSE = click.option(
    "-v",
    "--verbose",
    is_flag=True,
    expose_value=False,
    callback=_verbose,
    help="Say on standard error what is called meanwhile: the server's commands, and the DUT's.",
)
QUIET = click.option("-q", "--quiet", is_flag=True, help="No progress.")

CASE = gathered(
    "case",
    Case,
    click.option(
        "--dut",
        required=True,
        metavar="NAME",
        shell_complete=complete_duts,
        help="The device under test: a name in dut_configs/, or a file.",
    ),
    click.option(
        "--mode",
        metavar="MODE",
        shell_complete=complete_modes,
        help="What to send: var2-1514b, var2-imix, var2-64b, 1flow-64b, var2-<n>b with frames of n bytes, or an alias.",
    ),
    click.option("--profile", metavar="FILE", help="An STL profile of your own instead of a mode."),
    TUNABLES_OPTION,
    click.option(
        "--bidir",
        is_flag=True,
        help="Bidirectional: both ports send at once; default: unidirectional, first port to second.",
    ),
    click.option("--ports", type=PORTS, help="The tester's ports, in pairs; default: as in the DUT's config."),
    RX_QUEUES,
    VARIANT,
    WAN,
    click.option(
        "--telemetry",
        type=click.Choice(["hold", "ramp", "off"]),
        help="When the DUT's own counters are read: before, after and in holds (default), also during the ramp, never.",
    ),
)


def to_setup(no_apply: bool, **values: Any) -> Setup:
    return Setup(apply=not no_apply, **values)


def setup_options(speedup: float, label: str) -> tuple[Callable[[Any], Any], ...]:
    """Options for how runs are carried out. speedup: this verb's default; label: what the label is stored with."""
    return (
        CONFIGS,
        click.option("--no-apply", is_flag=True, help="Do not configure DUTs; results are marked as not attested."),
        click.option(
            "--sim",
            is_flag=True,
            help="Simulate tester and DUT (its config's twin): no root, no network, no packet. Marked as simulated.",
        ),
        click.option(
            "--speedup", type=Finite(1, 10000), help=f"With --sim: simulated seconds per real second ({speedup:g})."
        ),
        click.option("--seed", type=click.IntRange(0), help="With --sim: seed of the noise; default: the twin's."),
        click.option(
            "--server", metavar="HOST", help="The TRex server; default: as in the DUT's config, or its lab's."
        ),
        RPC_PORT,
        PUB_PORT,
        TREX_DIR,
        click.option("--force", is_flag=True, help="Take the ports even if somebody else owns them."),
        click.option("--label", type=LABEL, help=f"A word stored with {label}, to search and compare by: kernel-6.18."),
    )


SETUP = gathered("setup", to_setup, *setup_options(SPEEDUP, "the result"))


def _wished(warmup: tuple[Rate, float | None] | None, hold: float | None, sample: float | None, **others: Any) -> Any:
    rate, duration = warmup or (None, None)
    return PlanDefaults(warmup=rate, warmup_s=duration, hold_s=hold, sample_s=sample, **others)


WISHED = gathered(
    "wished",
    _wished,
    click.option("--hold", type=DURATION, help="Stay at the target for this long (30)."),
    click.option("--warmup", type=WARMUP, help="Low rate first, to prove that frames return: 1kpps:10s."),
    click.option("--loss", type=SHARE, help="More loss than this is bad, per direction (0.1%)."),
    click.option(
        "--windows", type=click.IntRange(1, 100), metavar="N", help="N bad windows of 1 s in a row mean saturation (3)."
    ),
    click.option("--sample", type=DURATION, help="Time between samples, 50ms to 10s (1s)."),
)


@dataclass(frozen=True)
class Shown:
    """Choice of what a measuring verb shows, and where it keeps its results."""

    results: Path
    picture: bool
    as_json: bool
    brief: bool
    quiet: bool

    def __post_init__(self) -> None:
        require_one_form(self.as_json, self.brief)


SHOWN = gathered(
    "shown",
    Shown,
    results_option("Where results go: <date>/<dut>/<time>-<mode>-<direction>.json, a picture beside each."),
    click.option("--picture/--no-picture", default=True, help="Draw the PNG (default), or leave it out."),
    JSON,
    BRIEF,
    QUIET,
)
