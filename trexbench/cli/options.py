"""Options that several verbs share, their value types, and the objects that verbs get from them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args

import click
from click.shell_completion import CompletionItem

from ..config import option
from ..config.catalogue import DUTS, SUITES, Catalogue
from ..core.errors import ConfigError
from ..core.load.profile import LISTED_MODES
from ..session.options import Case, Setup, Target
from .output import OutputForm, choose, form_options, tell_more
from .verbs import Heading, Option, rare

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class Parsed(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.4 only
    """Type of an option, made from its parser; the parser's ConfigError becomes click's error."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    @classmethod
    def of(cls, kind: option.Written) -> Parsed:
        return cls(kind.shape, kind.parse)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except ConfigError as error:
            self.fail(str(error), param, ctx)


DURATION, RATE, SPEED, DATE, PORTS, LABEL = map(
    Parsed.of, (option.DURATION, option.RATE, option.SPEED, option.DATE, option.PORTS, option.LABEL)
)


def complete_modes(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    names = {name: mode.summary for mode in LISTED_MODES for name in (mode.name, *mode.aliases)}
    return [CompletionItem(name, help=text) for name, text in names.items() if name.startswith(incomplete)]


def complete_traffic(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete names of modes; files where no name begins like this."""
    return complete_modes(ctx, param, incomplete) or [CompletionItem(incomplete, type="file")]


def complete_suites(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete names of suites; files where no name begins like this."""
    return _complete_names(SUITES, incomplete) or [CompletionItem(incomplete, type="file")]


def complete_duts(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return _complete_names(DUTS, incomplete)


def _complete_names(catalogue: Catalogue, incomplete: str) -> list[CompletionItem]:
    try:
        return [CompletionItem(name) for name in sorted(catalogue.files()) if name.startswith(incomplete)]
    except (ConfigError, OSError):
        return []


def gathered(name: str, make: Callable[..., Any], *options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Pass these options to a verb as one argument of this name, which ``make`` builds from their values."""

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
    """Decorate a verb with an option that takes a path."""
    return click.option(name, type=click.Path(path_type=Path, dir_okay=dir_okay), help=help, **more)


def number_option(name: str, low: int, high: int, default: int, help: str) -> Callable[[F], F]:
    """Decorate a verb with an option that takes a whole number of this range."""
    kind = click.IntRange(low, high)
    return click.option(name, metavar="N", type=kind, default=default, show_default=True, help=help)


class _Results(click.Path):
    """Type of a directory, or with ``anywhere`` also an address, which becomes the directory that mirrors it."""

    def __init__(self, anywhere: bool) -> None:
        super().__init__(path_type=Path)
        self.anywhere = anywhere

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str) or "://" not in value:
            return super().convert(value, param, ctx)
        from ..results.remote import mirror_of

        if not self.anywhere:
            self.fail("only whole nights can be stored at an address: name a directory", param, ctx)
        return mirror_of(value)


def results_option(help: str = "Directory of the stored runs.", anywhere: bool = True) -> Callable[[F], F]:
    """Decorate a verb with the option of the stored runs. anywhere: also allow an address of fsspec."""
    return click.option(
        "--results",
        type=_Results(anywhere),
        help=help,
        default=Path("results"),
        show_default=True,
        cls=Option,
        usual=False,
        heading=Heading.OUTPUT,
    )


def click_options(cls: Any, **words: object) -> dict[str, Callable[[Any], Any]]:
    """Return click's options for the fields of a dataclass. words: values of placeholders in the help texts."""
    return {
        name: _click_option(name, field, field.help.format(**words))
        for name, field in option.declared(cls).items()
        if not field.form.python_only
    }


def _click_option(name: str, field: option.Field, help: str) -> Any:
    form = field.form
    more: dict[str, Any] = {"help": help, "envvar": form.envvar, "required": field.default is MISSING}
    more |= {"cls": Option, "heading": field.heading, "usual": form.usual}
    if bool in (field.type, *get_args(field.type)):
        more["is_flag"] = True
    else:
        number = "N" if isinstance(field.kind, option.Limits) or field.type is int else None
        more |= {"type": _click_type(field), "metavar": form.metavar or number, "multiple": form.repeated}
    if form.bare is not None:
        more |= {"is_flag": False, "flag_value": form.bare}
    if form.shown:
        more |= {"default": field.default, "show_default": True}
    if field.default is True:
        name = f"no_{name}"
    names = (name, *([form.letter] if form.letter else ()), f"--{name.replace('_', '-')}")
    return click.option(*names, shell_complete={"dut": complete_duts, "mode": complete_modes}.get(name), **more)


def _click_type(field: option.Field) -> Any:
    kind, types = field.kind, get_args(field.type) or (field.type,)
    if isinstance(kind, option.Written):
        return Parsed.of(kind.each if field.form.repeated and kind.each is not None else kind)
    if isinstance(kind, option.Limits):
        return (click.IntRange if kind.whole else click.FloatRange)(kind.low, kind.high)  # type: ignore[arg-type]  # whole ones
    if kind is not None:
        return click.Choice(kind)
    return click.Path(path_type=Path) if Path in types else int if int in types else str


def given(make: Callable[..., T], values: Mapping[str, Any]) -> T:
    """Make a dataclass from the options that were given; its defaults stand for the others."""
    there = {name: value for name, value in values.items() if value is not None and value is not False and value != ()}
    return make(**{name.removeprefix("no_"): not name.startswith("no_") and value for name, value in there.items()})


def asked(name: str, cls: Callable[..., Any], *more: Callable[[Any], Any], **words: object) -> Callable[[F], F]:
    """Pass a dataclass of these options to a verb as an argument of this name. words: as in click_options."""
    return gathered(name, lambda **values: given(cls, values), *more, *click_options(cls, **words).values())


_TARGET = click_options(Target, server="")
CONFIGS, RX_QUEUES, PREFIX, TREX_DIR = (_TARGET[name] for name in ("configs_dir", "rx_queues", "prefix", "trex_dir"))
TUNABLES_OPTION = click_options(Case)["tunables"]


def formats(*names: str) -> Callable[[F], F]:
    """Pass a verb the chosen OutputForm as ``form``; the first name is the default."""
    return gathered("form", lambda **values: choose(names, values, "html" not in names), *form_options(names))


def _be_verbose(ctx: click.Context, _param: click.Parameter, is_given: bool) -> None:
    if is_given:
        ctx.call_on_close(tell_more())


VERBOSE = rare(
    "-v",
    "--verbose",
    heading=Heading.OUTPUT,
    is_flag=True,
    expose_value=False,
    callback=_be_verbose,
    help="Log every call of the TRex server and every command on the DUT to standard error.",
)
QUIET = rare("-q", "--quiet", heading=Heading.OUTPUT, is_flag=True, help="Show no progress.")

CASE = asked("case", Case)
SERVER = ". Default: the DUT config's, or "
SETUP = asked("setup", Setup, speedup=option.SPEEDUP, kept="the result", server=f"{SERVER}its lab's")


@dataclass(frozen=True)
class Shown:
    """Choices of what a measuring verb shows, and where it stores its results."""

    results: Path
    picture: bool
    quiet: bool
    form: OutputForm


ONLY = click.option(
    "--only", multiple=True, metavar="PATTERN", help="Only matching cells, as in '*vpp* bidir*'; may be repeated."
)
RUN_FORMS = ("text", "brief", "json", "csv", "md")
SHOWN = gathered(
    "shown",
    lambda results, picture, quiet, **values: Shown(results, picture, quiet, choose(RUN_FORMS, values)),
    results_option("Directory of the results: <date>/<dut>/<time>-<mode>-<direction>.json and pictures.", False),
    rare("--picture/--no-picture", heading=Heading.OUTPUT, default=True, help="Draw a PNG (default), or not."),
    *form_options(RUN_FORMS),
    QUIET,
)
