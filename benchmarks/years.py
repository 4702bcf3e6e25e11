"""Ten years of seventy sites in one store: how long a verb takes to answer, how much memory, how many requests.

    python benchmarks/years.py [--sites 70] [--years 10] [--s3] [--place DIRECTORY]

Each site has a suite of 40 cells, measured every night; its rows are made as nights' ends leave them: a file for each
month. Night files are there for the last 400 nights, documents for those that the page of one suite opens: all else a
suite with ``keep_nights: 400`` has pruned. 10 million rows take 1 GB.

Each verb is a process of its own. Cold: no page of the store and of its mirror is in the kernel's cache
(posix_fadvise, DONTNEED, after fsync); first: there is no mirror yet. --s3: the same of moto's server on loopback,
which is written in Python; its log is counted for the requests.

Aims, cold: last night's list 0.5 s; regress of a suite 5 s; page of a year 10 s; 2 GB of memory. Only the memory fails
the benchmark: seconds are this machine's. Of 1.5 million rows (--sites 10), on two cores at a load of 6, the second
list took 1.2 s of CPU, regress 8.1 s, a query of all 8.6 s, the page 17.7 s, each less than 0.8 GB.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from _ratios import ROOT, TREXBENCH, note, options, skip
from store import CELLS, Template, measure_one

from trexbench.core.history.night import Attempt, CellRecord, CellState, Night
from trexbench.core.history.rows import RunRow

LAST, KEPT, SUITE = date(2026, 11, 20), 400, "site-00"
OPENED = (0, 1, 30, 365)
"""Nights before the last whose documents the page opens."""
AIMS = {"list": 0.5, "regress": 5.0, "page": 10.0}
MOST_BYTES = 2 << 30
COLUMNS = {"total_pps": 0.003, "cycles_per_packet": 0.003}
"""Figures that differ from night to night, and by which share."""


@dataclass(frozen=True)
class Timed:
    seconds: float
    cpu_s: float
    peak_bytes: int
    requests: int


class Site:
    """The rows of a suite. rows: those of one night, with marks where nights differ."""

    def __init__(self, rows: list[RunRow]) -> None:
        from trexbench.results.parquet import make_table

        own = [
            replace(row, night="@N@", id=f"{at}", started=f"@N@{row.started[10:]}", path=f"@N@{row.path[10:]}")
            for at, row in enumerate(rows)
        ]
        self._night = make_table(own, ["0" * 32] * len(own))
        self._rng = np.random.default_rng(1)

    def make(self, nights: list[str]) -> Any:
        """Return the table of these nights."""
        import pyarrow as pa

        count = len(nights)
        columns: dict[str, Any] = {}
        figures: dict[str, Any] = {}
        for one in self._night.column_names:
            columns[one] = pa.concat_arrays(self._night.column(one).chunks * count)
        for one in ("path", "started", "night"):
            texts = self._night.column(one).to_pylist()
            columns[one] = pa.array([text.replace("@N@", night) for night in nights for text in texts])
        for one, noise in COLUMNS.items():
            usual = np.tile(self._night.column(one).to_numpy(), count)
            figures[one] = usual * self._rng.normal(1, noise, len(usual))
            columns[one] = pa.array(figures[one])
        columns["row"] = pa.array(self._stored(nights, figures), pa.binary())
        return pa.table([columns[one] for one in self._night.column_names], schema=self._night.schema)

    def _stored(self, nights: list[str], figures: dict[str, Any]) -> Iterator[bytes]:
        formats = []
        for text in self._night.column("row").to_pylist():
            row = json.loads(text)
            for at, one in enumerate(COLUMNS):
                row["figures"][one]["value"] = f"@{at}@"
            formats.append(json.dumps(row).replace("%", "%%").replace("@N@", "%(n)s"))
            for at in range(len(COLUMNS)):
                formats[-1] = formats[-1].replace(f'"@{at}@"', f"%({at})r")
        values = [one.tolist() for one in figures.values()]
        for at, night in enumerate(nights):
            for cell, text in enumerate(formats):
                place = at * len(formats) + cell
                yield (text % {"n": night, **{f"{n}": one[place] for n, one in enumerate(values)}}).encode()


def write_as(table: Any, path: Path, suite: str, nights: list[str]) -> None:
    """Write the table as that of these nights of another suite: all sites have the same figures."""
    import pyarrow.compute as pc

    from trexbench.results.parquet import write_table

    for name in ("suite", "row"):
        at = table.schema.get_field_index(name)
        other = pc.replace_substring(table.column(name), SUITE, suite)
        table = table.set_column(at, table.schema.field(at), other)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_table(path, table, frozenset(nights))


def make_store(store: Path, sites: int, years: int) -> int:
    """Write everything; the number of rows."""
    from trexbench.core.history.night import night_to_dict
    from trexbench.results.parquet import month_file
    from trexbench.results.store import encode_json

    template = Template(measure_one(store.parent / "one"))
    rng, first = random.Random(1), LAST - timedelta(days=years * 365)
    nights = [str(first + timedelta(days=one + 1)) for one in range(years * 365)]
    rows: list[RunRow] = []
    for before in OPENED:
        day = LAST - timedelta(days=before)
        made = [template.write(store, at, rng, day, SUITE) for at in range(len(CELLS))]
        rows = rows or made
    files: dict[str, list[str]] = {}
    for night in nights:
        files.setdefault(night[:7], []).append(night)
    (store / "nights").mkdir()
    site = Site(rows)
    tables = {name: site.make(some) for name, some in files.items()}
    for number in range(sites):
        suite = f"site-{number:02}"
        for name, table in tables.items():
            write_as(table, store / month_file(suite, name), suite, [f"{night}-{suite}" for night in files[name]])
        records = tuple(
            CellRecord(
                row.cell, CellState.DONE, (Attempt("@N@T22:00:00Z", f"@N@{row.path[10:]}", took_s=400.0),), 400.0
            )
            for row in rows
        )
        template_night = Night(suite, str(LAST), "@N@T22:00:00Z", False, records, "@N@T23:59:00Z")
        text = encode_json(night_to_dict(template_night)).decode().replace(f'"night": "{LAST}"', '"night": "@N@"')
        for one in nights[-KEPT:]:
            (store / "nights" / f"{one}-{suite}.json").write_text(text.replace("@N@", one))
    return sites * len(nights) * len(CELLS)


def forget(*folders: Path) -> None:
    """Take every page of these folders' files out of the kernel's cache."""
    for path in (path for folder in folders for path in folder.rglob("*") if path.is_file()):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fdatasync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


@contextmanager
def s3_server(log: Path) -> Iterator[str]:
    """moto's server on a free port of loopback; its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with log.open("wb") as output:
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        server = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            for _ in range(200):
                with socket.socket() as asked:
                    if asked.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait()


def run(argv: list[str], log: Path | None) -> Timed:
    """Run a verb; exit codes that only judge are no failure."""
    before = log.read_bytes().count(b"HTTP/1.1") if log else 0
    begun = time.perf_counter()
    with tempfile.TemporaryFile() as output:
        compiled = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        process = subprocess.Popen([*TREXBENCH, *argv], cwd=ROOT, stdout=output, stderr=output, env=compiled)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        if process.returncode not in (0, 3, 4):
            raise SystemExit(f"{' '.join(argv)}: exit code {process.returncode}: {output.read()[-800:].decode()}")
    requests = log.read_bytes().count(b"HTTP/1.1") - before if log else 0
    return Timed(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, requests)


def measure(address: str, place: Path, store: Path, log: Path | None) -> dict[str, Timed]:
    """Time each verb, first without a mirror and then with it, always cold."""
    verbs = {
        "list": ["results", "list", "--since", str(LAST)],
        "regress": ["regress", "--suite", SUITE],
        "query": ["results", "query", "select suite, count(*), avg(total_pps) from runs group by 1 order by 1"],
        "page": [
            "report",
            "--suite",
            SUITE,
            "--since",
            str(LAST - timedelta(days=365)),
            "-o",
            str(place / "page.html"),
        ],
    }
    found: dict[str, Timed] = {}
    mirrors = place / "state"
    os.environ["TREXBENCH_STATE_DIR"] = str(mirrors)
    for name, argv in verbs.items():
        shutil.rmtree(mirrors, ignore_errors=True)
        for when in ("first", "again"):
            forget(store, mirrors)
            timed = found[f"{name}, {when}"] = run([*argv, "--results", address], log)
            peak = f"{timed.peak_bytes / 1e6:5.0f} MB"
            print(f"{name + ', ' + when:<16}{timed.seconds:7.2f} s {timed.cpu_s:7.2f} s of CPU  {peak}", end="")
            print(f"  {timed.requests} requests" if log else "", flush=True)
    return found


def put_all(store: Path, endpoint: str) -> None:
    """Copy the store into a bucket of the server."""
    import fsspec

    os.environ |= {"AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"}
    os.environ["AWS_DEFAULT_REGION"] = "us-east-1"
    system = fsspec.filesystem("s3", skip_instance_cache=True)
    system.mkdir("lab")
    system.put(f"{store}/", "lab/results/", recursive=True)


def main() -> int:
    chosen = options(__doc__, sites=70, years=10, s3=False, place=Path)
    try:
        import duckdb  # noqa: F401
        import fsspec  # noqa: F401
        import pyarrow  # noqa: F401
    except ImportError as error:
        return skip(f"no {error.name}: pip install 'trexbench[store]'")
    with tempfile.TemporaryDirectory(prefix="trexbench-years-", dir=chosen.place) as folder:
        place = Path(folder)
        store = place / "store"
        store.mkdir()
        begun = time.perf_counter()
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as other:  # else its memory counts as the verbs'
            rows = other.submit(make_store, store, chosen.sites, chosen.years).result()
        sizes = [path.stat().st_size for path in (store / "rows").rglob("*.parquet")]
        print(
            f"{rows} rows in {len(sizes)} files, {sum(sizes) / 1e6:.0f} MB, made in {time.perf_counter() - begun:.0f} s"
        )
        found = measure(f"file://{store}", place, store, None)
        if chosen.s3:
            log = place / "s3.log"
            with s3_server(log) as endpoint:
                put_all(store, endpoint)
                print("s3:// on loopback")
                measure("s3://lab/results", place, store, log)
    note("list / regress of a store, CPU", found["list, again"].cpu_s / found["regress, again"].cpu_s, noise=0.3)
    missed = [name for name, aim in AIMS.items() if found[f"{name}, again"].seconds > aim]
    large = [name for name, timed in found.items() if timed.peak_bytes > MOST_BYTES]
    for name in missed:
        print(f"aim missed: {name}, {AIMS[name]:g} s")
    return int(bool(large))


if __name__ == "__main__":
    sys.exit(main())
