"""Headless Chromium over its DevTools pipe: a page opened, looked at, and everything it said or asked for."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from select import select
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
WITHIN_S = 180.0
"""A limit, which a busy machine must not reach; all waits are for a condition."""
KEYS = {"Tab": (9, ""), "Enter": (13, "\r"), "Escape": (27, ""), " ": (32, " ")}
"""Keys that can be pressed: their number, and the text that they type."""
DRAWN = """(async function () {
  function busy(plot) { return plot.matches("[aria-busy=true]") || plot._resolveResize; }
  while (Array.from(document.querySelectorAll(".plot")).some(busy)) {
    await new Promise(function (done) { setTimeout(done, 10); });
  }
})()"""
"""Waits until no plot is still to be drawn, nor to be resized, which Plotly does 100 ms after the window."""
_AT_3_AND_4 = """
import os, sys
ends = [os.dup2(int(one), number) for one, number in zip(sys.argv[1:3], (1003, 1004))]
for number, one in zip((3, 4), ends):
    os.dup2(one, number)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Chromium reads its DevTools pipe at descriptor 3 and writes at 4; a shell knows descriptors of one digit only."""


def find_chromium() -> str | None:
    return next((found for name in NAMES if (found := shutil.which(name))), None)


@dataclass
class Page:
    """One page in one Chromium. said: console messages and errors; asked: addresses it wanted."""

    _to: int
    _from: int
    session: str | None = None
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    _number: int = 0
    _rest: bytes = b""

    def call(self, method: str, **params: Any) -> Any:
        """The result of one DevTools call; events that come meanwhile are kept."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        _send(self._to, message)
        deadline = time.monotonic() + WITHIN_S
        while time.monotonic() < deadline:
            answer = self._next(deadline)
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
        raise TimeoutError(f"{method}: no answer within {WITHIN_S:g} s")

    def evaluate(self, expression: str) -> Any:
        """The expression's value; a report's plots that are still to be drawn are drawn before."""
        self._evaluate(DRAWN)
        return self._evaluate(expression)

    def _evaluate(self, expression: str) -> Any:
        outcome = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in outcome, outcome["exceptionDetails"]
        return outcome["result"].get("value")

    def choose(self, **values: str | bool) -> None:
        """Set the page's controls of these names, one after the other, as a reader does; ``_`` stands for a dash."""
        for name, value in values.items():
            what = "checked" if isinstance(value, bool) else "value"
            self.evaluate(
                f"(function (one) {{ one.{what} = {json.dumps(value)}; one.dispatchEvent(new Event('change',"
                f" {{ bubbles: true }})); }})(document.getElementById('{name.replace('_', '-')}'))"
            )

    def texts(self, selector: str) -> list[str]:
        """The text of each such element."""
        texts: list[str] = self.evaluate(
            f"Array.from(document.querySelectorAll({selector!r}), (one) => one.textContent)"
        )
        return texts

    def count(self, selector: str) -> int:
        return len(self.texts(selector))

    def click(self, selector: str) -> None:
        """Click the first such element."""
        self.evaluate(f"document.querySelector({selector!r}).click()")

    def values(self, *ids: str) -> list[str]:
        """The values of controls."""
        return [self.evaluate(f"document.getElementById({one!r}).value") for one in ids]

    def open(self, address: str) -> None:
        """Until it has loaded and the plots are drawn."""
        self.call("Page.navigate", url=address)
        self.wait("document.readyState === 'complete' && Boolean(document.documentElement.dataset.ready)")

    def wait(self, condition: str, act: Callable[[], object] = lambda: None) -> None:
        """Until the condition holds. act: done before each look at it."""
        deadline = time.monotonic() + WITHIN_S
        while True:
            act()
            if self._evaluate(condition):
                return
            assert time.monotonic() < deadline, f"not within {WITHIN_S:g} s: {condition}; it said {self.said}"
            time.sleep(0.02)

    def reset(self) -> None:
        """Leave the page for an empty one, and undo all that was done to its screen, its reader and his pointer."""
        self.touched(False)
        self.size(1280, 900)
        self.text_size(16)
        self.prefer("light")
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=0, y=0)
        self.call("Page.navigate", url="about:blank")
        self.said.clear()
        self.asked.clear()

    def size(self, width: int, height: int, phone: bool = False) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)

    def prefer(self, scheme: str, media: str = "", forced: bool = False) -> None:
        """scheme: ``light`` or ``dark``; media: ``print`` as styles see paper, empty: a screen.

        forced: the reader's own colours.
        """
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        features += [{"name": "forced-colors", "value": "active" if forced else "none"}]
        self.call("Emulation.setEmulatedMedia", media=media, features=features)

    def text_size(self, pixels: int) -> None:
        """Set the text size as a reader would; 16 is Chromium's own."""
        self.call("Page.setFontSizes", fontSizes={"standard": pixels, "fixed": round(pixels * 13 / 16)})

    def touched(self, yes: bool) -> None:
        """Set whether a finger points instead of a mouse."""
        self.call("Emulation.setTouchEmulationEnabled", enabled=yes)

    def press(self, key: str) -> None:
        number, text = KEYS[key]
        named: dict[str, Any] = {"key": key, "code": "Space" if key == " " else key, "windowsVirtualKeyCode": number}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **named)
        self.call("Input.dispatchKeyEvent", type="keyUp", **named)

    def swipe(self, x: float, y: float, up: float) -> None:
        """A finger put down here and moved up by so many pixels, in ten steps."""
        steps = [("touchStart", y), *(("touchMove", y - up * part / 10) for part in range(1, 11))]
        for kind, at in steps:
            self.call("Input.dispatchTouchEvent", type=kind, touchPoints=[{"x": x, "y": at}])
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def tree(self) -> list[dict[str, Any]]:
        """Return what a screen reader is given: the nodes that are not ignored, in the page's order."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        return [node for node in nodes if not node.get("ignored")]

    def pdf(self, path: Path) -> Path:
        printed = self.call("Page.printToPDF", printBackground=True, paperWidth=8.27, paperHeight=11.69)
        path.write_bytes(base64.b64decode(printed["data"]))
        return path

    def _next(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready = select([self._from], [], [], max(0.0, deadline - time.monotonic()))[0]
            data = os.read(self._from, 1 << 20) if ready else b""
            if not data:
                raise TimeoutError("Chromium does not answer")
            self._rest += data
        raw, self._rest = self._rest.split(b"\0", 1)
        message: dict[str, Any] = json.loads(raw)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, event: str, params: dict[str, Any]) -> None:
        if event == "Runtime.consoleAPICalled":
            self.said.append(" ".join(str(one.get("value", one.get("description"))) for one in params["args"]))
        elif event == "Runtime.exceptionThrown":
            self.said.append(json.dumps(params["exceptionDetails"]))
        elif event == "Log.entryAdded":
            self.said.append(params["entry"]["text"])
        elif event == "Network.requestWillBeSent":
            self.asked.append(params["request"]["url"])


def _send(to: int, message: dict[str, Any]) -> None:
    data = json.dumps(message).encode() + b"\0"
    while data:
        data = data[os.write(to, data) :]


@contextmanager
def open_chromium(program: str) -> Iterator[Page]:
    """A browser of its own with an empty profile; it ends with the block."""
    with tempfile.TemporaryDirectory(prefix="trexbench-chromium-", ignore_cleanup_errors=True) as profile:
        from_us, to_them = os.pipe()
        from_them, to_us = os.pipe()
        command = [
            program,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--remote-debugging-pipe",
            f"--user-data-dir={profile}",
        ]
        ends = (from_us, to_us)
        wrapped = [sys.executable, "-I", "-S", "-c", _AT_3_AND_4, *map(str, ends), *command]
        quiet = subprocess.DEVNULL
        process = subprocess.Popen(wrapped, pass_fds=ends, stdin=quiet, stdout=quiet, stderr=quiet)
        os.close(from_us)
        os.close(to_us)
        try:
            page = Page(to_them, from_them)
            target = page.call("Target.createTarget", url="about:blank")["targetId"]
            page.session = page.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                page.call(f"{domain}.enable")
            yield page
        finally:
            end(process)
            os.close(to_them)
            os.close(from_them)


def end(process: subprocess.Popen[bytes]) -> None:
    """End a browser's process, by force where it does not listen."""
    process.terminate()
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
