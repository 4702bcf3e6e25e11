"""Parse counters that Linux's tools print; absent is None or left out, never zero. And read its machine's platform."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from ..core.dut.telemetry import CpuTime
from ..core.errors import DutError
from ..transport import Transport
from .files import counts, read_files

USER_HZ = 100
"""Ticks per second in /proc/stat, sysconf(_SC_CLK_TCK): 100 on every common architecture."""

_SOFTNET = ("processed", "dropped", "time_squeeze")
_COUNT = re.compile(r"\s*(\S.*?):\s*([0-9]{1,20})\s*")
_CYCLES = re.compile(r"([^,]{1,40}),[^,]{0,20},(?:\w{1,40}/)?cycles[/:]?[^,]{0,8}(?:,|$)")
_QUEUE_STYLES = (
    r"rx_queue_([0-9]{1,5})_packets",  # ixgbe, igb, ice, virtio_net
    r"rx_queue_([0-9]{1,5})_xdp_packets",  # veth, which has them whether XDP is used or not
    r"rx-([0-9]{1,5})\.(?:rx_)?packets",  # i40e, iavf
    r"rx([0-9]{1,5})_packets",  # mlx5_core, virtio_net of late
    r"queue_([0-9]{1,5})_rx_cnt",  # ena
    r"Rx Queue# ([0-9]{1,5}): ucast pkts rx",  # vmxnet3
    r"\[([0-9]{1,5})\]: rx_ucast_packets",  # bnxt_en
    r"Queue\[([0-9]{1,5})\] InPackets",  # atlantic
    r"q([0-9]{1,5})_rx_pkt_n",  # stmmac
    r"rxq_([0-9]{1,5})_packets",  # amd-xgbe
)

_DMI = ("bios_vendor", "bios_version", "bios_date", "product_name", "board_name", "board_version")
PLATFORM_FILES: Mapping[str, str] = {
    "microcode": "/sys/devices/system/cpu/cpu0/microcode/version",
    **{name: f"/sys/class/dmi/id/{name}" for name in _DMI},
}
"""Files that describe a machine below its kernel, absent where it does not report them."""
WAN_HANDLE = "7b0:"
"""Handle of the root qdisc of a WAN that a run has made: no number that a kernel assigns by itself."""


def platform_of(files: Mapping[str, str]) -> dict[str, str]:
    """Select PLATFORM_FILES that are not empty, by name."""
    return {name: text for name, path in PLATFORM_FILES.items() if (text := files.get(path, "").strip())}


def read_platform(transport: Transport) -> dict[str, str]:
    """Read microcode, BIOS and board, as far as the host reports them; they are no part of a DUT's settings."""
    with suppress(DutError):
        return platform_of(read_files(transport, "-sH", "", *PLATFORM_FILES.values()))
    return {}


def parse_json(text: str, what: str) -> list[dict[str, Any]]:
    """Parse the list that ``ip -json`` and ``ethtool --json`` print; no output is an empty list."""
    try:
        entries = msgspec.json.decode(text, type=list[dict[str, Any]]) if text.strip() else []
    except (ValueError, RecursionError):
        printed = text.strip()[:60]
        raise DutError(f"{what} printed no JSON list ({printed!r})", "it needs iproute2 of 2018 or later") from None
    return list(filter(None, entries))  # iproute2 prints {} for what a filter left out


def parse_uptime(lines: Sequence[str]) -> float | None:
    """Parse /proc/uptime: seconds since boot."""
    word = (lines[0].split() or [""])[0] if lines else ""
    return float(word) if re.fullmatch(r"[0-9]{1,12}\.[0-9]{1,6}", word) else None


def parse_stat(lines: Sequence[str], clocks: Mapping[int, float]) -> tuple[CpuTime, ...]:
    """Parse /proc/stat by CPU. clocks: Hz, by CPU. packet_s is the time of soft interrupts.

    Stolen time counts in the total, since shares are of elapsed time, but not as busy. Guest time is in user time.
    """
    times = []
    for cpu, (user, nice, system, idle, iowait, irq, softirq, stolen) in _stat_times(lines):
        busy = user + nice + system + irq + softirq
        total = busy + idle + iowait + stolen
        times.append(CpuTime(cpu, total, busy, softirq, clocks.get(cpu), user + nice, system))
    if not times:
        raise DutError("/proc/stat names no CPU")
    return tuple(times)


def parse_programs(lines: Sequence[str]) -> dict[int, tuple[float, float]]:
    """Parse /proc/stat by CPU: seconds of programs outside the kernel, and seconds stolen by the hypervisor."""
    return {cpu: (user + nice, stolen) for cpu, (user, nice, *_, stolen) in _stat_times(lines)}


def _stat_times(lines: Sequence[str]) -> Iterator[tuple[int, list[float]]]:
    """Yield each CPU's user, nice, system, idle, iowait, irq, softirq and stolen time, in seconds."""
    for line in lines:
        name, *words = line.split() or [""]
        if not re.fullmatch("cpu[0-9]{1,5}", name):
            continue
        ticks = counts(words)
        if ticks is None or len(ticks) < 7:
            raise DutError(f"/proc/stat: the line of {name} cannot be read ({' '.join(words)[:60]!r})")
        yield int(name[3:]), [tick / USER_HZ for tick in [*ticks, 0][:8]]


def parse_clocks(files: Mapping[str, Sequence[str]]) -> dict[int, float]:
    """Parse clocks in Hz by CPU, from cpufreq's scaling_cur_freq (kHz), else from /proc/cpuinfo ("cpu MHz")."""
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
    return {number: hz for number, hz in clocks.items() if hz > 0}


def parse_snmp(lines: Sequence[str]) -> dict[str, int]:
    """Parse /proc/net/snmp or netstat, by ``Ip.InReceives``: two lines for each protocol, names and numbers."""
    counters: dict[str, int] = {}
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
                if count := counts([word]):
                    counters[f"{protocol}.{name}"] = count[0]
    return counters


def parse_snmp6(lines: Sequence[str]) -> dict[str, int]:
    """Parse /proc/net/dev_snmp6/<interface>, by ``Ip6.InReceives`` as parse_snmp: a name and a number in each line."""
    counters: dict[str, int] = {}
    for line in lines:
        name, *words = line.split() or [""]
        if name.startswith("Ip6") and (count := counts(words)) and len(count) == 1:
            counters[f"Ip6.{name[3:]}"] = count[0]
    return counters


def parse_conntrack(lines: Sequence[str]) -> int | None:
    """Parse /proc/net/stat/nf_conntrack, a row of hexadecimal numbers for each CPU: ``drop`` of all."""
    heading, *rows = [line.split() for line in lines] or [[]]
    if "drop" not in heading or not rows:
        return None
    words = [row[heading.index("drop")] if len(row) == len(heading) else "" for row in rows]
    return sum(int(word, 16) for word in words) if all(re.fullmatch("[0-9a-f]{1,16}", word) for word in words) else None


def parse_net_dev(lines: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Parse /proc/net/dev: packets received and sent, by interface."""
    interfaces = {}
    for line in lines:
        name, _, rest = line.rpartition(":")
        packets = counts(rest.split()[1:10:8])
        if name.strip() and packets and len(packets) == 2:
            interfaces[name.strip()] = (packets[0], packets[1])
    return interfaces


def parse_softirqs(lines: Sequence[str]) -> dict[str, dict[int, int]]:
    """Parse /proc/softirqs: how often each kind was raised, by CPU."""
    cpus = _cpu_columns(lines)
    kinds = {}
    for line in lines[1:]:
        name, _, rest = line.partition(":")
        raised = counts(rest.split())
        if raised and len(raised) == len(cpus):
            kinds[name.strip()] = dict(zip(cpus, raised, strict=True))
    return kinds


def parse_softnet(lines: Sequence[str]) -> dict[int, dict[str, int]]:
    """Parse /proc/net/softnet_stat by CPU, which is the 13th column, or the row on older kernels."""
    cpus = {}
    for row, line in enumerate(lines):
        words = line.split()
        if len(words) >= len(_SOFTNET) and all(re.fullmatch("[0-9a-f]{1,16}", word) for word in words):
            cpu = int(words[12], 16) if len(words) > 12 else row
            cpus[cpu] = {name: int(word, 16) for name, word in zip(_SOFTNET, words, strict=False)}
    return cpus


def parse_interrupts(lines: Sequence[str]) -> dict[int, tuple[str, int]]:
    """Parse /proc/interrupts: name of each numbered interrupt, and its count over all CPUs."""
    cpus = len(_cpu_columns(lines))
    interrupts = {}
    for line in lines[1:]:
        number, _, rest = line.partition(":")
        words = rest.split()
        counted, numbered = counts(words[:cpus]), counts([number.strip()])
        if numbered and counted and cpus < len(words):
            interrupts[numbered[0]] = (words[-1], sum(counted))
    return interrupts


def _cpu_columns(lines: Sequence[str]) -> list[int]:
    """Parse the CPUs in the heading of /proc/softirqs or interrupts; none where the first line is no heading."""
    words = lines[0].split() if lines else []
    return [int(word[3:]) for word in words] if all(re.fullmatch("CPU[0-9]{1,5}", word) for word in words) else []


def parse_link_counters(text: str) -> dict[str, dict[str, int]]:
    """Parse ``ip -s -s -json link show`` by interface: ``rx.packets``, ``tx.dropped`` ... of stats64."""
    interfaces: dict[str, dict[str, int]] = {}
    for entry in parse_json(text, "ip link"):
        stats = entry.get("stats64")
        counters = interfaces.setdefault(str(entry.get("ifname")), {})
        for direction, values in stats.items() if isinstance(stats, dict) else ():
            for name, value in values.items() if isinstance(values, dict) else ():
                if _is_count(value):
                    counters[f"{direction}.{name}"] = value
    return interfaces


def parse_qdisc_drops(text: str) -> dict[str, int]:
    """Parse ``tc -s -json qdisc show``: drops of each interface's root qdisc, which include its children's.

    A WAN of ours is left out: the DUT did not lose what it has lost.
    """
    return {
        str(entry.get("dev")): entry["drops"]
        for entry in parse_json(text, "tc qdisc")
        if entry.get("root") and entry.get("handle") != WAN_HANDLE and _is_count(entry.get("drops"))
    }


def parse_nic_counters(text: str) -> dict[str, int]:
    """Parse ``ethtool -S``: every counter that is a whole number.

    vmxnet3 prints the same names for every queue, below a line with its number, which is put before them.
    """
    counters, queue = {}, ""
    for match in filter(None, map(_COUNT.fullmatch, text.splitlines())):
        if match[1] in ("Rx Queue#", "Tx Queue#"):
            queue = f"{match[1]} {match[2]}: "
        else:
            counters[queue + match[1]] = int(match[2])
    return counters


def parse_driver(text: str) -> dict[str, str]:
    """Parse ``ethtool -i``: driver, version, firmware-version, bus-info, as far as they are printed."""
    pairs = (line.partition(": ") for line in text.splitlines())
    names = ("driver", "version", "firmware-version", "bus-info")
    return {name: value.strip() for name, colon, value in pairs if colon and name in names and value.strip()}


def queue_counts(counters: Mapping[str, int]) -> dict[int, int]:
    """Packets by receive queue, from the first style of names that the driver uses."""
    for style in _QUEUE_STYLES:
        queues = {int(match[1]): counters[name] for name in counters if (match := re.fullmatch(style, name))}
        if queues:
            return dict(sorted(queues.items()))
    return {}


def parse_perf(text: str) -> float | None:
    """Parse ``perf stat -x, -e cycles``: cycles counted; None where perf says that it cannot count them.

    Processors with two kinds of cores have a line for each, as ``cpu_core/cycles/``.
    """
    counted = [counts([match[1]]) for match in map(_CYCLES.match, text.splitlines()) if match]
    if counted:
        return float(sum(map(sum, filter(None, counted)))) if any(counted) else None
    raise DutError(f"perf stat printed no cycles ({' '.join(text.split())[:60]!r})")


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
