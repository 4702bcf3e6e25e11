"""``trexbench results compare``: two runs, direction by direction; or two sets of runs, cell by cell."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from .options import JSON, results_option
from .output import note, print_json
from .verbs import verb

_EXAMPLES = """\b
Examples:
  trexbench results compare before.json after.json
  trexbench results compare 2026-11-20 2026-11-21
  trexbench results compare netgate-linux netgate-vpp --json
  trexbench results compare 'results/2026-11-2*/*/*.json' latest
  trexbench results compare nightly@2026-11-20 nightly@2026-11-21
  trexbench results compare kernel-6.12 kernel-6.18
"""


@verb(epilog=_EXAMPLES)
@click.argument("first")
@click.argument("second")
@results_option()
@click.option("--anyway", is_flag=True, help="Compare unlike runs as well; the result says what is unlike.")
@JSON
def compare(first: str, second: str, results: Path, anyway: bool, as_json: bool) -> None:
    """Compare two runs, direction by direction, or two sets of runs, cell by cell: difference, noise, verdict.

    Each is a file, a directory or a glob of files, the date of a night, a label, the name of a suite or of a DUT (with
    @DATE: of that night), or `latest`. Unlike runs are refused: simulated and measured ones, different traffic or line
    rate, a DUT configured differently. On a terminal the table is as wide as that; in a pipe as it has to be, or as the
    variable COLUMNS says.
    """
    from ..report import compare as forms
    from ..report.fit import room_of
    from ..review.compare import RunComparison, compare

    room = room_of(sys.stdout)
    found = compare(first, second, results, anyway, note)
    if isinstance(found, RunComparison):
        runs = found.first, found.second, found.unlike
        print_json(forms.comparison_values(*runs)) if as_json else click.echo(forms.format_comparison(*runs, room))
    elif as_json:
        print_json(forms.set_comparison_values(first, second, found))
    else:
        click.echo(forms.format_set_comparison(first, second, found, room))
