"""Signals end a block once, wherever they come, and never not at all."""

from __future__ import annotations

import importlib
import signal
import sys
import time
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from trexbench.cli.output import save_picture
from trexbench.session import process
from trexbench.session.loop import Interrupted
from trexbench.session.process import signals_as_exceptions
from trexbench.signals import ENDING, restore, uninterrupted

pytestmark = pytest.mark.portable


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_block(number: signal.Signals) -> None:
    with pytest.raises(Interrupted) as caught, signals_as_exceptions():
        signal.raise_signal(number)
        time.sleep(5)
    assert caught.value.exit_code == 128 + number


def test_a_signal_where_python_drops_exceptions_comes_again() -> None:
    with pytest.raises(Interrupted), signals_as_exceptions():
        one = type("Referent", (), {})()
        watch = weakref.ref(one, lambda _: signal.raise_signal(signal.SIGINT))
        del one
        assert watch() is None
        time.sleep(5)
        pytest.fail("the signal was lost")


IMPORTED = """
import signal
class Rude:
    def __set_name__(self, owner, name):
        signal.raise_signal(signal.SIGINT)
class Named:
    name = Rude()
whole = True
"""


def test_a_signal_during_an_import_comes_after_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.11 makes a RuntimeError of what is raised where a class is made, which the night took for a defect."""
    (tmp_path / "imported_once.py").write_text(IMPORTED)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(Interrupted), signals_as_exceptions():
        try:
            assert importlib.import_module("imported_once").whole
        finally:
            sys.modules.pop("imported_once", None)
        time.sleep(5)
        pytest.fail("the signal was lost")


def test_an_import_that_does_not_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "CLEANUP_S", 0.2)
    (tmp_path / "imported_slowly.py").write_text("import signal, time\nsignal.raise_signal(2)\ntime.sleep(5)\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(Interrupted), signals_as_exceptions():
        importlib.import_module("imported_slowly")


def test_a_second_signal_does_not_disturb_the_clean_up() -> None:
    cleaned = False
    with pytest.raises(Interrupted), signals_as_exceptions():
        try:
            signal.raise_signal(signal.SIGINT)
            time.sleep(5)
        finally:
            signal.raise_signal(signal.SIGTERM)
            time.sleep(0.01)
            cleaned = True
    assert cleaned


def test_a_signal_after_the_time_to_clean_up_ends_what_still_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "CLEANUP_S", 0.05)
    with pytest.raises(Interrupted, match="SIGTERM"), signals_as_exceptions():
        try:
            signal.raise_signal(signal.SIGINT)
            time.sleep(5)
        finally:
            time.sleep(0.1)
            signal.raise_signal(signal.SIGTERM)
            time.sleep(5)


def _interrupted_while_drawing() -> Path:
    signal.raise_signal(signal.SIGINT)
    time.sleep(5)
    return Path("drawn.png")


def _interrupted_while_importing() -> Path:
    try:
        return _interrupted_while_drawing()
    except Interrupted:
        raise ImportError("partially initialized module") from None


@pytest.mark.parametrize("draw", [_interrupted_while_drawing, _interrupted_while_importing])
def test_the_second_signal_ends_a_picture_however_soon_it_comes(draw: Callable[[], Path]) -> None:
    with signals_as_exceptions():
        with pytest.raises(Interrupted):
            signal.raise_signal(signal.SIGINT)
            time.sleep(5)
        with pytest.raises(Interrupted):
            save_picture(draw)


def test_what_is_ignored_stays_ignored_and_all_is_as_before_afterwards() -> None:
    former = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    before = signal.getsignal(signal.SIGINT)
    try:
        with signals_as_exceptions() as outer, signals_as_exceptions() as inner, uninterrupted():
            assert outer is inner
            signal.raise_signal(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN and signal.getsignal(signal.SIGINT) is before
        assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set()
    finally:
        signal.signal(signal.SIGHUP, former)


class Stopped(Exception):
    pass


def stop(*_: object) -> None:
    raise Stopped


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_wait_for_the_end_of_an_exchange_and_are_not_lost(number: signal.Signals) -> None:
    former = signal.signal(number, stop)
    reached = False
    try:
        with pytest.raises(Stopped), uninterrupted():
            signal.raise_signal(number)  # to this thread: os.kill may choose another, which takes it at some later time
            signal.raise_signal(number)
            reached = True
        assert signal.getsignal(number) is stop
    finally:
        signal.signal(number, former)
    assert reached


def test_signals_are_let_through_again_where_blocking_them_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    """``pthread_sigmask`` raises, after its work, for a signal that came just before it."""
    real = signal.pthread_sigmask

    def interrupted(how: int, mask: Sequence[int]) -> set[int]:
        former = real(how, mask)
        if how == signal.SIG_BLOCK and mask:
            raise Stopped
        return former

    monkeypatch.setattr(signal, "pthread_sigmask", interrupted)
    with pytest.raises(Stopped), uninterrupted():
        pytest.fail("the block began")
    assert real(signal.SIG_BLOCK, ()) == set()


def test_all_handlers_are_restored_where_a_signal_interrupts_that(monkeypatch: pytest.MonkeyPatch) -> None:
    former = {number: signal.signal(number, stop) for number in ENDING}
    real, restored = signal.signal, [0]

    def interrupted(number: int, handler: Any) -> Any:
        before = real(number, handler)
        if handler is stop and not restored[0]:
            restored[0] += 1
            signal.raise_signal(number)
        return before

    try:
        with pytest.raises(Stopped), uninterrupted():
            signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)  # as of a signal that another thread takes
            monkeypatch.setattr(signal, "signal", interrupted)
        assert [signal.getsignal(number) for number in ENDING] == [stop] * 3
    finally:
        monkeypatch.undo()
        restore(former)
