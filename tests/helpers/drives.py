"""Stand-ins for what a fleet's tester does while it has a DUT, and for a store that is away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runs import make_result

from trexbench.results.document import encode
from trexbench.session.keep import Measured, Output


def measured(words: str) -> Callable[[object, Output], Measured[Any]]:
    def drive(_job: object, output: Output) -> Measured[Any]:
        assert output.results is not None
        path = output.results / "2026-11-21" / "netgate-linux" / "measured.json"
        path.parent.mkdir(parents=True)
        path.write_bytes(encode(make_result(id=words)))
        return Measured(make_result(), None, path)

    return drive


def unneeded(*_: object) -> Measured[Any]:
    raise AssertionError("it is measured once more")


def broken(*_: object, **__: object) -> None:
    raise OSError("no such host")
