"""A night's rules: what is tried again, what is not, what goes on, what is on disk meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import pytest
from effort import by_day
from runs import World, make_plan, make_result

from trexbench.config.catalogue import SUITES
from trexbench.config.lookup import read_suite
from trexbench.core import errors
from trexbench.core.errors import BenchError, ConfigError, DutChanged, DutError, DutLost, GeneratorLost, LabError
from trexbench.core.history.night import CellState, Night
from trexbench.core.result import RunResult, Status
from trexbench.core.units import format_duration
from trexbench.results.nights import NightWriter, load_nights, read_night
from trexbench.results.store import load_run
from trexbench.session.keep import Begun, Measured, Output, Underway, carry_out
from trexbench.session.loop import Interrupted
from trexbench.session.measure import Session
from trexbench.session.options import Setup
from trexbench.session.request import Request, expected_s
from trexbench.suite.cells import NightRun, night_code
from trexbench.suite.jobs import Job, begin_night, labelled, make_jobs, resumed, sessions

ROOT = Path(__file__).resolve().parents[2]
RESULT = make_result()
Say = Callable[[str], None]
ON = "on"
"""Entry of a script: this one succeeds."""

SETUP = Setup(server="trex1", apply=False)
SIMULATED = Setup(sim=True)


@pytest.fixture(autouse=True)
def configs_of_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREXBENCH_DUT_CONFIGS", str(ROOT / "dut_configs"))
    monkeypatch.setenv("TREXBENCH_SUITES", str(ROOT / "suites"))


@dataclass
class Script:
    """Outcomes of openings and measurements, in their order; when a script is at its end, all goes well."""

    openings: list[BaseException | str] = field(default_factory=list)
    runs: list[BaseException | str] = field(default_factory=list)
    closings: list[BaseException | str] = field(default_factory=list)
    result: RunResult = RESULT
    calls: list[str] = field(default_factory=list)
    look: Callable[[], None] = lambda: None

    @contextmanager
    def open(self, request: Request, _say: Callable[[str], None]) -> Iterator[Session]:
        self.calls.append(f"open {request.dut.name}")
        self._play(self.openings)
        yield cast(Session, self)
        self._play(self.closings)

    def measure(self, request: Request, output: Output, begun: Begun) -> Measured[RunResult]:
        self.calls.append(f"run {request.mode} {request.direction_name}")
        run = replace(
            self.result,
            samples=(),
            status=Status.RUNNING,
            command={**RESULT.command, "mode": request.mode, **request.labels},
            dut={**RESULT.dut, "name": request.dut.name},
        )

        def drive(underway: Underway[RunResult]) -> None:
            self.look()
            underway.run = replace(run, samples=self.result.samples)
            self._play(self.runs)

        return carry_out(run, drive, output, begun)

    def _play(self, script: list[BaseException | str]) -> None:
        said = script.pop(0) if script else ON
        if isinstance(said, BaseException):
            raise said


def jobs_of(name: str = "lab", only: Sequence[str] = (), setup: Setup = SETUP) -> list[Job]:
    return make_jobs(read_suite(SUITES.find(name)), setup, only)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "plan: {warmup: 1kpps:1s}\nduts: [netgate-vpp]\nmodes: [64b]\ndirections: [uni]\n",
            "netgate-vpp var2-64b uni 1q of suite one cannot be measured: --warmup of 1 s",
        ),
        (
            "method: tcp\ntcp: {time: 0}\nduts: [raspberry-pi]\nmodes: [forward-ipv4]\n",
            "raspberry-pi forward-ipv4 uni tcp of suite one cannot be measured: --time of 0 s",
        ),
    ],
)
def test_a_plan_that_no_cell_can_follow_is_refused_with_the_cell_and_its_suite(
    text: str, words: str, tmp_path: Path
) -> None:
    (tmp_path / "one.yaml").write_text(text)
    with pytest.raises(ConfigError, match=words):
        make_jobs(read_suite(tmp_path / "one.yaml"), SIMULATED)


def play(jobs: Sequence[Job], script: Script, writer: NightWriter, say: Say = lambda _: None) -> Night:
    """Run the night of these jobs, whose sessions are the script's."""
    played = [
        replace(job, load=replace(job.load, open=script.open, measure=Script.measure))
        for job in labelled(jobs, "lab", writer)
    ]
    return NightRun(played, writer, Output(writer.path.parents[1]), say, 0.0).go()


def night_of(tmp_path: Path, script: Script, jobs: Sequence[Job] | None = None, say: Say = lambda _: None) -> Night:
    jobs = jobs or jobs_of()
    writer = begin_night(tmp_path, "lab", "2026-11-21", jobs)
    try:
        return play(jobs, script, writer, say)
    finally:
        assert read_night(writer.path) == writer.night


def states(night: Night) -> str:
    return "".join(cell.state.value[0] for cell in night.cells)


def test_all_well(tmp_path: Path) -> None:
    script, said = Script(), list[str]()
    night = night_of(tmp_path, script, say=said.append)
    assert states(night) == "dddd" and night.finished is not None and night.error is None and night_code(night) == 0
    whole_s = sum(job.expected_s for job in jobs_of())
    assert said[0].startswith(f"cell 1 of 4, {format_duration(whole_s)} left: ")
    assert {cell.attempts[-1].took_s is not None for cell in night.cells} == {True}
    assert [call.split()[0] for call in script.calls] == ["open", "run", "run", "run", "run"]
    for cell in night.cells:
        assert cell.path is not None and load_run(tmp_path / cell.path).status is Status.COMPLETE
    labels = load_run(tmp_path / str(night.cells[0].path)).command
    assert (labels["suite"], labels["night"]) == ("lab", "2026-11-21")


def test_the_cell_in_flight_is_on_disk_with_its_document(tmp_path: Path) -> None:
    seen: list[tuple[str, str | None]] = []

    def look() -> None:
        (night,) = load_nights(tmp_path, pytest.fail)
        seen.append((states(night), night.cells[len(seen)].path))

    night_of(tmp_path, Script(look=look))
    assert [word for word, _ in seen] == ["rwww", "drww", "ddrw", "dddr"]
    assert all(path is not None and (tmp_path / path).exists() for _, path in seen)


@pytest.mark.parametrize(
    "error",
    by_day(2, [one("it failed") for one in (GeneratorLost, DutLost, errors.TesterBusy, LabError, DutChanged)]),
    ids=repr,
)
def test_what_the_tester_failed_is_tried_once_more(tmp_path: Path, error: BenchError) -> None:
    script = Script(runs=[ON, error])
    night = night_of(tmp_path, script)
    assert states(night) == "dddd" and night_code(night) == 0
    assert [len(cell.attempts) for cell in night.cells] == [1, 2, 1, 1]
    first, second = night.cells[1].attempts
    assert first.error == str(error) and first.code == error.exit_code and second.error is None
    assert first.path is not None and load_run(tmp_path / first.path).status is Status.INCOMPLETE
    assert [call.split()[0] for call in script.calls] == ["open", "run", "run", "open", "run", "run", "run"]


def test_what_fails_twice_has_failed(tmp_path: Path) -> None:
    lost = GeneratorLost("TRex went away")
    night = night_of(tmp_path, Script(runs=[lost, lost]))
    assert states(night) == "fddd" and len(night.cells[0].attempts) == 2 and night_code(night) == 5


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("over line rate", "lower it"), 2),
        (DutError("frames do not come back"), 6),
        (ZeroDivisionError("a defect of ours"), 1),
    ],
)
def test_what_would_fail_again_is_not_tried_again(tmp_path: Path, error: Exception, code: int) -> None:
    script = Script(runs=[ON, error])
    night = night_of(tmp_path, script)
    assert states(night) == "dfdd" and night_code(night) == code and len(night.cells[1].attempts) == 1
    assert [call.split()[0] for call in script.calls] == ["open", "run", "run", "open", "run", "run"]


def test_a_search_that_found_no_answer_has_failed(tmp_path: Path) -> None:
    restless = make_result(make_plan(kind="search", goals=(0.001,), width=0.001), World(7e5, noise=0.05, seed=2))
    night = night_of(tmp_path, Script(result=restless), jobs_of(only=["*64b uni*"]))
    assert states(night) == "f" and night_code(night) == 4 and "looks did not find" in str(night.failures)


def test_a_dut_that_cannot_be_reached_costs_its_own_cells_only(tmp_path: Path) -> None:
    away = DutLost("netgate cannot be reached")
    script = Script(openings=[away, away])
    jobs = jobs_of("netgate-6100", only=["netgate-linux *64b*", "netgate-vpp *64b uni 1q"])
    night = night_of(tmp_path, script, jobs)
    assert states(night) == "ffffdd" and night_code(night) == 6 and night.error is None
    assert [len(cell.attempts) for cell in night.cells] == [2, 2, 2, 2, 1, 1]
    assert script.calls[:3] == ["open netgate-linux", "open netgate-linux", "open netgate-vpp"]


def test_a_duts_journal_that_cannot_be_read_costs_its_own_cells_only(tmp_path: Path) -> None:
    jobs = jobs_of("netgate-6100", only=["netgate-linux *64b*", "netgate-vpp *64b uni 1q"])
    night = night_of(tmp_path, Script(openings=[errors.StoreError("it is no journal", "inspect it")]), jobs)
    assert states(night) == "ffffdd" and night_code(night) == errors.StoreError.exit_code and night.finished is not None


def test_a_mismatch_is_not_asked_for_twice(tmp_path: Path) -> None:
    script = Script(openings=[DutError("not what its config says")])
    night = night_of(tmp_path, script)
    assert states(night) == "ffff" and script.calls == ["open lab-linux"]
    assert night.error is not None and "nothing was measured: not what its config says" in night.error


def test_an_end_that_fails_costs_no_cell(tmp_path: Path) -> None:
    night = night_of(tmp_path, Script(closings=[GeneratorLost("release failed")]))
    assert states(night) == "dddd" and night_code(night) == 0


def test_an_interruption_leaves_a_night_that_can_be_resumed(tmp_path: Path) -> None:
    jobs = jobs_of()
    with pytest.raises(Interrupted):
        night_of(tmp_path, Script(runs=[ON, Interrupted("Ctrl-C", 130)]), jobs)
    (night,) = load_nights(tmp_path, pytest.fail)
    assert states(night) == "dwww" and night.finished is None and night.error == "interrupted by Ctrl-C"
    writer = resumed(tmp_path, tmp_path / "nights" / "2026-11-21-lab.json", night, jobs)
    script = Script()
    night = play(jobs, script, writer)
    assert states(night) == "dddd" and night.error is None and len(script.calls) == 4
    assert [len(cell.attempts) for cell in night.cells] == [1, 2, 1, 1]


def test_the_line_of_a_cell_without_a_good_rate_says_so_in_place_of_zero() -> None:
    plan = make_plan(bidir=True)
    job = jobs_of(only=["*64b bidir*"])[0]
    none = job.answer(make_result(plan, World(rx_limit_pps=5e3)))
    assert none.startswith("more loss than allowed at every rate, from ") and "0.000" not in none
    assert " Mpps in total (" in job.answer(make_result(plan, World(capacity_pps=6e5)))


@pytest.mark.parametrize("error", [GeneratorLost("no TRex server", "start it"), DutError("no answer", "look at it")])
def test_what_fails_alike_in_every_session_is_said_once(tmp_path: Path, error: BenchError) -> None:
    jobs, said = jobs_of("netgate-6100"), list[str]()
    night = night_of(tmp_path, Script(openings=[error] * 2 * len(jobs)), jobs, said.append)
    assert len(night.failed) == len(jobs) == 40 and {*night.failures} == {str(error)}
    assert [line for line in said if str(error) in line] == [f"  {error}"] and len(said) <= 3


def test_what_is_measured_after_a_failure_is_announced_and_other_reasons_are_said(tmp_path: Path) -> None:
    broken, other, said = DutError("no answer", "look at it"), DutError("another", "do"), list[str]()
    night_of(tmp_path, Script(runs=[broken, broken, other, ON]), say=said.append)
    assert sum(line.startswith("cell ") for line in said) == 4, "each was begun"
    reasons = [line for line in said if line.startswith("  ") and "pps" not in line]
    assert reasons == [f"  {broken}", "  failed for the same reason", f"  {other}"]


@pytest.mark.parametrize(("complete", "left"), [(True, (2, 3)), (False, (1, 2, 3))])
def test_a_cell_in_flight_counts_if_its_run_finished(tmp_path: Path, complete: bool, left: tuple[int, ...]) -> None:
    """Its runner may have been killed between the two files."""
    jobs = jobs_of()
    with pytest.raises(Interrupted):
        night_of(tmp_path, Script(runs=[*[ON] * (1 + complete), Interrupted("Ctrl-C", 130)]), jobs)
    (night,) = load_nights(tmp_path, pytest.fail)
    path = tmp_path / "nights" / "2026-11-21-lab.json"
    begun = replace(night.cells[1].attempts[0], error=None, code=0)
    killed = replace(night.cells[1], state=CellState.RUNNING, attempts=(begun,))
    again = resumed(tmp_path, path, night.with_cell(1, killed), jobs).night
    assert again.left == left
    assert complete or again.cells[1].attempts[0].error == "its runner was killed"


def test_a_night_of_other_cells_is_not_resumed(tmp_path: Path) -> None:
    jobs = jobs_of(setup=Setup(server="trex1"))
    writer = begin_night(tmp_path, "lab", "2026-11-21", jobs)
    with pytest.raises(ConfigError, match="other cells"):
        resumed(tmp_path, writer.path, writer.night, jobs[:-1])
    simulated = jobs_of(setup=SIMULATED)
    with pytest.raises(ConfigError, match="is measured"):
        resumed(tmp_path, writer.path, writer.night, simulated)


def test_how_long_a_night_takes() -> None:
    jobs = jobs_of("netgate-6100")
    assert expected_s(jobs[0].request) == 10 + 600 + 30 + 6 + 1 + 10 + 1 + 3 * (10 + 1)
    assert sum(job.expected_s for job in jobs) == 40 * 691
    quick = jobs_of("netgate-6100", setup=Setup(sim=True, speedup=10.0))
    assert quick[0].expected_s == 69.1
    assert jobs_of()[0].expected_s == make_plan(ramp_s=120.0, hold_s=10.0, latency_s=5.0).duration_s


@pytest.mark.parametrize("name", by_day(1, ["one.yaml", "own.yaml"]))
def test_a_zoom_that_a_file_asks_for_costs_no_night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    text = (ROOT / "dut_configs" / "netgate-vpp.yaml").read_text()
    (tmp_path / "own.yaml").write_text(f"plan: {{ramp_duration: 60s}}\n{text}")
    (tmp_path / "one.yaml").write_text("plan: {hold: 9s}\nduts: [own]\nmodes: [64b]\ndirections: [uni]\n")
    file = tmp_path / name
    file.write_text(file.read_text().replace("plan: {", "plan: {zoom: 20s, "))
    monkeypatch.setenv("TREXBENCH_DUT_CONFIGS", str(tmp_path))
    (job,) = make_jobs(read_suite(tmp_path / "one.yaml"), SIMULATED)
    assert expected_s(job.request) == make_plan(warmup_s=10.0, hold_s=9.0, confirm_s=10.0).duration_s
    with job.load.open(job.request, lambda _: None) as opened:
        run = job.measure(opened, Output(), lambda _: None).result
    assert [one.text for one in run.warnings] == [f"{file}:1: plan.zoom: ignored: a ramp has no zoom: leave it out"]


def test_a_simulated_cell_has_noise_of_its_own_each_night(tmp_path: Path) -> None:
    jobs = jobs_of(setup=SIMULATED)
    seeds = []
    for date in ("2026-11-21", "2026-11-21", "2026-11-22"):
        writer = begin_night(tmp_path, "lab", date, jobs)
        seeds += [job.request.seed for job in labelled(jobs, "lab", writer)]
        assert seeds[-4:] == [job.request.seed for job in labelled(jobs, "lab", writer)]
    assert len(set(seeds)) == 12
    assert [len(group) for group in sessions(jobs, range(4))] == [1, 1, 1, 1]


def test_globs_choose_cells() -> None:
    chosen = [str(job.cell) for job in jobs_of(only=["*64b uni*", "*imix bidir*"])]
    assert chosen == ["lab-linux var2-64b uni", "lab-linux var2-imix bidir"]
    with pytest.raises(ConfigError, match="no cell of lab matches x"):
        jobs_of(only=["x"])
