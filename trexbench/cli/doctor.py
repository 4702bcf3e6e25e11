"""``trexbench doctor``: checks of everything that a run needs."""

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
from ..report.sheet import make_sheet
from ..session.options import Target
from .options import SERVER, click_options, complete_duts, formats, gathered, given, results_option
from .output import OutputForm
from .verbs import verb

_STYLES = {State.GOOD: "green", State.DOUBTFUL: "yellow", State.BAD: "red"}
_INDENT = 29
"""Columns left of a check's text."""
_EXAMPLES = """\b
Examples:
  trexbench doctor
  trexbench doctor --server trex1.lab
  trexbench doctor --dut netgate-vpp --rx-queues 2
  trexbench doctor --dut lab-linux --format json
"""
_OPTIONS = click_options(Target, server=f"{SERVER}this machine")
_TARGET = gathered(
    "target",
    lambda **values: given(Target, values),
    click.option(
        "--dut", "name", metavar="NAME", default="", shell_complete=complete_duts, help="Check this DUT, too."
    ),
    *(made for name, made in _OPTIONS.items() if name != "variant"),
)


@verb(epilog=_EXAMPLES)
@_TARGET
@results_option("Directory in which results will be stored.", anywhere=False)
@formats("text", "json", "csv", "md")
def doctor(form: OutputForm, results: Path, target: Target) -> int:
    """Check everything a run needs, item by item: good, doubtful or bad, with the remedy.

    Checks this machine (Python, STL client, load, clocks, cores, memory), the results' disk, the TRex server and its
    ports, the DUT and its lab. Nothing is changed, no port is taken, and no frame is sent. Doubtful: runs work, but
    their figures may be less accurate. Exit code: that of the first bad check, as a run would end there (5 TRex, 6 DUT,
    7 lab, 9 results, 1 this machine), else 0.
    """
    from ..doctor.examine import examine
    from ..session.process import signals_as_exceptions

    of_dut = {"--prefix": target.prefix, "--rx-queues": target.rx_queues}
    if not target.name and (excess := [name for name, value in of_dut.items() if value is not None]):
        raise ConfigError(f"{', '.join(excess)} means nothing without --dut", "name the DUT")

    checks: list[Check] = []
    with signals_as_exceptions():
        for check in examine(target, results):
            checks.append(check)
            if form.is_shown:
                # click looks only for a terminal, not for the wishes of its user or its type.
                is_plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
                click.echo("\n".join(_last_lines(checks, sys.stdout)), color=False if is_plain else None)
                sys.stdout.flush()
    counts = ", ".join(f"{sum(check.state is state for check in checks)} {state.value}" for state in State)
    if form.is_shown:
        click.echo(f"\n{counts}")
        return exit_code(checks)
    rows = ((check.area.value, check.state.value, check.what, check.found, check.remedy or "") for check in checks)
    sheet = make_sheet(":area; :state; :what; :found; :remedy", rows, "doctor", "Checks")

    def text(out: TextIO) -> str:
        lines = [line for end in range(1, len(checks) + 1) for line in _last_lines(checks[:end], out)]
        return "\n".join([*lines, "", counts])

    form.write(text, lambda: [check.to_document() for check in checks], lambda: [sheet])
    return exit_code(checks)


def _last_lines(checks: Sequence[Check], out: TextIO) -> Iterator[str]:
    """Yield the lines of the last check, below its area if it is the first of that."""
    check, room = checks[-1], room_of(out)
    if check.area not in [earlier.area for earlier in checks[:-1]]:
        yield check.area.value
    state = click.style(f"{check.state.value:<9}", fg=_STYLES[check.state])
    text, *more = wrapped([check.found], room and max(40, room - _INDENT + 2))
    yield f"  {state} {check.what:<16} {text}"
    for line in [*map(str.strip, more), *([f"-> {check.remedy}"] if check.remedy else [])]:
        yield from wrapped([f"{'':<{_INDENT}}{line}"], room)
