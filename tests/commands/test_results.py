"""Two simulated nights of a small suite, and everything that the stored runs can be asked for afterwards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tools import succeed

SUITE = """
duts: [netgate-linux, {name: netgate-vpp, rx_queues: [1]}]
modes: [var2-64b, var2-1514b]
directions: [uni, bidir]
plan: {ramp_duration: 30s, hold: 5s, confirm: 2s, warmup: "1kpps:5s"}
"""
NIGHTS = ("2026-03-01", "2026-03-02")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the results of both nights."""
    folder = tmp_path_factory.mktemp("nights")
    (folder / "small.yaml").write_text(SUITE)
    for seed, night in enumerate(NIGHTS, start=1):
        told = ("--date", night, "--seed", str(seed), "--label", f"firmware-{seed}")
        arguments = ("suite", "run", "small.yaml", "--sim", "-q", *told)
        succeed(folder, *arguments, timeout_s=300)
    return folder


@pytest.fixture(scope="module")
def exported(place: Path) -> dict[str, dict[str, Any]]:
    """Every run as trex-loadtest's JSON, by the file's name."""
    runs = sorted(str(path.relative_to(place)) for path in place.glob("results/*/*/*.json"))
    done = succeed(place, "results", "export", "--loadtest", *runs, "-o", "exported/")
    assert len(done.stdout.splitlines()) == len(runs) == 16
    found = {path.name: json.loads(path.read_text()) for path in (place / "exported").iterdir()}
    assert len(found) == 16
    return found


def said(place: Path, *arguments: str) -> str:
    return succeed(place, *arguments).stdout


def test_they_are_listed_asked_and_compared(place: Path) -> None:
    assert len(said(place, "results", "list", "--suite", "small", "--dut", "netgate-vpp").splitlines()) == 9
    counted = said(place, "results", "query", "--csv", "select night, count(*) from runs group by night order by 1")
    assert counted.splitlines()[1:] == [f"{night},8" for night in NIGHTS]
    nights = json.loads(said(place, "results", "compare", *NIGHTS, "--json"))
    assert len(nights["cells"]) == 8 and not nights["only_first"] and not nights["only_second"]
    assert {cell["verdict"] for cell in nights["cells"]} <= {"same", "unknown"}
    duts = json.loads(said(place, "results", "compare", "netgate-linux", "netgate-vpp", "--json", "--anyway"))
    smallest = [cell for cell in duts["cells"] if cell["cell"]["mode"] == "var2-64b" and not cell["cell"]["bidir"]]
    assert [cell["verdict"] for cell in smallest] == ["faster"]


def test_labels_name_runs(place: Path) -> None:
    rows = json.loads(said(place, "results", "list", "--label", "firmware-2", "--json"))["runs"]
    assert len(rows) == 8 and {(row["label"], row["night"]) for row in rows} == {("firmware-2", NIGHTS[1])}
    by_label = json.loads(said(place, "results", "compare", "firmware-1", "firmware-2", "--json"))
    by_night = json.loads(said(place, "results", "compare", *NIGHTS, "--json"))
    assert by_label["cells"] == by_night["cells"] and len(by_label["cells"]) == 8
    assert "label      firmware-2\n" in said(place, "show", f"results/{rows[0]['path']}")


def test_ramps_of_one_profile_are_aligned(exported: dict[str, dict[str, Any]]) -> None:
    """The ideal line is the largest rate sent in any file: where nobody was short, all sent the same in each second."""
    by_profile: dict[str, list[list[float]]] = {}
    for document in exported.values():
        sent = [one["0"]["tx_pps"] for one in document["stats"].values()]
        by_profile.setdefault(document["vars"]["profile_file"], []).append(sent)
    for ramps in by_profile.values():
        ideal = [max(rates) for rates in zip(*ramps, strict=True)]
        for ramp in ramps:
            assert all(abs(sent / best - 1) < 0.02 for sent, best in zip(ramp[5:], ideal[5:], strict=True))
