"""Firefox over Marionette and WebKit over WebDriver: a page opened in each, its size set, its scripts asked.

Both speak the same commands; Marionette takes them on a socket of its own, WebKitWebDriver over HTTP.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

from browser import end

WITHIN_S = 120.0
BROWSERS = Path("/usr/lib").glob("*/webkit2gtk-4.*/MiniBrowser")
"""WebKitGTK's own browser is in no search path."""
PREFERENCES = {
    "marionette.port": 0,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "app.normandy.enabled": False,
    "messaging-system.rsexperimentloader.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "devtools.console.stdout.content": True,
}


class Driven(NamedTuple):
    """An open browser. said: what its console printed so far, where it can be had."""

    ask: Callable[[str], Any]
    """Evaluates an expression in the page."""
    open: Callable[[str], None]
    resize: Callable[[int, int], None]
    said: Callable[[], list[str]]

    def wait(self, condition: str) -> None:
        deadline = time.monotonic() + WITHIN_S
        while not self.ask(condition):
            assert time.monotonic() < deadline, f"not within {WITHIN_S:g} s: {condition}"
            time.sleep(0.05)


def missing(name: str) -> str | None:
    """Say which of Debian's packages the browser needs and are not here; None: it can be opened."""
    if name == "firefox":
        return None if shutil.which("firefox-esr") or shutil.which("firefox") else "no firefox here: firefox-esr"
    there = shutil.which("WebKitWebDriver") and shutil.which("Xvfb")
    return None if there else "no WebKitWebDriver or Xvfb here: webkit2gtk-driver, xvfb"


@contextmanager
def open_firefox() -> Iterator[Driven]:
    program = shutil.which("firefox-esr") or shutil.which("firefox")
    assert program is not None
    with ExitStack() as stack:
        profile = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in PREFERENCES.items()]
        (profile / "user.js").write_text("\n".join(lines))
        log = stack.enter_context(open(profile / "log", "w", encoding="utf-8"))
        command = [program, "--headless", "--marionette", "--no-remote", "--profile", str(profile)]
        home = {**os.environ, "HOME": str(profile)}
        stack.callback(end, subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=home))
        active = profile / "MarionetteActivePort"
        _await(lambda: active.exists() and active.read_text().isdigit())
        link = stack.enter_context(socket.create_connection(("127.0.0.1", int(active.read_text())), WITHIN_S))
        stream = stack.enter_context(link.makefile("rwb"))
        _take(stream)  # a greeting

        def call(command: str, **parameters: Any) -> Any:
            data = json.dumps([0, 1, f"WebDriver:{command}", parameters]).encode()
            stream.write(b"%d:%s" % (len(data), data))
            stream.flush()
            _, _, error, result = _take(stream)
            assert error is None, error
            return result

        call("NewSession")
        yield Driven(
            lambda expression: call("ExecuteScript", script=f"return ({expression})", args=[])["value"],
            lambda address: call("Navigate", url=address),
            lambda width, height: call("SetWindowRect", width=width, height=height),
            lambda: [line for line in (profile / "log").read_text(errors="replace").splitlines() if "console." in line],
        )


def _take(stream: Any) -> Any:
    """Read one message: its length, a colon, JSON."""
    length = b""
    while (letter := stream.read(1)) != b":":
        assert letter, "Firefox ended"
        length += letter
    return json.loads(stream.read(int(length)))


@contextmanager
def open_webkit() -> Iterator[Driven]:
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        read, write = os.pipe()
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        screen = ["Xvfb", "-displayfd", str(write), "-screen", "0", "1600x1200x24", "-nolisten", "tcp"]
        stack.callback(end, subprocess.Popen(screen, pass_fds=(write,), **quiet))  # type: ignore[call-overload]
        os.close(write)
        with os.fdopen(read) as told:
            display = told.readline().strip()
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        environment = {**os.environ, "DISPLAY": f":{display}", "HOME": str(home), "XDG_RUNTIME_DIR": str(home)}
        command = ["WebKitWebDriver", f"--port={port}"]
        stack.callback(end, subprocess.Popen(command, env=environment, **quiet))  # type: ignore[call-overload]
        _await(lambda: _listens(port))

        def call(method: str, path: str, **parameters: Any) -> Any:
            data = json.dumps(parameters).encode() if method == "POST" else None
            request = Request(
                f"http://127.0.0.1:{port}{path}", data, {"Content-Type": "application/json"}, method=method
            )
            with urlopen(request, timeout=WITHIN_S) as answer:
                return json.load(answer)["value"]

        options = {"binary": str(next(BROWSERS)), "args": ["--automation"]}
        wanted = {"alwaysMatch": {"webkitgtk:browserOptions": options}}
        session = f"/session/{call('POST', '/session', capabilities=wanted)['sessionId']}"
        stack.callback(call, "DELETE", session)
        yield Driven(
            lambda expression: call("POST", f"{session}/execute/sync", script=f"return ({expression})", args=[]),
            lambda address: call("POST", f"{session}/url", url=address),
            lambda width, height: call("POST", f"{session}/window/rect", width=width, height=height),
            list,
        )


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _await(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < deadline, f"not within {WITHIN_S:g} s"
        time.sleep(0.05)
