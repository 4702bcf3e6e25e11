"""``trexbench report --watch``: the page served on loopback, made again when a run ended, with what is measured now.

One thread answers GET only, with the page, its state, and the documents and pages below the results directory. Nothing
is written there.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import TCPServer
from urllib.parse import unquote, urlsplit

from ..core.errors import BenchError, ConfigError
from ..core.history.night import Night
from ..results.nights import KNOWN_FILE, find_nights
from ..results.scan import scan
from ..review.find import Warn
from ..review.progress import progress_of
from ..suite.underway import is_under_way
from .output import note

HOST = "127.0.0.1"
LOOK_EVERY_S = 2.0
"""The results directory is looked at again after so long, however often it is asked."""
SLOWEST_CLIENT_S = 5.0
NIGHTS = 10
"""Nights that are read for the progress: the last ones written."""
MOST_BYTES = 64 << 20
SERVED = re.compile(r"(?!\.)[^/]+/(?!\.)[^/]+/(?!\.)[^/]+\.json|nights/(?!\.)[^/]+\.json|report-[^/]+\.html")
"""Paths below the results directory that are served: runs, nights, pages of older nights."""
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


@dataclass
class Site:
    """The page, its state and files. make: the page's HTML for a version, which the page compares with its state's."""

    results: Path
    make: Callable[[str], str]
    warn: Warn
    _version: str = field(default="", init=False)
    """Version of the page that was made last."""
    _page: bytes = field(default=b"", init=False)
    _state: dict[str, object] = field(default_factory=dict, init=False)
    _looked_s: float = field(default=-LOOK_EVERY_S, init=False)

    def answer(self, path: str) -> tuple[str, bytes] | None:
        """The type and the text of what is at a path; None: nothing."""
        if path == "/":
            return "text/html; charset=utf-8", self.page()
        if path == "/state":
            return "application/json", json.dumps(self.state()).encode()
        return self._file(unquote(path[1:]))

    def page(self) -> bytes:
        """The page, made again if anything that it shows has changed."""
        version = str(self.state()["version"])
        if version != self._version:
            self._page, self._version = self.make(version).encode("utf-8", "replace"), version
        return self._page

    def state(self) -> dict[str, object]:
        """version: of the results that have ended; lines: about the night that is under way, none where there is none.

        It may be as old as LOOK_EVERY_S.
        """
        if time.monotonic() - self._looked_s >= LOOK_EVERY_S:
            nights = [night for _, night in find_nights(self.results, self.warn, newest=NIGHTS)]
            self._state = {"version": self._look(nights), "lines": self._lines(nights)}
            self._looked_s = time.monotonic()
        return self._state

    def _look(self, nights: list[Night]) -> str:
        found, known = scan(self.results), self.results / KNOWN_FILE
        ended = sorted((path, stamp) for path, stamp in found.stamps.items() if path not in found.running)
        failed = [(night.started, night.finished, night.error, len(night.failed)) for night in nights]
        acknowledged = known.stat().st_mtime_ns if known.exists() else 0
        return sha256(repr((ended, failed, acknowledged)).encode()).hexdigest()[:16]

    def _lines(self, nights: list[Night]) -> list[str]:
        going = [one for one in nights if one.finished is None and is_under_way(one.suite, self.results)]
        if not going:
            return []
        return list(progress_of(max(going, key=lambda one: one.started), nights, time.time()).sentences())

    def _file(self, path: str) -> tuple[str, bytes] | None:
        if not SERVED.fullmatch(path) or not path.isprintable():
            return None
        place = (self.results / path).resolve()
        try:
            if not place.is_relative_to(self.results.resolve()) or not place.is_file():
                return None
            if place.stat().st_size > MOST_BYTES:
                return None
            return ("text/html; charset=utf-8" if place.suffix == ".html" else "application/json"), place.read_bytes()
        except OSError:
            return None


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = SLOWEST_CLIENT_S
    server_version, sys_version = "trexbench", ""

    def do_GET(self) -> None:
        own = {f"{name}:{self.server.port}" for name in (HOST, "localhost")}
        if self.headers.get("Host") not in own:  # a page from elsewhere whose name now leads here
            self.send_error(403)
            return
        try:
            found = self.server.site.answer(urlsplit(self.path).path)
        except (BenchError, ValueError) as error:
            self.server.site.warn(str(error))
            self.send_error(500, "The page cannot be made", str(error))
            return
        if found is None:
            self.send_error(404)
            return
        kind, text = found
        self.send_response(200)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(text)), **HEADERS}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing of a request."""


class _Server(TCPServer):
    allow_reuse_address = True

    def __init__(self, site: Site, port: int) -> None:
        self.site = site
        super().__init__((HOST, port), _Handler)
        self.port = int(self.server_address[1])

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a browser that went away, or was too slow, costs only its own answer."""


def watch(site: Site, port: int) -> None:
    """Serve until a signal. port: 0 for a free one. The page is made before, so that its errors end the command."""
    site.page()
    try:
        server = _Server(site, port)
    except OSError as error:
        reason = f"port {port} of {HOST} cannot be used: {error.strerror}"
        raise ConfigError(reason, "name another with --port, or leave it out for a free one") from None
    with server:
        note(f"page     http://{HOST}:{server.port}/ until Ctrl-C; it renews itself while a night runs")
        server.serve_forever()
