"""The server's clock in the run's time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
        clock.observe(sent, sent + there + inside + back, first, last)
        error = abs(clock.run_time(first) - (sent + there))
        assert error <= (there + back) / 2 + 2e-6 + 1e-9 * abs(offset)


def test_one_quick_exchange_makes_up_for_slow_ones_after_it() -> None:
    clock = ServerClock()
    clock.observe(0.0, 0.001, 100.0005, 100.0005)
    clock.observe(1.0, 1.2, 101.19, 101.19)
    assert clock.run_time(101.19) == pytest.approx(1.19, abs=1e-3)


def test_a_clock_that_was_set_is_believed_anew() -> None:
    clock = ServerClock()
    clock.observe(0.0, 0.001, 100.0005, 100.0005)
    clock.observe(1.0, 1.001, 5.0005, 5.0005)
    assert clock.run_time(5.0005) == pytest.approx(1.0005)


def test_no_exchange_no_time() -> None:
    with pytest.raises(ValueError, match="no exchange"):
        ServerClock().run_time(1.0)
