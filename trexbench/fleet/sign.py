"""Sign at a DUT that is measured: whoever logs in there is shown by whom, for which night, and until when."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

from ..config.endpoints import TransportConfig
from ..core.errors import BenchError
from ..session.dut import reached
from ..transport import TIMEOUT_S, Transport

FOLDER = "/var/run/motd.d"
"""Files that Linux shows at a login, which also has /run; a restart of the DUT removes them."""
SIGN = f"{FOLDER}/trexbench"
_WAYS = ("local", "ssh")
"""Transports to hosts at which people log in, and which have files."""
Reach = Callable[[TransportConfig], AbstractContextManager[Transport]]


@contextlib.contextmanager
def sign_at(way: TransportConfig, text: str, is_mine: Callable[[], bool], reach: Reach = reached) -> Iterator[None]:
    """Leave the text there until the end of the block, where that can be done: nothing fails for it.

    is_mine: test whether it is still this tester's.
    """
    if way.type not in _WAYS:
        yield
        return
    _try(way, reach, (("test", "-d", "/run"), ("mkdir", "-p", FOLDER), ("tee", SIGN)), text)
    try:
        yield
    finally:
        if is_mine():
            _try(way, reach, (("rm", "-f", SIGN),), "")


def sign_words(tester: str, night: str, cell: str, expected_s: float) -> str:
    """One line for people. expected_s: what the cell still takes, about."""
    until = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(time.time() + expected_s))
    return f"trexbench measures this machine until about {until}: tester {tester}, night {night}, {cell}\n"


def _try(way: TransportConfig, reach: Reach, commands: Sequence[Sequence[str]], text: str) -> None:
    with contextlib.suppress(BenchError), reach(way) as transport:
        for argv in commands:
            if transport.run(argv, TIMEOUT_S, text or None).returncode:
                return
