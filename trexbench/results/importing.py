"""Imports files of other tools as stored runs: the JSON of trex-loadtest and iperf3."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

from ..core.errors import StoreError
from ..core.load.profile import is_mode, resolve_mode
from ..core.result import RunResult
from ..core.run import Run
from ..core.units import format_bits
from .document import decode, naming, read_bytes
from .index import open_index
from .iperf3 import joined_stream, run_from_iperf3
from .loadtest import dut_of_loadtest, run_from_loadtest
from .store import RunWriter

USUAL_BPS = 10e9
"""Assumed speed of the ports, from which the size of trex-loadtest's frames is calculated."""
_ENDINGS = re.compile(r"(\.(loadtest|iperf3|json))+$")
_KINDS = "it takes the JSON of trex-loadtest and of `iperf3 -J`"
_IPERF3_KEYS = {"start", "intervals", "end"}


def import_files(
    files: Sequence[Path],
    results: Path,
    warn: Callable[[str], None],
    dut: str | None = None,
    mode: str | None = None,
    speed_bps: float | None = None,
    label: str | None = None,
) -> Iterator[tuple[Path, Path | StoreError, bool]]:
    """Import each file as a run; yield its document or the error, and True if it had been imported before.

    dut: the DUT's name; None: the one in the file, else the file's name. mode: what was sent (packets only).
    speed_bps: of the ports, if known.
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


def _check_size(run: RunResult) -> None:
    """Raise StoreError if the frames are not those of the mode, up to two VLAN tags and rounding."""
    mode, offer = str(run.command["mode"]), run.plan.offers[0]
    size = resolve_mode(mode).frame_bytes if is_mode(mode) else None
    if size is not None and not 0.95 * size <= offer.mean_frame_bytes <= 1.05 * size + 8:
        what = f"its utilisation means frames of {offer.mean_frame_bytes:.0f} B at {format_bits(offer.line_rate_bps)}"
        raise StoreError(f"{what}, not those of {mode}", "correct --speed or --mode")


def _read(file: Path, dut: str | None, mode: str | None, speed_bps: float | None, label: str | None) -> Run:
    data = read_bytes(file)
    lines = data.splitlines()
    if len(lines) > 1 and lines[0].startswith(b'{"event":'):  # of ``iperf3 --json-stream``: one event a line
        document = joined_stream([decode(line) for line in lines if line.strip()])
    elif b"[ ID] Interval" in data and not data.lstrip().startswith(b"{"):
        raise StoreError("iperf3's plain text, which has no exact figures", "import what `iperf3 -J` prints")
    elif not isinstance(document := decode(data), dict):
        raise StoreError("not a JSON object", _KINDS)
    written = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(file.stat().st_mtime))
    dut = dut or dut_of_loadtest(document) or _ENDINGS.sub("", file.name)
    if document.keys() & {"vars", "stats"}:
        result = run_from_loadtest(document, dut, speed_bps or USUAL_BPS, written)
        given = {key: word for key, word in (("mode", mode), ("label", label)) if word is not None}
        result = replace(result, command={**result.command, **given})
        _check_size(result)
        return result
    if not document.keys() >= _IPERF3_KEYS:
        raise StoreError("not a file that can be imported", _KINDS)
    if '"trexbench"' in str(document.get("extra_data")):  # it may be of a simulated run
        raise StoreError("an export of an older trexbench", "the run itself is a document in its results")
    if mode is not None:
        raise StoreError("a file of TCP, whose mode is its own", "leave out --mode")
    return run_from_iperf3(document, dut, written, blake2b(data, digest_size=8).hexdigest(), label, speed_bps)
