"""A box of tests/unit behind a real sshd: a folder with each of its programs, all one script that asks the pickled box.

The folder goes first into the PATH of the session (``SetEnv``). The script takes one command at a time, writes down
what arrived, and obeys orders: fail, hang, or cut the connection, before or after the box has done what it was told.
"""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

HANGS_S = 30

_SCRIPT = '''#!{python} -SE
import sys
sys.path[:0] = [{root!r}, {unit!r}]
import fcntl, json, os, pickle, signal, time

folder = {folder!r}
argv = [os.path.basename(sys.argv[0]), *sys.argv[1:]]
if argv == ["cat"]:
    os.execv("/bin/cat", argv)  # what keeps the connection open, not a command of the driver's
fed = sys.stdin.read()


def cut():
    """Kill the child of sshd that serves this connection."""
    pid = os.getpid()
    while True:
        with open(f"/proc/{{pid}}/stat") as file:
            parent = int(file.read().rpartition(")")[2].split()[1])
        if parent == {server} or parent <= 1:
            break
        pid = parent
    if parent == {server}:
        os.kill(pid, signal.SIGKILL)


with open(folder + "/lock", "w") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    with open(folder + "/log", "a") as log:
        log.write(json.dumps(argv) + "\\n")
    with open(folder + "/orders") as file:
        orders = json.load(file)
    line = " ".join(argv)
    order = next((one for one in orders if one["words"] in line), dict(do="run", after=True))
    if order["do"] == "fail":
        sys.stderr.write(order["says"] + "\\n")
        sys.exit(1)
    stdout = stderr = ""
    code = 0
    if order["do"] == "run" or order["after"]:
        with open(folder + "/box", "rb") as file:
            box = pickle.load(file)
        said = box.run(argv, fed)
        stdout, stderr, code = said.stdout, said.stderr, said.returncode
        with open(folder + "/box.new", "wb") as file:
            pickle.dump(box, file)
        os.replace(folder + "/box.new", folder + "/box")
if order["do"] == "hang":
    time.sleep({hangs})
if order["do"] == "cut":
    cut()
    time.sleep(1)
sys.stdout.write(stdout)
sys.stderr.write(stderr)
sys.exit(code)
'''


@dataclass(frozen=True)
class Order:
    """do: ``fail``, ``hang`` or ``cut`` (the connection) at the first command line that contains these words, and at
    every later one. after: hang or cut when the box has done it, not before. says: of a failure.
    """

    words: str
    do: str
    after: bool = False
    says: str = "Operation not permitted"


def programs_of(box: Any) -> list[str]:
    """All but sh: what a driver has it do is done by the real one, with the box's programs."""
    return [program for program in box.programs if program != "sh"]


class Shim:
    """A folder that is a box; ``path`` is what goes into PATH."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.path = folder / "bin"
        self.path.mkdir(parents=True)

    def install(self, box: Any, server: int) -> None:
        """This box from now on, with nothing logged and no orders. server: process of sshd."""
        for old in self.path.iterdir():
            old.unlink()
        script = self._folder / "script"
        unit = ROOT / "tests/unit"
        names = {"python": sys.executable, "root": str(ROOT), "unit": str(unit), "folder": str(self._folder)}
        script.write_text(_SCRIPT.format(**names, server=server, hangs=HANGS_S))
        script.chmod(0o755)
        for program in programs_of(box):
            (self.path / program).symlink_to(script)
        self.set_box(box)
        (self._folder / "log").write_text("")
        self.order()

    def set_box(self, box: Any) -> None:
        (self._folder / "box").write_bytes(pickle.dumps(box))

    @property
    def box(self) -> Any:
        return pickle.loads((self._folder / "box").read_bytes())

    def order(self, *orders: Order) -> None:
        (self._folder / "orders").write_text(json.dumps([asdict(order) for order in orders]))

    @property
    def arrived(self) -> Sequence[Sequence[str]]:
        """Every command that arrived, as argv."""
        return [json.loads(line) for line in (self._folder / "log").read_text().splitlines()]

    def forget(self) -> None:
        (self._folder / "log").write_text("")
