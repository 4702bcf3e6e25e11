"""What Linux counts -> totals. Pure; absent is None or left out, never zero."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..core.errors import DutError
from ..core.telemetry import CpuTime
from .parse_linux import parse_json

USER_HZ = 100
"""Of /proc/stat's ticks: the same on every architecture that Linux routes on (sysconf(_SC_CLK_TCK))."""

_NUMBER = re.compile("[0-9]{1,20}")
_SOFTNET = ("processed", "dropped", "time_squeeze")
_COUNT = re.compile(r"\s*([!-9;-~]+(?: [!-9;-~]+)*):\s*([0-9]{1,20})\s*")
_QUEUE_STYLES = (
    r"rx_queue_([0-9]{1,5})_packets",  # ixgbe, igb, ice, virtio_net
    r"rx_queue_([0-9]{1,5})_xdp_packets",  # veth, which has them whether XDP is used or not
    r"rx-([0-9]{1,5})\.(?:rx_)?packets",  # i40e, iavf
    r"rx([0-9]{1,5})_packets",  # mlx5_core, virtio_net of late
    r"queue_([0-9]{1,5})_rx_cnt",  # ena
)


def parse_lines(text: str) -> dict[str, list[str]]:
    """``grep -sH ""`` over files of several lines: all lines of each."""
    files: dict[str, list[str]] = {}
    for line in text.splitlines():
        path, colon, value = line.partition(":")
        if colon and path.startswith("/"):
            files.setdefault(path, []).append(value)
    return files


def parse_uptime(lines: Sequence[str]) -> float | None:
    """/proc/uptime: seconds since boot."""
    word = (lines[0].split() or [""])[0] if lines else ""
    return float(word) if re.fullmatch(r"[0-9]{1,12}\.[0-9]{1,6}", word) else None


def parse_stat(lines: Sequence[str], clocks: Mapping[int, float], packets_known: bool = True) -> tuple[CpuTime, ...]:
    """/proc/stat by CPU. clocks: Hz, by CPU. packets_known: whether packets are handled in soft interrupts only.

    What the host stole is in the total, for shares are of the time that passed, and is nobody's work. Guests' time is
    in user time already.
    """
    found = []
    for line in lines:
        name, *words = line.split() or [""]
        if not re.fullmatch("cpu[0-9]{1,5}", name):
            continue
        if len(words) < 7 or not all(re.fullmatch("[0-9]{1,20}", word) for word in words):
            raise DutError(f"/proc/stat says of {name} {' '.join(words)[:60]!r}")
        user, nice, system, idle, iowait, irq, softirq = (int(word) / USER_HZ for word in words[:7])
        busy = user + nice + system + irq + softirq
        cpu = int(name[3:])
        stolen = int(words[7]) / USER_HZ if words[7:] and re.fullmatch("[0-9]{1,20}", words[7]) else 0.0
        found.append(
            CpuTime(cpu, busy + idle + iowait + stolen, busy, softirq if packets_known else None, clocks.get(cpu))
        )
    if not found:
        raise DutError("/proc/stat names no CPU")
    return tuple(found)


def parse_clocks(files: Mapping[str, Sequence[str]]) -> dict[int, float]:
    """Hz by CPU, from cpufreq's scaling_cur_freq (kHz), else from /proc/cpuinfo ("cpu MHz")."""
    clocks: dict[int, float] = {}
    cpu = None
    for line in files.get("/proc/cpuinfo", ()):
        name, _, value = (part.strip() for part in line.partition(":"))
        if name == "processor" and re.fullmatch("[0-9]{1,5}", value):
            cpu = int(value)
        elif name == "cpu MHz" and cpu is not None and re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,9})?", value):
            clocks[cpu] = float(value) * 1e6
    for path, lines in files.items():
        match = re.fullmatch("/sys/devices/system/cpu/cpu([0-9]{1,5})/cpufreq/scaling_cur_freq", path)
        if match and lines and re.fullmatch("[0-9]{1,9}", lines[0].strip()):
            clocks[int(match[1])] = int(lines[0]) * 1e3
    return {one: hz for one, hz in clocks.items() if hz > 0}


def parse_snmp(lines: Sequence[str]) -> dict[str, int]:
    """/proc/net/snmp or netstat: by ``Ip.InReceives``. Two lines for each protocol, names and numbers."""
    found: dict[str, int] = {}
    names: dict[str, list[str]] = {}
    for line in lines:
        protocol, _, rest = line.partition(":")
        words = rest.split()
        if protocol not in names:
            names[protocol] = words
        elif len(words) != len(names[protocol]):
            raise DutError(f"{protocol[:20]!r} of /proc/net has {len(names[protocol])} names, {len(words)} numbers")
        else:
            for name, word in zip(names[protocol], words, strict=True):
                if re.fullmatch("[0-9]{1,20}", word):
                    found[f"{protocol}.{name}"] = int(word)
    return found


def parse_net_dev(lines: Sequence[str]) -> dict[str, tuple[int, int]]:
    """/proc/net/dev: packets received and sent, by interface."""
    found = {}
    for line in lines:
        name, _, rest = line.rpartition(":")
        words = rest.split()
        if name.strip() and len(words) >= 10 and all(_NUMBER.fullmatch(words[at]) for at in (1, 9)):
            found[name.strip()] = (int(words[1]), int(words[9]))
    return found


def parse_softirqs(lines: Sequence[str]) -> dict[str, dict[int, int]]:
    """/proc/softirqs: how often each kind was raised, by CPU."""
    cpus = _heading(lines)
    found = {}
    for line in lines[1:]:
        name, _, rest = line.partition(":")
        words = rest.split()
        if cpus and len(words) == len(cpus) and all(_NUMBER.fullmatch(word) for word in words):
            found[name.strip()] = dict(zip(cpus, map(int, words), strict=True))
    return found


def parse_softnet(lines: Sequence[str]) -> dict[int, dict[str, int]]:
    """/proc/net/softnet_stat by CPU, hexadecimal. The CPU is the 13th column; on older kernels, the row."""
    found = {}
    for row, line in enumerate(lines):
        words = line.split()
        if len(words) >= len(_SOFTNET) and all(re.fullmatch("[0-9a-f]{1,16}", word) for word in words):
            cpu = int(words[12], 16) if len(words) > 12 else row
            found[cpu] = {name: int(word, 16) for name, word in zip(_SOFTNET, words, strict=False)}
    return found


def parse_interrupts(lines: Sequence[str]) -> dict[int, tuple[str, int]]:
    """/proc/interrupts: name of each numbered interrupt, and how often it came, on all CPUs together."""
    cpus = len(_heading(lines))
    found = {}
    for line in lines[1:]:
        number, _, rest = line.partition(":")
        words = rest.split()
        counts = [int(word) for word in words[:cpus] if _NUMBER.fullmatch(word)]
        if cpus and _NUMBER.fullmatch(number.strip()) and len(counts) == cpus < len(words):
            found[int(number)] = (words[-1], sum(counts))
    return found


def _heading(lines: Sequence[str]) -> list[int]:
    """CPUs of the columns of /proc/softirqs and interrupts; none where that is no heading."""
    words = lines[0].split() if lines else []
    return [int(word[3:]) for word in words] if all(re.fullmatch("CPU[0-9]{1,5}", word) for word in words) else []


def parse_link_counters(text: str) -> dict[str, dict[str, int]]:
    """``ip -s -s -json link show`` by interface: ``rx.packets``, ``tx.dropped`` ... of stats64."""
    found: dict[str, dict[str, int]] = {}
    for entry in parse_json(text, "ip link"):
        stats = entry.get("stats64")
        counters = found.setdefault(str(entry.get("ifname")), {})
        for way, values in stats.items() if isinstance(stats, dict) else ():
            for name, value in values.items() if isinstance(values, dict) else ():
                if _is_count(value):
                    counters[f"{way}.{name}"] = value
    return found


def parse_qdisc_drops(text: str) -> dict[str, int]:
    """``tc -s -json qdisc show``: drops of each interface's root, which holds those of its children."""
    return {
        str(entry.get("dev")): entry["drops"]
        for entry in parse_json(text, "tc qdisc")
        if entry.get("root") and _is_count(entry.get("drops"))
    }


def parse_nic_counters(text: str) -> dict[str, int]:
    """``ethtool -S``: every counter that is a whole number."""
    matches = (_COUNT.fullmatch(line) for line in text.splitlines())
    return {match[1]: int(match[2]) for match in matches if match}


def queue_counts(counters: Mapping[str, int]) -> dict[int, int]:
    """Packets by receive queue, in the words of the first style in which any is told."""
    for style in _QUEUE_STYLES:
        found = {int(match[1]): counters[name] for name in counters if (match := re.fullmatch(style, name))}
        if found:
            return dict(sorted(found.items()))
    return {}


def parse_perf(text: str) -> float | None:
    """``perf stat -x, -e cycles``: cycles counted; None where perf says that it cannot count them."""
    for line in text.splitlines():
        fields = line.split(",")
        if len(fields) >= 3 and fields[2].split(":")[0] == "cycles":
            return float(fields[0]) if re.fullmatch("[0-9]{1,20}", fields[0]) else None
    raise DutError(f"perf stat printed no cycles ({' '.join(text.split())[:60]!r})")


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
