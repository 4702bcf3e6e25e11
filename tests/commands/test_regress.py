"""``trexbench regress`` on simulated nights: real measurements of twins, kept as documents, judged by the command."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from copies import copy_run
from report_cases import make_night, make_record
from tools import folder_with, succeed, trexbench

from suites import FOUR, make_slower
from trexbench.results.nights import NightWriter, load_nights
from trexbench.review.find import read_index

BOTH = FOUR.replace("uni, bidir", "uni")


@dataclass(frozen=True)
class TwelveNights:
    """Nights of two DUTs, a cell each; from ``slower_from`` on VPP's twin needs 5 % more cycles.

    folder: holds ``results``, which all tests share: change them in a copy only. done: the commands of the last three
    nights, of which only the slower ones are judged.
    """

    folder: Path
    slower_from: str
    done: Sequence[subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def twelve_nights(tmp_path_factory: pytest.TempPathFactory) -> TwelveNights:
    """Three are measured, for every test that judges them: a change told after two takes ten before it, so alike."""
    folder = folder_with(tmp_path_factory.mktemp("twelve"), two=BOTH)
    *before, last_good, slower, latest = [f"2025-11-{day:02}" for day in range(9, 21)]
    night = ("two", "--sim", "-q", "--seed", "7", "--date")
    done = [trexbench(folder, "suite", "run", *night, last_good)]
    results = folder / "results"
    rows, _ = read_index(results, pytest.fail)
    for number, date in enumerate(before):
        records = [make_record(copy_run(results, row, date, 1 + 0.0003 * (number % 3 - 1))) for row in rows]
        NightWriter.begin(results, make_night(*records, at=date, suite="two", simulated=True, finished=date))
    make_slower(folder, 1.05)
    done += [trexbench(folder, "nightly", *night, date) for date in (slower, latest)]
    return TwelveNights(folder, slower, done)


@pytest.fixture(scope="module")
def nights(twelve_nights: TwelveNights, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Their results, to acknowledge changes in."""
    here = tmp_path_factory.mktemp("nights")
    shutil.copytree(twelve_nights.folder / "results", here / "results")
    return here


def test_twelve_nights_the_last_two_slower(nights: Path, twelve_nights: TwelveNights) -> None:
    done = trexbench(nights, "regress", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 3, done.stderr
    told = {one["metric"]: one for one in found["regressions"]}
    for metric, share in (("maximum rate", -0.05), ("cycles/packet", 0.05)):
        one = told[metric]
        assert one["since"] == twelve_nights.slower_from and one["nights"] == 2
        assert one["change"] == pytest.approx(share, abs=0.02), one
    assert [done.stderr for done in twelve_nights.done] == [""] * 3
    assert twelve_nights.done[0].returncode == 0 and twelve_nights.done[2].returncode == 3
    # The hold is above what this DUT can carry, so that it loses more there, too.
    assert told.keys() <= {"maximum rate", "cycles/packet", "loss in the hold"}
    assert {one["cell"] for one in found["regressions"]} == {"netgate-vpp var2-64b uni 1q simulated"}
    (group,) = found["groups"]
    assert group["kind"] == "regression" and len(group["figures"]) == len(told) and group["worse"]
    assert found["improvements"] == found["known"] == found["missing"] == found["insufficient"] == []
    explained = told["maximum rate"]["explanation"]
    assert any("cycles/packet since 19 November" in sentence for sentence in explained), explained


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--dut", "netgate-linux"), 0, "As usual"),
        (("--since", "2025-11-20"), 0, "NOT ALARMING"),
        (("--acknowledge", "netgate-linux *", "--note", "x"), 2, "nothing has changed in netgate-linux *: name"),
        (("--acknowledge", "netgate-vp *", "--note", "x"), 2, "no cell in results matches netgate-vp * yet: names"),
        (("--acknowledge", "*", "--metric", "power"), 2, "needs its reason: say with --note why\n"),
        (("--acknowledge", "*", "--metric", "power", "--note", " WHY "), 2, "say with --note why, not WHY"),
        (("--junit", "no/such/place.xml"), 9, "place.xml"),
    ],
)
def test_what_it_says_and_exits_with(nights: Path, arguments: Sequence[str], code: int, words: str) -> None:
    done = trexbench(nights, "regress", *arguments)
    assert done.returncode == code, done.stderr
    assert words in done.stdout + done.stderr and "Traceback" not in done.stderr


def test_known_changes_are_kept_shown_and_forgotten(nights: Path) -> None:
    cells = ("--acknowledge", "netgate-vpp *uni*", "--acknowledge", "netgate-vpp *64b*")
    names = "maximum rate", "cycles/packet", "loss in the hold"
    noted = [word for name in names for word in ("--metric", name)]
    succeed(nights, "regress", *cells, *noted, "--note", "more work", "--date", "2025-11-20")
    done = succeed(nights, "regress")
    assert "KNOWN CHANGES" in done.stdout and "known: more work" in done.stdout
    assert trexbench(nights, "regress", "--known").stdout.startswith(
        "1  until 2025-11-20: maximum rate of netgate-vpp *uni*"
    )
    known, *more = json.loads(trexbench(nights, "regress", "--known", "--json").stdout)
    assert (known["number"], known["note"], known["metric"], len(more)) == (1, "more work", "maximum rate", 5)
    assert "no known change 7" in trexbench(nights, "regress", "--forget", "1", "--forget", "7").stderr
    succeed(nights, "regress", *(word for number in "123456" for word in ("--forget", number)))
    nobody = succeed(nights, "regress", "--acknowledge", "netgate-vp *", "--metric", "power", "--note", "mistyped")
    assert "no cell in results matches netgate-vp * yet" in nobody.stderr and not done.stderr
    succeed(nights, "regress", "--forget", "1")
    assert trexbench(nights, "regress").returncode == 3
    metrics = "--metric", "maximum rate", "--metric", "power"
    lines = succeed(nights, "regress", *cells, *metrics, "--note", "x").stdout.splitlines()
    dates = [line.split()[2] for line in lines]
    changed, to_come = ({dates[at] for at, line in enumerate(lines) if name in line} for name in metrics[1::2])
    assert changed <= {"2025-11-19:", "2025-11-20:"}, "it hides no change of a night to come"
    assert to_come and not to_come & changed, "nothing has changed: it is for a change to come, from today on"
    succeed(nights, "regress", *(word for number in "1234" for word in ("--forget", number)))
    every = succeed(nights, "regress", "--acknowledge", "*", "--note", "more work").stdout
    assert {line.split()[2] for line in every.splitlines()} <= {"2025-11-19:", "2025-11-20:"}
    assert "KNOWN CHANGES" in succeed(nights, "regress").stdout
    succeed(nights, "regress", *(word for at, _ in enumerate(every.splitlines(), 1) for word in ("--forget", str(at))))


@pytest.mark.nightly
def test_what_a_regression_is_held_against_is_kept_until_it_is_acknowledged(
    twelve_nights: TwelveNights, tmp_path: Path
) -> None:
    shutil.copytree(twelve_nights.folder, tmp_path / "here")
    here = folder_with(tmp_path / "here", two=BOTH + "keep_nights: 3\n")
    tonight = ("nightly", "two", "--sim", "--seed", "7", "--date")
    standing = trexbench(here, *tonight, "2025-11-21")
    assert "DUT's config file / twin / cycles_per_packet: 420 -> 441.00" in standing.stdout, standing.stdout
    assert standing.returncode == 3 and "pruned" not in standing.stderr
    assert len(load_nights(here / "results", pytest.fail)) == 13
    succeed(here, "regress", "--acknowledge", "*", "--note", "known", "--date", "2025-11-23")
    unchanged = trexbench(here, "regress", "--acknowledge", "*", "--note", "known")
    assert unchanged.returncode == 2 and "nothing has changed in *: name the figure" in unchanged.stderr
    notes = here / "results" / "acknowledged"
    assert not any("*" in note.read_text() for note in notes.iterdir()), "each cell by itself"
    (notes / "0.json").write_text("{")
    unjudged = trexbench(here, *tonight, "2025-11-22")
    assert unjudged.returncode == 9 and "pruned   nothing" in unjudged.stderr, unjudged.stderr
    assert len(load_nights(here / "results", pytest.fail)) == 14
    (notes / "0.json").unlink()
    known = succeed(here, *tonight, "2025-11-23")
    assert "pruned   38 files" in known.stderr, "each night's runs and its record, and the page of those judged"
    pages = sorted(path.name for path in (here / "results").glob("report-*.html"))
    assert pages == [f"report-2025-11-{day}-two.html" for day in (21, 23)], "that of the 22nd could not be judged"
    nights = load_nights(here / "results", pytest.fail)
    assert [night.night for night in nights] == ["2025-11-21", "2025-11-22", "2025-11-23"]
    assert {cell.path for night in nights for cell in night.cells} == {
        path.relative_to(here / "results").as_posix() for path in here.glob("results/*/netgate-*/*.json")
    }
