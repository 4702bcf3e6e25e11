"""``trexbench report --watch``: the page served on loopback, made anew whenever a run has ended, with the progress.

It answers GET only, with the page, its state, and documents and pages below the results directory, and writes nothing.
Each request has a thread of its own, so that silent clients hold up nobody.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler
from operator import itemgetter
from pathlib import Path
from socketserver import TCPServer, ThreadingMixIn
from threading import Lock
from urllib.parse import unquote, urlsplit

from ..core.errors import ConfigError, as_bench_error
from ..core.history.night import Night
from ..files import written_ns
from ..results.index import scan
from ..results.nights import KNOWN_FILE, KNOWN_FOLDER, find_nights, ratios_file
from ..review.find import Warn
from ..review.progress import progress_lines
from ..suite.underway import is_under_way
from .output import note

HOST = "127.0.0.1"
LOOK_EVERY_S = 2.0
"""Shortest time between two looks at the results directory, however many requests there are."""
SLOWEST_CLIENT_S = 5.0
"""Longest silence of a client that sends its request, or takes the answer."""
NIGHTS = 10
"""Number of nights to look at: the last ones written."""
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
    """The page, its state and files, for several threads at once."""

    results: Path
    make: Callable[[str, Warn], str]
    """Function that makes the page's HTML with its version, which the page compares with that of the state."""
    warn: Warn
    suite: str | None = None
    """Suite whose nights count; None: all."""
    _lock: Lock = field(default_factory=Lock, init=False)
    _version: str = field(default="", init=False)
    """Version of the results from which the page was made."""
    _page: bytes = field(default=b"", init=False)
    _lines: list[str] = field(default_factory=list, init=False)
    _looked_s: float = field(default=-LOOK_EVERY_S, init=False)
    _warned: set[str] = field(default_factory=set, init=False)
    """Warnings so far: each is given once, however often the results are looked at."""

    def answer(self, path: str) -> tuple[str, bytes] | None:
        """Return type and contents of a path; None if there is nothing."""
        if path == "/":
            return "text/html; charset=utf-8", self.page()
        if path == "/state":
            return "application/json", json.dumps(self.state()).encode()
        return self._file(unquote(path[1:]))

    def page(self) -> bytes:
        """Return the page, made anew if anything that it shows has changed."""
        with self._lock:
            self._renew()
            return self._page

    def state(self) -> dict[str, object]:
        """Return the page's version, and lines about the night under way and why the page is not up to date."""
        with self._lock:
            self._renew()
            return {"version": self._version, "lines": self._lines}

    def _renew(self) -> None:
        """Look at the results, at most every LOOK_EVERY_S. A page that cannot be made raises if it is the first."""
        if time.monotonic() - self._looked_s < LOOK_EVERY_S:
            return
        self._lines = []
        try:
            nights = find_nights(self.results, self._warn_once, newest=NIGHTS)
            self._lines = list(self._progress([(path, one) for path, one in nights if self.suite in (None, one.suite)]))
            version = self._version_now([night for _, night in nights])
            if version != self._version:
                self._page = self.make(version, self._warn_once).encode("utf-8", "replace")
                self._version = version
        except Exception as raised:  # half a file, a directory that is being moved: the next look may succeed
            if not self._page:
                raise
            error = as_bench_error(raised)
            self._warn_once(str(error))
            self._lines.append(f"This page is not up to date: {error}")
        self._looked_s = time.monotonic()

    def _warn_once(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            self.warn(text)

    def _version_now(self, nights: list[Night]) -> str:
        """Digest everything that the page shows."""
        scanned, others = scan(self.results), [night for night in nights if self.suite not in (None, night.suite)]
        elsewhere = {attempt.path for night in others for record in night.cells for attempt in record.attempts}
        passed_over = scanned.running | elsewhere
        ended = sorted((path, stamp) for path, stamp in scanned.stamps.items() if path not in passed_over)
        own = [(one.started, one.finished, one.error, len(one.failed)) for one in nights if one not in others]
        known = [written_ns(self.results / name) for name in (KNOWN_FILE, KNOWN_FOLDER)]
        known.append(written_ns(ratios_file(self.results)))
        return sha256(repr((ended, own, known)).encode()).hexdigest()[:16]

    def _progress(self, nights: list[tuple[Path, Night]]) -> Iterator[str]:
        """Yield sentences about the night that is under way; of several, the one written last."""
        unfinished = [(path, night) for path, night in nights if night.finished is None]
        going = [(written_ns(path), night) for path, night in unfinished if is_under_way(night.suite, self.results)]
        if going:
            yield from progress_lines(max(going, key=itemgetter(0))[1], time.time())

    def _file(self, path: str) -> tuple[str, bytes] | None:
        if not SERVED.fullmatch(path) or not path.isprintable():
            return None
        try:
            place = (self.results / path).resolve()
            if not place.is_relative_to(self.results.resolve()) or not place.is_file():
                return None
            if place.stat().st_size > MOST_BYTES:
                return None
            return ("text/html; charset=utf-8" if place.suffix == ".html" else "application/json"), place.read_bytes()
        except (OSError, RuntimeError):  # the latter of a link to itself, up to Python 3.12
            return None


def own_hosts(port: int) -> set[str]:
    """Return the Host headers of requests to this server; browsers leave out port 80."""
    names = (HOST, "localhost")
    return {*names, *(f"{name}:{port}" for name in names)}


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = SLOWEST_CLIENT_S
    server_version, sys_version = "trexbench", ""

    def do_GET(self) -> None:
        if self.headers.get("Host") not in own_hosts(self.server.port):  # a page from elsewhere whose name leads here
            address = f"http://{HOST}:{self.server.port}/"
            self.send_error(403, "Another name than this server's", f"open {address}: other names could be anybody's")
            return
        try:
            answer = self.server.site.answer(urlsplit(self.path).path)
        except ValueError:  # no address at all
            answer = None
        if answer is None:
            self.send_error(404)
            return
        kind, text = answer
        self.send_response(200)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(text)), **HEADERS}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing of a request."""


class _Server(ThreadingMixIn, TCPServer):
    allow_reuse_address = True
    daemon_threads = True
    """Ctrl-C does not wait for them."""

    def __init__(self, site: Site, port: int) -> None:
        self.site = site
        super().__init__((HOST, port), _Handler)
        self.port = int(self.server_address[1])

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a browser that went away, or was too slow, costs only its own answer."""


def watch(site: Site, port: int) -> None:
    """Serve the site until a signal. port: 0 for a free one."""
    site.page()  # before anything is served, so that its errors end the command
    try:
        server = _Server(site, port)
    except OSError as error:
        reason = f"port {port} of {HOST} cannot be used: {error.strerror}"
        raise ConfigError(reason, "name another with --port, or leave --port out for a free one") from None
    with server:
        note(f"page     http://{HOST}:{server.port}/ until Ctrl-C; it updates itself while a night runs")
        server.serve_forever()
