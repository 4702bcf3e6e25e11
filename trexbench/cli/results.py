"""``trexbench results``: stored runs, shown, compared, queried, exported and pruned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..core.errors import ConfigError, StoreError
from ..report.clean import clean
from . import options as o
from .output import OutputForm, make_directory, note, warn, write
from .verbs import Option, complete_files, removed, verbs

_RESULTS = o.results_option()


@verbs()
def results() -> None:
    """Manage stored runs: show, list, query, compare, export, import, prune.

    An index beside them, results/index.cache, speeds this up; it is rebuilt from the documents whenever needed.
    """


@results.command(
    epilog="\b\nExamples:\n  trexbench results show\n  trexbench results show --format brief\n"
    "  trexbench results show run.json --picture run.png\n"
)
@click.argument("run", type=click.Path(path_type=Path), required=False)
@o.results_option("Directory in which to look for the latest run if none is named.")
@o.path_option("--picture", "Draw the run's picture to this file (.png, .svg or .pdf).", dir_okay=False)
@o.formats(*o.RUN_FORMS)
def show(run: Path | None, results: Path, picture: Path | None, form: OutputForm) -> None:
    """Show a stored run: the given one, or the latest. JSON is the document without its samples."""
    from ..results.store import load_document
    from ..review.find import find_document, latest_run
    from .loads import draw_run, print_run

    document = latest_run(results) if run is None else find_document(str(run), results) or run
    result = load_document(document)
    if picture is not None:
        note(f"picture  {draw_run(result, picture)}")
    print_run(result, form, document)


@results.command(
    epilog="\b\nExamples:\n"
    "  trexbench results compare before.json after.json\n"
    "  trexbench results compare 2026-11-20 2026-11-21\n"
    "  trexbench results compare netgate-linux netgate-vpp --format json\n"
    "  trexbench results compare 'results/2026-11-2*/*/*.json' latest\n"
    "  trexbench results compare nightly@2026-11-20 nightly@2026-11-21\n"
    "  trexbench results compare kernel-6.12 kernel-6.18\n"
)
@click.argument("first", shell_complete=complete_files)
@click.argument("second", shell_complete=complete_files)
@_RESULTS
@click.option("--anyway", is_flag=True, help="Compare even unlike runs; the result names the differences.")
@o.formats("text", "json", "csv", "md")
def compare(first: str, second: str, results: Path, anyway: bool, form: OutputForm) -> None:
    """Compare two runs, direction by direction, or two sets of runs, cell by cell: difference, noise, verdict.

    Each is a file, a directory or a glob of files, the date of a night, a label, the name of a suite or of a DUT
    (@DATE: only that night), or `latest`. Unlike runs are refused: simulated and measured ones, different traffic or
    line rate, a DUT configured differently. The table fits the terminal; in a pipe it is as wide as needed, or as the
    variable COLUMNS says.
    """
    from ..report.compare import runs_compared, sets_compared
    from ..report.room import room_of
    from ..review.comparison import RunComparison, compare

    comparison = compare(first, second, results, anyway, note)
    if isinstance(comparison, RunComparison):
        forms = runs_compared(comparison.first, comparison.second, comparison.unlike)
    else:
        forms = sets_compared(first, second, comparison)
    form.write(
        lambda out: forms.text(room_of(out)),
        lambda: forms.values,
        lambda: [forms.sheet],
        head=lambda: forms.head,
        table=lambda: forms.marked,
    )


@results.command(
    "list", epilog="\b\nExamples:\n  trexbench results list --dut netgate-vpp --since 2026-11-01 --limit 20\n"
)
@_RESULTS
@click.option("--dut", metavar="NAME", shell_complete=o.complete_duts, help="Only runs of this DUT.")
@click.option("--mode", metavar="MODE", shell_complete=o.complete_modes, help="Only runs of this mode.")
@click.option("--suite", metavar="NAME", shell_complete=o.complete_suites, help="Only runs of this suite.")
@click.option("--label", metavar="LABEL", help="Only runs with this label.")
@click.option("--since", type=o.DATE, help="Only runs that began on this day (UTC) or later, as 2026-11-01.")
@click.option("--limit", type=click.IntRange(1, 1 << 31), help="Only the newest N.", metavar="N")
@o.formats("text", "json", "csv", "md")
def list_runs(results: Path, form: OutputForm, **choice: Any) -> None:
    """List stored runs, newest first; unreadable documents are named at the end.

    The table fits the terminal: columns that do not fit are left out, the document first. In a pipe it is as wide as
    needed, or as the variable COLUMNS says.
    """
    from ..report.listing import run_sheet
    from ..report.room import room_of
    from ..report.sheet import format_sheet
    from ..review.find import read_index

    notes: list[str] = []
    rows, problems = read_index(results, notes.append, **choice)
    rows.reverse()
    nothing = [f"no such run in {results}"]
    form.write(
        lambda out: "\n".join(format_sheet(run_sheet(rows), room_of(out)) if rows else nothing),
        lambda: {
            "runs": [row.to_dict() for row in rows],
            "problems": [{"path": path, "reason": reason} for path, reason in problems],
        },
        lambda: [run_sheet(rows)],
        table=lambda: run_sheet(rows, units=True),
    )
    for text in notes:
        note(text)


@results.command(
    epilog="\b\nExamples:\n"
    '  trexbench results query "select night, mode, total_pps from runs"\n'
    '  trexbench results query --format csv "select dut, mode from runs"\n'
    '  trexbench results query "select * from problems"\n'
)
@click.argument("sql")
@_RESULTS
@o.formats("text", "json", "csv", "md")
def query(sql: str, results: Path, form: OutputForm) -> None:
    """Query the stored runs with one SELECT on the tables `runs` and `problems`; queries cannot change anything.

    The SQL is DuckDB's: pip install 'trexbench[store]'.

    Columns of runs: path id started status dut mode bidir rx_queues kind held_pps simulated emulated accelerator
    variant traffic through over facts tester suite night aim total_pps at_least uncertainty_pps line_share limited_by
    hold_loss latency_s cycles_per_packet with_polling vectors_per_call power_w uj_per_packet nodes (JSON) warnings
    label line_rate_bps loss_threshold; of TCP also total_bps uncertainty_bps retransmitted cores_per_gbps ping_idle_s
    ping_loaded_s idle_power_w
    """
    from ..report.listing import query_sheet, query_values
    from ..review.find import query as ask

    columns, rows = ask(sql, results, note)
    form.write_sheet(query_sheet(columns, rows), lambda: query_values(columns, rows))


@results.command(
    epilog="\b\nExamples:\n  trexbench results prune --keep-nights 400\n"
    "  trexbench results prune --before 2025-01-01 --yes\n"
)
@o.results_option(anywhere=False)
@click.option("--keep-nights", type=click.IntRange(1, 1 << 31), metavar="N", help="Remove all but the last N nights.")
@click.option("--before", type=o.DATE, help="Remove everything from before this night (or day), as 2025-01-01.")
@click.option("--yes", is_flag=True, help="Remove them.")
@removed("--dry-run", "nothing is removed without --yes", "leave it out")
def prune(results: Path, keep_nights: int | None, before: str | None, yes: bool) -> None:
    """Remove old runs, their pictures, and old nights; unreadable files are kept.

    The files are listed, and removed only with --yes.
    """
    from ..report.words import format_count
    from ..results.prune import find_old, remove
    from ..review.find import check_results

    if (keep_nights is None) == (before is None):
        raise ConfigError("prune needs to know what is old", "give either --keep-nights N or --before DATE")
    check_results(results)
    paths, kept = find_old(results, keep_nights, before, note), list[str]()
    if yes:
        paths = remove(results, paths, kept.append)
    for path in paths:
        click.echo(clean(results / path))
    for text in kept:
        note(text)
    note(f"{format_count(len(paths), 'file')} {'removed' if yes else 'would be removed; --yes removes them'}")
    if kept:
        raise StoreError(f"{results}: not all that is old was removed", "make it writable, and prune again")


@results.command(
    epilog="\b\nExamples:\n  trexbench results export --loadtest results/*/lab-linux/*-bidir.json -o out/\n"
)
@click.argument("runs", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option(
    "--loadtest",
    is_flag=True,
    required=True,
    expose_value=False,
    help="Write the JSON that trex-loadtest-viz reads, from runs of packets.",
)
@click.option(
    "-o",
    "--output",
    "named",
    cls=Option,
    required=True,
    metavar="FILE",
    help="File to write; a directory for several runs, or with a trailing slash.",
)
def export(runs: tuple[Path, ...], named: str) -> None:
    """Write stored runs in another tool's format, one file per run."""
    from ..report.run.loadtest import name_of_series, to_loadtest
    from ..results.document import naming
    from ..results.store import load_run

    output = Path(named)
    many = len(runs) > 1 or output.is_dir() or named.endswith("/")
    if many:
        make_directory(output)
    written: set[str] = set()
    failed: StoreError | None = None
    for path in runs:
        try:
            run = load_run(path)
            with naming(path):
                exported = to_loadtest(run)
        except StoreError as error:
            failed = _after(failed, error)
            continue
        name = f"{name_of_series(run, path.stem)}.loadtest.json"
        if name in written:
            raise ConfigError("two of these runs would be written to the same file", "export them one by one")
        written.add(name)
        write(str(output / name if many else output), exported)
    if failed is not None:  # the others are exported by now
        raise failed


def _after(failed: StoreError | None, error: StoreError) -> StoreError:
    """Print the failure before this one, whose turn is at the end."""
    if failed is not None:
        warn(str(failed))
    return error


@results.command(
    "import",
    epilog="\b\nExamples:\n  trexbench results import --dut netgate-pf --speed 10gbit theirs/*.json\n"
    "  trexbench results import --dut edgerouter --label fw-2.0 upload.json\n",
)
@click.argument("files", type=click.Path(path_type=Path), nargs=-1, required=True)
@o.results_option(anywhere=False)
@click.option("--dut", metavar="NAME", help="Name of the DUT. Default: the one in the file, else the file's name.")
@click.option(
    "--mode",
    shell_complete=o.complete_modes,
    metavar="MODE",
    help="Mode that was sent, if it is one of trexbench's. Default: the profile's name. Not for TCP.",
)
@click.option(
    "--speed",
    type=o.SPEED,
    help="Speed (L1) of the ports, or for TCP of the slowest line; the files lack it. Default: 10gbit; TCP: unknown.",
)
@click.option("--label", type=o.LABEL, help="Word stored with the runs, to search and compare by, as firmware-2.0.")
def import_runs(
    files: tuple[Path, ...], results: Path, dut: str | None, mode: str | None, speed: float | None, label: str | None
) -> None:
    """Import other tools' files as stored runs: the JSON of trex-loadtest and of `iperf3 -J`.

    A file that has been imported before is skipped.
    """
    from ..core.load.profile import resolve_mode
    from ..results.importing import import_files

    sent = None if mode is None else resolve_mode(mode).name
    failed: StoreError | None = None
    for file, outcome, known in import_files(files, results, note, dut, sent, speed, label):
        if isinstance(outcome, StoreError):
            failed = _after(failed, outcome)
        elif known:
            note(f"{file}: was imported before, as {outcome}: remove that to import it with other options")
        else:
            click.echo(outcome)
    if failed is not None:  # the others are imported by now
        raise failed
