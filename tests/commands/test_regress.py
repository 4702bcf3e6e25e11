"""``trexbench regress`` on simulated nights: real measurements of twins, kept as documents, judged by the command."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest

from trexbench.cli.measure import measure
from trexbench.cli.request import Request
from trexbench.config import PlanDefaults, load_dut
from trexbench.config.lookup import find_profile
from trexbench.core.profile import resolve_mode
from trexbench.core.result import RunResult
from trexbench.core.units import Rate
from trexbench.store import RunWriter

from .tools import ROOT, trexbench

NIGHTS = [f"2026-11-{day:02}" for day in range(9, 21)]
SLOWER_FROM = "2026-11-19"
CELLS = (
    (("netgate-vpp", "var2-64b", False), ("netgate-vpp", "var2-64b", True)),
    (
        ("netgate-linux", "var2-64b", False),
        ("netgate-linux", "var2-imix", False),
    ),
)
TARGET = {"netgate-vpp": Rate(6e6, "pps"), "netgate-linux": Rate(3.2e6, "pps")}


class Keeper:
    """A recorder that only keeps."""

    def __init__(self, results: Path) -> None:
        self._results = results

    def begin(self, result: RunResult) -> RunWriter:
        self._writer = RunWriter(self._results, pytest.fail)
        return self._writer.begin(result)

    def end(self, result: RunResult) -> None:
        self._writer.end(result)


def request(configs: Path, dut: str, mode: str, bidir: bool, night: str, seed: int) -> Request:
    found = resolve_mode(mode)
    wished = PlanDefaults(ramp_to=TARGET[dut], ramp_s=60.0, hold_s=5.0, confirm_s=5.0)
    return Request(
        verb="ramp",
        dut=load_dut(dut, configs),
        mode=found.name,
        profile_file=find_profile(found.profile),
        tunables=dict(found.tunables),
        bidir=bidir,
        wished=wished,
        ports=(0, 1),
        rx_queues=1 if dut == "netgate-vpp" else None,
        sim=True,
        speedup=10000.0,
        seed=seed,
        labels={"suite": "four", "night": night},
    )


def slower(place: Path) -> Path:
    """The DUTs' files with VPP's twin 5 % slower."""
    place.mkdir()
    for file in (ROOT / "dut_configs").glob("*.yaml"):
        text = file.read_text(encoding="utf-8")
        if file.stem == "netgate-vpp":
            text, count = re.subn(
                r"^  (cycles_per_packet|cycles_per_vector|cycles_per_fetch): ([0-9.]+)",
                lambda found: f"  {found[1]}: {float(found[2]) * 1.05:g}",
                text,
                flags=re.MULTILINE,
            )
            assert count == 3
        (place / file.name).write_text(text, encoding="utf-8")
    return place


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Results of twelve nights, four cells each."""
    here = tmp_path_factory.mktemp("nights")
    usual, slow = ROOT / "dut_configs", slower(here / "slower")
    for number, night in enumerate(NIGHTS):
        for pair in CELLS:
            for at, (dut, mode, bidir) in enumerate(pair):
                configs = slow if night >= SLOWER_FROM else usual
                wanted = request(configs, dut, mode, bidir, night, 100 * number + at)
                _, outcome = measure(wanted, Keeper(here / "results"), lambda text: None)
                assert outcome.error is None
    yield here


def test_twelve_nights_the_last_two_slower(nights: Path) -> None:
    done = trexbench(nights, "regress", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 3, done.stderr
    told = {(one["cell"], one["metric"]): one for one in found["regressions"]}
    for cell in ("netgate-vpp var2-64b uni 1q simulated", "netgate-vpp var2-64b bidir 1q simulated"):
        for metric, share in (("maximum rate", -0.05), ("cycles/packet", 0.05)):
            one = told[cell, metric]
            assert one["since"] == SLOWER_FROM and one["nights"] == 2
            assert one["change"] == pytest.approx(share, abs=0.02), one
    assert {cell.split()[0] for cell, _ in told} == {"netgate-vpp"}
    assert found["improvements"] == found["known"] == found["missing"] == found["insufficient"] == []
    explained = told["netgate-vpp var2-64b uni 1q simulated", "maximum rate"]["explanation"]
    assert any("cycles/packet since 19 November" in sentence for sentence in explained), explained


def test_forms_of_one_judgement(nights: Path) -> None:
    done = trexbench(nights, "regress", "--junit", "r.xml", "--markdown", "r.md", "--github")
    assert done.returncode == 3
    assert done.stdout.startswith("::error title=netgate-vpp ")
    failures = ElementTree.parse(nights / "r.xml").getroot().findall(".//failure")
    assert len(failures) == done.stdout.count("::error ")
    assert (nights / "r.md").read_text(encoding="utf-8").startswith("**REGRESSION**")
    assert "since 2026-11-19 (2 nights" in trexbench(nights, "regress").stdout


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--dut", "netgate-linux"), 0, "no regression"),
        (("--since", "2026-11-20"), 0, "NOT ALARMING"),
        (("--suite", "other"), 4, "not enough data"),
        (("--since", "yesterday"), 2, "is no date"),
        (("--json", "--github"), 2, "several forms"),
        (("--metric", "power"), 2, "--acknowledge"),
        (("--acknowledge", "*"), 2, "--note"),
        (("--forget", "7"), 9, "no known change 7"),
        (("--results", "nowhere"), 9, "no such directory"),
        (("--junit", "no/such/place.xml"), 1, "place.xml"),
    ],
)
def test_what_it_says_and_exits_with(nights: Path, arguments: Sequence[str], code: int, words: str) -> None:
    done = trexbench(nights, "regress", *arguments)
    assert done.returncode == code, done.stderr
    assert words in done.stdout + done.stderr and "Traceback" not in done.stderr


def test_known_changes_are_kept_shown_and_forgotten(nights: Path) -> None:
    noted = ("--acknowledge", "netgate-vpp *", "--note", "5 % more work", "--date", "2026-11-20")
    assert trexbench(nights, "regress", *noted).returncode == 0
    done = trexbench(nights, "regress")
    assert done.returncode == 0 and "KNOWN CHANGES" in done.stdout and "known: 5 % more work" in done.stdout
    assert trexbench(nights, "regress", "--known").stdout.startswith(
        "1  until 2026-11-20: all figures of netgate-vpp *"
    )
    assert trexbench(nights, "regress", "--forget", "1").returncode == 0
    assert trexbench(nights, "regress").returncode == 3
