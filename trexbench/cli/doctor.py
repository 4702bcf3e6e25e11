"""``trexbench doctor``: all that a run needs, checked one by one."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

import click

from ..core.checks import Check, State, exit_code
from ..core.errors import ConfigError
from ..report.room import room_of, wrapped
from ..report.sheet import Sheet, make_sheet
from ..session.options import Target
from .options import SERVER, click_options, complete_duts, formats, gathered, given, results_option
from .output import OutputForm
from .verbs import verb

_STYLES = {State.GOOD: "green", State.DOUBTFUL: "yellow", State.BAD: "red"}
_INDENT = 29
"""Columns left of what a check says."""
_EXAMPLES = """\b
Examples:
  trexbench doctor
  trexbench doctor --server trex1.lab
  trexbench doctor --dut netgate-vpp --rx-queues 2
  trexbench doctor --dut lab-linux --json
"""
_OPTIONS = click_options(Target, server=f"{SERVER}this machine")
_TARGET = gathered(
    "target",
    lambda **values: given(Target, values),
    click.option("--dut", "name", metavar="NAME", default="", shell_complete=complete_duts, help="Check this DUT too."),
    *(made for name, made in _OPTIONS.items() if name != "variant"),
)


@verb(epilog=_EXAMPLES)
@_TARGET
@results_option("Where results will go.", anywhere=False)
@formats("text", "json", "csv", "md")
def doctor(form: OutputForm, results: Path, target: Target) -> int:
    """Check all that a run needs, one by one: good, doubtful or bad, with the remedy.

    Looks at this machine (Python, STL client, load, clocks, cores, memory), the results' disk, the TRex server and its
    ports, the DUT and its lab. Nothing is changed, no port is taken and no frame sent. Doubtful: runs work, but their
    figures may be less true. Exit code: of the first bad check, as a run would end there (5 TRex, 6 DUT, 7 lab, 9
    results, 1 this machine); 0 without one.
    """
    from ..doctor.examine import examine
    from ..session.process import signals_as_exceptions

    of_dut = {"--prefix": target.prefix, "--rx-queues": target.rx_queues}
    if not target.name and (excess := [name for name, value in of_dut.items() if value is not None]):
        raise ConfigError(f"{', '.join(excess)} means nothing without --dut", "name the DUT that it is about")

    found: list[Check] = []
    with signals_as_exceptions():
        for check in examine(target, results):
            found.append(check)
            if form.is_shown:
                # click looks only for a terminal, not for what its user or its kind wants.
                is_plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
                click.echo("\n".join(_lines(found, sys.stdout)), color=False if is_plain else None)
                sys.stdout.flush()
    if form.is_shown:
        click.echo(f"\n{_counts(found)}")
    else:
        form.write(
            lambda out: "\n".join(
                [*(line for at in range(len(found)) for line in _lines(found[: at + 1], out)), "", _counts(found)]
            ),
            lambda: [check.to_document() for check in found],
            lambda: [_sheet(found)],
        )
    return exit_code(found)


def _counts(found: Sequence[Check]) -> str:
    return ", ".join(f"{sum(one.state is state for one in found)} {state.value}" for state in State)


def _sheet(found: Sequence[Check]) -> Sheet:
    rows = ((one.area.value, one.state.value, one.what, one.found, one.remedy or "") for one in found)
    return make_sheet(":area; :state; :what; :found; :remedy", rows, "doctor", "Checks")


def _lines(found: Sequence[Check], out: TextIO) -> Iterator[str]:
    """Yield the lines of the last check, below its area where it is the first of it."""
    check, room = found[-1], room_of(out)
    if check.area not in [one.area for one in found[:-1]]:
        yield check.area.value
    state = click.style(f"{check.state.value:<9}", fg=_STYLES[check.state])
    text, *more = wrapped([check.found], room and max(40, room - _INDENT + 2))
    yield f"  {state} {check.what:<16} {text}"
    for line in [*(one.strip() for one in more), *([f"-> {check.remedy}"] if check.remedy else [])]:
        yield from wrapped([f"{'':<{_INDENT}}{line}"], room)
