"""``trexbench compare``: two runs, direction by direction; or two sets of runs, cell by cell."""

from __future__ import annotations

import glob
import json
from collections.abc import Iterable
from pathlib import Path

import click

from ..core.errors import ConfigError, StoreError
from ..core.history import RunRow
from ..core.known import is_date
from ..core.series import night_of
from .results import latest_run, note, results_option

LATEST = "latest"
_NAMED = "name run documents, a date, a label, a suite, a DUT, or latest"


@click.command(
    epilog="\b\nExamples:\n  trexbench compare before.json after.json\n  trexbench compare 2026-11-20 2026-11-21\n"
    "  trexbench compare netgate-linux netgate-vpp --json\n  trexbench compare 'results/2026-11-2*/*/*.json' latest\n"
    "  trexbench compare nightly@2026-11-20 nightly@2026-11-21\n  trexbench compare kernel-6.12 kernel-6.18\n"
)
@click.argument("first")
@click.argument("second")
@results_option
@click.option("--anyway", is_flag=True, help="Compare unlike runs, too; the result says what is unlike.")
@click.option("--json", "as_json", is_flag=True, help="JSON on standard output.")
def compare(first: str, second: str, results: Path, anyway: bool, as_json: bool) -> None:
    """Compare two runs, direction by direction, or two sets of runs, cell by cell: difference, noise, verdict.

    Each is a file, a directory or a glob of files, a date (of a night), a label, the name of a suite or of a DUT (with
    @DATE: of that night), or `latest`. Unlike runs are refused: simulated against measured, other traffic, another line
    rate, a DUT configured otherwise.
    """
    files = [
        Path(one) if Path(one).is_file() or (one.endswith(".json") and not _is_glob(one)) else None
        for one in (first, second)
    ]
    files = [latest_run(results) if name == LATEST else file for name, file in zip((first, second), files, strict=True)]
    if files[0] is not None and files[1] is not None:
        _compare_runs(files[0], files[1], anyway, as_json)
    else:
        _compare_sets(first, second, results, anyway, as_json)


def _compare_runs(first: Path, second: Path, anyway: bool, as_json: bool) -> None:
    from ..core.compare import find_unlike
    from ..report.compare import comparison_values, format_comparison
    from ..store import load_run

    one, other = load_run(first), load_run(second)
    unlike = tuple(find_unlike(one, other))
    if unlike and not anyway:
        raise ConfigError(f"{first} and {second} are not comparable: {'; '.join(unlike)}", "or say --anyway")
    if as_json:
        click.echo(json.dumps(comparison_values(one, other, unlike), indent=1))
    else:
        click.echo(format_comparison(one, other, unlike))


def _compare_sets(first: str, second: str, results: Path, anyway: bool, as_json: bool) -> None:
    from ..core.compare_sets import compare_sets
    from ..report.compare import format_set_comparison, set_comparison_values

    ours, theirs = find_rows(first, results), find_rows(second, results)
    compared = compare_sets(ours, theirs, lambda one, other: _differing(results, one, other))
    if not compared.pairs:
        raise ConfigError(
            f"{first} and {second} have no cell in common", "`trexbench results list` shows what there is"
        )
    unlike = [f"{pair.cell}: {'; '.join(pair.unlike)}" for pair in compared.pairs if pair.unlike]
    if unlike and not anyway:
        more = f", and {len(unlike) - 3} more cells" if len(unlike) > 3 else ""
        raise ConfigError(f"{first} and {second} are not comparable: {' | '.join(unlike[:3])}{more}", "or say --anyway")
    if as_json:
        click.echo(json.dumps(set_comparison_values(first, second, compared), indent=1))
    else:
        click.echo(format_set_comparison(first, second, compared))


def find_rows(name: str, results: Path) -> list[RunRow]:
    """The runs that these words mean, oldest first; ConfigError where there are none."""
    path = Path(name)
    if not name.strip():
        raise ConfigError("an empty name means no run", _NAMED)
    if name == LATEST:
        return _rows_of([latest_run(results)], results)
    if path.is_file():
        return _rows_of([path], results)
    if path.is_dir() and ("/" in name or not is_date(name)):
        return _rows_of(filter(_may_be_run, sorted(path.rglob("*.json"))), results, name)
    if _is_glob(name):
        found = glob.glob(name, recursive=True) or glob.glob(str(results / name), recursive=True)
        return _rows_of(map(Path, sorted(found)), results, name)
    return _labelled(name, results)


def _labelled(name: str, results: Path) -> list[RunRow]:
    from ..index import open_index

    word, _, date = name.rpartition("@") if "@" in name else ("", "", name) if is_date(name) else (name, "", "")
    with open_index(results, note) as index:
        rows = index.rows()
    found = [
        row
        for row in rows
        if (not date or date in (night_of(row), row.started[:10]))
        and (not word or word in (row.label, row.suite, row.cell.dut))
    ]
    if not found:
        raise ConfigError(
            f"no run in {results} is meant by {name!r}",
            "name a file, a glob, a date, a label, a suite, a DUT, or latest; see `trexbench results list`",
        )
    return found


def _rows_of(files: Iterable[Path], results: Path, name: str = "") -> list[RunRow]:
    """Of several files those that can be read, and a line of warning for each other one."""
    from ..index import RowReader

    reader, rows = RowReader(), []
    for file in files:
        try:
            rows.append(reader.row(file, str(file)))
        except StoreError as error:
            if not name:
                raise StoreError(f"{file}: {error}") from None
            note(f"not read: {file}: {error}")
    if not rows:
        raise ConfigError(f"no run is meant by {name!r}", _NAMED)
    return sorted(rows, key=lambda row: row.started)


def _differing(results: Path, one: RunRow, other: RunRow) -> str:
    """In which facts two runs differ, in words; nothing where that cannot be told."""
    from ..core.compare import differing_facts
    from ..store import read_object

    facts = []
    for row in (one, other):
        place = Path(row.path) if Path(row.path).is_file() else results / row.path
        try:
            dut = read_object(place).get("dut")
        except StoreError:
            return ""
        facts.append(dut.get("facts") if isinstance(dut, dict) else None)
    return differing_facts(*facts)


def _may_be_run(path: Path) -> bool:
    """Not what lies beside the runs by design: nights, and known changes."""
    from ..judge.known_file import FILE
    from ..nights import FOLDER

    return path.parent.name != FOLDER and path.name != FILE


def _is_glob(name: str) -> bool:
    return any(letter in name for letter in "*?[")
