"""Imports other tools' files as stored runs: trex-loadtest's JSON, and iperf3's."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ..core.errors import StoreError
from ..core.run import Run
from .document import decode, naming, read_bytes
from .index import open_index
from .iperf3 import Given, joined_stream, run_from_iperf3
from .loadtest import dut_of_loadtest, run_from_loadtest
from .store import RunWriter

USUAL_BPS = 10e9
"""Speed of the ports where nobody gives it: trex-loadtest's frames are reckoned by it."""
_ENDINGS = re.compile(r"(\.(loadtest|iperf3|json))+$")
_KINDS = "it takes the JSON of trex-loadtest and of `iperf3 -J`"
_IPERF3 = {"start", "intervals", "end"}
"""The keys of what iperf3 prints."""


@dataclass(frozen=True)
class Wish:
    """dut: the DUT's name, None: the one in the file, else the file's. mode: what was sent (packets only). speed_bps:
    of the ports, if known."""

    dut: str | None = None
    mode: str | None = None
    speed_bps: float | None = None
    label: str | None = None


@dataclass(frozen=True)
class Imported:
    """A file after its import. path: of its run; known: imported before; error: why it could not be imported."""

    file: Path
    path: Path | None = None
    known: bool = False
    error: StoreError | None = None


def import_files(files: Sequence[Path], results: Path, wish: Wish, warn: Callable[[str], None]) -> Iterator[Imported]:
    """Import each file as a run, once."""
    known = {row.id: results / row.path for row in open_index(results, warn).rows()}
    for file in files:
        try:
            with naming(file):
                result = _read(file, wish)
            if result.id in known:
                yield Imported(file, known[result.id], known=True)
                continue
            known[result.id] = _store(result, results, warn)
        except StoreError as error:
            yield Imported(file, error=error)
        else:
            yield Imported(file, known[result.id])


def _store(result: Run, results: Path, warn: Callable[[str], None]) -> Path:
    writer = RunWriter(results, warn)
    writer.check()
    return writer.end(result)


def _read(file: Path, wish: Wish) -> Run:
    data = read_bytes(file)
    document = _decoded(data)
    written = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(file.stat().st_mtime))
    dut = wish.dut or dut_of_loadtest(document) or _ENDINGS.sub("", file.name)
    if document.keys() & {"vars", "stats"}:
        result = run_from_loadtest(document, dut, wish.speed_bps or USUAL_BPS, written)
        told = {"mode": wish.mode, "label": wish.label}
        return replace(result, command={**result.command, **{key: one for key, one in told.items() if one is not None}})
    if not document.keys() >= _IPERF3:
        raise StoreError("not a file that can be imported", _KINDS)
    if '"trexbench"' in str(document.get("extra_data")):  # it may be of a simulated run
        raise StoreError("an export of an older trexbench", "the run itself is a document in its results")
    if wish.mode is not None:
        raise StoreError("a file of TCP, whose mode is its own", "leave out --mode")
    given = Given(dut, written, blake2b(data, digest_size=8).hexdigest(), wish.label, wish.speed_bps)
    return run_from_iperf3(document, given)


def _decoded(data: bytes) -> dict[str, Any]:
    """The file's JSON object, or that of ``iperf3 --json-stream``, which prints one for each event on a line."""
    lines = data.splitlines()
    if len(lines) > 1 and lines[0].startswith(b'{"event":'):
        return joined_stream([decode(line) for line in lines if line.strip()])
    document = decode(data)
    if not isinstance(document, dict):
        raise StoreError("not a JSON object", _KINDS)
    return document
