"""Sign at a DUT that is measured: shows whoever logs in by whom, for which night, and until when."""

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
"""Folder of files that Linux shows at a login, which also has /run; a restart of the DUT removes them."""
SIGN = f"{FOLDER}/trexbench"
_WAYS = ("local", "ssh")
"""Transports to hosts with files, at which people log in."""
Reach = Callable[[TransportConfig], AbstractContextManager[Transport]]


@contextlib.contextmanager
def sign_at(way: TransportConfig, text: str, is_mine: Callable[[], bool], reach: Reach = reached) -> Iterator[None]:
    """Leave the text there for the block, if possible: nothing fails for it. is_mine: test if it is still ours."""
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
    """Compose a line for people. expected_s: about how long the cell still takes."""
    until = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(time.time() + expected_s))
    return f"trexbench measures this machine until about {until}: tester {tester}, night {night}, {cell}\n"


def _try(way: TransportConfig, reach: Reach, commands: Sequence[Sequence[str]], text: str) -> None:
    with contextlib.suppress(BenchError), reach(way) as transport:
        for argv in commands:
            if transport.run(argv, TIMEOUT_S, text or None).returncode:
                return
