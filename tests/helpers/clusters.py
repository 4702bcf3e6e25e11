"""A fleet's scheduler and testers on loopback, each a command as in docs/fleet.md."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from endpoints import free_port
from sshd import eventually
from tools import ROOT, TREXBENCH, begin, environment, trexbench

LEASE_S = 12.0


def make_certificates(folder: Path) -> Path:
    """Run the commands of docs/fleet.md that make them, in this folder."""
    folder.mkdir()
    text = (ROOT / "docs" / "fleet.md").read_text(encoding="utf-8")
    lines = re.findall(r"(?m)^    (openssl .*(?:\n {6,}.*)*)", text)
    assert len(lines) == 2
    for line in lines:
        subprocess.run(["sh", "-ec", line], cwd=folder, check=True, capture_output=True, timeout=60)
    argv = ["openssl", "x509", "-in", "cert.pem", "-noout", "-ext", "basicConstraints"]
    shown = subprocess.run(argv, cwd=folder, check=True, capture_output=True, text=True, timeout=60).stdout
    assert "CA:FALSE" in shown and "CA:TRUE" not in shown
    return folder


@dataclass
class FleetHere:
    """Commands of one fleet in a folder with its fleet.yaml; the log of each lies there.

    cwd: of a tester that is a machine of its own, with its own state.
    """

    folder: Path
    address: str
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, name: str, *words: str, cwd: Path | None = None) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            argv = [*TREXBENCH, "fleet", *words]
            env = environment((cwd or self.folder) / "run")
            self.running[name] = subprocess.Popen(
                argv, cwd=cwd or self.folder, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def start_scheduler(self) -> None:
        self.start("scheduler", "scheduler")
        self.await_words("scheduler", "scheduler ")

    def start_tester(
        self, name: str, cwd: Path | None = None, results: str = "results", words: Sequence[str] = ()
    ) -> None:
        """Start the tester's command, with these words more, and wait until it has joined."""
        before = self.log(name).count("has joined")
        self.start(name, "worker", "--tester", name, "--results", results, *words, cwd=cwd)
        eventually(lambda: self.log(name).count("has joined") > before, f"{name} has joined: {self.log(name)}", 90)

    def log(self, name: str) -> str:
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def await_words(self, name: str, words: str) -> None:
        eventually(lambda: words in self.log(name), f"{name} says {words!r}: {self.log(name)}", 90)

    def process_of(self, name: str) -> int:
        """Return the process id of the tester itself, which its command started."""
        pid = self.running[name].pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        assert len(children) == 1, children
        return int(children[0])

    def kill(self, name: str) -> None:
        self.running[name].kill()
        self.running.pop(name).wait()

    def status(self, results: str = "results") -> dict[str, dict[str, str]]:
        """Tester -> what `fleet status` says of it."""
        done = trexbench(self.folder, "fleet", "status", "--json", "--results", results)
        assert done.returncode == 0, done.stderr
        return {one["tester"]: one for one in json.loads(done.stdout)["testers"]}

    def begin_night(self, *words: str) -> subprocess.Popen[str]:
        return begin(self.folder, *words, "--fleet", "fleet.yaml")


@contextlib.contextmanager
def fleet_here(folder: Path, wiring: str) -> Iterator[FleetHere]:
    """A scheduler, and room for testers, until the end of the block. wiring: the rest of the fleet.yaml."""
    address = f"tls://127.0.0.1:{free_port()}"
    text = f"{wiring}lease: {LEASE_S:g}s\nscheduler: {address}\n"
    text += f"certificates: {make_certificates(folder / 'certificates')}\n"
    (folder / "fleet.yaml").write_text(text)
    fleet = FleetHere(folder, address)
    try:
        fleet.start_scheduler()
        yield fleet
    finally:
        for process in fleet.running.values():
            process.send_signal(signal.SIGTERM)
        for process in fleet.running.values():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
