"""Suites and nights that whole-command tests measure."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

from tools import ROOT

PLAN = "plan: {warmup: 10kpps:2s, ramp_duration: 20s, hold: 4s, confirm: 2s}"
TINY = f"""
duts: [{{name: netgate-vpp, rx_queues: [1, 3]}}]
modes: [64b]
directions: [uni, bidir]
{PLAN}
"""
TWO = TINY.replace("uni, bidir", "uni")
ONE = TWO.replace("[1, 3]", "1")
FOUR = """
duts: [{name: netgate-vpp, rx_queues: 1}, netgate-linux]
modes: [64b]
directions: [uni, bidir]
plan: {warmup: 10kpps:2s, ramp_to: 40%, ramp_duration: 20s, hold: 4s, confirm: 2s}
"""


def without_twin(folder: Path) -> None:
    (folder / "dut_configs").mkdir()
    text = (ROOT / "dut_configs" / "netgate-linux.yaml").read_text()
    bare = re.sub(r"^twin:\n(?:[ #].*\n|\n)*", "", text, flags=re.MULTILINE)
    (folder / "dut_configs" / "bare.yaml").write_text(bare)


def make_slower(folder: Path, factor: float) -> None:
    """From here on VPP's twin needs so much longer for every packet."""
    (folder / "dut_configs").mkdir()
    text = (ROOT / "dut_configs" / "netgate-vpp.yaml").read_text()
    keys = r"^(  (?:cycles_per_packet|cycles_per_vector): )([0-9.]+)"
    found, count = re.subn(keys, lambda match: f"{match[1]}{float(match[2]) * factor:.2f}", text, flags=re.MULTILINE)
    assert count == 2
    (folder / "dut_configs" / "netgate-vpp.yaml").write_text(found)


@contextmanager
def chat(answer: int = 200) -> Iterator[tuple[str, list[Any]]]:
    """A webhook's address, which answers with this status, and what it is told."""
    told: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)) or "null"))
            self.send_response(answer if self.path == "/T0psecret" else 404)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/T0psecret", told
    finally:
        server.shutdown()
        server.server_close()
