"""Defers signals while code runs that an exception raised by a handler would break."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals that ask a program to end."""


class Interrupted(BaseException):
    """A signal asked the run to end. BaseException: no handler for errors may swallow it."""

    def __init__(self, signal_name: str, exit_code: int) -> None:
        super().__init__(f"interrupted by {signal_name}")
        self.exit_code = exit_code


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Defer signals that ask the program to end until the end of the block, which must be bounded in time.

    Outside of the main thread Python delivers no signal anyway. Blocked as well, so that no system call of ours ends
    early; that alone is not enough, since another thread may take the signal and Python then acts on it in this one.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pending: list[int] = []
    former = {number: signal.getsignal(number) for number in ENDING}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)  # blocks them even where an earlier signal makes it raise
        for number, handler in former.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, lambda got, _frame: pending.append(got))
        yield
    finally:
        try:
            restore(former)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)  # delivers what was blocked until now
        for got in dict.fromkeys(pending):
            signal.raise_signal(got)


def restore(handlers: Mapping[signal.Signals, Any]) -> None:
    """Set all of these handlers, even if a signal comes and the first of them raises an exception."""
    try:
        for number, handler in handlers.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
    except BaseException:
        restore(handlers)
        raise
