"""``trexbench``: its verbs, imported when used, and the only place where errors become exit codes."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

import click

from ..core.errors import BenchError, StoreError
from ..session.process import Ender, signals_as_exceptions
from ..signals import Interrupted
from .output import note, warn
from .streams import safe_streams
from .verbs import Verbs

VERBS = {
    "Measure": {
        "ramp": (".run", "Ramp traffic linearly and see where the DUT saturates."),
        "search": (".run", "Find the highest rates within given losses: NDR, PDR."),
        "saturate": (".run", "Fill the line at once and measure what is received."),
        "efficiency": (".run", "Measure what a packet costs the DUT at several rates."),
        "tcp": (".tcp", "Send TCP through the DUT, also over a long line (--bdp)."),
    },
    "DUT and lab": {
        "dut": (".dut", "DUTs: list, new, check, show, plan, apply, verify, revert ..."),
        "lab": (".lab", "Labs and tester: up, down, status, image, profile, serve, calibrate."),
        "doctor": (".doctor", "Check everything a run needs: this machine, tester, lab, DUT."),
    },
    "Nights": {
        "suite": (".suite", "Suites of runs, kept as nights: list, plan, run, table."),
        "nightly": (".suite", "A night of a suite: run, judge, report, prune, notify."),
        "fleet": (".fleet", "Testers on several machines: plan, scheduler, worker, status."),
        "regress": (".regress", "Find what got slower, since when and why; acknowledge changes."),
    },
    "Results": {
        "report": (".report", "Write one page of all that was measured; also markdown, CSV."),
        "results": (".results", "Stored runs: show, list, query, compare, export, prune ..."),
    },
}
"""Heading -> verb -> its module in this package and its line of help, so that ``--help`` imports none of them."""

RENAMED = {
    "show": "results show",
    "compare": "results compare",
    "export": "results export",
    "bdp": "tcp --bdp",
    "tcp-table": "suite table",
    "profile": "lab profile",
    "serve": "lab serve",
    "calibrate": "lab calibrate",
}
"""Former name of a verb -> its present name."""
RENAMED_UNTIL = "2027-11-25"
"""Day until which the former names are promised to work."""

EPILOG = """\b
Examples:
  trexbench
  trexbench ramp --dut lab-linux --mode var2-64b --bidir
  trexbench ramp --dut netgate-vpp --mode imix --sim

\b
Shell completion (bash; zsh and fish likewise):
  eval "$(_TREXBENCH_COMPLETE=bash_source trexbench)"

\b
Exit codes: 0 measured, 2 wrong usage or configuration, 3 regression,
4 no answer, or too few nights, 5 traffic generator, 6 DUT, 7 lab,
8 tester busy, 9 result files, 10 fleet, 130/143 interrupted, 1 anything
else. A run that ended early is saved as incomplete, with the code of what
ended it.
"""


class LazyGroup(Verbs):
    """Top-level verbs, whose modules are imported when a verb is used."""

    former = RENAMED

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for verbs in VERBS.values() for name in verbs]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module = next((verbs[cmd_name][0] for verbs in VERBS.values() if cmd_name in verbs), None)
        if module is None:
            return None
        command: click.Command = getattr(importlib.import_module(module, __package__), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self.list_commands(ctx)))
        for heading, listed in VERBS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), line) for name, (_, line) in listed.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if (now := RENAMED.get(args[0])) is not None:
            if not ctx.resilient_parsing:
                note(f"{args[0]} is now: trexbench {now} (the old name works until {RENAMED_UNTIL})")
            args = [*now.split(), *args[1:]]
        return super().resolve_command(ctx, args)


@click.group(
    cls=LazyGroup, epilog=EPILOG, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(package_name="trexbench", message="%(package)s %(version)s", help="Show the version.")
@click.option("--json", "as_json", is_flag=True, help="Without a command: print the overview as JSON.")
@click.pass_context
def cli(ctx: click.Context, as_json: bool) -> None:
    """Measure how fast a router really is.

    Drives Cisco TRex in stateless mode against a device under test (DUT), ramps traffic linearly to line rate, and
    reports in each direction where the DUT saturates, or what else was the limit. Without a command it prints an
    overview of labs, servers, DUTs and the last results.
    """
    if ctx.invoked_subcommand is None:
        from .here import show_here

        show_here(as_json)
    elif as_json:
        raise click.UsageError(f"--json belongs after {ctx.invoked_subcommand}", ctx)


def main(argv: Sequence[str] | None = None) -> None:
    """Run a verb and exit; every error that a user can cause ends in one line and a documented exit code."""
    with safe_streams() as output:
        code = _run(argv)
        if output is not None:
            sys.stdout.flush()
            code = output.check(code)
    sys.exit(code)


def _run(argv: Sequence[str] | None) -> int:
    ender: Ender | None = None
    try:
        with signals_as_exceptions() as ender:
            return _carry_out(argv)
    except Interrupted as error:
        return _say(str(error), error.exit_code)
    except Exception:
        if ender is None or ender.interrupted is None:
            raise
        # Foreign code turns a signal into an error of its own: Ctrl-C during an import becomes an ImportError.
        return _say(str(ender.interrupted), ender.interrupted.exit_code)


def _carry_out(argv: Sequence[str] | None) -> int:
    try:
        outcome = cli.main(args=None if argv is None else list(argv), prog_name="trexbench", standalone_mode=False)
        return outcome if isinstance(outcome, int) else 0
    except click.exceptions.Abort:
        return _say("interrupted", 130)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        if context is not None and error.message == context.get_help():  # a group without a verb
            click.echo(error.message, err=True)
            return 2
        hint = f" (see {context.command_path} --help)" if context is not None else ""
        return _say(error.format_message().replace("\n", " ") + hint, 2)
    except BenchError as error:
        return _say(str(error), error.exit_code)
    except OSError as error:
        if error.filename is None:
            raise
        return _say(f"{error.filename}: {error.strerror}", StoreError.exit_code)


def _say(text: str, code: int) -> int:
    warn(text)
    return code
