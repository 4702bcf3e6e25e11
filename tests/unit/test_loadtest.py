"""The export for trex-loadtest-viz: what that program needs, each rule by itself, and its reading of our files."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import Any

import pytest
from runs import World, make_plan, make_result

from trexbench.core.errors import StoreError
from trexbench.core.load.plan import Plan
from trexbench.core.load.sample import Phase
from trexbench.core.result import RunResult
from trexbench.core.strategy.base import LoadStep
from trexbench.report.run.loadtest import to_loadtest

NOISY = {"noise": 0.003, "read_s": 1e-3, "late_s": 2e-3, "latency_s": 2e-4}


def exported(result: RunResult) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(to_loadtest(result))
    return document


def seconds(result: RunResult) -> list[dict[str, Any]]:
    return list(exported(result)["stats"].values())


def maximum(stats: list[dict[str, Any]], tx: str, rx: str) -> float | None:
    """The program's own reading: the rate at the first sample of a loss that is still there at the end."""
    found = None
    for one in stats:
        sent, received = one[tx]["tx_pps"], one[rx]["rx_pps"]
        if (sent - received) / sent <= 0.001:
            found = None
        elif found is None:
            found = sent
    return found


PLANS = [
    make_plan(),
    make_plan(bidir=True),
    make_plan(bidir=True, sample_s=0.1),
    make_plan(sample_s=0.25, ports=(2, 3)),
    make_plan(sample_s=2.0),
    make_plan(ports=range(8), bidir=True),
    make_plan(kind="saturate", hold_s=20.0),
]


@pytest.mark.parametrize("plan", PLANS)
def test_exactly_one_sample_a_second_of_warmup_ramp_and_hold(plan: Plan) -> None:
    document = exported(make_result(plan, World(capacity_pps=6e5, **NOISY)))
    sending_s = plan.sending_s(LoadStep(Phase.WARMUP, {}, 0.0)) - plan.length_s(Phase.RECHECK)
    assert len(document["stats"]) == round(sending_s)
    times = [float(key) for key in document["stats"]]
    assert [round(b - a, 6) for a, b in itertools.pairwise(times)][:-1] == [1.0] * (len(times) - 2)
    assert times[0] == 1772366401.0


@pytest.mark.parametrize("plan", PLANS)
def test_every_number_is_a_float_every_port_has_all_four_and_no_sender_is_silent(plan: Plan) -> None:
    ports = {str(n) for n in range(len(plan.ports))}
    for one in seconds(make_result(plan, World(capacity_pps=6e5))):
        assert one.pop("global") == {}
        assert set(one) == ports
        for values in one.values():
            assert set(values) == {"tx_pps", "tx_util", "rx_pps", "rx_util"}
            assert all(type(v) is float for v in values.values())
        assert one["0"]["tx_pps"] > 0 and (not plan.bidir or one["1"]["tx_pps"] > 0)


@pytest.mark.parametrize("kind", ["search", "mlrsearch"])
def test_a_search_is_refused_as_it_has_neither_the_ramp_nor_the_hold_that_the_program_plots(kind: str) -> None:
    with pytest.raises(StoreError, match="a search, without a ramp"):
        exported(make_result(make_plan(kind=kind, warmup_s=2.0), World(capacity_pps=6e5)))


def test_counters_too_great_for_rates_are_told_in_one_line() -> None:
    result = make_result()
    last = result.samples[-1]
    ports = {port: replace(one, ipackets=10**400) for port, one in last.reading.ports.items()}
    samples = (*result.samples[:5], replace(result.samples[5], reading=replace(last.reading, ports=ports)))
    with pytest.raises(StoreError, match="too great for rates"):
        to_loadtest(replace(result, samples=samples))


def test_a_second_in_which_a_sender_was_silent_is_left_out() -> None:
    result = make_result(make_plan(bidir=True))
    still = result.samples[9].reading.ports[1].opackets
    samples = []
    for i, sample in enumerate(result.samples):
        ports = dict(sample.reading.ports)
        sent = ports[1].opackets
        ports[1] = replace(ports[1], opackets=still if i in (10, 11) else sent)
        samples.append(replace(sample, reading=replace(sample.reading, ports=ports)))
    assert len(seconds(replace(result, samples=samples))) == len(seconds(result)) - 2


@pytest.mark.parametrize("plan", PLANS[:4])
def test_its_maximum_is_where_our_loss_began(plan: Plan) -> None:
    result = make_result(plan, World(capacity_pps=6e5, **NOISY))
    assert result.samples[-1].phase is Phase.CONFIRM_DRAIN  # good samples that would erase the maximum
    for direction, ports in zip(result.analysis.directions, (("0", "1"), ("1", "0")), strict=False):
        found = maximum(seconds(result), *ports)
        assert found == pytest.approx(direction.first_bad_pps, abs=1.5 * plan.step_pps(direction.direction))
    assert maximum(seconds(make_result(plan, World(**NOISY))), "0", "1") is None


def test_resampled_rates_count_every_frame_once() -> None:
    result = make_result(make_plan(sample_s=0.1), World(capacity_pps=6e5))
    end = next(s for s in reversed(result.samples) if s.phase is Phase.HOLD)
    for name, port, counter in (("tx_pps", 0, "opackets"), ("rx_pps", 1, "ipackets")):
        total = sum(one[str(port)][name] for one in seconds(result))
        assert total == pytest.approx(getattr(end.reading.ports[port], counter), abs=1)


@pytest.mark.parametrize(
    ("plan", "changes", "key", "value"),
    [
        ({}, {}, "unidirectional", True),
        ({"bidir": True}, {}, "unidirectional", False),
        ({}, {"simulated": False}, "profile_file", "bench-var2-64b.py"),
        ({}, {}, "profile_file", "bench-var2-64b-simulated.py"),
        (
            {},
            {"command": {"mode": "mine", "profile_file": "/x/mine.py"}, "simulated": False},
            "profile_file",
            "mine.py",
        ),
        ({}, {"command": {}, "profiles": {}, "simulated": False}, "profile_file", "profile.py"),
        ({}, {}, "simulated", True),
        ({}, {}, "rampup_target", 97),
        ({"target": 0.975}, {}, "rampup_target", 97.5),
        ({}, {}, "rampup_duration", 60),
        ({"kind": "saturate", "hold_s": 20.0}, {}, "rampup_duration", 0),
        ({}, {}, "hold_duration", 5),
        ({"hold_s": 0.5}, {}, "hold_duration", 0.5),
        ({}, {}, "warmup_duration", 5),
        ({}, {}, "warmup_mult", "1000pps"),
    ],
)
def test_vars(plan: dict[str, Any], changes: dict[str, Any], key: str, value: Any) -> None:
    found = exported(make_result(make_plan(**plan), **changes))["vars"][key]
    assert (type(found), found) == (type(value), value)


def test_nothing_after_a_counter_went_back_is_exported() -> None:
    result = make_result()
    samples = list(result.samples)
    ports = {p: replace(c, opackets=0) for p, c in samples[20].reading.ports.items()}
    samples[20] = replace(samples[20], reading=replace(samples[20].reading, ports=ports))
    assert len(seconds(replace(result, samples=samples))) == 19
