"""Writes a run of TCP while it goes on; see tcp.py for the file."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from ..core.errors import StoreError
from ..core.tcp.result import TcpResult
from .store import create_file, directory_of, replace_file, save_elsewhere
from .tcp import encode_tcp


class TcpWriter:
    """begin, then update whenever something was measured, then end. A failing disk ends no measurement.

    ``warn`` gets one line where the document cannot be written.
    """

    def __init__(self, results: Path, warn: Callable[[str], None]) -> None:
        self._results, self._warn = results, warn
        self._warned = False
        self.path: Path | None = None

    def begin(self, result: TcpResult) -> Path:
        """Create the document; StoreError where that fails, before anything is measured."""
        self.path = create_file(directory_of(self._results, result), tcp_stem(result), encode_tcp(result))
        return self.path

    def update(self, result: TcpResult) -> None:
        """Replace it with the run as it stands, as a whole: a kill leaves the former or the new one."""
        assert self.path is not None
        try:
            replace_file(self.path, encode_tcp(result))
        except StoreError as failure:
            if not self._warned:
                self._warn(f"{failure}; the run goes on, and is written at its end")
            self._warned = True

    def end(self, result: TcpResult) -> Path:
        """Write the run as it ended; where results/ cannot be written, into a new temporary directory."""
        assert self.path is not None
        data = encode_tcp(result)
        try:
            replace_file(self.path, data)
        except StoreError as failure:
            self.path = save_elsewhere(self.path.name, data, failure)
            self._warn(f"{failure}; the result was saved as {self.path}")
        return self.path


def tcp_stem(result: TcpResult) -> str:
    """``120301-tcp-forward-reverse-ipv4``."""
    clock = "".join(re.findall(r"\d", result.started[11:19])).ljust(6, "0")
    ways = dict.fromkeys(leg.way.value for leg in result.plan.legs)
    versions = sorted({leg.version for leg in result.plan.legs})
    return "-".join([clock, "tcp", *ways, *(f"ipv{version}" for version in versions)])
