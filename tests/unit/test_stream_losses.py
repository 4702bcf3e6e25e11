"""Loss per stream: which size is lost, first and how much; and loss that frames of others cannot hide."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count, pairwise
from typing import Any

import msgspec
import pytest
from documents import to_document
from hypothesis import given
from hypothesis import strategies as st
from runs import PROFILE, World, make_plan, make_result

from trexbench.core.load.plan import Direction
from trexbench.core.load.sample import Phase, PortCounters, Reading, Sample, StreamCounters, sample_from_dict, stored
from trexbench.core.load.windows import build_window, count_streams, find_unmarked
from trexbench.core.result import RunResult, from_document
from trexbench.core.verdict.parts import Limit
from trexbench.core.verdict.streams import lost_first, stream_names
from trexbench.report.run.summary import stream_words, summarise

D = Direction(0, 1)
SIZES, SHARES = (64, 590, 1514), (28 / 48, 16 / 48, 4 / 48)
KNEES = (900e3, 700e3, 500e3)
IMIX = {D: PROFILE | {"streams": [{"frame_bytes": size} for size in SIZES]}}

Loss = Callable[[int, float], float]


def by_size(number: int, pps: float) -> float:
    """Each size is lost from a rate of its own on."""
    return max(0.0, 1 - KNEES[number] / pps) if pps else 0.0


def counted(
    samples: Sequence[Sample], loss: Loss, foreign_pps: float = 0.0, marked: float = 1.0, earlier: float = 0.0
) -> tuple[Sample, ...]:
    """These samples of a perfect router, with streams that lose so much at a rate, and a sender from elsewhere.

    marked: the share of the received frames that still has its mark. earlier: frames received before the run.
    """
    sent, back, others = [0.0] * 3, [0.0] * 3, earlier
    found = [replace(samples[0], reading=with_streams(samples[0].reading, samples[0].t_s, sent, back, others, marked))]
    for before, after in pairwise(samples):
        frames = after.reading.ports[0].opackets - before.reading.ports[0].opackets
        pps = frames / (after.t_s - before.t_s)
        for number, share in enumerate(SHARES):
            sent[number] += frames * share
            back[number] += frames * share * (1 - loss(number, pps))
        others += foreign_pps * (after.t_s - before.t_s)
        found.append(replace(after, reading=with_streams(after.reading, after.t_s, sent, back, others, marked)))
    return tuple(found)


def with_streams(
    reading: Reading, t_s: float, sent: Sequence[float], back: Sequence[float], others: float, marked: float
) -> Reading:
    streams = StreamCounters(t_s, tuple(map(round, sent)), {1: tuple(round(marked * one) for one in back)})
    port = replace(reading.ports[1], ipackets=round(sum(back) + others))
    return replace(reading, ports={**reading.ports, 1: port}, streams={0: streams})


def run(loss: Loss = by_size, kind: str = "ramp", **more: Any) -> RunResult:
    plan = make_plan(kind=kind)
    result = make_result(plan, World(capacity_pps=1e9))
    return replace(result, samples=counted(result.samples, loss, **more), profiles=IMIX)


def test_the_largest_frames_are_lost_first() -> None:
    result = run()
    (verdict,), streams = result.directions, result.streams[D]
    assert verdict.limit is Limit.DUT
    assert [one.frame_bytes for one in streams] == list(SIZES) and stream_names(streams) == ("64 B", "590 B", "1514 B")
    step = result.plan.step_pps(D)
    for one, knee in zip(streams, KNEES, strict=True):
        assert knee < (one.lossy_from_pps or 0) <= knee + 2.5 * step
    assert [one.number for one in lost_first(streams)] == [2]
    assert streams[2].knee_loss == pytest.approx(by_size(2, (verdict.first_bad_pps or 0) + step), rel=0.05)
    assert streams[0].knee_loss == streams[1].knee_loss == 0.0
    losses = [one.loss or 0.0 for one in streams]
    assert losses[2] > losses[1] > losses[0] > 0
    assert sum(one.sent for one in streams) < verdict.sent, "warm-up and trials are not among them"


def test_the_summary_says_so_in_a_line_and_the_document_has_it() -> None:
    result = run()
    words = dict(summarise(result).facts)["by stream"]
    assert words.startswith("0->1: 1514 B lost first, from ")
    coarse = dict(summarise(run(kind="search")).facts)["by stream"]
    assert coarse.startswith("0->1, in the ramp: 1514 B lost first, from ")
    assert "; lost in the first bad windows: 64 B none, 590 B none, 1514 B 9." in words
    document = json.loads(json.dumps(to_document(result)))
    told = document["analysis"][0]["streams"]
    assert [one["frame_bytes"] for one in told] == list(SIZES) and told[2]["lossy_from_pps"] < told[1]["lossy_from_pps"]
    assert from_document(document).streams == result.streams
    assert sample_from_dict(msgspec.to_builtins(stored(result.samples[9]), str_keys=True)) == result.samples[9]


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (lambda number, pps: 0.0, None),
        (lambda number, pps: max(0.0, 1 - 700e3 / pps) if pps else 0.0, "all lose from 7"),
        (lambda number, pps: by_size(max(1, number), pps), "1514 B lost first, from 5"),
        (lambda number, pps: by_size(min(1, number), pps), "590 B and 1514 B lost first, from 7"),
        (lambda number, pps: 1e-4, "lost in ramp and hold: 64 B 0.010 %"),
    ],
)
def test_words(loss: Loss, said: str | None) -> None:
    words = stream_words(run(loss).streams[D])
    assert words is None if said is None else words is not None and words.startswith(said), words


def test_one_stream_needs_no_line_and_streams_of_a_size_have_numbers() -> None:
    streams = run().streams[D]
    assert stream_words(streams[:1]) is None
    alike = [replace(one, frame_bytes=64) for one in streams]
    assert stream_names(alike) == ("64 B (1)", "64 B (2)", "64 B (3)")


def test_a_foreign_sender_hides_no_loss_and_is_told() -> None:
    """By the port's counters alone nothing is lost below 900 kpps, but for the strangers' steady rate."""
    quiet, noisy = run(foreign_pps=0.0), run(foreign_pps=400e3)
    plain = [replace(one, reading=replace(one.reading, streams={})) for one in noisy.samples]
    by_port = replace(noisy, samples=plain).directions[0]
    assert by_port.maximum_pps == pytest.approx(quiet.directions[0].maximum_pps, rel=0.05)
    assert noisy.directions[0].maximum_pps == quiet.directions[0].maximum_pps
    assert noisy.directions[0].limit is Limit.DUT
    codes = {warning.code for warning in noisy.analysis_warnings}
    assert "foreign-frames" in codes and "foreign-frames" not in {one.code for one in quiet.analysis_warnings}


@pytest.mark.parametrize(("lost", "limit"), [(0.002, Limit.NONE), (0.005, Limit.UNKNOWN)])
def test_frames_that_only_come_late_are_not_lost(lost: float, limit: Limit) -> None:
    """Every other window lacks frames, of which the next has 0.2 % too many, as on a busy tester at low rates."""
    number = count()
    assert run(lambda stream, pps: -0.002 if next(number) // 3 % 2 else lost).directions[0].limit is limit


@pytest.mark.parametrize("marked", [0.0, 0.005])
def test_marks_that_do_not_come_back_are_no_loss(marked: float) -> None:
    """Marks vanish as behind pf's random-id: the ports' counts are the truth then, and a doubt says what is unknown."""
    found, right = run(marked=marked), run()
    assert found.directions[0].maximum_pps == pytest.approx(right.directions[0].maximum_pps, rel=1e-3)
    assert found.streams == {}
    (warning,) = [one for one in found.analysis_warnings if one.code == "unmarked"]
    assert warning.text.startswith("0->1: frames came back without the IP ID")
    drops_most = run(lambda number, pps: 0.997)
    assert drops_most.streams
    blind = [run(lambda number, pps: 1.0, foreign_pps=10.0), run(lambda number, pps: 1.0, earlier=10**9)]
    for same in (right, drops_most, *blind):
        assert "unmarked" not in {one.code for one in same.analysis_warnings}


def sample(t_s: float, streams: StreamCounters | None, sent: int = 0, received: int = 0) -> Sample:
    ports = {0: PortCounters(t_s, sent, 0, 0, 0, 0, 0), 1: PortCounters(t_s, 0, 0, received, 0, 0, 0)}
    return Sample(Phase.RAMP, t_s, {D: 1e3}, Reading(ports, streams={} if streams is None else {0: streams}))


FIRST = StreamCounters(0.0, (10, 10), {1: (10, 10)})
PAIRS = [
    ("both counted", FIRST, StreamCounters(2.0, (110, 210), {1: (100, 200)}), (300, 280, 150.0)),
    ("not at first", None, StreamCounters(2.0, (110, 210), {1: (100, 200)}), (1000, 900, 1000.0)),
    ("not at last", FIRST, None, (1000, 900, 1000.0)),
    ("counted anew", FIRST, StreamCounters(2.0, (5, 210), {1: (5, 200)}), (1000, 900, 1000.0)),
    ("other streams", FIRST, StreamCounters(2.0, (200,), {1: (200,)}), (1000, 900, 1000.0)),
    ("at one moment", FIRST, StreamCounters(0.0, (20, 20), {1: (20, 20)}), (1000, 900, 1000.0)),
    ("unmarked from here", FIRST, StreamCounters(2.0, (510, 510), {1: (10, 10)}), (1000, 900, 1000.0)),
    ("lost from here", FIRST, StreamCounters(2.0, (910, 910), {1: (10, 10)}), (1800, 0, 900.0)),
    ("nowhere back", FIRST, StreamCounters(2.0, (9000, 9000), {0: (9000, 9000)}), (1000, 900, 1000.0)),
    ("elsewhere too", FIRST, StreamCounters(2.0, (110, 110), {0: (50, 50), 1: (60, 60)}), (200, 100, 100.0)),
]


@pytest.mark.parametrize(("about", "first", "last", "wanted"), PAIRS, ids=[row[0] for row in PAIRS])
def test_a_window_is_of_the_streams_where_all_are_counted(about: str, first: Any, last: Any, wanted: Any) -> None:
    window = build_window(D, [sample(0.0, first), sample(1.0, last, 1000, 900)])
    assert (window.sent, window.received, window.sent_pps) == wanted


def test_a_window_in_which_the_driver_refused_frames_is_of_the_ports() -> None:
    """The streams count these as sent, and the router would have lost them."""
    first, last = sample(0.0, FIRST), sample(1.0, StreamCounters(1.0, (610, 610), {1: (510, 510)}), 1000, 1000)
    assert build_window(D, [first, last]).lost == 200
    ports = last.reading.ports | {0: replace(last.reading.ports[0], oerrors=200)}
    window = build_window(D, [first, replace(last, reading=replace(last.reading, ports=ports))])
    assert (window.sent, window.received, window.lost) == (1000, 1000, 0)


@given(st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)), min_size=1, max_size=5))
def test_streams_add_up_to_their_window(counts: list[tuple[int, int]]) -> None:
    sent, received = (tuple(one) for one in zip(*counts, strict=True))
    last = sample(1.0, StreamCounters(1.0, sent, {1: received}), 7, 5)
    found = count_streams(D, zero := sample(0.0, StreamCounters(0.0, (0,) * len(sent))), last)
    window = build_window(D, [zero, last])
    assert (found is None) == find_unmarked(D, last)
    assert (window.sent, window.received) == ((7, 5) if found is None else (sum(sent), sum(received)))


def test_streams_that_the_profile_does_not_have_are_told_by_nobody() -> None:
    result = run()
    for streams in ([], [{"frame_bytes": 64}], [{}], None, "x", [3, 4, 5]):
        assert replace(result, profiles={D: PROFILE | {"streams": streams}}).streams == {}
    assert replace(result, samples=()).streams == {}
