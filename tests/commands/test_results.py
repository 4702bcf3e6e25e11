"""Two simulated nights of a small suite, and everything that the stored runs can be asked for afterwards."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tools import succeed, trexbench

from trexbench.core.history.rows import row_of
from trexbench.results.index import open_index
from trexbench.results.store import load_run

SUITE = """
duts: [netgate-linux, {name: netgate-vpp, rx_queues: [1]}]
modes: [var2-64b, var2-1514b]
directions: [uni, bidir]
plan: {ramp_duration: 30s, hold: 5s, confirm: 2s, zoom: 0s, warmup: "1kpps:5s"}
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
def exported(place: Path) -> dict[str, tuple[str, dict[str, Any]]]:
    """Every run as trex-loadtest's JSON: file name -> text and document."""
    runs = sorted(str(path.relative_to(place)) for path in place.glob("results/*/*/*.json"))
    done = succeed(place, "results", "export", "--loadtest", *runs, "-o", "exported/")
    assert len(done.stdout.splitlines()) == len(runs) == 16
    texts = {path.name: path.read_text() for path in (place / "exported").iterdir()}
    assert len(texts) == 16
    return {name: (text, json.loads(text)) for name, text in texts.items()}


def said(place: Path, *arguments: str) -> str:
    return succeed(place, *arguments).stdout


def test_the_index_agrees_with_the_documents(place: Path) -> None:
    index = open_index(place / "results", print)
    found, problems = index.rows(), index.problems()
    assert len(found) == 16 and not problems
    for row in found:
        assert row == row_of(load_run(place / "results" / row.path), row.path)
    assert {row.suite for row in found} == {"small"} and {row.night for row in found} == set(NIGHTS)
    assert all(row.get("cycles_per_packet") for row in found if row.cell.dut == "netgate-vpp")


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


# What graph.rb needs of a file, rule by rule

Document = dict[str, Any]
KEYS = ("warmup_mult", "warmup_duration", "rampup_target", "rampup_duration", "hold_duration")


def test_labels_name_runs(place: Path) -> None:
    rows = json.loads(said(place, "results", "list", "--label", "firmware-2", "--json"))["runs"]
    assert len(rows) == 8 and {(row["label"], row["night"]) for row in rows} == {("firmware-2", NIGHTS[1])}
    by_label = json.loads(said(place, "results", "compare", "firmware-1", "firmware-2", "--json"))
    by_night = json.loads(said(place, "results", "compare", *NIGHTS, "--json"))
    assert by_label["cells"] == by_night["cells"] and len(by_label["cells"]) == 8
    assert "label      firmware-2\n" in said(place, "show", f"results/{rows[0]['path']}")
    for word in ("2026-03-01", "latest", "a b", "", "x" * 65, "../x", "<b>", "x.json"):
        done = trexbench(place, "ramp", "--dut", "netgate-vpp", "--mode", "64b", "--sim", "--label", word)
        assert done.returncode == 2 and "would not be found again" in done.stderr


def seconds(document: Document) -> list[Document]:
    return list(document["stats"].values())


def senders(document: Document) -> tuple[tuple[str, str], ...]:
    """Ports that send, each with the one that receives."""
    return (("0", "1"),) if document["vars"]["unidirectional"] else (("0", "1"), ("1", "0"))


def is_at_one_hertz_in_time_order(document: Document) -> bool:
    times = [float(key) for key in document["stats"]]
    return all(abs(after - before - 1) < 0.06 for before, after in itertools.pairwise(times))


def has_no_ramp_down(document: Document) -> bool:
    told = document["vars"]
    planned = told["warmup_duration"] + told["rampup_duration"] + told["hold_duration"]
    sent = [one["0"]["tx_pps"] for one in seconds(document)]
    return len(sent) == planned and sent[-1] > 0.9 * max(sent)


RULES: Mapping[str, Callable[[Document], bool]] = {
    "has vars and stats": lambda found: set(KEYS) <= found["vars"].keys() and len(found["stats"]) > 30,
    "names its profile": lambda found: str(found["vars"]["profile_file"]).endswith(".py"),
    "has a real boolean": lambda found: isinstance(found["vars"]["unidirectional"], bool),
    "is at one hertz in time order": is_at_one_hertz_in_time_order,
    "has every key it reads": lambda found: all(
        {"tx_pps"} <= one[tx].keys() and {"rx_pps", "rx_util"} <= one[rx].keys()
        for one in seconds(found)
        for tx, rx in senders(found)
    ),
    "has floats only": lambda found: all(
        type(value) is float for one in seconds(found) for port in one.values() for value in port.values()
    ),
    "never divides by zero": lambda found: all(
        one[tx]["tx_pps"] > 0 for one in seconds(found) for tx, _ in senders(found)
    ),
    "has no ramp down": has_no_ramp_down,
}


@pytest.mark.parametrize("rule", RULES)
def test_every_exported_file_keeps_the_rule(exported: dict[str, tuple[str, Document]], rule: str) -> None:
    assert [name for name, (_, document) in exported.items() if not RULES[rule](document)] == []


def test_floats_have_their_point_in_the_text(exported: dict[str, tuple[str, Document]]) -> None:
    for text, _ in exported.values():
        rates = re.findall(r'"[rt]x_pps": ([^,\s}]+)', text)
        assert rates and all("." in rate or "e" in rate for rate in rates)


def test_files_of_one_profile_have_the_same_settings_of_the_same_types(
    exported: dict[str, tuple[str, Document]],
) -> None:
    by_profile: dict[str, list[Document]] = {}
    for _, document in exported.values():
        by_profile.setdefault(document["vars"]["profile_file"], []).append(document["vars"])
    assert len(by_profile) == 2
    for told in by_profile.values():
        for key in KEYS:
            assert len({(type(one[key]), one[key]) for one in told}) == 1, key


def test_ramps_of_one_profile_are_aligned(exported: dict[str, tuple[str, Document]]) -> None:
    """The ideal line is the largest rate sent in any file: where nobody was short, all sent the same in each second."""
    by_profile: dict[str, list[list[float]]] = {}
    for _, document in exported.values():
        sent = [one["0"]["tx_pps"] for one in seconds(document)]
        by_profile.setdefault(document["vars"]["profile_file"], []).append(sent)
    for ramps in by_profile.values():
        ideal = [max(rates) for rates in zip(*ramps, strict=True)]
        for ramp in ramps:
            assert all(abs(sent / best - 1) < 0.02 for sent, best in zip(ramp[5:], ideal[5:], strict=True))


def test_its_maximum_is_ours(place: Path, exported: dict[str, tuple[str, Document]]) -> None:
    """graph.rb's: the rate at the first second of a loss that is still there in the last one."""
    saturated = 0
    for path in place.glob("results/*/*/*.json"):
        run, ending = load_run(path), f"{path.parts[-3]}-{path.stem}.loadtest.json"
        (document,) = [one for name, (_, one) in exported.items() if name == f"{run.dut['name']}-{ending}"]
        for direction, (tx, rx) in zip(run.analysis.directions, (("0", "1"), ("1", "0")), strict=False):
            found = None
            for one in seconds(document):
                lossy = (one[tx]["tx_pps"] - one[rx]["rx_pps"]) / one[tx]["tx_pps"] > run.plan.loss_threshold
                found = (found or one[tx]["tx_pps"]) if lossy else None
            if direction.first_bad_pps is not None:
                saturated += 1
                assert found == pytest.approx(direction.first_bad_pps, abs=1.5 * run.plan.step_pps(direction.direction))
    assert saturated >= 8
    said(place, "results", "export", "--loadtest", str(path), "-o", "one.json")
    assert json.loads((place / "one.json").read_text()) == document, "alone as with others"


def test_imported_again_they_are_the_same_runs(place: Path, exported: dict[str, tuple[str, Document]]) -> None:
    files = (f"exported/{name}" for name in exported)
    said(place, "results", "import", "--speed", "10gbit", "--results", "again", *files)
    ours, theirs = (open_index(place / name, print).rows() for name in ("results", "again"))
    assert len(theirs) == 16
    assert sorted(round(row.line_share, 3) for row in ours) == pytest.approx(
        sorted(round(row.line_share, 3) for row in theirs), abs=0.002
    )
