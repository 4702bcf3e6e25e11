"""Reports as text: the summary, whole and in its short form of ten lines, and two looks at a DUT."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from typing import Any

import pytest
from documents import to_document
from effort import scaled
from runs import PROFILE, World, make_plan, make_result
from seen import kernel, run_of

from trexbench.core.dut.telemetry import CpuTime, Detail, DropCount, Missing, Observation, PortCount, QueueCount
from trexbench.core.load.sample import Phase
from trexbench.core.result import RunResult, Status, from_document
from trexbench.core.run import find_damage
from trexbench.core.units import format_bits
from trexbench.core.verdict.parts import Limit, RunWarning
from trexbench.report.run.counters import DETAILS, format_counters
from trexbench.report.run.loadtest import to_loadtest
from trexbench.report.run.sizes import throughputs
from trexbench.report.run.summary import profile_words, summarise, traffic_words
from trexbench.report.run.text import (
    LINES,
    direction_sheet,
    format_brief,
    format_summary,
    interval_head,
    print_summary,
)

SATURATED = World(capacity_pps={"0->1": 660e3, "1->0": 500e3})


def headline(result: RunResult) -> str:
    """Return the headline as if the run had been measured: that the simulated say so is a test of its own."""
    return summarise(replace(result, simulated=False)).headline


def row(result: RunResult, label: str) -> tuple[str, ...]:
    sheet = direction_sheet(result)
    at = [head.name for head in sheet.heads].index(label)
    return tuple(line.items[at].text for line in sheet.lines)


def test_the_answer_comes_first_and_in_one_line() -> None:
    result = make_result(make_plan(bidir=True), SATURATED, simulated=False)
    first, second = (d.maximum_pps for d in result.analysis.directions)
    text = format_summary(result)
    total = f"{(first + second) / 1e6:.3f} Mpps in total ({first / 1e3:.1f} kpps + {second / 1e3:.1f} kpps)"
    assert text.splitlines()[0] == headline(result)
    assert headline(result).startswith(f"lab-linux var2-64b bidir: {total}, ")
    assert "of 1 Gbit/s line rate (2 directions, up to 200 %): the DUT saturated" in headline(result)
    assert text.endswith("\n") and text.isascii()


def test_the_answer_of_one_direction_has_its_interval() -> None:
    result = make_result(make_plan(), World(capacity_pps=6e5))
    (interval,) = row(result, "95 % interval")
    assert f" kpps ({interval}), " in headline(result) and " to " in interval
    assert "(" not in headline(make_result(make_plan(), World())).partition(">= ")[2]


def test_a_sum_counts_both_ways_and_a_direction_one() -> None:
    result = make_result(make_plan(bidir=True, target=1.0, confirm_s=0.0), simulated=False)
    share = ">= 2.000 Gbit/s L1, >= 200.0 % of 1 Gbit/s line rate (2 directions, up to 200 %)"
    assert share in headline(result), "all that follows from a bound is one"
    assert row(result, "Of line rate") == (">= 100.0 %", ">= 100.0 %")
    assert row(result, "On the wire (L1)") == (">= 1.000 Gbit/s", ">= 1.000 Gbit/s")


@pytest.mark.parametrize(
    ("world", "verdict"),
    [
        (World(), "no limit found"),
        (World(tx_limit_pps=1e6), "the generator could not send more"),
        (World(rx_limit_pps=1e6), "the generator could not receive more"),
        (World(link_down_at_s=30.0), "a link failed"),
    ],
)
def test_what_the_dut_did_not_limit_is_at_least(world: World, verdict: str) -> None:
    result = make_result(world=world)
    assert re.match(r"lab-linux var2-64b uni: >= [0-9.]+ [kM]pps, ", headline(result))
    assert headline(result).endswith(verdict)
    assert row(result, "Rate")[0].startswith(">= ")
    assert "the DUT saturated" not in format_summary(result)


def test_directions_that_differ_are_told_apart() -> None:
    result = make_result(make_plan(bidir=True), World(tx_limit_pps={0: 1e6}, capacity_pps={"1->0": 400e3}))
    assert headline(result).endswith("0->1 the generator could not send more, 1->0 the DUT saturated")
    assert ": >= 1.400 Mpps in total (>= 1.000 Mpps + 400.4 kpps)" in headline(result)


def test_a_saturated_line_says_what_came_out_of_what() -> None:
    result = make_result(make_plan(kind="saturate", target=1.0, hold_s=10.0), World(capacity_pps=400e3))
    assert "saturate: 400.0 kpps received of 1.488 Mpps offered" in headline(result)
    assert row(result, "95 % interval") == ("400.0 kpps to 400.0 kpps",)
    bound = make_result(make_plan(kind="saturate", target=1.0, hold_s=10.0), World())
    assert row(bound, "95 % interval") == ("-",) and ">= 1.488 Mpps: no limit" in format_brief(bound, None, 200)
    hold = [at for at, sample in enumerate(result.samples) if sample.phase is Phase.HOLD]
    samples = list(result.samples)
    samples[hold[-1]] = replace(samples[hold[-1]], reading=samples[hold[0] - 1].reading)  # the tester was restarted
    assert "received of 1.488 Mpps offered" in headline(replace(result, samples=tuple(samples)))
    assert row(result, "Offered in the hold") == ("1.488 Mpps",)
    assert row(result, "Loss allowed") == row(result, "Confirmed") == ("-",)
    assert "Confirmed" not in format_summary(result) and "Rate" in format_summary(result)


def test_a_run_without_a_good_rate_claims_none() -> None:
    result = make_result(world=World(rx_limit_pps=5e3))
    assert "more loss than allowed at every rate, from 24.06 kpps on; max received 5.000 kpps" in headline(result)


def test_a_run_that_measured_nothing_says_so() -> None:
    result = make_result(world=World(dead_ports=[0]))
    assert headline(result) == "lab-linux var2-64b uni: nothing was measured"
    for label in ("Rate", "On the wire (L1)", "Of line rate"):
        assert row(result, label) == ("-",)
    (direction,) = result.analysis.directions
    assert (direction.limit, direction.maximum_pps) == (Limit.NONE, 0.0)
    assert direction.reasons == ("the run ended before it measured anything",)


@pytest.mark.parametrize(
    ("changes", "banner"),
    [
        (
            {"simulated": True},
            "SIMULATED: no real packet was sent; the numbers are a model's ***\n\nlab-linux var2-64b uni simulated: ",
        ),
        ({"simulated": False, "status": Status.INCOMPLETE, "reason": "link down"}, "INCOMPLETE: link down"),
        ({"simulated": False, "status": Status.RUNNING}, "UNFINISHED"),
    ],
)
def test_what_must_not_be_overlooked_stands_above_the_answer(changes: dict[str, Any], banner: str) -> None:
    assert format_summary(make_result(**changes)).startswith(f"*** {banner}")


def test_doubts_of_run_and_analysis_are_both_told() -> None:
    own = (RunWarning("not-attested", "nobody looked at the DUT"),)
    result = make_result(world=World(foreign_pps=1e5), warnings=own)
    lines = format_summary(result).splitlines()
    assert "warning    nobody looked at the DUT" in lines
    assert any(line.startswith("warning    0->1: more frames came back") for line in lines)


@pytest.mark.parametrize(
    ("modes", "words"),
    [
        (("driver", "driver"), ""),
        (("skb", "skb"), ", in skb mode"),
        (("driver", "skb"), ", in skb mode at port 1"),
        (("skb", "skb", "driver", "skb"), ", in skb mode at ports 0, 1, 3"),
    ],
)
def test_a_generator_without_xdp_in_its_drivers_says_so(modes: tuple[str, ...], words: str) -> None:
    server = {"version": "v3.08", "address": "127.0.0.1:4501"}
    ports = [{"port": port, "xdp_mode": mode} for port, mode in enumerate(modes)]
    generator = {"kind": "embedded STL server", "server": server, "ports": ports}
    text = format_summary(make_result(generator=generator, simulated=False))
    assert [line.partition("4501")[2] for line in text.splitlines() if "127.0.0.1:4501" in line] == [words]


def test_many_directions_are_laid_out_in_several_tables() -> None:
    text = format_summary(make_result(make_plan(bidir=True, ports=range(8))))
    assert text.count("Frames received") == 2
    assert max(len(line) for line in text.splitlines()[4:]) <= 100


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "64 B frames, 251 flows"),
        ({"flows": 1}, "64 B frames, 1 flow"),
        ({"flows_exact": False, "flows": 16130000}, "64 B frames, at most 16 130 000 flows"),
        ({"mix": "28:16:4 frames of 64, 590, 1514 B"}, "28:16:4 frames of 64, 590, 1514 B, mean 64.0 B, 251 flows"),
        ({"mix": "1:1 frames of 64, 590 B, mean 327.0 B"}, "1:1 frames of 64, 590 B, mean 327.0 B, 251 flows"),
        ({"mix": None, "flows": "many", "mean_frame_bytes": None}, "frames of unknown size"),
    ],
)
def test_what_was_sent(changes: dict[str, Any], words: str) -> None:
    assert traffic_words(PROFILE | changes) == words


def test_a_small_loss_limit_is_not_rounded_to_none() -> None:
    text = format_summary(make_result(replace(make_plan(), loss_threshold=1e-6)))
    assert re.search(r"^Loss allowed +0\.0001 %$", text, re.MULTILINE) and "saturated: loss > 0.0001 %" in text


def test_what_a_document_holds_cannot_steer_a_terminal() -> None:
    dut = {"name": "x", "description": "\x1b]0;title\x07 \x1b[31mred"}
    text = format_summary(make_result(dut=dut, simulated=False))
    assert "\x1b" not in text and "\x07" not in text and "[31mred" in text


def test_on_a_terminal_it_says_the_same() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    result, screen, pipe = make_result(make_plan(bidir=True), SATURATED), Terminal(), io.StringIO()
    print_summary(result, screen)
    print_summary(result, pipe)
    assert pipe.getvalue() == format_summary(result)
    shown = " ".join(re.sub(r"\x1b\[[0-9;]*m", "", screen.getvalue()).split())
    summary = summarise(result)
    assert summary.headline in shown
    for one in (row(result, "Rate"), *summary.verdicts, *summary.facts):
        assert " ".join(" ".join(one).split()) in shown


def as_json(values: Any) -> Any:
    return json.loads(json.dumps(values, default=str, allow_nan=False))


def test_json_has_the_samples_on_request() -> None:
    result = make_result()
    short, whole = as_json(result.without_readings()), as_json(to_document(result))
    assert list(whole)[-1] == "samples" not in short
    assert from_document(whole).analysis == result.analysis
    assert short == {key: value for key, value in whole.items() if key != "samples"}


def test_every_cut_of_a_run_can_be_reported() -> None:
    result = make_result(make_plan(bidir=True, ramp_s=10.0), SATURATED)
    for count in range(0, len(result.samples) + 1, scaled(1, 3)):
        cut = replace(result, samples=result.samples[:count], status=Status.INCOMPLETE, reason="cut")
        assert find_damage(cut) is None
        assert "INCOMPLETE: cut" in format_summary(cut)
        assert len(json.loads(to_loadtest(cut))["stats"]) <= count
        assert len(as_json(to_document(cut))["samples"]) == count


def doubtful(count: int) -> tuple[RunWarning, ...]:
    text = f"no sample was taken, number %s, {'very ' * 20}long"
    return tuple(RunWarning("gap", text % number) for number in range(count))


def test_what_was_measured_each_direction_with_its_limit_doubts_and_the_document() -> None:
    result = replace(make_result(make_plan(bidir=True), SATURATED), simulated=False, warnings=doubtful(2))
    lines = format_brief(result, "results/x.json", 100).splitlines()
    first, second = (one.maximum_pps for one in result.analysis.directions)
    assert lines[0].startswith(f"lab-linux var2-64b bidir: {(first + second) / 1e6:.3f} Mpps in total, ")
    assert lines[1].startswith(f"0->1       {first / 1e3:.1f} kpps (") and ": the DUT saturated; loss of " in lines[1]
    assert lines[2].startswith(f"1->0       {second / 1e3:.1f} kpps (") and ": the DUT saturated; loss of " in lines[2]
    assert [line[:46] for line in lines[3:5]] == [f"warning    no sample was taken, number {n}, very" for n in (0, 1)]
    assert lines[5:] == ["result     results/x.json"]


@pytest.mark.parametrize(("ports", "doubts", "width"), [((0, 1), 30, 40), (tuple(range(8)), 9, 100), ((0, 1), 0, 80)])
def test_it_has_ten_lines_and_counts_what_it_leaves_out(ports: tuple[int, ...], doubts: int, width: int) -> None:
    result = replace(make_result(make_plan(bidir=True, ports=ports), World()), warnings=doubtful(doubts))
    text = format_brief(result, "results/x.json", width)
    lines = text.splitlines()
    assert len(lines) <= LINES and all(len(line) <= width for line in lines[2:])
    assert lines[0] == "*** SIMULATED ***" and lines[-1] == "result     results/x.json"
    assert ("and 5 more directions" in text) is (len(ports) == 8)
    told = sum("warning    no sample" in line for line in lines)
    assert doubts == told or f"warning    {doubts - told} more: results show" in lines


@pytest.mark.parametrize(
    ("world", "rate", "limit"),
    [
        (World(capacity_pps=660e3), r"6\d\d\.\d kpps", "the DUT saturated"),
        (World(capacity_pps=1.443e6), r">= 1\.443 Mpps", "no limit found"),
        (World(), r">= 1\.443 Mpps", "no limit found"),
        (World(tx_limit_pps=1e6), r">= 1\.00\d Mpps", "the generator could not send more"),
        (World(rx_limit_pps=1e6), r">= 1\.00\d Mpps", "the generator could not receive more"),
    ],
)
@pytest.mark.parametrize("kind", ["search", "mlrsearch"])
def test_a_searchs_other_goals_are_told_in_every_form(kind: str, world: World, rate: str, limit: str) -> None:
    result = make_result(make_plan(kind=kind, goals=(0.0, 0.005), loss_threshold=0.0), world)
    assert re.search(rf"; {rate} with loss <= 0\.5 %", format_brief(result, None, 200))
    assert row(result, "Loss allowed") == ("0 %", "0.5 %") and re.fullmatch(rate, row(result, "Rate")[1])
    interval = "95 % interval" if kind == "search" else "Bounds"
    assert (row(result, interval)[1] == "-") is rate.startswith(">") and row(result, "Limit")[1] == limit
    (one,) = result.analysis.directions
    both = interval_head([one, *make_result().analysis.directions])  # as in the page's table of ramps
    assert both == ("95 % interval [pps]" if kind == "search" else "95 % interval or bounds [pps]")
    on_wire = format_bits(result.plan.offer(one.direction).l1_bps(one.goals[1].maximum_pps))
    bound = ">= " if rate.startswith(">") else ""
    assert row(result, "On the wire (L1)")[1] == bound + on_wire
    assert re.fullmatch(rf"{bound}\d\d\.\d %", row(result, "Of line rate")[1])
    assert [one.loss for one in throughputs([result])] == [0.0, 0.005]


def test_a_stricter_goal_that_was_missed_is_not_said_to_have_no_limit() -> None:
    """The first goal's verdict, no limit, says nothing of a goal that allows less loss."""
    plan = make_plan(kind="search", goals=(0.05, 0.0), loss_threshold=0.05)
    result = make_result(plan, World(capacity_pps=1.4e6))
    assert row(result, "Limit") == ("no limit found", "the limit is not known")
    assert [text.startswith(">= ") for text in row(result, "Rate")] == [True, True]


def test_what_was_sent_is_told_of_each_direction_whose_frames_differ() -> None:
    result = make_result(make_plan(bidir=True))
    forth, back = result.plan.directions
    assert [text for label, text in summarise(result).facts if label == "sent"] == [profile_words(result.profile)]
    other = {**result.profiles, back: {**result.profile, "mix": "1514 B frames"}}
    told = [text for label, text in summarise(replace(result, profiles=other)).facts if label == "sent"]
    assert told == [f"{forth}: {profile_words(result.profile)}", f"{back}: {profile_words(other[back])}"]


def test_the_costs_of_a_ramp_that_went_on_after_a_stall_have_names_of_their_own() -> None:
    one = run_of(kernel(0.0), kernel(3.0))
    assert [label for label, _ in summarise(one).facts][:1] == ["cost"]
    looks = (*one.dut_readings[:3], *one.dut_readings[1:])
    assert [label for label, _ in summarise(replace(one, dut_readings=looks)).facts][:2] == ["hold:", "hold again:"]


BEFORE = Observation(
    cpus=(CpuTime(1, 10.0, 1.0, None, 2.2e9),),
    ports=(PortCount(0, 100, 5), PortCount(1, 7, None), PortCount(2, 7, 5)),
    queues=(QueueCount(0, 0, 100),),
    drops=(DropCount("rx_dropped", 3, 0), DropCount("Ip.InDiscards", 0), DropCount("rx_errors", 9, 0)),
    details=(Detail("softirqs NET_RX cpu1", 40), Detail("softnet_stat processed cpu1", 2**32 - 1), Detail("still", 6)),
)
AFTER = Observation(
    cpus=(CpuTime(1, 12.0, 2.0, None, 2.2e9),),
    ports=(PortCount(0, 2100, 4), PortCount(1, 9, None), PortCount(2, 7, 5)),
    queues=(QueueCount(0, 0, 2100),),
    drops=(DropCount("rx_dropped", 10, 0), DropCount("rx_errors", 2, 0), DropCount("not read before", 5000)),
    missing=(Missing("tc", "not installed"),),
    perf_hz=1.1e9,
    details=(Detail("softirqs NET_RX cpu1", 47), Detail("softnet_stat processed cpu1", 5), Detail("still", 6)),
)


def test_what_moved_is_told() -> None:
    assert format_counters(BEFORE, AFTER, 2.0).splitlines() == [
        "in 2.00 s",
        "port 0       received 1.000 kpps, sent unknown (the counter went back)",
        "port 1       received 1.000 pps, sent unknown",
        "port 2       received 0.000 pps, sent 0.000 pps",
        "  queue 0    1.000 kpps",
        "dropped      7 rx_dropped on port 0",
        "dropped      unknown (the counter went back) rx_errors on port 0",
        "cpu 1        50.0 % busy of 2200 MHz",
        "perf stat    1100 million cycles/s",
        "counted      7 softirqs NET_RX cpu1",
        "not read     tc: not installed",
    ]


def test_details_are_told_largest_first_and_not_all() -> None:
    count = DETAILS + 3
    before = replace(BEFORE, details=tuple(Detail(f"d{at:02}", 5) for at in range(count)))
    after = replace(AFTER, details=(*(Detail(f"d{at:02}", 6 + at) for at in range(count)), Detail("new", 99)))
    told = [line for line in format_counters(before, after, 2.0).splitlines() if line.startswith(("counted", " " * 13))]
    assert told[0] == f"counted      {count} d{count - 1}" and told[-1] == "             and 3 more"
    assert len(told) == DETAILS + 1
