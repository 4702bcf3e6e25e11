"""Imports other tools' files as stored runs: trex-loadtest's JSON, and iperf3's."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ..core.errors import StoreError
from ..core.run import Run
from .document import decode, naming, read_bytes
from .index import open_index
from .iperf3 import joined_stream, run_from_iperf3
from .loadtest import dut_of_loadtest, run_from_loadtest
from .store import RunWriter

USUAL_BPS = 10e9
"""Speed of the ports where nobody gives it: trex-loadtest's frames are reckoned by it."""
_ENDINGS = re.compile(r"(\.(loadtest|iperf3|json))+$")
_KINDS = "it takes the JSON of trex-loadtest and of `iperf3 -J`"
_IPERF3 = {"start", "intervals", "end"}
"""The keys of what iperf3 prints."""


def import_files(
    files: Sequence[Path],
    results: Path,
    warn: Callable[[str], None],
    dut: str | None = None,
    mode: str | None = None,
    speed_bps: float | None = None,
    label: str | None = None,
) -> Iterator[tuple[Path, Path | StoreError, bool]]:
    """Import each file as a run, once: its document, or why it could not be imported; True: it was imported before.

    dut: the DUT's name, None: the one in the file, else the file's. mode: what was sent (packets only). speed_bps: of
    the ports, if known.
    """
    known = {row.id: results / row.path for row in open_index(results, warn).rows()}
    for file in files:
        try:
            with naming(file):
                result = _read(file, dut, mode, speed_bps, label)
            if is_known := result.id in known:
                path = known[result.id]
            else:
                writer = RunWriter(results, warn)
                writer.check()
                path = known[result.id] = writer.end(result)
        except StoreError as error:
            yield file, error, False
        else:
            yield file, path, is_known


def _read(file: Path, dut: str | None, mode: str | None, speed_bps: float | None, label: str | None) -> Run:
    data = read_bytes(file)
    document = _decoded(data)
    written = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(file.stat().st_mtime))
    dut = dut or dut_of_loadtest(document) or _ENDINGS.sub("", file.name)
    if document.keys() & {"vars", "stats"}:
        result = run_from_loadtest(document, dut, speed_bps or USUAL_BPS, written)
        told = {key: one for key, one in (("mode", mode), ("label", label)) if one is not None}
        return replace(result, command={**result.command, **told})
    if not document.keys() >= _IPERF3:
        raise StoreError("not a file that can be imported", _KINDS)
    if '"trexbench"' in str(document.get("extra_data")):  # it may be of a simulated run
        raise StoreError("an export of an older trexbench", "the run itself is a document in its results")
    if mode is not None:
        raise StoreError("a file of TCP, whose mode is its own", "leave out --mode")
    return run_from_iperf3(document, dut, written, blake2b(data, digest_size=8).hexdigest(), label, speed_bps)


def _decoded(data: bytes) -> dict[str, Any]:
    """The file's JSON object, or that of ``iperf3 --json-stream``, which prints one for each event on a line."""
    lines = data.splitlines()
    if len(lines) > 1 and lines[0].startswith(b'{"event":'):
        return joined_stream([decode(line) for line in lines if line.strip()])
    document = decode(data)
    if not isinstance(document, dict):
        raise StoreError("not a JSON object", _KINDS)
    return document
