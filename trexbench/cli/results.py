"""``trexbench show``, ``compare`` and ``export``: stored runs again, for people and for other tools."""

from __future__ import annotations

import json
from pathlib import Path

import click

from ..core.errors import BenchError, ConfigError, StoreError

_run = click.argument("run", type=click.Path(path_type=Path), required=False)
_results = click.option(
    "--results",
    type=click.Path(path_type=Path),
    default=Path("results"),
    show_default=True,
    help="Where to look for the latest run when none is named.",
)


@click.command(epilog="\b\nExamples:\n  trexbench show\n  trexbench show run.json --picture run.png\n")
@_run
@_results
@click.option("--picture", type=click.Path(path_type=Path, dir_okay=False), help="Draw the PNG again, to this file.")
@click.option("--json", "as_json", is_flag=True, help="The document on standard output, analysis derived anew.")
def show(run: Path | None, results: Path, picture: Path | None, as_json: bool) -> None:
    """Show a stored run again (the latest if none is named); every figure is derived anew from its raw counters."""
    from ..store import load_run
    from .session import print_result, save_picture

    result = load_run(run or _latest(results))
    if picture is not None:
        save_picture(result, picture)
    print_result(result, as_json)


@click.command(
    epilog="\b\nExamples:\n  trexbench compare before.json after.json\n  trexbench compare a.json b.json --json\n"
)
@click.argument("first", type=click.Path(path_type=Path))
@click.argument("second", type=click.Path(path_type=Path))
@click.option("--anyway", is_flag=True, help="Compare unlike runs, too; the result says what is unlike.")
@click.option("--json", "as_json", is_flag=True, help="JSON on standard output.")
def compare(first: Path, second: Path, anyway: bool, as_json: bool) -> None:
    """Compare two stored runs, direction by direction: difference, noise, and whether it is one.

    Unlike runs are refused: simulated against measured, other traffic, another line rate, a DUT configured otherwise.
    """
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


@click.command(epilog="\b\nExamples:\n  trexbench export --loadtest results/2026-11-21/lab-linux/*.json -o out/\n")
@click.argument("runs", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option("--loadtest", is_flag=True, required=True, help="The JSON that trex-loadtest-viz reads.")
@click.option(
    "-o", "--output", "named", required=True, help="A file; for several runs, or with a slash at its end, a directory."
)
def export(runs: tuple[Path, ...], loadtest: bool, named: str) -> None:
    """Write stored runs in another tool's format; the series' name is the file's name."""
    from ..report.loadtest import to_loadtest
    from ..store import load_run

    output = Path(named)
    many = len(runs) > 1 or output.is_dir() or named.endswith("/")
    for path in runs:
        target = output / f"{path.stem}.loadtest.json" if many else output
        data = to_loadtest(load_run(path))
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        except OSError as error:
            raise BenchError(f"{target}: {error.strerror}", "name a place that can be written with -o") from error
        click.echo(target)


def _latest(results: Path) -> Path:
    from ..store import find_latest

    found = find_latest(results)
    if found is None:
        raise StoreError(f"no run in {results}", "name a run document, or another --results directory")
    return found
