"""Other tools' files, damaged anywhere: each becomes a run that every reader takes, or one line that names it."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest
from effort import scaled
from mutate import mutate
from runs import World, make_plan, make_result

from trexbench.core.errors import StoreError
from trexbench.core.result import RunResult
from trexbench.core.tcp.result import TcpResult
from trexbench.report.run.loadtest import to_loadtest
from trexbench.report.run.text import format_summary
from trexbench.report.tcp.text import format_tcp
from trexbench.results.importing import import_files
from trexbench.results.store import load_document, load_rows

COUNT = scaled(150, 12)
"""Files of each kind."""
SEED = int(os.environ.get("TREXBENCH_FUZZ_SEED", "1"))
FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "iperf3"
IPERF3 = ("forward", "reverse", "bidir-both-ends", "server", "interrupted")


def _stream(text: str) -> str:
    """Return the document as --json-stream prints it."""
    document = json.loads(text)
    events = [("start", document["start"]), *(("interval", one) for one in document["intervals"])]
    events.append(("end", document["end"]))
    return "\n".join(json.dumps({"event": name, "data": one}, separators=(",", ":")) for name, one in events)


TEXTS = {name: (FIXTURES / f"{name}.json").read_text() for name in IPERF3}
TEXTS |= {
    "stream": _stream(TEXTS["reverse"]),
    "trex-loadtest": to_loadtest(make_result(make_plan(bidir=True), World(6e5))).decode(),
}


def _refused_or_sound(files: list[Path], results: Path) -> tuple[int, int]:
    taken = refused = 0
    for file, found, known in import_files(files, results, pytest.fail, "box"):
        if isinstance(found, StoreError):
            assert str(found).startswith(f"{file}: ") and "\n" not in str(found) and len(str(found)) < 700
            refused += 1
        elif not known:
            assert load_rows(found, "x")
            run = load_document(found)
            assert isinstance(run, RunResult | TcpResult)
            assert format_summary(run) if isinstance(run, RunResult) else format_tcp(run)
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
