"""``trexbench report --watch``: the page on loopback while a night runs, deaf to all that is not its own."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import pytest
from tools import begin, folder_with, succeed, trexbench

from suites import ONE, TWO
from trexbench.cli.watch import SLOWEST_CLIENT_S

WITHIN_S = 120.0


@contextmanager
def watched(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The command and its port. It ends at Ctrl-C, with the exit code of that, and without another word."""
    process = begin(folder, "report", "--watch", *options)
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", line)
        assert found, line + process.stderr.read()
        yield process, int(found[1])
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == "trexbench: interrupted by Ctrl-C\n"
        assert process.wait(30) == 130
    finally:
        process.kill()
        process.communicate()


def ask(port: int, path: str, method: str = "GET", **headers: str) -> tuple[HTTPResponse, str]:
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer, answer.read().decode()
    finally:
        connection.close()


def state(port: int) -> dict[str, object]:
    found: dict[str, object] = json.loads(ask(port, "/state")[1])
    return found


@pytest.mark.nightly
def test_a_night_is_followed(tmp_path: Path) -> None:
    folder_with(tmp_path, tiny=TWO)
    (tmp_path / "results").mkdir()
    with watched(tmp_path) as (_, port):
        page = ask(port, "/")[1]
        before = state(port)
        assert before["lines"] == [] and f'data-version="{before["version"]}"' in page
        assert "connect-src &#39;self&#39;" in page and "2026-11-02" not in page
        night = begin(tmp_path, "nightly", "tiny", "--sim", "--date", "2026-11-02", "--speedup", "20", "-q")
        seen, deadline, after = set[str](), time.monotonic() + WITHIN_S, before
        while night.poll() is None or after["lines"] or after["version"] == before["version"]:
            assert time.monotonic() < deadline, seen
            after = state(port)
            seen.update(map(str, after["lines"]))  # type: ignore[call-overload]
            time.sleep(0.1)
        assert night.returncode == 0
        text = "\n".join(sorted(seen))
        assert "Night of 2026-11-02, tiny: 0 of 2 cells measured" in text
        assert re.search(r"Now netgate-vpp \S+ .*, since \d\d:\d\d UTC", text) and "About 1 min left" in text
        assert "2026-11-02" in ask(port, "/")[1]


def test_only_documents_and_pages_below_the_results_are_served(tmp_path: Path) -> None:
    folder_with(tmp_path, tiny=ONE)
    succeed(tmp_path, "nightly", "tiny", "--sim", "--date", "2026-11-01", "-q")
    results = tmp_path / "results"
    document = next(results.glob("*/*/*.json"))
    (tmp_path / "secret.json").write_text("{}")
    with watched(tmp_path, "--suite", "tiny") as (_, port):
        page = ask(port, "/")[1]
        (document.parent / "link.json").symlink_to(tmp_path / "secret.json")
        links = re.findall(r'href="([^"#]+)"', page)
        assert str(document.relative_to(results)) in links and "report-2026-11-01-tiny.html" in links
        for link in (one for one in links if not one.startswith("data:")):
            assert ask(port, f"/{link}")[0].status == 200, link
        assert json.loads(ask(port, f"/{document.relative_to(results)}")[1])["status"] == "complete"
        for path in (
            *("/../secret.json", "/%2e%2e/secret.json", "/a/..%2f../secret.json", "//etc/passwd", "/nights/"),
            *("/index.sqlite", f"/{document.parent.relative_to(results)}/link.json", "/x/y/z.json", "/a\0b/c/d.json"),
        ):
            assert ask(port, path.replace("\0", "%00"))[0].status == 404, path
        assert ask(port, "/", "POST")[0].status == ask(port, "/", "PUT")[0].status == 501
        answer, why = ask(port, "/", Host=f"elsewhere.example:{port}")
        assert answer.status == 403 and f"http://127.0.0.1:{port}/" in why
        with ExitStack() as stack:
            idle = [stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30)) for _ in range(3)]
            begun_s = time.monotonic()
            for host in (f"localhost:{port}", "127.0.0.1"):  # as at port 80
                assert ask(port, "/state", Host=host)[0].status == 200
            assert time.monotonic() - begun_s < len(idle) * SLOWEST_CLIENT_S, "nobody waits for another"
            for one in idle:
                assert one.recv(1) == b"", "who says nothing is left"


def test_a_busy_port(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = trexbench(tmp_path, "report", "--watch", "--port", str(port))
    reason = f"port {port} of 127.0.0.1 cannot be used: Address already in use"
    assert done.returncode == 2
    assert done.stderr == f"trexbench: {reason}: name another with --port, or leave --port out for a free one\n"
