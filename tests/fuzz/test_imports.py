"""Other tools' files, damaged anywhere: each becomes a run that every reader takes, or one line that names it."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest
from effort import scaled
from mutate import mutate

from trexbench.core.errors import StoreError
from trexbench.report.tcp.text import format_tcp
from trexbench.results.importing import Wish, import_files
from trexbench.results.store import load_rows, load_tcp

COUNT = scaled(60, 12)
"""Files of each kind."""
SEED = int(os.environ.get("TREXBENCH_FUZZ_SEED", "1"))
FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "iperf3"
_REVERSE = (FIXTURES / "reverse.json").read_text()


def _stream(text: str) -> str:
    """Return the document as --json-stream prints it."""
    document = json.loads(text)
    events = [("start", document["start"]), *(("interval", one) for one in document["intervals"])]
    events.append(("end", document["end"]))
    return "\n".join(json.dumps({"event": name, "data": one}, separators=(",", ":")) for name, one in events)


TEXTS = {
    "iperf3": _REVERSE,
    "both ends": (FIXTURES / "bidir-both-ends.json").read_text(),
    "stream": _stream(_REVERSE),
}


def _refused_or_sound(files: list[Path], results: Path) -> tuple[int, int]:
    taken = refused = 0
    for one in import_files(files, results, Wish("box"), pytest.fail):
        if one.error is not None:
            assert isinstance(one.error, StoreError) and str(one.error).startswith(f"{one.file}: ")
            assert "\n" not in str(one.error) and len(str(one.error)) < 700
            refused += 1
        elif not one.known:
            assert one.path is not None and load_rows(one.path, "x")
            assert format_tcp(load_tcp(one.path))
            taken += 1
    return taken, refused


@pytest.mark.parametrize("kind", TEXTS)
def test_damaged_text(kind: str, tmp_path: Path) -> None:
    source, files = random.Random(f"{SEED} {kind}"), []
    for number in range(COUNT):
        files.append(tmp_path / f"{number}.json")
        text = mutate(source, TEXTS[kind], list(TEXTS.values()))
        files[-1].write_text(text, encoding="utf-8", errors="surrogatepass")
    taken, refused = _refused_or_sound(files, tmp_path / "results")
    assert refused and taken + refused <= COUNT
