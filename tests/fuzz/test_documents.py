"""Documents of both kinds, damaged anywhere: each is a run that every verb takes, or one line that names its file."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from bdp_runs import swept
from documents import to_document
from effort import scaled
from mutate import LEAVES, ODD, mutate
from runs import World, make_plan, make_result
from seen import run_of, vpp
from tcp_runs import make_tcp_result
from verbs import run

COUNT = scaled(1000, 15)
"""Documents of each kind."""
SEED = int(os.environ.get("TREXBENCH_FUZZ_SEED", "1"))
DOCUMENTS: Mapping[str, Any] = {
    "packets": to_document(make_result(make_plan(bidir=True, latency_s=2.0), World(capacity_pps=660e3))),
    "telemetry": to_document(run_of(vpp(), vpp())),
    "tcp": to_document(make_tcp_result(command={"congestion": "cubic", "suite": "s", "label": "l"})),
    "bdp": to_document(swept()),
}
TEXTS = {name: json.dumps(one) for name, one in DOCUMENTS.items()}
VALUES = (*LEAVES, *ODD, "\ud800", "a\udfffb", "\0", "x" * 100_000, "\ud800" * 5000)


def _damaged(source: random.Random, text: str) -> str:
    """The document with a value of another kind or an odd text, mostly outside its readings; or as mangled text."""
    document = json.loads(text)
    if source.random() < 0.1:
        return mutate(source, text, list(TEXTS.values()))
    for _ in range(source.choice((1, 1, 2))):
        place = document
        while True:
            key = source.choice(list(place) if isinstance(place, dict) else range(len(place)))
            inner = place[key]
            if not isinstance(inner, dict | list) or not inner or source.random() < 0.1:
                break
            place = inner
        place[key] = source.choice(VALUES) if source.random() < 0.8 else f"{inner}{source.choice(VALUES)}"
    return json.dumps(document)


def _said(*words: object) -> tuple[int, str]:
    """Return a verb's exit code and what it says."""
    code, out, err = run(*words)
    return code, out + err


def _check(file: Path, *verb: object) -> None:
    code, text = _said("results", *verb, file)
    named = text.startswith(f"trexbench: {file}: ") or verb[0] == "export"  # which names the run
    assert code == 0 or (named and text.count("\n") == 1), text[-500:]


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_a_damaged_document_stops_nothing(kind: str, tmp_path: Path) -> None:
    source, folder = random.Random(f"{SEED} {kind}"), tmp_path / "2026-11-20" / "box"
    folder.mkdir(parents=True)
    files = [folder / f"{120000 + number}-x-uni.json" for number in range(COUNT)]
    for file in files:
        file.write_text(_damaged(source, TEXTS[kind]), encoding="utf-8", errors="surrogatepass")
    sound = folder / "000000-x-uni.json"
    sound.write_text(TEXTS[kind])
    for verb in (["results", "list"], ["report", "--output", tmp_path / "report.html"]):
        code, text = _said(*verb, "--results", tmp_path)
        assert code == 0, (verb, text[-500:])
    for file in files:
        _check(file, "show")
        if kind in ("packets", "telemetry"):
            _check(file, "export", "--loadtest", "-o", tmp_path / "series.json")
    assert _said("results", "show", sound)[0] == 0
