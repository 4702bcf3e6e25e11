"""Suites: what a file says, what is wrong with it in words that help, and the order of the cells."""

from __future__ import annotations

from pathlib import Path

import pytest

from trexbench.config.catalogue import SUITES
from trexbench.config.lookup import read_suite
from trexbench.config.model import PlanDefaults
from trexbench.config.suite import Instead, Suite, SuiteDut, sessions
from trexbench.core.errors import ConfigError
from trexbench.core.load.profile import MODES
from trexbench.session.options import Setup
from trexbench.suite.night import read_jobs

ROOT = Path(__file__).resolve().parents[2]
GOOD = """\
description: two boxes
duts:
  - lab-linux
  - {name: netgate-vpp, rx_queues: [1, 3]}
modes: [64b, var2-imix]
directions: [bidir, uni]
plan: {ramp_duration: 2m, hold: 5s}
keep_nights: 30
"""


@pytest.fixture(autouse=True)
def in_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for name in ("TREXBENCH_DUT_CONFIGS", "TREXBENCH_SUITES"):
        monkeypatch.delenv(name, raising=False)


def suite_of(tmp_path: Path, text: str) -> Suite:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    return read_suite(path)


def test_everything_a_suite_may_say(tmp_path: Path) -> None:
    assert suite_of(tmp_path, GOOD.replace("description: two boxes\n", "")).description == ""
    suite = suite_of(tmp_path, GOOD)
    assert suite.name == "mine" and suite.description == "two boxes" and suite.keep_nights == 30
    assert suite.duts == (SuiteDut("lab-linux"), SuiteDut("netgate-vpp", (1, 3)))
    assert suite.modes == ("var2-64b", "var2-imix")
    assert suite.directions == (True, False)
    assert suite.plan == PlanDefaults(ramp_s=120.0, hold_s=5.0)
    search = GOOD.replace("ramp_duration: 2m, hold: 5s", "width: 1%, soak: 9s") + "method: search\n"
    assert {cell.kind for cell in suite_of(tmp_path, search).cells} == {"search"}


TCP = "method: tcp\nduts: [raspberry-pi]\n"
LAB = "duts: [lab-linux]\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (GOOD.replace("- lab-linux", "- lab-linus"), r"mine.yaml:3: duts\[0\].*lab-linux"),
        (GOOD.replace("- lab-linux", "- ../evil"), "mine.yaml:3.*not the name of a DUT"),
        (GOOD.replace("- lab-linux", "- netgate-vpp.yaml"), "mine.yaml:4.*line 3 already"),
        (GOOD.replace("[1, 3]", "[1, 4]"), r"mine.yaml:4: duts\[1\].rx_queues: .*offers 1, 2, 3"),
        (GOOD.replace("[64b, var2-imix]", "[64bb]"), r"mine.yaml:5: modes\[0\].*did you mean 64b\?"),
        (GOOD.replace("[64b, var2-imix]", "[64b, var2-64b]"), r"mine.yaml:5: modes\[1\].*already"),
        (GOOD.replace("[64b, var2-imix]", "[]"), "mine.yaml:5: modes.*no mode"),
        (GOOD.replace("[bidir, uni]", "[both]"), r"mine.yaml:6: directions\[0\].*uni, bidir"),
        (GOOD.replace("modes: [64b, var2-imix]\n", ""), "'modes' is missing"),
        (f"{TCP}modes: [var2-64b]\n", "var2-64b is not a mode of method: tcp: name modes such as reverse-ipv4"),
        (TCP, "'modes' is missing: name those of the suite, or of raspberry-pi"),
        (f"{TCP}modes: [forward-ipv4]\ndirections: [uni]\n", "directions: does not fit method: tcp"),
        (f"{LAB}modes: [imix]\ndirections: [uni]\ntcp: {{time: 9s}}\n", "tcp: does not fit method: ramp"),
        (f"{LAB}modes: [forward-ipv4]\ndirections: [uni]\n", "forward-ipv4 is not a mode of method: ramp"),
        (f"{LAB}modes: [var2-64b]\n", "'directions' is missing"),
        (f"{TCP}modes: [forward]\n", "unknown mode 'forward': one of TCP is forward, reverse or bidir, "),
        (f"{TCP}modes: [forward-ipv7]\n", "unknown mode 'forward-ipv7': one of TCP is forward, reverse or bidir, "),
        (GOOD.replace("hold: 5s", "foo: 5s"), "plan.foo: unknown key: known here: .*, width$"),
        (GOOD.replace("hold: 5s", "soak: 5s"), "mine.yaml:7: plan.soak: does not fit method: ramp: remove it"),
        (GOOD.replace("ramp_duration: 2m", "width: 1%") + "method: search\n", "plan.hold: does not fit method"),
        (GOOD.replace("hold: 5s", "confirm: 5s") + "method: mlrsearch\n", "plan.ramp_duration: does not fit"),
        (GOOD + "variants: [stateful]\n", r"mine.yaml:4: duts\[1\]: netgate-vpp has no variant 'stateful'"),
        (GOOD + "method: saturate\n", "method.*ramp, search, mlrsearch"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    assert text != GOOD
    with pytest.raises(ConfigError, match=words):
        suite_of(tmp_path, text)


def test_the_forty_tests_of_the_article() -> None:
    suite = read_suite(SUITES.find("netgate-6100"))
    assert len(suite.cells) == len(set(map(str, suite.cells))) == 40
    assert suite.modes == tuple(mode.name for mode in MODES)
    assert [len(group) for group in sessions(suite.cells)] == [8] * 5


def test_a_suites_own_duts_variants_and_time_give_way() -> None:
    file = SUITES.find("raspberry-pi-2015")
    suite = read_suite(file, None, Instead(dut=("lab-linux",), variant=("none", "nat"), time=20.0))
    assert {(cell.dut, cell.variant) for cell in suite.cells} == {("lab-linux", None), ("lab-linux", "nat")}
    assert len(suite.cells) == len(set(suite.cells)) == 16
    assert (suite.tcp.time, suite.tcp.interval) == (20.0, 2.0)
    same = read_suite(file, None, Instead(variant=("firewall",)))
    assert {cell.variant for cell in same.cells} == {"firewall"} and same.tcp.time == 900
    with pytest.raises(ConfigError, match=r"--time is for TCP suites only, and netgate-6100 is none"):
        read_suite(SUITES.find("netgate-6100"), None, Instead(time=20.0))
    with pytest.raises(ConfigError, match="no variant 'nosuch'"):
        read_suite(file, None, Instead(dut=("lab-linux",), variant=("nosuch",)))


def test_nights_that_are_kept_but_never_judged_are_warned_of_once(tmp_path: Path) -> None:
    path, warnings = tmp_path / "mine.yaml", list[str]()
    for number in (6, 7):
        path.write_text(f"duts: [netgate-vpp]\nmodes: [64b]\ndirections: [uni]\nkeep_nights: {number}\n")
        read_jobs(str(path), Setup(sim=True), warn=warnings.append)
    assert warnings == [f"{path}: keep_nights: no figure of 6 nights can be judged: keep 7 at least"]
