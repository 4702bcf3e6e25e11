"""``trexbench doctor``: all that a run needs, checked one by one."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ..core.checks import Check, State, exit_code
from ..session.options import Target
from .options import JSON, SERVER, click_options, complete_duts, gathered, given, results_option
from .output import print_json
from .verbs import verb

_STYLES = {State.GOOD: "green", State.DOUBTFUL: "yellow", State.BAD: "red"}
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
@results_option("Where results will go.")
@JSON
def doctor(as_json: bool, results: Path, target: Target) -> int:
    """Check all that a run needs, one by one: good, doubtful or bad, with the remedy.

    Looks at this machine (Python, STL client, load, clocks, cores, memory), the results' disk, the TRex server and its
    ports, the DUT and its lab. Nothing is changed, no port is taken and no frame sent. Doubtful: runs work, but their
    figures may be less true. Exit code: of the first bad check, as a run would end there (5 TRex, 6 DUT, 7 lab, 9
    results, 1 this machine); 0 without one.
    """
    from ..doctor.examine import examine
    from ..session.process import signals_as_exceptions

    found: list[Check] = []
    with signals_as_exceptions():
        for check in examine(target, results):
            if not as_json:
                _print(check, begins=not found or found[-1].area is not check.area)
            found.append(check)
    if as_json:
        print_json([check.to_document() for check in found])
    else:
        counts = ", ".join(f"{sum(one.state is state for one in found)} {state.value}" for state in State)
        click.echo(f"\n{counts}")
    return exit_code(found)


def _print(check: Check, begins: bool) -> None:
    if begins:
        click.echo(f"{check.area.value}")
    state = click.style(f"{check.state.value:<9}", fg=_STYLES[check.state])
    click.echo(f"  {state} {check.what:<16} {check.found}")
    if check.remedy:
        click.echo(f"{'':<29}-> {check.remedy}")
    sys.stdout.flush()
