"""A device that is reached at a prompt: it echoes, pages, has modes, refuses, and keeps its settings in a file.

``python cli_device.py edgeos STATE`` plays it on a terminal, as sshd starts it (ForceCommand). Written from documents,
as the shipped examples are; what a real device prints is not known here.
"""

from __future__ import annotations

import json
import os
import re
import sys
import termios
import time
import tty
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

PAGE = 24


@dataclass
class Device:
    """read gives one typed character, or an empty one at the end; settings: lines, kept in ``state``.

    orders: what goes wrong at a line that contains these words: hang, endless, cut.
    """

    read: Callable[[], str]
    write: Callable[[str], None]
    state: Path
    orders: dict[str, str] = field(default_factory=dict)
    paging = True

    @property
    def prompt(self) -> str:
        raise NotImplementedError

    def answer(self, line: str) -> str | None:
        """Return what the device prints; None: goodbye."""
        raise NotImplementedError

    @property
    def settings(self) -> list[str]:
        return list(json.loads(self.state.read_text())) if self.state.exists() else []

    def keep(self, settings: list[str]) -> None:
        self.state.write_text(json.dumps(settings))

    def log(self, line: str) -> None:
        with self.state.with_suffix(".log").open("a") as file:
            file.write(f"{line}\n")

    def serve(self) -> None:
        self.write(self.prompt)
        line = after = ""
        while typed := self.read():
            ended, after = after == "\r" and typed == "\n", typed
            if ended:  # both together are one Enter
                continue
            if typed not in "\r\n":
                line += typed
                self.write(typed)
                continue
            line, given = "", line.strip()
            self.write(self.echo(given))
            self.log(given)
            order = next((order for words, order in self.orders.items() if words in given), "")
            if order == "cut":
                return
            while order:
                time.sleep(0.01)
                if order == "endless":
                    self.write("and so on, and so on\r\n" * 500)
            answer = self.answer(given) if given else ""
            if answer is None:
                return
            self.show(answer)
            self.write(self.prompt)

    def echo(self, line: str) -> str:
        return "\r\n"

    def show(self, text: str) -> None:
        lines = text.splitlines()
        for at, one in enumerate(lines, 1):
            self.write(f"{one}\r\n")
            if self.paging and at % PAGE == 0 and at < len(lines):
                self.write("--More--")
                if self.read() == "q":
                    return


class EdgeOs(Device):
    """The operational mode and ``configure``, whose changes count from ``commit`` on."""

    candidate: list[str] | None = None

    @property
    def prompt(self) -> str:
        return "ubnt@edge:~$ " if self.candidate is None else "[edit]\r\nubnt@edge# "

    def answer(self, line: str) -> str | None:
        if line.startswith("terminal "):
            self.paging = self.paging and line != "terminal length 0"
            return ""
        return self._operational(line) if self.candidate is None else self._configure(line)

    def _operational(self, line: str) -> str | None:
        if line == "configure":
            self.candidate = self.settings
        elif line == "exit":
            return None
        elif line == "show configuration commands":
            others = [f"set firewall name WAN_IN rule {at} action accept" for at in range(100)]
            return "\n".join(sorted([*others, *self.settings]))
        elif line == "show version":
            return "Version:      v2.0.9-hotfix.7\nBuild ID:     5622762"
        elif line == "show ubnt offload":
            return "\nIP offload module   : loaded\nIPv4\n  forwarding: enabled\n  vlan      : disabled"
        elif line == "cat /proc/net/dev":
            rows = [f"  eth{at}: 64 {1000 * at} 0 7 0 0 0 0 64 {2000 * at} 0 3 0 0 0 0" for at in range(3)]
            return "\n".join(["Inter-|   Receive  |  Transmit", *rows])
        elif line.startswith("cat /proc/"):
            return Path(line.removeprefix("cat ")).read_text()
        else:
            return f"Invalid command: [{line.partition(' ')[0]}]"
        return ""

    def _configure(self, line: str) -> str | None:
        assert self.candidate is not None
        verb, _, rest = line.partition(" ")
        if verb == "set" and re.match(r"(interfaces|protocols) \S", rest):
            self.candidate = sorted({*self.candidate, line})
        elif verb == "delete":
            kept = [one for one in self.candidate if not one.startswith(f"set {rest}")]
            if kept == self.candidate:
                return "Nothing to delete (the specified node does not exist)"
            self.candidate = kept
        elif line == "commit":
            if self.candidate == self.settings:
                return "No configuration changes to commit"
            self.keep(self.candidate)
        elif line == "exit":
            if self.candidate != self.settings:
                return "Cannot exit: configuration modified.\nUse 'exit discard' to discard the changes and exit."
            self.candidate = None
            return "exit"
        else:
            return f"Set failed\n  {line}"
        return ""


class RouterOs(Device):
    """Menus with items; it paints the typed line a second time."""

    @property
    def prompt(self) -> str:
        return "[admin@MikroTik] > "

    def echo(self, line: str) -> str:
        return f"\r{self.prompt}{line}\r\n"

    def answer(self, line: str) -> str | None:
        if line in ("quit", "/quit"):
            return None
        if line.startswith(":put [/system resource get "):
            return {"version": "7.15.3 (stable)", "board-name": "RB5009UG+S+"}[line.split()[-1].rstrip("]")]
        if line.startswith(":put ("):
            port = int(line.partition("get ether")[2][0])
            return f"rx={port} 000 tx={2 * port} 000 000 rx-drop=5 tx-queue-drop=1 234"
        menu = re.match(r"/ip (address|arp|route) (add|print|remove)(.*)", line)
        if not menu:
            return f"bad command name {line.split()[0]} (line 1 column 1)"
        kind, verb, rest = menu.groups()
        asked = dict(re.findall(r'([a-z-]+)="?([^" \]]+)', rest.replace("find ", "")))
        asked.pop("dynamic", None)
        if verb == "add":
            return self._add(kind, asked)
        fits = [one for one in self.settings if one.startswith(kind) and self._has(one, asked)]
        if verb == "remove":
            self.keep([one for one in self.settings if one not in fits])
            return ""
        return "\n".join(f" {at}   {one.partition(' ')[2]}" for at, one in enumerate(fits))

    def _add(self, kind: str, asked: dict[str, str]) -> str:
        if asked.get("interface", "ether2") not in ("ether1", "ether2", "ether3"):
            return "input does not match any value of interface"
        if "mac-address" in asked:
            asked["mac-address"] = asked["mac-address"].upper()
        line = " ".join([kind, *(f"{key}={value}" for key, value in asked.items())])
        if line in self.settings:
            return f"failure: already have such {kind}"
        self.keep([*self.settings, line])
        return ""

    @staticmethod
    def _has(setting: str, asked: dict[str, str]) -> bool:
        return all(f"{key}={value}" in setting.split() for key, value in asked.items())


KINDS: dict[str, type[Device]] = {"edgeos": EdgeOs, "routeros": RouterOs}


def main() -> None:
    kind, state = sys.argv[1:]
    tty.setraw(0, termios.TCSANOW)

    def write(text: str) -> None:
        os.write(1, text.encode())

    KINDS[kind](lambda: os.read(0, 1).decode(errors="replace"), write, Path(state)).serve()


if __name__ == "__main__":
    main()
