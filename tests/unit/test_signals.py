"""Signals end a block once, wherever they come, and never not at all."""

from __future__ import annotations

import os
import signal
import time
import weakref

import pytest

from trexbench.cli.process import signals_as_exceptions
from trexbench.runner import Interrupted


class Referent:
    pass


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_block(number: signal.Signals) -> None:
    with pytest.raises(Interrupted) as caught, signals_as_exceptions():
        os.kill(os.getpid(), number)
        time.sleep(5)
    assert caught.value.exit_code == 128 + number


def test_a_signal_where_python_drops_exceptions_comes_again() -> None:
    with pytest.raises(Interrupted), signals_as_exceptions():
        one = Referent()
        watch = weakref.ref(one, lambda _: os.kill(os.getpid(), signal.SIGINT))
        del one
        assert watch() is None
        time.sleep(5)
        pytest.fail("the signal was lost")


def test_a_second_signal_does_not_disturb_the_clean_up() -> None:
    cleaned = False
    with pytest.raises(Interrupted), signals_as_exceptions():
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.01)
            cleaned = True
    assert cleaned
