"""A virtual router whose lab is killed at random moments: what is left of it, and whether its disk has changed.

    python benchmarks/vm_faults.py [--faults 200] [--seed 1]

The seed draws command (`ramp`, which makes a lab of its own, `lab up`, `lab down`), phase (boot, configuration,
measurement, shutdown), moment and victim: kill -9 of trexbench, the lab's keeper, QEMU or the server, or Ctrl-C once or
twice. A phase that ended before its moment came is drawn anew; after many such draws it is an error. Aim: within 20 s
of the command's end, without another command, no process, namespace (which the TAPs are in), socket or state of the
lab is there, every document can be read, and kernel, initramfs and disk have the digests they had. A `lab down` that
fails may leave the lab up. Every third machine starts from a disk.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from typing import Any

import _ratios  # noqa: F401  # first, for the path to the tests' helpers
import vm_disks
import vm_labs
from _ratios import note, options, skip
from packet_lab import namespaces
from tools import begin, trexbench

from trexbench.core.errors import LabError
from trexbench.lab import image, vm

PREFIX = f"tbf{os.getpid()}"
PHASES = {"boot": 6.0, "configuration": 1.5, "measurement": 3.0, "shutdown": 1.0}
"""Seconds within which a phase's fault comes."""
COMMANDS = {"boot": ("ramp", "ramp", "up"), "shutdown": ("ramp", "down")}
"""Commands that have this phase; `ramp` alone has the others."""
VICTIMS = ("trexbench", "keeper", "QEMU", "server", "Ctrl-C", "Ctrl-C twice")
LEFT_S, ENDS_S = 20.0, 90.0


@dataclass
class Case:
    """A command on a machine, and what is to happen to it. kind: what it starts from: kernel, raw or qcow2."""

    folder: Path
    kind: str
    phase: str
    command: str
    victim: str
    after_s: float
    again_s: float

    def state(self) -> dict[str, Any]:
        """The lab's state; empty without one."""
        with contextlib.suppress(OSError, ValueError):
            return dict(json.loads((self.folder / "run" / f"{PREFIX}.lab.json").read_text()))
        return {}

    def start(self) -> Popen[str]:
        config = f"{self.kind}.yaml"
        if self.command == "ramp":
            return begin(self.folder, "ramp", "--dut", config, "--mode", "64b", "--no-picture")
        if self.command == "down":
            done = trexbench(self.folder, "lab", "up", "--dut", config)
            assert done.returncode == 0, done.stderr
        return begin(self.folder, "lab", self.command, "--dut", config)

    def in_phase(self) -> bool:
        state = self.state()
        if self.phase == "shutdown":  # of `down` from its start: a lab that it does not reach stays up
            return self.command == "down" or state.get("status") == "closing"
        if self.phase == "boot":
            return bool(state.get("router"))
        measured = any(self.folder.glob("results/**/*.jsonl")) or any(self.folder.glob("results/20*/*/*"))
        return state.get("status") == "up" and (self.phase == "configuration" or measured)

    def victims(self, run: Popen[str]) -> dict[str, int]:
        """Processes that are there, by what they are."""
        state = self.state()
        known = {"QEMU": state.get("router"), "server": state.get("server")}
        pids = {name: part["process"]["pid"] for name, part in known.items() if part}
        keepers = [pid for pid, parent in children() if parent == run.pid and b"trexbench.lab.keeper" in words(pid)]
        pids |= {"keeper": keepers[0]} if keepers else {}
        return {"trexbench": run.pid, **pids}

    def strike(self, run: Popen[str]) -> bool:
        """False where the phase or the victim is not there."""
        if not awaited(lambda: self.in_phase() or run.poll() is not None, 60.0):
            return False
        with contextlib.suppress(TimeoutExpired):
            run.wait(self.after_s)
        if run.poll() is not None:
            return False
        if self.victim.startswith("Ctrl-C"):
            run.send_signal(signal.SIGINT)
            if self.victim.endswith("twice"):
                time.sleep(self.again_s)
                run.send_signal(signal.SIGINT)
            return True
        pid = self.victims(run).get(self.victim)
        if pid is None:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            return True
        return False


def children() -> list[tuple[int, int]]:
    """Each process and its parent."""
    pairs = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            pairs.append((int(entry.name), int((entry / "stat").read_text().rpartition(")")[2].split()[1])))
    return pairs


def words(pid: int) -> Sequence[bytes]:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return ()


def awaited(condition: Callable[[], bool], within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def left(folder: Path) -> list[str]:
    """Everything of the lab that is still there."""
    run = folder / "run"
    keepers = [str(pid) for pid, _ in children() if b"trexbench.lab.keeper" in words(pid) and in_folder(pid, folder)]
    files = [path.name for pattern in ("*.console", "*.lab.json", "ssh-*") for path in run.glob(pattern)]
    machines = [f"{name} {pid}" for pid, name in vm_labs.processes(PREFIX).items()]
    return [*machines, *(f"keeper {pid}" for pid in keepers), *namespaces(PREFIX), *files]


def in_folder(pid: int, folder: Path) -> bool:
    try:
        return Path(f"/proc/{pid}/cwd").resolve() == folder.resolve()
    except OSError:
        return False


def torn(folder: Path) -> list[str]:
    """Documents that cannot be read."""
    bad = []
    for path in folder.glob("results/20*/*/*.json"):
        try:
            json.loads(path.read_text())
        except ValueError:
            bad.append(path.name)
    return bad


def digests(paths: Sequence[Path]) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


@dataclass
class Storm:
    """Faults that have come, by phase and victim, and what was wrong after them."""

    folder: Path
    rng: random.Random
    disks: dict[str, Path]
    faults: Counter[tuple[str, str]] = field(default_factory=Counter)
    bad: list[str] = field(default_factory=list)
    again: int = 0

    def draw(self) -> Case:
        phase = self.rng.choice([*PHASES])
        return Case(
            self.folder,
            self.rng.choice(["kernel", "kernel", *self.disks]) if self.disks else "kernel",
            phase,
            self.rng.choice(COMMANDS.get(phase, ("ramp",))),
            self.rng.choice(VICTIMS),
            self.rng.uniform(0.0, PHASES[phase]),
            self.rng.uniform(0.0, 1.0),
        )

    def one(self) -> None:
        """Draw until a fault has come, and judge what it leaves."""
        case = self.draw()
        files = [image.kernel_file(), image.initrd_file(), *self.disks.values()]
        before = digests(files)
        with case.start() as run:
            struck = case.strike(run)
            try:
                said = run.communicate(timeout=ENDS_S)[1]
            except TimeoutExpired:
                run.kill()
                said = "it did not end"
        name = f"{case.command} {case.kind}, {case.phase} +{case.after_s:.2f} s, {case.victim}"
        stays = run.returncode == 0 and case.command == "up"  # it was up before the fault came
        is_gone = not stays and awaited(lambda: not left(self.folder), LEFT_S)
        failed = run.returncode != 0 and case.command == "down" and case.state().get("status") == "up"
        if not (stays or is_gone or failed):
            self.wrong(name, f"left: {', '.join(left(self.folder))}", said)
        # A Ctrl-C that meets Python's own start, before the first line of trexbench, is no fault of it.
        has_traceback = "Traceback" in said and "/trexbench/" in said
        if struck and (torn(self.folder) or has_traceback or said == "it did not end"):
            self.wrong(name, f"torn: {torn(self.folder)}", said)
        if digests(files) != before:
            self.wrong(name, "a disk has changed", said)
        if stays or left(self.folder):
            trexbench(self.folder, "lab", "down", "--dut", f"{case.kind}.yaml", "--force")
        shutil.rmtree(self.folder / "results", ignore_errors=True)
        came = struck and not stays
        self.faults[case.phase, case.victim] += came
        self.again += not came
        print(f"{self.faults.total():>4} {name}{'' if came else ': drawn anew'}", flush=True)

    def wrong(self, name: str, what: str, said: str) -> None:
        self.bad.append(name)
        print(f"BAD {name}: {what}; it said: {said.strip()[-500:]}", flush=True)


def table(faults: Counter[tuple[str, str]]) -> str:
    lines = [f"{'':<16}" + "".join(f"{phase:>15}" for phase in PHASES)]
    for victim in VICTIMS:
        lines.append(f"{victim:<16}" + "".join(f"{faults[phase, victim]:>15}" for phase in PHASES))
    return "\n".join(lines)


def main() -> int:
    asked = options(__doc__, faults=200, seed=1)
    if os.geteuid() != 0 or shutil.which(vm.QEMU) is None:
        skip(f"needs root and {vm.QEMU}")
    begun_s = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        os.environ["XDG_CACHE_HOME"] = place
        try:
            image.make()
        except LabError as error:
            skip(str(error))
        vm_labs.write_vm(folder / "kernel.yaml", PREFIX)
        disks = {}
        for kind in () if vm_disks.lacking() else ("raw", "qcow2"):
            disks[kind] = vm_disks.make_disk(
                folder / f"disk-{kind}.{kind}", image.kernel_file(), image.initrd_file(), kind=kind
            )
            vm_labs.write_vm(folder / f"{kind}.yaml", PREFIX, image=str(disks[kind]))
        storm = Storm(folder, random.Random(asked.seed), disks)
        while storm.faults.total() < asked.faults and storm.again < 3 * asked.faults + 20:
            storm.one()
    print(table(storm.faults))
    print(f"{storm.faults.total()} faults in {time.monotonic() - begun_s:.0f} s; {storm.again} drawn anew")
    print(f"bad: {'; '.join(storm.bad) or 'nothing'}")
    if storm.faults.total() < asked.faults:
        sys.exit(f"only {storm.faults.total()} of {asked.faults} faults came: see what the commands said")
    note("virtual routers: faults that left something", len(storm.bad), noise=0.0)
    return int(bool(storm.bad))


if __name__ == "__main__":
    sys.exit(main())
