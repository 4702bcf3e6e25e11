"""Wishes, a DUT's config and defaults -> the plan; whoever says something first wins."""

from __future__ import annotations

from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any

import pytest

from trexbench.cli.options import Parsed
from trexbench.config.lookup import load_dut
from trexbench.config.model import PlanDefaults
from trexbench.config.option import PORTS, RATE, TUNABLES, WARMUP
from trexbench.core.errors import ConfigError
from trexbench.core.load.plan import Direction
from trexbench.core.load.profile import Profile, full_mode_name
from trexbench.core.names import is_name
from trexbench.core.strategy.kinds import STRATEGIES
from trexbench.core.tcp.wan import parse_wan
from trexbench.core.units import Rate
from trexbench.session.keep import Output
from trexbench.session.options import Case, Setup
from trexbench.session.request import DEFAULTS, Request, build_plan, expected_s, line_rate_bps, make_request
from trexbench.session.series import measure_series, size_requests
from trexbench.signals import Interrupted

CONFIGS = Path(__file__).resolve().parents[2] / "dut_configs"
DUT, LAB = replace(load_dut("netgate-vpp", CONFIGS), plan=PlanDefaults()), load_dut("lab-linux", CONFIGS)


def request(**changes: Any) -> Request:
    values: dict[str, Any] = {"verb": "ramp", "dut": DUT, "mode": "var2-64b", "profile_file": Path("bench.py")}
    values |= {"tunables": {}, "bidir": False, "wished": PlanDefaults(), "ports": (0, 1)}
    return Request(**{**values, **changes})


class Frames64:
    """Profile reduced to what build_plan asks of one."""

    mean_frame_bytes = 64.0

    def line_rate_pps(self, speed_bps: float) -> float:
        return speed_bps / 672


PROFILES: dict[int, Profile] = {0: Frames64(), 1: Frames64()}  # type: ignore[dict-item]


def speeds(bps: float) -> dict[int, float]:
    return {0: bps, 1: bps}


def test_the_defaults_say_everything() -> None:
    for strategy in STRATEGIES.values():
        own = {f.name for f in fields(strategy) if f.default is not MISSING}
        for f in fields(PlanDefaults):
            known = f.name in {one.name for one in fields(strategy)}
            assert not known or f.name in own or getattr(DEFAULTS, f.name) is not None
    assert DEFAULTS.warmup and DEFAULTS.ramp_to and DEFAULTS.loss is not None


def test_the_seeds_ramp_is_the_default() -> None:
    plan = build_plan(request(), PROFILES, speeds(10e9))
    assert plan.offers[0].target_pps == pytest.approx(0.97 * 14_880_952, rel=1e-6)
    assert (plan.offers[0].warmup_pps, plan.warmup_s, plan.ramp_s) == (1000, 10, 600)
    assert (plan.hold_s, plan.confirm_s) == (30, 10)
    assert (plan.loss_threshold, plan.windows, plan.sample_s, plan.kind) == (0.001, 3, 1, "ramp")


@pytest.mark.parametrize(
    ("wished", "expected"),
    [
        (PlanDefaults(hold_s=7.0), (7.0, 60.0, 4.0, 0.01)),
        (PlanDefaults(hold_s=0.0, confirm_s=0.0, loss=0.0), (0.0, 60.0, 0.0, 0.0)),
    ],
    ids=["key by key", "a wish of nothing is a wish"],
)
def test_the_first_who_speaks_wins(wished: PlanDefaults, expected: tuple[object, ...]) -> None:
    own = PlanDefaults(ramp_s=60.0, hold_s=5.0, confirm_s=4.0, loss=0.01)
    plan = build_plan(request(dut=replace(DUT, plan=own), wished=wished), PROFILES, speeds(1e9))
    found = (plan.hold_s, plan.ramp_s, plan.confirm_s, plan.loss_threshold)
    assert found == expected and plan.warmup_s == 10.0


@pytest.mark.parametrize(("verb", "option"), [("ramp", "--ramp-to"), ("saturate", "--rate"), ("efficiency", "--rates")])
def test_more_than_the_line_carries_is_refused(verb: str, option: str) -> None:
    with pytest.raises(ConfigError, match=f"2mpps is 2000000 pps, over the line rate.*{option}$"):
        build_plan(request(verb=verb, wished=PlanDefaults(ramp_to=Rate(2e6, "pps"))), PROFILES, speeds(1e9))


def test_the_warm_up_of_a_low_rate_is_as_low() -> None:
    (offer,) = build_plan(
        request(verb="efficiency", wished=PlanDefaults(ramp_to=Rate(0.001, "percent"))), PROFILES, speeds(1e9)
    ).offers
    assert offer.warmup_pps == offer.target_pps < 1000


@pytest.mark.parametrize(
    ("verb", "wished", "words"),
    [
        ("ramp", PlanDefaults(confirm_s=1.9), "--confirm of 1.9 s is shorter than two samples: use at least 2 s, or 0"),
        ("search", PlanDefaults(confirm_s=0.001), "--confirm of 0.001 s is shorter than two samples: use at least 1 s"),
        ("search", PlanDefaults(confirm_s=0.0, soak_s=0.5), "--soak of 0.5 s"),
        ("ramp", PlanDefaults(loss=1.0), "--loss of 100 %: nothing would be bad"),
    ],
)
def test_a_plan_that_can_show_nothing_is_refused(verb: str, wished: PlanDefaults, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        expected_s(request(verb=verb, wished=wished))


@pytest.mark.parametrize(
    ("speed", "ports", "expected"),
    [
        (None, {0: 10e9, 1: 1e9}, 1e9),
        (1e9, {0: 10e9, 1: 10e9}, 1e9),
        (100e9, {0: 10e9, 1: 10e9}, 10e9),
        (None, {0: 0.0, 1: 10e9}, 10e9),
    ],
)
def test_the_line_rate_is_the_slowest_known(speed: float | None, ports: dict[int, float], expected: float) -> None:
    assert line_rate_bps(replace(DUT, speed_bps=speed), Direction(0, 1), ports) == expected


def test_no_known_speed_asks_for_one() -> None:
    with pytest.raises(ConfigError, match=r"speed of ports 0 and 1 is unknown: state speed: in .*netgate-vpp\.yaml"):
        line_rate_bps(replace(DUT, speed_bps=None), Direction(0, 1), {0: 0.0, 1: 0.0})


def test_a_server_named_by_the_user_is_no_lab() -> None:
    assert request(dut=LAB).uses_lab and not request(dut=LAB, server="trex1").uses_lab and not request().uses_lab
    assert (request().direction_name, request(bidir=True).direction_name) == ("unidir", "bidir")


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (RATE, "40%", Rate(40.0, "percent")),
        (WARMUP, "1kpps:10s", (Rate(1000.0, "pps"), 10.0)),
        (PORTS, "0,1, 2,3", (0, 1, 2, 3)),
        (TUNABLES, "size=64, vm=var2", {"size": "64", "vm": "var2"}),
    ],
)
def test_options(parse: Any, text: str, value: Any) -> None:
    assert Parsed.of(parse).convert(text, None, None) == value
    assert Parsed.of(parse).convert(value, None, None) == value  # click hands a default through as it is


@pytest.mark.parametrize(
    ("tunables", "name"),
    [
        ({}, "var2-imix"),
        ({"vm": "var2", "size": "imix"}, "var2-imix"),
        ({"vm": "none", "size": "64"}, "var2-imix,size=64,vm=none"),
        ({"pcap": "/a/b.pcap"}, "var2-imix,ca8b9c91"),
        ({"x": "y" * 80}, "var2-imix,e1988b70"),
    ],
)
def test_other_tunables_are_other_traffic(tunables: dict[str, str], name: str) -> None:
    asked = make_request("ramp", Case("netgate-vpp", "imix", tunables=tunables), PlanDefaults(), Setup())
    assert asked.mode == name and is_name(name)
    assert full_mode_name(name.replace("var2-imix", "imix")) == name


def test_a_wan_that_is_asked_for_replaces_that_of_the_config() -> None:
    wan = parse_wan("20ms,500mbit")
    made = make_request("ramp", Case("lab-linux", "var2-64b", wan=wan), PlanDefaults(), Setup())
    ports = {0: 10e9, 1: 10e9}
    assert made.dut.wan == wan and line_rate_bps(made.dut, Direction(0, 1), ports) == 500e6
    assert line_rate_bps(made.dut.with_wan(parse_wan("20ms")), Direction(0, 1), ports) == made.dut.speed_bps == 1e9
    with pytest.raises(ConfigError, match=r"^--wan 20.* for .*pfsense.yaml: driver pfsense cannot set one: remove it"):
        make_request("ramp", Case("netgate-pfsense", "var2-64b", wan=wan), PlanDefaults(), Setup())


def test_an_interruption_between_two_runs_of_a_series_leaves_the_first() -> None:
    def say(text: str) -> None:
        if text.startswith("2 of 2"):
            raise Interrupted("Ctrl-C", 130)

    wished, setup = PlanDefaults(warmup_s=2.0, hold_s=4.0), Setup(sim=True, speedup=1e6)
    requests = size_requests("saturate", Case("netgate-vpp"), (1518, 512), wished, setup)
    done = measure_series(requests, Output(say=say))
    assert len(done.runs) == 1 and isinstance(done.error, Interrupted)
    assert [name for name, _ in done.failures] == ["var2-512b"]
