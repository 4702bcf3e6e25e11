"""A plan that contradicts itself never begins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from runs import make_plan

from trexbench.core.errors import ConfigError
from trexbench.core.load.plan import pair_directions


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"target": 1.01}, "over line rate"),
        ({"warmup_pps": 1.45e6}, "lower --warmup or raise --ramp-to"),
        ({"warmup_pps": 1.45e6, "kind": "saturate", "hold_s": 9}, "raise --rate"),
        ({"warmup_pps": 0.0}, "warmup pps of 0"),
        ({"sample_s": 0.01}, "`sample:`) of 0.01 s: use 50ms to 10s"),
        ({"sample_s": 11.0}, "use 50ms to 10s"),
        ({"warmup_s": 1.0}, "--warmup of 1 s is shorter than two samples"),
        ({"ramp_s": 3.0}, "--ramp-duration of 3 s is too short"),
        ({"kind": "saturate", "hold_s": 3.0}, "--hold of 3 s is too short"),
        ({"hold_s": -1.0}, "hold of -1 s"),
        ({"confirm_s": -1.0}, "confirm of -1 s"),
        ({"latency_s": -1.0}, "latency of -1 s"),
        ({"latency_s": 1.0}, "--latency of 1 s is too short"),
        ({"drain_s": -0.1}, "drain of -0.1 s"),
        ({"ramp_s": math.inf}, "ramp of inf s"),
        ({"hold_s": math.nan}, "hold of nan s"),
        ({"windows": 0}, "--windows of 0"),
        ({"window_s": 0.0}, "window of 0 s"),
        ({"loss_threshold": 1.5}, "--loss of 1.5"),
        ({"loss_threshold": math.nan}, "--loss of nan"),
        ({"frame_bytes": math.inf}, "mean frame bytes of inf"),
    ],
)
def test_contradictions(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as raised:
        make_plan(**changes)
    assert words in str(raised.value) and "\n" not in str(raised.value)


def test_no_direction_is_no_plan() -> None:
    with pytest.raises(ConfigError):
        type(make_plan())(())


@pytest.mark.parametrize(
    ("ports", "bidir", "expected"),
    [
        ((0, 1), False, "0->1"),
        ((0, 1), True, "0->1 1->0"),
        ((1, 0), False, "1->0"),
        ((0, 1, 2, 3), False, "0->1 2->3"),
        ((0, 1, 2, 3), True, "0->1 2->3 1->0 3->2"),
        ((0, 2, 1, 3), False, "0->2 1->3"),
    ],
)
def test_pairs(ports: Sequence[int], bidir: bool, expected: str) -> None:
    directions = pair_directions(ports, bidir)
    assert " ".join(map(str, directions)) == expected
    assert make_plan(ports=ports, bidir=bidir).ports == tuple(sorted(ports))


@pytest.mark.parametrize(
    ("ports", "words"),
    [((), "0 port(s)"), ((0,), "1 port(s)"), ((0, 1, 2), "3 port(s)"), ((0, 0), "twice"), ((0, 1, 1, 2), "twice")],
)
def test_ports_that_make_no_pairs(ports: Sequence[int], words: str) -> None:
    with pytest.raises(ConfigError, match=words.replace("(", r"\(").replace(")", r"\)")):
        pair_directions(ports, False)


@pytest.mark.parametrize(
    ("changes", "seconds"),
    [
        ({}, 5 + 60 + 5 + 6 + 1 + 5 + 1),  # with the first bad rate held again
        ({"confirm_s": 0.0}, 5 + 60 + 5 + 1),
        ({"latency_s": 8.0}, 5 + 60 + 5 + 6 + 1 + 5 + 1 + 3 * (8 + 1)),
        ({"kind": "saturate", "hold_s": 30.0}, 5 + 30 + 1),
    ],
)
def test_durations(changes: dict[str, Any], seconds: float) -> None:
    assert make_plan(**changes).duration_s == seconds
