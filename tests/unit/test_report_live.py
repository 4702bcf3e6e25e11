"""Progress: where the run stands, what comes back, how long it takes; cheap, and quiet in a pipe."""

from __future__ import annotations

import dataclasses
import io
import itertools
import re
from dataclasses import replace

import pytest
from runs import World, make_plan, make_result, simulate
from tcp_runs import Path, make_tcp_result

from trexbench.core.load.plan import Plan
from trexbench.core.load.sample import Phase
from trexbench.core.strategy.base import LoadStep
from trexbench.core.tcp.plan import Leg, TcpEnvironment, Way
from trexbench.report.run.live import LINE_S, WORDS, Follower, Live, LiveProgress, format_progress
from trexbench.report.run.summary import plan_words
from trexbench.report.run.text import open_live
from trexbench.report.tcp.live import TcpLive

PLAN = make_plan(bidir=True)


def test_phases_of_older_documents_have_words_too() -> None:
    assert set(WORDS) == set(Phase)  # pictures of stored runs name them


class Terminal(io.StringIO):
    def __init__(self) -> None:
        super().__init__()
        self.draws = 0

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.draws += "asked" in text
        return super().write(text)


@pytest.mark.parametrize(
    "plan",
    [
        PLAN,
        make_plan(confirm_s=0.0),
        make_plan(hold_s=0.0),
        make_plan(sample_s=0.1, ramp_s=10.0),
        make_plan(kind="saturate", hold_s=10.0),
    ],
)
def test_progress_over_a_run_only_grows_to_its_end(plan: Plan) -> None:
    world = World(capacity_pps=6e5)
    samples, follower, shares = simulate(plan, world).samples, Follower(plan), []
    for count in range(2, len(samples) + 1):
        follower.follow(samples[:count])
        shares.append(follower.progress(samples[:count]).share)
    assert all(a < b for a, b in itertools.pairwise(shares))
    assert shares[-1] == pytest.approx(1.0)


def test_rates_are_of_the_last_second_and_never_across_a_phase() -> None:
    plan = make_plan(sample_s=0.1, ramp_s=10.0)
    samples, follower = simulate(plan, World(capacity_pps=6e5)).samples, Follower(plan)
    for count in range(2, len(samples) + 1):
        follower.follow(samples[:count])
        progress = follower.progress(samples[:count])
        (window,) = progress.windows
        assert window.end_s - window.begin_s <= 1.0 + 1e-6
        inside = [s for s in samples[:count] if window.begin_s < s.t_s <= window.end_s]
        assert {(s.phase, s.trial) for s in inside} == {(progress.phase, progress.trial)}


def test_a_drain_has_no_loss() -> None:
    follower, samples = Follower(PLAN), [*simulate(PLAN, World(capacity_pps=670e3)).samples[:40]]
    follower.follow(samples[:-1])
    follower.follow(samples)
    assert all(window.loss for window in follower.progress(samples).windows)
    samples[-1] = dataclasses.replace(samples[-1], asked_pps={})
    assert not any(window.loss for window in follower.progress(samples).windows)


def test_a_line_says_what_is_asked_sent_received_and_lost() -> None:
    samples, follower = simulate(PLAN, World(capacity_pps=670e3)).samples[:40], Follower(PLAN)
    for count in range(2, len(samples) + 1):
        follower.follow(samples[:count])
    line = format_progress(PLAN, follower.progress(samples))
    assert line == (
        "39 s  ramp  asked 818.0 kpps per direction (55.0 % of line rate)  "
        "0->1 sent 818.0 kpps received 670.0 kpps loss 18.1 %  "
        "1->0 sent 818.0 kpps received 670.0 kpps loss 18.1 %  44 s left"
    )


def test_a_pipe_gets_a_line_now_and_then_and_one_per_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    assert type(open_live(make_result(), Terminal())) is Live, "a dumb terminal as well"
    stream = io.StringIO()
    result = make_result(PLAN, World(capacity_pps=670e3))
    assert type(open_live(result, stream)) is Live
    with open_live(result, stream) as live:
        simulate(PLAN, World(capacity_pps=670e3), live)
    lines = stream.getvalue().splitlines()
    assert "\x1b" not in stream.getvalue() and "\r" not in stream.getvalue()
    assert len(lines) <= PLAN.duration_s / LINE_S + 7
    words = [re.split(" {2,}", line)[1] for line in lines]
    assert [word for word, _ in itertools.groupby(words)] == [
        "warm-up", "ramp", "hold", "first bad rate again", "drain", "confirm 1", "drain again 1",
    ]  # fmt: skip


@pytest.mark.parametrize(("sample_s", "ports"), [(1.0, (0, 1)), (0.1, tuple(range(8)))])
def test_a_terminal_is_drawn_seldom(sample_s: float, ports: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    plan = make_plan(bidir=True, ports=ports, sample_s=sample_s, ramp_s=10.0)
    screen = Terminal()
    with open_live(make_result(plan), screen) as live:
        samples = simulate(plan, World(), live).samples
    assert "0->1" in screen.getvalue() and "\x1b" in screen.getvalue()
    assert 5 < screen.draws <= 2 * samples[-1].t_s + 6


def test_a_run_that_has_only_begun_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    result, stream = make_result(), io.StringIO()
    with open_live(result, stream) as live:
        live.sampled(result.samples[:1], LoadStep(Phase.WARMUP, {}, 1.0))
    assert stream.getvalue().startswith("0 s  begin  nothing sent")


class BrokenTerminal(Terminal):
    def write(self, text: str) -> int:
        raise OSError(28, "No space left on device")


@pytest.mark.parametrize("terminal", [True, False])
def test_a_stream_that_fails_costs_the_progress_only(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = BrokenTerminal()
    if not terminal:
        stream.isatty = lambda: False  # type: ignore[method-assign]
    with open_live(make_result(PLAN), stream) as live:
        outcome = simulate(PLAN, World(), live)
    assert outcome.error is None and outcome.warnings == ()


def test_a_defect_of_drawing_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    with open_live(make_result(PLAN), stream) as live:
        live.sampled([], LoadStep(Phase.WARMUP, {}, 1.0))
        live.sampled([], LoadStep(Phase.WARMUP, {}, 1.0))
    assert stream.getvalue() == "progress is no longer shown: IndexError: list index out of range\n"


@pytest.mark.parametrize("columns", [40, 80])
def test_a_narrow_terminal_shows_the_loss(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(columns))
    screen = Terminal()
    with open_live(make_result(PLAN), screen) as live:
        simulate(PLAN, World(capacity_pps=670e3), live)
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())
    assert "! 18.1 %" in shown and "39 s, 44 s left" in shown


class Drawn(Live):
    def draw(self, progress: LiveProgress) -> None:
        self.seen = [*getattr(self, "seen", []), progress]


def test_a_search_is_drawn_at_the_ends_of_its_looks() -> None:
    """A rate is changed a little late: what is sent until it has settled is less than what is asked."""
    plan = make_plan(kind="search")
    with Drawn(make_result(plan), io.StringIO()) as live:
        samples = simulate(plan, World(capacity_pps=670e3), live).samples
    looks = [progress for progress in live.seen if progress.phase is Phase.SEARCH]
    assert len(looks) == len({sample.trial for sample in samples if sample.phase is Phase.SEARCH}) > 5
    for progress in looks:
        (window,) = progress.windows
        assert window.end_s - window.begin_s == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        ("ramp", "; saturated: loss > 0.1 % in 3 consecutive windows of 1 s; "),
        ("search", "; a look of 1 s is bad if it loses more than the goal; "),
        ("mlrsearch", "; a load is bad if more than 50 % of 21 s of trials lose more than the goal; "),
    ],
)
def test_a_plan_says_its_own_rule(kind: str, rule: str) -> None:
    assert rule in plan_words(make_plan(kind=kind))


def test_windows_are_no_shorter_than_samples() -> None:
    assert "3 consecutive windows of 2 s; a sample every 2 s" in plan_words(make_plan(sample_s=2.0))


ONE_KERNEL = TcpEnvironment(one_kernel=True, cpus={"client": (0,), "server": (1,), "dut": (2,)})


@pytest.mark.parametrize(
    ("setup", "words"),
    [
        (ONE_KERNEL, "CPU client 20.0 %, CPU server 50.0 %, CPU DUT 80.0 %"),
        (replace(ONE_KERNEL, dut_is_guest=True), "CPU client 20.0 %, CPU server 50.0 %"),
        (TcpEnvironment(), "CPU client 50.0 %, CPU server 50.0 %"),
    ],
)
def test_hosts_of_one_kernel_are_shown_with_their_own_cpus(setup: TcpEnvironment, words: str) -> None:
    every = (0.2, 0.5, 0.8)
    path, stream = Path(cores={"client": every, "server": every}), io.StringIO()
    result = make_tcp_result(path, legs=[Leg(Way.BIDIR)], setup=setup)
    live = TcpLive(result, stream)
    live.begun(result.legs[0].leg)
    for client, server in zip(result.legs[0].client, result.legs[0].server, strict=True):
        live.seen("client", client)
        live.seen("server", server)
    last = stream.getvalue().splitlines()[-1]
    assert last.startswith("bidir IPv4, client sends, 940.0 Mbit/s, ") and f"{words}, " in last


@pytest.mark.parametrize(("speedup", "lines"), [(1.0, 3), (1.5, 2), (100.0, 0)])
def test_where_nothing_is_drawn_in_place_there_is_a_line_per_ten_real_seconds(speedup: float, lines: int) -> None:
    result, stream = make_tcp_result(), io.StringIO()
    live = TcpLive(result, stream, speedup)
    live.begun(result.legs[0].leg)
    for second in range(int(3 * LINE_S) + 1):
        live.seen("server", replace(result.legs[0].server[0], at_s=float(second), streams=()))
    said = stream.getvalue().splitlines()
    assert len(said) == lines and all(line.startswith("forward IPv4, CPU server ") for line in said), "as of iperf3"
