"""``trexbench``: its verbs, imported when used, and the one place where errors become exit codes."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

import click

from ..core.errors import BenchError, StoreError
from ..session.process import Ender, signals_as_exceptions
from ..signals import Interrupted
from .streams import safe_streams

VERBS = {
    "ramp": (".run", "Ramp traffic linearly to the target and see where the DUT saturates."),
    "search": (".run", "Find the highest rates within given losses in half a minute: NDR, PDR."),
    "saturate": (".run", "Fill the line at once and count what emerges."),
    "efficiency": (".run", "Measure what a packet costs the DUT at several rates: cycles, vectors, energy."),
    "suite": (".suite", "Many runs in a row, kept as a night: list, plan, run."),
    "nightly": (".suite", "A night of a suite: run, judge, report, prune, notify; for cron and systemd."),
    "tcp": (".tcp", "Send TCP through the DUT between two hosts: how fast, who was the limit, what it cost."),
    "bdp": (".tcp", "TCP over a long line: its bandwidth-delay product, the hosts' buffers, windows and rates."),
    "tcp-table": (".tcp", "A night of a TCP suite beside published figures of the same tests."),
    "profile": (".profile", "What a mode puts on the wire: list, show, pcap."),
    "dut": (".dut", "DUTs: list, show, plan, apply, verify, telemetry, revert."),
    "doctor": (".doctor", "Check all that a run needs: this machine, tester, lab, DUT."),
    "calibrate": (".calibrate", "Measure what the tester carries without a DUT, its ports back to back."),
    "lab": (".lab", "The router in network namespaces: up, down, status."),
    "show": (".results", "Show a stored run: summary and picture."),
    "compare": (".compare", "Compare two stored runs, nights, suites or DUTs; unlike ones are refused."),
    "report": (".report", "One page of what was measured: table, ramps, trends, facts; also markdown, CSV."),
    "export": (".results", "Write a stored run in another tool's format."),
    "results": (".results", "The stored runs: list, show, query, prune, import."),
    "regress": (".regress", "Find regressions: what got slower, since when and why; known changes."),
    "serve": (".serve", "Run the embedded STL server on Linux interfaces."),
}
"""Verb -> its module in this package, and its line of help, so that ``--help`` need not import the module."""

EPILOG = """\b
Examples:
  trexbench ramp --dut lab-linux --mode var2-64b --bidir
  trexbench ramp --dut netgate-vpp --mode imix --no-apply --server trex1.lab
  trexbench profile show var2-imix
  trexbench lab up && trexbench lab status && trexbench lab down

\b
Shell completion (bash; zsh and fish likewise):
  eval "$(_TREXBENCH_COMPLETE=bash_source trexbench)"

\b
Exit codes: 0 measured, 2 wrong usage or configuration, 3 regression, 4 no answer, or too few nights,
5 traffic generator, 6 DUT, 7 lab, 8 tester busy, 9 result files, 130/143 interrupted, 1 anything
else. A run that ended early is saved as incomplete and exits with the code of what ended it.
"""


class LazyGroup(click.Group):
    """A group whose verbs' modules are imported when a verb is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        module = importlib.import_module(VERBS[cmd_name][0], __package__)
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in VERBS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            raise click.UsageError(f"no command {args[0]!r}: there are {', '.join(VERBS)}", ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="trexbench", message="%(package)s %(version)s", help="Show the version.")
def cli() -> None:
    """Measure how fast a router really is.

    Drives Cisco TRex in stateless mode against a device under test (DUT), ramps traffic linearly to line rate, and says
    in each direction where the DUT saturates, or what else was the limit.
    """


def main(argv: Sequence[str] | None = None) -> None:
    """Run a verb and exit; whatever a user can cause ends in one line and a documented exit code."""
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
        where = getattr(error, "ctx", None)
        if where is not None and error.message == where.get_help():  # a group without a verb
            click.echo(error.message, err=True)
            return 2
        hint = f" (see {where.command_path} --help)" if where is not None else ""
        return _say(error.format_message().replace("\n", " ") + hint, 2)
    except BenchError as error:
        return _say(str(error), error.exit_code)
    except OSError as error:
        if error.filename is None:
            raise
        return _say(f"{error.filename}: {error.strerror}", StoreError.exit_code)


def _say(text: str, code: int) -> int:
    click.echo(f"trexbench: {text}", err=True)
    return code
