"""Verbs and their help: options in groups; of a verb with many options the usual ones, all of them with --help-all."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from ..config.heading import Heading as Heading
from ..core.errors import ConfigError
from ..core.names import nearest

F = TypeVar("F", bound=Callable[..., Any])
MOST = 12
"""Most options, --help included, of which --help shows all; of more it shows the usual ones."""
_ALL = "trexbench.help_all"
_MORE_EXAMPLES = re.compile(r"(Examples:\n(?:  trexbench .*\n){2})(?:  trexbench .*\n)+")


class Option(click.Option):
    """An option with its place in the help. usual: --help shows it, however many options its verb has."""

    def __init__(self, *args: Any, heading: Heading = Heading.OTHER, usual: bool = True, **more: Any) -> None:
        super().__init__(*args, **more)
        self.heading, self.usual = heading, usual

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        is_file = self.metavar == "FILE"
        return complete_files(ctx, self, incomplete) if is_file else super().shell_complete(ctx, incomplete)


def complete_files(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="file")]


def _show_all(ctx: click.Context, _param: click.Parameter, is_given: bool) -> None:
    if is_given and not ctx.resilient_parsing:
        ctx.meta[_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


HELP_ALL = Option(
    ["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=_show_all, help="Show every option."
)


class Verb(click.Command):
    """A verb whose --help fits on a screen."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [*super().get_params(ctx), HELP_ALL]

    def listed(self, ctx: click.Context) -> tuple[list[click.Option], int]:
        """Return the options that the help lists, and the number of options that it leaves out."""
        own = [param for param in self.params if isinstance(param, click.Option) and not param.hidden]
        shows_help = self.get_help_option(ctx)
        assert shows_help is not None
        if len(own) < MOST:
            return [*own, shows_help], 0
        if _ALL in ctx.meta:
            return [*own, shows_help, HELP_ALL], 0
        usual = [option for option in own if getattr(option, "usual", True)]
        return usual, len(own) - len(usual)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        options, left_out = self.listed(ctx)
        groups: dict[str, list[tuple[str, str]]] = {heading.value: [] for heading in Heading}
        for option in options:
            heading = getattr(option, "heading", Heading.OTHER) if len(self.params) >= MOST else Heading.OTHER
            groups[heading.value].append(option.get_help_record(ctx) or ("", ""))
        width = min(26, max(len(names) for records in groups.values() for names, _ in records))
        for name, records in groups.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl([(names.ljust(width), text) for names, text in records])
        if left_out:
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(f"{left_out} more options: {ctx.command_path} --help-all")

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        text = self.epilog or ""
        if self.listed(ctx)[1]:
            text = _MORE_EXAMPLES.sub(r"\1", text)
        click.Command("", epilog=text).format_epilog(ctx, formatter)


class Verbs(Verb, click.Group):
    """A group of verbs that suggests the nearest one for an unknown verb."""

    command_class = Verb
    former: Mapping[str, str] = {}
    """Former name of a verb -> its present name."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):  # whole sentences, which click would cut
            formatter.write_dl([(name, command.get_short_help_str(200)) for name, command in commands if command])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        names = self.list_commands(ctx)
        if not ctx.resilient_parsing and args[0] not in names and not args[0].startswith("-"):
            hint = nearest(args[0], names, self.former) or f"there are {', '.join(names)}"
            raise click.UsageError(f"no command {args[0]!r}: {hint.strip()}", ctx)
        return super().resolve_command(ctx, args)


def verb(epilog: str | None = None) -> Callable[[Callable[..., Any]], Verb]:
    return click.command(cls=Verb, epilog=epilog)


def verbs(epilog: str | None = None) -> Callable[[Callable[..., Any]], Verbs]:
    return click.group(cls=Verbs, epilog=epilog)


def removed(name: str, reason: str, remedy: str) -> Callable[[F], F]:
    """Decorate a verb with an option of former versions, with or without a value, that is refused with a remedy."""

    def refuse(ctx: click.Context, _param: click.Parameter, given: str | None) -> None:
        if given is not None and not ctx.resilient_parsing:
            raise ConfigError(f"{name}: {reason}", remedy)

    return click.option(name, hidden=True, expose_value=False, is_flag=False, flag_value="", callback=refuse)


def rare(*names: str, heading: Heading = Heading.OTHER, **more: Any) -> Callable[[F], F]:
    """Decorate a verb with an option that --help leaves out where the verb has many."""
    return click.option(*names, cls=Option, heading=heading, usual=False, **more)
