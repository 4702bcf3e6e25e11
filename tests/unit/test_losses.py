"""Where frames were lost: counters fitted to the tester's loss, and nobody blamed for more than was lost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trexbench.core.dut.losses import AFTER, BEFORE, INSIDE, SOMEWHERE, LossReport, locate
from trexbench.core.dut.telemetry import DropCount, Missing, Observation, PortCount
from trexbench.core.load.plan import Direction

THERE, BACK = Direction(0, 1), Direction(1, 0)
SENT = 1_000_000


def seen(*drops: DropCount, ports: Sequence[tuple[int | None, int | None]] = ()) -> Observation:
    """An observation; ports: rx_packets and tx_packets of the interfaces that face port 0, 1 ..."""
    return Observation(drops=drops, ports=tuple(PortCount(port, *counts) for port, counts in enumerate(ports)))


def one_way(lost: int, before: Observation, after: Observation, **more: dict[int, int]) -> LossReport:
    return locate(before, after, {THERE: lost}, {THERE: SENT}, **more)


def codes(report: LossReport) -> list[str]:
    return [warning.code for warning in report.warnings]


NOTHING = seen()
ROWS = [
    # lost, the DUT's counters after a start from zero, what is said
    (100_000, seen(DropCount("rx-miss", 98_000, 0, 1)), "98.0 % of the loss is rx-miss on port 0 queue 1"),
    (100_000, seen(), "unexplained: 100.0 % of the loss is in no counter that was read (0->1)"),
    (
        100_000,
        seen(DropCount("rx-miss", 30_000, 0)),
        "unexplained: 70.0 % of the loss is in no counter that was read (0->1), 30.0 % is rx-miss on port 0",
    ),
    (
        100_000,
        seen(DropCount("rx_missed_errors", 60_000, 0), DropCount("softnet dropped", 40_000)),
        "60.0 % of the loss is rx_missed_errors on port 0, 40.0 % is softnet dropped",
    ),
    (3, seen(DropCount("rx-miss", 3, 0)), "only 3 of 1000000 frames were lost: 3 rx-miss on port 0"),
    (1, seen(), "only 1 of 1000000 frames was lost: 1 in no counter that was read (0->1)"),
    (
        100_000,
        seen(ports=[(900_000, 0), (0, 900_000)]),
        "100.0 % of the loss is on the way from port 0 into the DUT, which did not count them",
    ),
    (
        100_000,
        seen(ports=[(SENT, 0), (0, 900_000)]),
        "100.0 % of the loss is inside the DUT between port 0 and port 1, in no counter that was read",
    ),
    (
        100_000,
        seen(ports=[(SENT, 0), (0, SENT)]),
        "100.0 % of the loss is on the way from the DUT, which counted them as sent, to port 1",
    ),
    (
        100_000,
        seen(DropCount("rx-miss", 50_000, 0), ports=[(900_000, None), (0, None)]),
        "50.0 % of the loss is on the way from port 0 into the DUT, which did not count them, "
        "50.0 % is rx-miss on port 0",
    ),
    (
        100_000,
        seen(*(DropCount("rx-miss", 12_500, 0, queue) for queue in range(8))),
        "100.0 % of the loss is rx-miss in 8 places (12.5 % of it on port 0 queue 0)",
    ),
]


@pytest.mark.parametrize(("lost", "after", "sentence"), ROWS)
def test_the_sentence(lost: int, after: Observation, sentence: str) -> None:
    zero = replace(after, drops=(), ports=tuple(PortCount(one.port, 0, 0) for one in after.ports))
    report = one_way(lost, zero, after)
    assert report.sentence == sentence and report.warnings == ()
    assert json.loads(json.dumps(msgspec.to_builtins(report)))["sentence"] == sentence


OVER = [
    ((DropCount("rx-miss", 3000, 0),), [1000], "rose by 3000, only 1000 of them can be"),
    ((DropCount("rx-miss", 1000, 0), DropCount("rx_no_buffer", 1000, 0)), [500, 500], "frames counted twice"),
    ((DropCount("rx-miss", 1000, 1),), [1000], "none of them is known to be lost frames"),
    ((DropCount("tx_dropped", 1000, 0),), [1000], "other traffic"),
    ((DropCount("rx-miss", 1000, 7),), [1000], "none of them"),
]


@pytest.mark.parametrize(("drops", "frames", "words"), OVER)
def test_counters_that_claim_too_much_are_doubted(drops: tuple[DropCount, ...], frames: list[int], words: str) -> None:
    report = one_way(1000, NOTHING, seen(*drops))
    assert [place.frames for place in report.places] == frames
    assert set(codes(report)) == {"loss-overclaimed"} and any(words in warning.text for warning in report.warnings)


def test_no_loss_and_a_counter_that_grew() -> None:
    assert one_way(0, NOTHING, seen(DropCount("rx-miss", 9, 0))).warnings == ()
    report = one_way(0, NOTHING, seen(DropCount("rx-miss", 12, 0)))
    assert (report.sentence, report.places, codes(report)) == ("no frame was lost", (), ["loss-overclaimed"])


def test_receiving_is_not_blamed_for_what_the_dut_has_sent() -> None:
    after = seen(DropCount("rx-miss", 1000, 0), ports=[(SENT, 0), (0, SENT)])
    report = one_way(1000, seen(ports=[(0, 0), (0, 0)]), after)
    assert [place.kind for place in report.places] == [AFTER] and codes(report) == ["loss-overclaimed"]


def test_counters_that_went_back_are_left_out() -> None:
    before = seen(DropCount("rx-miss", 500, 0), ports=[(10**7, 0), (0, 0)])
    report = one_way(1000, before, seen(DropCount("rx-miss", 7, 0), ports=[(5, 0), (0, SENT - 1000)]))
    assert codes(report) == ["loss-set-back"] * 2
    assert [place.kind for place in report.places] == [SOMEWHERE]
    gone = one_way(1000, seen(DropCount("rx-miss", 500, 0)), seen())
    assert "rx-miss on port 0 is no longer reported" in gone.warnings[0].text


@pytest.mark.parametrize(("then", "wrapped"), [(2**32 - 900, True), (2**32 - 901, False), (2**33 - 100, False)])
def test_a_counter_of_32_bits_that_wrapped_is_no_reset(then: int, wrapped: bool) -> None:
    """i40e_main.c, i40e_stat_update32. It cannot have risen by more than was lost."""
    report = one_way(1000, seen(DropCount("port.rx_discards", then, 0)), seen(DropCount("port.rx_discards", 100, 0)))
    assert [place.kind for place in report.places] == (["counter"] if wrapped else [SOMEWHERE])
    assert codes(report) == ([] if wrapped else ["loss-set-back"])


def test_counters_that_are_gone_are_named_in_the_order_of_the_dut() -> None:
    names = [f"counter {number}" for number in range(9)]
    report = one_way(1000, seen(*(DropCount(name, 1, 0) for name in names)), seen())
    assert [warning.text.partition(" on ")[0] for warning in report.warnings] == names


def test_a_counter_first_told_after_something_could_not_be_read() -> None:
    before = replace(seen(), missing=(Missing("counters of d0", "timed out"),))
    report = one_way(1000, before, seen(DropCount("rx-miss", 1000, 0)))
    assert codes(report) == ["loss-from-zero"] and report.places[0].frames == 1000
    again = replace(seen(DropCount("rx-miss", 1000, 0)), missing=before.missing)
    assert codes(one_way(1000, before, again)) == [], "as r8169's counter, or the queues of VPP's af_packet"


def test_interfaces_whose_counters_cannot_be() -> None:
    report = one_way(1000, seen(ports=[(0, 0), (0, 0)]), seen(ports=[(0, 0), (0, SENT - 1000)]))
    assert codes(report) == ["loss-contradiction"] and [place.kind for place in report.places] == [SOMEWHERE]
    assert "1000000 sent, 0 received by the DUT, 999000 sent by the DUT, 999000 returned" in report.warnings[0].text


def test_stray_frames_are_no_contradiction() -> None:
    report = one_way(1000, seen(ports=[(0, 0), (0, 0)]), seen(ports=[(SENT + 4, 0), (0, SENT - 1000 + 2)]))
    assert report.warnings == () and {place.kind: place.frames for place in report.places} == {INSIDE: 998, AFTER: 2}


def test_a_counter_of_all_ports_serves_both_ways() -> None:
    seen_by_all = seen(DropCount("ip4-input: ttl", 4000))
    report = locate(NOTHING, seen_by_all, {THERE: 3000, BACK: 1000}, {THERE: SENT, BACK: SENT})
    assert [(place.frames, place.directions) for place in report.places] == [(4000, ("0->1", "1->0"))]


RECEIVED = ("rx-miss", "rx_dropped", "rx-error", "Ierrs", "drops", "port.rx_discards", "rxq_1_queue_full_drops")
TO_SEND = ("Tx packet drops (dpdk tx failure)", "tx qdisc drops", "Oerrs", "Drop", "tx frame not ready", "tx_dropped")


@pytest.mark.parametrize(
    ("way", "name"), [*(("0->1", name) for name in RECEIVED), *(("1->0", name) for name in TO_SEND)]
)
def test_counters_of_the_drivers_belong_to_one_way(way: str, name: str) -> None:
    """A counter of the interface that faces port 0: of what came from there, or of what was to go there."""
    report = locate(NOTHING, seen(DropCount(name, 10, 0)), {THERE: 500, BACK: 500}, {THERE: SENT, BACK: SENT})
    assert [place.directions for place in report.places if place.counter] == [(way,)]


def test_loss_one_way_is_not_hidden_by_foreign_frames_the_other_way() -> None:
    report = locate(NOTHING, NOTHING, {THERE: 3000, BACK: -5000}, {THERE: SENT, BACK: SENT})
    assert report.lost == 3000 and codes(report) == ["loss-foreign"]
    assert "1->0: 5000 more frames came back than were sent" in report.warnings[0].text


def test_what_the_tester_itself_lost() -> None:
    before, after = seen(ports=[(0, 0), (0, 0)]), seen(ports=[(SENT, 0), (0, SENT)])
    report = one_way(1000, before, after, tester_errors={0: 0, 1: 900})
    assert report.sentence.startswith("90.0 % of the loss is ierrors of the tester on port 1")


_count = st.integers(0, 3000)
_drop = st.builds(
    DropCount,
    st.sampled_from(["rx-miss", "tx_dropped", "dropped", "rx and tx", "ierrs"]),
    _count,
    st.sampled_from([None, 0, 1, 2, 3, 9]),
    st.sampled_from([None, 0, 1]),
)
_port = st.tuples(st.none() | _count, st.none() | _count)
_observation = st.builds(
    lambda drops, ports: seen(*drops, ports=ports), st.lists(_drop, max_size=6), st.lists(_port, max_size=4)
)
_directions = st.sampled_from([(THERE,), (THERE, BACK), (THERE, Direction(2, 3), BACK, Direction(3, 2))])


@given(_observation, _observation, _directions, st.lists(st.integers(-50, 2000), min_size=4, max_size=4), _count)
def test_nobody_is_blamed_for_more_than_was_lost(
    before: Observation, after: Observation, directions: tuple[Direction, ...], losses: list[int], errors: int
) -> None:
    lost = dict(zip(directions, losses, strict=False))
    report = locate(before, after, lost, dict.fromkeys(directions, 2000), {1: errors})
    total = sum(max(0, count) for count in lost.values())
    assert report.lost == total == sum(place.frames for place in report.places)
    assert all(place.frames > 0 and 0 < place.share <= 1 for place in report.places)
    assert sum(place.share for place in report.places) == pytest.approx(1 if total else 0)
    for place in report.places:
        assert place.frames <= sum(max(0, count) for way, count in lost.items() if str(way) in place.directions)
    rises = {}
    for observation, sign in ((before, -1), (after, 1)):
        for one in observation.drops:
            key = one.name, one.port, one.queue
            rises[key] = rises.get(key, 0) + sign * one.count
    counters = [place for place in report.places if place.counter and place.kind == "counter"]
    for place in counters:
        assert place.frames <= (rises.get((place.counter or "", place.port, place.queue)) or errors)
    risen = [rise for rise in (*rises.values(), errors) if rise > 0]
    if sum(risen) > total + 10 * len(risen):
        assert "loss-overclaimed" in codes(report)
    assert report.sentence and (total or report.sentence == "no frame was lost")
    assert json.loads(json.dumps(msgspec.to_builtins(report)))["lost"] == total


@given(st.dictionaries(st.sampled_from([BEFORE, INSIDE, AFTER]), st.integers(0, 1000)))
def test_stretches_are_found_again(truth: dict[str, int]) -> None:
    """Frames lost on known stretches, counted by nothing but the interfaces."""
    got = SENT - truth.get(BEFORE, 0)
    gone = got - truth.get(INSIDE, 0)
    lost = sum(truth.values())
    report = one_way(lost, seen(ports=[(7, 7), (7, 7)]), seen(ports=[(got + 7, 7), (7, gone + 7)]))
    assert {place.kind: place.frames for place in report.places} == {name: n for name, n in truth.items() if n}
