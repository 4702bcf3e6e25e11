"""The server's clock in the run's time, and TRex's own words: each meaning is found in what was recorded."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trexbench.generator.trex.client import Meaning, meaning_of
from trexbench.generator.trex.rpc import ServerClock

delays = st.floats(0, 0.05)


@given(
    st.floats(-1e6, 1e6),
    st.floats(-5e-5, 5e-5),
    st.lists(st.tuples(delays, delays, st.floats(0, 0.01)), min_size=1, max_size=30),
)
def test_time_stamps_land_within_the_narrowest_round_trip(
    offset: float, drift: float, exchanges: list[tuple[float, float, float]]
) -> None:
    """Whatever the clocks' offset and drift and the network's delays: the error stays under the last uncertainty."""
    clock = ServerClock()
    for second, (there, back, inside) in enumerate(exchanges):
        sent = float(second)
        first = (sent + there) * (1 + drift) + offset
        last = (sent + there + inside) * (1 + drift) + offset
        offset_s = clock.offset_s(sent, sent + there + inside + back, first, last)
        error = abs(first + offset_s - (sent + there))
        assert error <= (there + back) / 2 + 2e-6 + 1e-9 * abs(offset)


def test_one_quick_exchange_makes_up_for_slow_ones_after_it() -> None:
    clock = ServerClock()
    clock.offset_s(0.0, 0.001, 100.0005, 100.0005)
    assert 101.19 + clock.offset_s(1.0, 1.2, 101.19, 101.19) == pytest.approx(1.19, abs=1e-3)


def test_a_clock_that_was_set_is_believed_anew() -> None:
    clock = ServerClock()
    clock.offset_s(0.0, 0.001, 100.0005, 100.0005)
    assert 5.0005 + clock.offset_s(1.0, 1.001, 5.0005, 5.0005) == pytest.approx(1.0005)


FIXTURES = Path(__file__).parents[1] / "fixtures" / "trex-v3.08"
FILES = ("errors.jsonl.gz", "conversation.json.gz")
RECORDED = "".join(gzip.decompress((FIXTURES / name).read_bytes()).decode() for name in FILES)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("port is already taken by 'root'", Meaning.NOT_OURS),
        ("port is not owned by you or your current executing session", Meaning.NOT_OURS),
        ("please acquire the port before modifying port state", Meaning.NOT_OURS),
        ("command 'set_l2_mode' cannot be executed on current state: 'TX'", Meaning.WRONG_STATE),
        ("Expected L1 B/W: '20 Gbps' exceeds port line rate: '10 Gbps'", Meaning.TOO_FAST),
        (
            "Version mismatch: your client version is too new to be supported by the server\n"
            "(API type 'STL':  - server: '5.1', client: '6.0')",
            Meaning.OTHER_VERSION,
        ),
        (
            "RPC configuration mismatch - server RPC configuration: 'STL', client RPC configuration: 'ASTF'",
            Meaning.OTHER_MODE,
        ),
        (" pause is supported when duration is not enable is start command ", None),
    ],
)
def test_what_was_recorded_is_understood(text: str, meaning: Meaning | None) -> None:
    assert json.dumps(text) in RECORDED and meaning_of(text) is meaning
