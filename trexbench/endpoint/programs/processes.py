"""Facts about a host, its CPU time and its processes, from /proc."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import Any

from .common import say, text_of

MOST_PROCESSES = 10
"""That are told, of those that took CPU time."""
CARRY = ("tunnel", "endpoint", "pppoe")
"""Parts in the test whose processes are told however little they took."""
TUNNELS = ("openvpn", "wireguard-go", "wireguard", "boringtun-cli", "charon", "trexbench-relay", "trexbench-tunnel")
SESSIONS = ("pppd", "pppoe", "pppoe-server", "accel-pppd")
"""Programs, and what they are for."""
KERNEL_THREAD = 0x00200000
"""The kernel's PF_KTHREAD, of the flags of a process."""


def named(path: str, names: str, sign: str) -> str:
    """Return what follows the sign in the first line of a file that starts with one of these names."""
    with contextlib.suppress(OSError), open(path, errors="replace") as file:
        for line in file:
            name, _, value = line.partition(sign)
            if name.strip() in names.split("|"):
                return value.strip().strip('"')
    return ""


def facts() -> dict[str, str]:
    ipv4, core = "/proc/sys/net/ipv4/", "/proc/sys/net/core/"
    found = {
        "system": named("/etc/os-release", "PRETTY_NAME", "="),
        "kernel": os.uname().release,
        "machine": os.uname().machine,
        "cpu": named("/proc/cpuinfo", "model name|Model|Hardware|cpu model", ":"),
        "cpus": str(os.cpu_count() or ""),
        "memory": named("/proc/meminfo", "MemTotal", ":"),
        "python": ".".join(str(part) for part in sys.version_info[:3]),
        "congestion_default": text_of(ipv4 + "tcp_congestion_control"),
        "congestion_available": text_of(ipv4 + "tcp_available_congestion_control"),
    }
    for name in ("tcp_rmem", "tcp_wmem", "tcp_adv_win_scale"):
        found[name] = text_of(ipv4 + name)
    for name in ("rmem_max", "wmem_max"):
        found[name] = text_of(core + name)
    return {name: value for name, value in found.items() if value}


def parse_stat(text: str) -> dict[str, Any] | None:
    """/proc/PID/stat or that of a thread: name, times in seconds, the CPU it ran on last; None for what is none.

    began: its start by the kernel's clock, which tells two processes of one number apart.
    """
    hertz, (before, _, after) = os.sysconf("SC_CLK_TCK"), text.rpartition(")")
    words = after.split()
    if len(words) < 37:
        return None
    found = {"name": before.partition("(")[2], "kernel": bool(int(words[6]) & KERNEL_THREAD), "cpu": int(words[36])}
    found.update(user_s=int(words[11]) / hertz, system_s=int(words[12]) / hertz, began=int(words[19]))
    return dict(found, threads=int(words[17]))


def one_task(folder: str) -> dict[str, Any] | None:
    """A process or thread, with its run delay where the kernel tells it."""
    found, delay = parse_stat(text_of(folder + "/stat")), text_of(folder + "/schedstat").split()
    return dict(found, waiting_s=int(delay[1]) / 1e9) if found is not None and len(delay) == 3 else found


def one_process(pid: int) -> dict[str, Any] | None:
    """With its threads in place of their number; a process of one thread is its own."""
    found = one_task(f"/proc/{pid}")
    if found is None:
        return None
    tasks: dict[int, Any] = {pid: found}
    if found["threads"] > 1:
        with contextlib.suppress(OSError):
            folder = f"/proc/{pid}/task/"
            tasks = {int(name): one for name in os.listdir(folder) for one in [one_task(folder + name)] if one}
    return dict(found, threads=tasks)


def thread_times(pid: int) -> list[dict[str, Any]]:
    """CPU time of each thread of a process; none where it has ended."""
    told, threads = ("user_s", "system_s", "waiting_s"), (one_process(pid) or {"threads": {}})["threads"]
    return [dict({key: one[key] for key in told if key in one}, thread=number) for number, one in threads.items()]


def stat_lines() -> list[str]:
    """Read the lines of /proc/stat on single CPUs, which trexbench takes apart."""
    with contextlib.suppress(OSError), open("/proc/stat") as file:
        return [line for line in file if line.startswith("cpu") and line[3].isdigit()]
    return []


def all_processes() -> dict[int, dict[str, Any]]:
    """Read all processes of this host (of its PID namespace)."""
    found = {}
    with contextlib.suppress(OSError):
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            one = one_process(pid)
            if one is not None:
                found[pid] = one
    return found


def network_of(pid: Any) -> str:
    """The network namespace of a process; empty where it may not be known."""
    try:
        return os.readlink(f"/proc/{pid}/ns/net")
    except OSError:
        return ""


def named_program(pid: int, name: str) -> str:
    """The name of a process; of one of ours in python3 its own."""
    if not name.startswith("python"):
        return name
    command = text_of(f"/proc/{pid}/cmdline")
    at = command.find('"trexbench-')
    return command[at + 1 :].partition('"')[0] if at >= 0 else name


def role_of(name: str, kernel: bool) -> str:
    """Role of a process of this name, where the name says so. Kernel WireGuard works in kworkers, and says wg-."""
    if kernel:
        if name.startswith("kworker/"):
            return "tunnel" if "wg-" in name else ""
        return "ksoftirqd" if name.startswith("ksoftirqd/") else "napi" if name.startswith("napi/") else ""
    return "tunnel" if name in TUNNELS else "pppoe" if name in SESSIONS else ""


class ProcessWatch:
    """Which processes took CPU time, from now on. program: the one that sends or receives."""

    def __init__(self, program: int = 0) -> None:
        self.program, self.own = program, network_of("self")
        self.noted: dict[int, dict[str, Any]] = {}
        self.began, self.before = time.monotonic(), all_processes()

    def note(self) -> None:
        """The program as it is now: its threads, or itself, may be gone before all is read."""
        one = one_process(self.program)
        if one is not None:
            self.noted[self.program] = one

    def say(self) -> None:
        """Report the processes that took most, and all that have a part in the test; one that has ended is missing."""
        over_s = time.monotonic() - self.began
        found = [
            one
            for pid, now in {**all_processes(), **self.noted}.items()
            for one in [self._took(pid, now)]
            if one["user_s"] + one["system_s"] > 0 or one["role"] in CARRY
        ]
        found.sort(key=lambda one: one["user_s"] + one["system_s"], reverse=True)
        found.sort(key=lambda one: one["role"] not in CARRY)  # none of these is left out
        told = found[: max(MOST_PROCESSES, sum(one["role"] in CARRY for one in found))]
        told.sort(key=lambda one: one["user_s"] + one["system_s"], reverse=True)
        say("processes", {"over_s": over_s, "took": told})

    def _took(self, pid: int, now: dict[str, Any]) -> dict[str, Any]:
        then = self.before.get(pid, {})
        if then.get("began") != now["began"]:
            then = {"threads": {}}
        took = {name: max(0.0, now[name] - then.get(name, 0.0)) for name in ("user_s", "system_s")}
        took.update(process=pid, name=now["name"], whose="kernel" if now["kernel"] else "", role="")
        if sum((took["user_s"], took["system_s"])) <= 0 and pid != self.program:
            return took
        tasks = []
        for number, one in now["threads"].items():
            old = then["threads"].get(number, {})
            grown = [one[name] - old.get(name, 0.0) for name in ("user_s", "system_s")]
            delay = one["waiting_s"] - old.get("waiting_s", 0.0) if "waiting_s" in one else None
            tasks.append((max(0.0, sum(grown)), one["cpu"], delay))
        tasks.sort(key=lambda task: task[0], reverse=True)
        took["cpus"] = list(dict.fromkeys(cpu for busy_s, cpu, _ in tasks if busy_s > 0)) or [now["cpu"]]
        delays = [delay for _, _, delay in tasks if delay is not None]
        if delays:
            took["waiting_s"] = max(0.0, sum(delays))
        if len(tasks) > 1:
            took["busiest_thread_s"] = tasks[0][0]
        took["name"] = name = named_program(pid, now["name"]) if not now["kernel"] else now["name"]
        if not now["kernel"] and pid != self.program:
            there = network_of(pid)
            if there and self.own and there != self.own:
                return dict(took, whose="elsewhere")
        part = "endpoint" if pid == self.program else role_of(name, now["kernel"])
        return dict(took, role=part)
