"""Facts about a host, its CPU time and its processes, from /proc."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import Any

from .common import say, text_of

MOST_PROCESSES = 10
"""Most processes that are reported, of those that took CPU time."""
CARRY = ("tunnel", "endpoint", "pppoe")
"""Roles in the test whose processes are reported however little CPU time they took."""
TUNNELS = ("openvpn", "wireguard-go", "wireguard", "boringtun-cli", "charon", "trexbench-relay", "trexbench-tunnel")
SESSIONS = ("pppd", "pppoe", "pppoe-server", "accel-pppd")
"""Programs of tunnels and of PPPoE sessions."""
KERNEL_THREAD = 0x00200000
"""The kernel's PF_KTHREAD, a flag of processes."""


def named(path: str, names: str, sign: str) -> str:
    """The value after the sign in the first line of a file that starts with one of these names; empty if none does."""
    with contextlib.suppress(OSError), open(path, errors="replace") as file:
        for line in file:
            name, _, value = line.partition(sign)
            if name.strip() in names.split("|"):
                return value.strip().strip('"')
    return ""


def facts() -> dict[str, str]:
    ipv4, core = "/proc/sys/net/ipv4/", "/proc/sys/net/core/"
    known = {
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
    known.update({name: text_of(ipv4 + name) for name in ("tcp_rmem", "tcp_wmem", "tcp_adv_win_scale")})
    known.update({name: text_of(core + name) for name in ("rmem_max", "wmem_max")})
    return {name: value for name, value in known.items() if value}


def parse_stat(text: str) -> dict[str, Any] | None:
    """Read /proc/PID/stat, or a thread's: name, times in seconds, CPU it ran on last; None if it is incomplete.

    began: its start by the kernel's clock, which distinguishes two processes with one pid.
    """
    hertz, (before, _, after) = os.sysconf("SC_CLK_TCK"), text.rpartition(")")
    words = after.split()
    if len(words) < 37:
        return None
    return {
        "name": before.partition("(")[2],
        "kernel": bool(int(words[6]) & KERNEL_THREAD),
        "cpu": int(words[36]),
        "user_s": int(words[11]) / hertz,
        "system_s": int(words[12]) / hertz,
        "began": int(words[19]),
        "threads": int(words[17]),
    }


def one_task(folder: str) -> dict[str, Any] | None:
    """Read a process or thread, with its run delay if the kernel reports one."""
    task, delay = parse_stat(text_of(folder + "/stat")), text_of(folder + "/schedstat").split()
    return dict(task, waiting_s=int(delay[1]) / 1e9) if task is not None and len(delay) == 3 else task


def one_process(pid: int) -> dict[str, Any] | None:
    """Read a process, with its threads by number; a process of one thread is its own."""
    process = one_task(f"/proc/{pid}")
    if process is None:
        return None
    tasks: dict[int, Any] = {pid: process}
    if process["threads"] > 1:
        with contextlib.suppress(OSError):
            folder = f"/proc/{pid}/task/"
            tasks = {int(name): task for name in os.listdir(folder) for task in [one_task(folder + name)] if task}
    return dict(process, threads=tasks)


def thread_times(pid: int) -> list[dict[str, Any]]:
    """CPU time of each thread of a process; none if it has ended."""
    times, threads = ("user_s", "system_s", "waiting_s"), (one_process(pid) or {"threads": {}})["threads"]
    return [dict({key: task[key] for key in times if key in task}, thread=tid) for tid, task in threads.items()]


def stat_lines() -> list[str]:
    """Lines of /proc/stat about single CPUs, which trexbench parses."""
    with contextlib.suppress(OSError), open("/proc/stat") as file:
        return [line for line in file if line.startswith("cpu") and line[3].isdigit()]
    return []


def all_processes() -> dict[int, dict[str, Any]]:
    """Read all processes of this host (of its PID namespace)."""
    processes = {}
    with contextlib.suppress(OSError):
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            process = one_process(pid)
            if process is not None:
                processes[pid] = process
    return processes


def network_of(pid: Any) -> str:
    """The network namespace of a process; empty if it cannot be read."""
    try:
        return os.readlink(f"/proc/{pid}/ns/net")
    except OSError:
        return ""


def named_program(pid: int, name: str) -> str:
    """The name of a process; of a program that trexbench has sent that program's, not python3's."""
    if not name.startswith("python"):
        return name
    command = text_of(f"/proc/{pid}/cmdline")
    at = command.find('"trexbench-')
    return command[at + 1 :].partition('"')[0] if at >= 0 else name


def role_of(name: str, kernel: bool) -> str:
    """Role of a process by its name, if that shows it. Kernel WireGuard works in kworkers with wg- in their names."""
    if kernel:
        if name.startswith("kworker/"):
            return "tunnel" if "wg-" in name else ""
        return "ksoftirqd" if name.startswith("ksoftirqd/") else "napi" if name.startswith("napi/") else ""
    return "tunnel" if name in TUNNELS else "pppoe" if name in SESSIONS else ""


class ProcessWatch:
    """A count, from now on, of the CPU time of processes. program: pid of the one that sends or receives."""

    def __init__(self, program: int = 0) -> None:
        self.program, self.own = program, network_of("self")
        self.noted: dict[int, dict[str, Any]] = {}
        self.began, self.before = time.monotonic(), all_processes()

    def note(self) -> None:
        """Read the program now: its threads, or itself, may be gone before all is read."""
        process = one_process(self.program)
        if process is not None:
            self.noted[self.program] = process

    def say(self) -> None:
        """Report the processes that took most, and all with a role in the test; one that has ended is missing."""

        def busy_s(process: dict[str, Any]) -> float:
            return float(process["user_s"] + process["system_s"])

        over_s = time.monotonic() - self.began
        took = [self._took(pid, now) for pid, now in {**all_processes(), **self.noted}.items()]
        carry = [process for process in took if process["role"] in CARRY]
        others = [process for process in took if process["role"] not in CARRY and busy_s(process) > 0]
        others.sort(key=busy_s, reverse=True)
        reported = carry + others[: max(0, MOST_PROCESSES - len(carry))]
        say("processes", {"over_s": over_s, "took": sorted(reported, key=busy_s, reverse=True)})

    def _took(self, pid: int, now: dict[str, Any]) -> dict[str, Any]:
        then = self.before.get(pid, {})
        if then.get("began") != now["began"]:
            then = {"threads": {}}
        took = {name: max(0.0, now[name] - then.get(name, 0.0)) for name in ("user_s", "system_s")}
        took.update(process=pid, name=now["name"], whose="kernel" if now["kernel"] else "", role="")
        if took["user_s"] + took["system_s"] <= 0 and pid != self.program:
            return took
        tasks = []
        for tid, task in now["threads"].items():
            old = then["threads"].get(tid, {})
            busy_s = sum(task[name] - old.get(name, 0.0) for name in ("user_s", "system_s"))
            delay = task["waiting_s"] - old.get("waiting_s", 0.0) if "waiting_s" in task else None
            tasks.append((max(0.0, busy_s), task["cpu"], delay))
        tasks.sort(key=lambda task: task[0], reverse=True)
        took["cpus"] = list(dict.fromkeys(cpu for busy_s, cpu, _ in tasks if busy_s > 0)) or [now["cpu"]]
        delays = [delay for _, _, delay in tasks if delay is not None]
        if delays:
            took["waiting_s"] = max(0.0, sum(delays))
        if len(tasks) > 1:
            took["busiest_thread_s"] = tasks[0][0]
        took["name"] = name = named_program(pid, now["name"]) if not now["kernel"] else now["name"]
        if pid == self.program:
            return dict(took, role="endpoint")
        if not now["kernel"] and network_of(pid) not in ("", self.own) and self.own:
            return dict(took, whose="elsewhere")
        return dict(took, role=role_of(name, now["kernel"]))
