"""Flows on queues on workers: the article's odd cells by arithmetic, what is told of them, and what is not known."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from effort import by_day, scaled
from hypothesis import given, settings
from hypothesis import strategies as st
from test_rss import by_definition

from trexbench.core.dut.flowspread import FlowSpread, predict
from trexbench.core.dut.rss import FIELDS, MICROSOFT_KEY, PortHash, QueuePlace, Spreading
from trexbench.core.dut.runtime import NodeRuntime, ThreadRuntime
from trexbench.core.dut.spreadcheck import compare_spread
from trexbench.core.dut.telemetry import DropCount, Observation, QueueCount
from trexbench.core.load.profile import Stream, resolve_mode
from trexbench.generator.trex.client import load_client
from trexbench.generator.trex.profile_loader import load_profile
from trexbench.twin.router import place

BENCH = Path(__file__).parents[2] / "stl_profiles" / "bench.py"
KEY = MICROSOFT_KEY.hex()


def streams(mode: str, ports: Sequence[int] = (0, 1), **tunables: str) -> dict[int, Sequence[Stream]]:
    """A mode of the bench, as the genuine client loads it for each port."""
    wanted = {**dict(resolve_mode(mode).tunables), **tunables}
    return {port: load_profile(load_client(), BENCH, wanted, port).streams for port in ports}


def vpp(queues: int, workers: int = 3, key: str | None = KEY, reason: str = "") -> Spreading:
    """Two ports of a VPP as it places their queues, on NICs that DPDK set up."""
    placed = place("round-robin", workers, 2, queues)
    places = [QueuePlace(at // queues, at % queues, f"vpp_wk_{worker}") for at, worker in enumerate(placed)]
    table = tuple(entry % queues for entry in range(512))
    return Spreading(tuple(places), tuple(PortHash(port, key, FIELDS, table, reason) for port in (0, 1)))


def shares(spread: FlowSpread) -> dict[str, float | None]:
    return {load.worker: load.share for load in spread.workers}


CELLS = [
    # mode, ports that send, queues per port: what one worker carries is 33 % of line rate (one way, 1 queue)
    ("64b", [0], 1, 1, "33 measured"),
    ("64b", [0], 2, 2, "66 measured"),
    ("64b", [0], 3, 3, "96 measured"),
    ("64b", [0, 1], 1, 2, "61 measured: two workers, a third has nothing to do"),
    ("64b", [0, 1], 2, 2, "63 measured: worker 0 carries half of both directions"),
    ("64b", [0, 1], 3, 3, "81 measured: all three workers, no longer at the rate of one alone"),
    ("1flow", [0], 1, 1, "33 measured"),
    ("1flow", [0], 2, 1, "33 measured"),
    ("1flow", [0], 3, 1, "33 measured"),
    ("1flow", [0, 1], 1, 2, "61 measured"),
    ("1flow", [0, 1], 2, 2, "61 measured: the two flows fall on different workers"),
    ("1flow", [0, 1], 3, 1, "33 measured: both flows fall on worker 0"),
]


@pytest.mark.parametrize(("mode", "ports", "queues", "workers_worth", "why"), CELLS, ids=lambda value: str(value)[:9])
def test_the_articles_cells(mode: str, ports: list[int], queues: int, workers_worth: int, why: str) -> None:
    spread = predict(vpp(queues), streams(mode), ports)
    assert spread.ceiling == pytest.approx(workers_worth, rel=0.02), why


@pytest.mark.parametrize(
    ("mode", "queues", "words"),
    [
        ("64b", 2, "port 0 queue 0 and port 1 queue 1 share vpp_wk_0: one core for both directions"),
        ("64b", 2, "vpp_wk_0 gets 50 % of the load: all 3 workers are busy only up to 67 %, the total is at most 2.01"),
        ("64b", 3, "evenly over 3 workers: the total is at most 2.9"),
        ("1flow", 3, "port 1: one flow: one queue of 3 is used, queue 0 (vpp_wk_0)"),
        ("1flow", 3, "vpp_wk_0 gets 100 % of the load: all 3 workers are busy only up to 33 %, the total is at most 1"),
        ("1flow", 3, "vpp_wk_1 and vpp_wk_2 get no frames"),
    ],
)
def test_what_it_implies_is_told(mode: str, queues: int, words: str) -> None:
    told = predict(vpp(queues), streams(mode), [0, 1], workers=("vpp_wk_0", "vpp_wk_1", "vpp_wk_2")).sentences
    assert any(words in sentence for sentence in told), told


def test_an_unknown_key_leaves_the_shares_unknown() -> None:
    spread = predict(vpp(3, key=None, reason="VPP does not print the key"), streams("64b"), [0, 1])
    assert [queue.share for queue in spread.queues] == [None] * 6
    assert set(shares(spread).values()) == {None} and (spread.busiest, spread.ceiling) == (None, None)
    assert "port 0: not known what each of its 3 queues gets: VPP does not print the key" in "".join(spread.sentences)


def test_one_flow_is_one_queue_whatever_the_key() -> None:
    spread = predict(vpp(3, key=None), streams("1flow"), [0, 1])
    assert spread.busiest is None
    assert "port 1: one flow: one queue of 3 is used, whichever that is" in spread.sentences


@pytest.mark.parametrize(
    ("queues", "workers", "loads"), [(1, 3, {"vpp_wk_0": 0.5, "vpp_wk_1": 0.5}), (2, 1, {"vpp_wk_0": 1.0})]
)
def test_who_serves_all_queues_of_a_port_has_all_of_its_load_whatever_the_key(
    queues: int, workers: int, loads: dict[str, float]
) -> None:
    spread = predict(vpp(queues, workers, key=None), streams("64b"), [0, 1])
    assert shares(spread) == loads and spread.ceiling == len(loads)
    assert queues > 1 or not any("not known" in sentence for sentence in spread.sentences)


@pytest.mark.parametrize(
    ("hashing", "words"),
    [
        (PortHash(0, "6d5a", FIELDS, (0, 1)), "a key of 2 bytes"),
        (PortHash(0, "secret", FIELDS, (0, 1)), "not a hexadecimal number"),
        (PortHash(0, KEY, (), (0, 1)), "does not say which fields"),
        (PortHash(0, KEY, FIELDS, ()), "table of queues"),
        (PortHash(1, KEY, FIELDS, (0, 1)), "does not say how its NIC hashes"),
    ],
)
def test_half_a_hash_is_none(hashing: PortHash, words: str) -> None:
    places = (QueuePlace(0, 0, "cpu0"), QueuePlace(0, 1, "cpu1"))
    spread = predict(Spreading(places, (hashing,)), streams("64b"), [0])
    assert words in spread.ports[0].reason and [queue.share for queue in spread.queues] == [None, None]


def test_a_table_of_one_queue_needs_no_key() -> None:
    places = tuple(QueuePlace(0, queue, f"cpu{queue}") for queue in range(4))
    spread = predict(Spreading(places, (PortHash(0, None, (), (2,) * 128),)), streams("64b"), [0])
    assert shares(spread) == {"cpu0": 0, "cpu1": 0, "cpu2": 1, "cpu3": 0}
    assert "port 0: 251 flows: one queue of 4 is used, queue 2 (cpu2)" in spread.sentences


def hashed_by(*fields: str) -> Spreading:
    """One port's three queues, chosen by these fields."""
    places = tuple(QueuePlace(0, queue, f"cpu{queue}") for queue in range(3))
    return Spreading(places, (PortHash(0, KEY, fields, tuple(entry % 3 for entry in range(128))),))


def test_too_many_flows_are_a_sample_and_say_so() -> None:
    spread = predict(vpp(3), streams("64b", vm="tuple"), [0])
    assert spread.ports[0].flows is None and not spread.ports[0].exact
    assert [q.share for q in spread.queues] == [pytest.approx(1 / 3, abs=0.05)] * 3
    assert any("predicted from 8192 packets" in sentence for sentence in spread.sentences)


def test_queues_of_unknown_workers() -> None:
    known = vpp(2)
    places = (*known.queues[:3], QueuePlace(1, 1, None))
    spread = predict(Spreading(places, known.hashes), streams("64b"), [0, 1])
    assert "port 1: not known which worker serves queue 1" in spread.sentences
    assert spread.busiest is None and set(shares(spread).values()) == {None}


def test_a_dut_that_says_nothing() -> None:
    spread = predict(Spreading(), streams("64b"), [0, 1])
    assert spread.queues == () and spread.busiest is None
    assert spread.sentences[0].startswith("port 0: not known what queues it has: the DUT does not say")


def test_no_ports_no_words() -> None:
    assert predict(vpp(2), {}, []) == FlowSpread()
    assert "has no streams" in predict(vpp(2), {}, [0]).ports[0].reason


_worker = st.sampled_from([None, "cpu0", "cpu1", "cpu2"])


@settings(max_examples=scaled(100, 8))
@given(st.lists(st.lists(_worker, max_size=4), min_size=1, max_size=4), st.binary(min_size=40, max_size=40))
def test_shares_are_shares(placed: list[list[str | None]], key: bytes) -> None:
    """Shares of a port and of workers sum to one, and those that need no key are the same without it."""
    packet = bytes(12) + bytes.fromhex("08004500002e00010000401100001000000130000001040 1000c001a0000".replace(" ", ""))
    steps = [
        {"type": "flow_var", "name": "a", "size": 4, "min_value": 1, "max_value": 40, "op": "inc"},
        {"type": "write_flow_var", "name": "a", "pkt_offset": 26},
    ]
    sent = {port: (Stream(packet + bytes(18), 1.0, tuple(steps)),) for port in range(len(placed))}
    places = tuple(QueuePlace(port, number, w) for port, mine in enumerate(placed) for number, w in enumerate(mine))
    tables = [tuple(entry % max(len(mine), 1) for entry in range(64)) for mine in placed]
    full = Spreading(places, tuple(PortHash(port, key.hex(), FIELDS, table) for port, table in enumerate(tables)))
    truth = predict(full, sent, list(sent))
    for port in sent:
        assert sum(queue.share or 0 for queue in truth.of(port)) == pytest.approx(1)
    if all(worker is not None for mine in placed for worker in mine) and all(placed):
        assert sum(load.share or 0 for load in truth.workers) == pytest.approx(1)
        blind = predict(Spreading(places), sent, list(sent))
        for seen, real in zip(blind.workers, truth.workers, strict=True):
            assert seen.share is None or seen.share == pytest.approx(real.share)


def counted(*packets: int, drops: int = 0, queues: int = 3) -> Observation:
    rows = tuple(QueueCount(at // queues, at % queues, count) for at, count in enumerate(packets))
    return Observation(queues=rows, drops=(DropCount("rx-miss", drops, 0),))


ZERO = counted(*[1000] * 6)


def test_queues_counted_as_predicted() -> None:
    spread = predict(vpp(3), streams("64b"), [0, 1])
    exact = [round(1e6 * (queue.share or 0)) + 1000 for queue in spread.queues]
    check = compare_spread(spread, ZERO, counted(*exact))
    assert check.basis == "queues" and check.warnings == () and len(check.compared) == 6
    assert check.sentence == "the flows spread as predicted, to a tenth of a percent"
    assert json.loads(json.dumps(check.to_dict()))["compared"][0]["deviation"] == pytest.approx(0, abs=1e-6)


def test_what_is_most_off_is_named() -> None:
    spread = predict(vpp(3), streams("64b"), [0])
    check = compare_spread(spread, ZERO, counted(340_000, 330_000, 333_000, 1000, 1000, 1000))
    most = "the largest difference is port 0 queue 0 with 33.9 % instead of 33.1 %"
    assert (check.warnings, check.sentence) == ((), f"the flows spread as predicted: {most}")


def test_queues_that_got_something_else() -> None:
    spread = predict(vpp(3), streams("1flow"), [0, 1])
    check = compare_spread(spread, ZERO, counted(1000, 501_000, 1000, 501_000, 1000, 1000))
    assert [warning.code for warning in check.warnings] == ["spread-deviates"] * 2
    assert check.warnings[0].text.startswith("port 0 queue 0 got 0.000 % of the packets instead of 100.0 %: the hash")
    assert check.sentence.startswith("the flows spread not as predicted")


def test_queues_that_dropped_tell_less() -> None:
    spread = predict(vpp(3), streams("64b"), [0])
    check = compare_spread(spread, ZERO, counted(201_000, 501_000, 501_000, 1000, 1000, 1000, drops=200_000))
    assert {warning.code for warning in check.warnings} == {"spread-while-losing"}
    assert "dropped 200000 packets meanwhile" in check.warnings[0].text


def thread(number: int, name: str, packets: int) -> ThreadRuntime:
    node = NodeRuntime("dpdk-input", "polling", 10**6, packets, 0, 100.0, 1.0)
    return ThreadRuntime(number, name, number, 10.0, None, None, None, None, None, None, (node,))


def test_workers_where_queues_are_not_counted() -> None:
    spread = predict(vpp(2), streams("64b"), [0, 1])
    seen = [thread(0, "vpp_main", 0), thread(1, "vpp_wk_0", 1_000_000), thread(2, "vpp_wk_1", 502_000)]
    after = Observation(threads=(*seen, thread(3, "vpp_wk_2", 500_000)))
    check = compare_spread(spread, Observation(), after)
    assert check.basis == "workers" and [one.name for one in check.compared] == ["vpp_wk_0", "vpp_wk_1", "vpp_wk_2"]
    assert check.warnings == ()
    wrong = compare_spread(spread, Observation(), Observation(threads=(*seen[:2], thread(3, "vpp_wk_2", 10))))
    assert [warning.code for warning in wrong.warnings] == ["spread-deviates"] * 3


@pytest.mark.parametrize(
    ("before", "after", "code", "words"),
    [
        (Observation(), Observation(), "spread-unseen", "neither by queue nor by worker"),
        (ZERO, counted(*[1010] * 6), "spread-unseen", "fewer than 10000 packets"),
        (ZERO, counted(0, *[90_000] * 5), "spread-set-back", "port 0 queue 0: its counter went back"),
        (counted(0), counted(9, 9), "spread-unseen", "neither"),
    ],
)
def test_nothing_to_compare_with(before: Observation, after: Observation, code: str, words: str) -> None:
    check = compare_spread(predict(vpp(3), streams("64b"), [0, 1]), before, after)
    assert (check.warnings[0].code, check.compared) == (code, ()) and words in check.warnings[0].text
    assert "was not compared" in check.sentence


def test_an_unknown_share_is_no_deviation() -> None:
    check = compare_spread(predict(vpp(3, key=None), streams("64b"), [0]), ZERO, counted(901_000, *[1000] * 5))
    assert check.warnings == () and check.compared[0].measured == 1 and check.compared[0].predicted is None


def shares_by_definition(mode: str, port: int, queues: int, fields: tuple[str, ...]) -> dict[int, float]:
    """The share of each queue in a mode's flows: hashed bit by bit, one packet after the other."""
    (stream,) = streams(mode, [port])[port]
    found = dict.fromkeys(range(queues), 0.0)
    for frame in islice(stream.frames(), 251):
        places = {"src": (22, 38), "dst": (38, 54), "sport": (54, 56), "dport": (56, 58)}
        data = b"".join(frame[start:end] for name, (start, end) in places.items() if name in fields)
        found[by_definition(MICROSOFT_KEY, data) % 512 % queues] += 1 / 251
    return found


def with_ipv6(spreading: Spreading, fields: tuple[str, ...] | None) -> Spreading:
    return replace(spreading, hashes=tuple(replace(one, ipv6_fields=fields) for one in spreading.hashes))


@pytest.mark.parametrize("queues", by_day(1, [3, 2, 4]))
@pytest.mark.parametrize("six", [None, ("src", "dst")], ids=["4-tuple", "2-tuple of IPv6 alone"])
def test_ipv6_flows_are_foretold_from_their_own_fields(queues: int, six: tuple[str, ...] | None) -> None:
    spreading = with_ipv6(vpp(queues), six)
    spread = predict(spreading, streams("64b-v6"), [0, 1])
    for port in (0, 1):
        told = {queue.queue: queue.share for queue in spread.of(port)}
        assert told == pytest.approx(shares_by_definition("64b-v6", port, queues, six or FIELDS))
        assert spread.ports[port].flows == 251 and spread.ports[port].exact
    assert predict(spreading, streams("64b"), [0, 1]) == predict(vpp(queues), streams("64b"), [0, 1])


def test_ipv6_fields_that_are_not_told_are_not_assumed() -> None:
    spreading = with_ipv6(vpp(2), ())
    assert "does not say which fields" in predict(spreading, streams("64b-v6"), [0]).ports[0].reason
    assert not predict(spreading, streams("64b"), [0]).ports[0].reason
