"""``trexbench results compare``: two runs, direction by direction; or two sets of runs, cell by cell."""

from __future__ import annotations

from pathlib import Path

import click

from .forms import OutputForm
from .options import formats, results_option
from .output import note
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
@formats("text", "json", "csv", "md")
def compare(first: str, second: str, results: Path, anyway: bool, form: OutputForm) -> None:
    """Compare two runs, direction by direction, or two sets of runs, cell by cell: difference, noise, verdict.

    Each is a file, a directory or a glob of files, the date of a night, a label, the name of a suite or of a DUT (with
    @DATE: of that night), or `latest`. Unlike runs are refused: simulated and measured ones, different traffic or line
    rate, a DUT configured differently. On a terminal the table is as wide as that; in a pipe as it has to be, or as the
    variable COLUMNS says.
    """
    from ..report import compare as forms
    from ..report.room import room_of
    from ..review.compare import RunComparison, compare

    found = compare(first, second, results, anyway, note)
    if isinstance(found, RunComparison):
        runs = found.first, found.second
        form.write(
            lambda out: forms.format_comparison(*runs, found.unlike, room_of(out)),
            lambda: forms.comparison_values(*runs, found.unlike),
            lambda: [forms.comparison_sheet(*runs)],
            head=lambda: forms.comparison_head(*runs, found.unlike),
            table=lambda: forms.marked_comparison(*runs, found.unlike),
        )
    else:
        form.write(
            lambda out: forms.format_set_comparison(first, second, found, room_of(out)),
            lambda: forms.set_comparison_values(first, second, found),
            lambda: [forms.set_sheet(found)],
            head=lambda: forms.set_head(first, second, found),
            table=lambda: forms.marked_sets(first, second, found),
        )
