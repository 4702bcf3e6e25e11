"""Check the machine that the harness, and mostly the traffic generator too, runs on: read here, judged by pure code."""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..core.checks import Area, Check, State, attempt, judge
from ..core.errors import BenchError
from ..core.units import format_share
from ..generator.trex.client import load_client
from ..host.files import parse_cpus
from ..host.linux import parse_programs, parse_stat
from ..lab.host import processes

BUSY_SHARE, STOLEN_SHARE = 0.1, 0.01
"""Shares of all CPU time above which an idle machine is doubtful."""
LOOK_S = 1.0
"""Duration over which CPU time is counted."""
ENOUGH_BYTES = 1 << 30
"""Free space for the results: a night of 40 runs writes some 20 MB."""
_CLOCKSOURCES = ("tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter")
"""Clocks that are read in the CPU's own registers (or pages that the hypervisor shares)."""
_check = partial(judge, Area.HOST)
_TIME_ERROR = 5
"""Answer of adjtimex(2) for a clock that is not synchronised."""


@dataclass(frozen=True)
class HostFacts:
    """Facts about this machine; None where it does not report one."""

    cpus: int
    isolated: tuple[int, ...]
    busy: float | None
    """Share of all CPU time over LOOK_S, as ``stolen``."""
    stolen: float | None
    governors: Mapping[str, int]
    """Number of CPUs with each governor."""
    huge_pages: int | None
    """Pages of the default size, of huge_page_bytes each."""
    huge_page_bytes: int | None
    irqbalance: bool
    clocksource: str | None
    synchronised: bool | None
    """Its clock is synchronised with a time server."""
    numa_nodes: int


def read_host() -> HostFacts:
    """Read the facts of this machine; takes LOOK_S."""
    before = _cpu_times()
    time.sleep(LOOK_S)
    after = _cpu_times()
    shares: tuple[float | None, float | None] = None, None
    if before and after and (total := after[0] - before[0]) > 0:
        shares = min(1.0, (after[1] - before[1]) / total), (after[2] - before[2]) / total
    governors = map(_read, Path("/sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor"))
    memory = dict(line.partition(":")[::2] for line in (_read(Path("/proc/meminfo")) or "").splitlines())
    return HostFacts(
        cpus=os.cpu_count() or 1,
        isolated=tuple(parse_cpus(_read(Path("/sys/devices/system/cpu/isolated"))) or ()),
        busy=shares[0],
        stolen=shares[1],
        governors=Counter(filter(None, governors)),
        huge_pages=_first_number(memory.get("HugePages_Total")),
        huge_page_bytes=1024 * size if (size := _first_number(memory.get("Hugepagesize"))) else None,
        irqbalance=any(name == "irqbalance" for _, name in processes()),
        clocksource=_read(Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")),
        synchronised=_synchronised(),
        numa_nodes=len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) or 1,
    )


def judge_host(facts: HostFacts, generates: bool) -> Iterator[Check]:
    """Judge the machine. generates: a TRex of this machine is the tester, whose cores and memory matter then."""
    yield _judge_load(facts)
    total, fast = sum(facts.governors.values()), facts.governors.get("performance", 0)
    found = ", ".join(f"{name} on {count} of {total} CPUs" for name, count in facts.governors.items())
    remedy = "clocks follow the load: cpupower frequency-set -g performance"
    yield _check("CPU governor", fast == total, found or "none (a virtual machine, or a fixed clock)", remedy)
    clock, remedy = facts.clocksource or "unknown", "reading it takes long: boot with tsc=reliable if the CPU's is"
    yield _check("clock source", clock in _CLOCKSOURCES, clock, remedy)
    if facts.synchronised is None:
        yield _check("time", False, "synchronisation cannot be read here", "compare `date` with others")
    else:
        found = f"{'' if facts.synchronised else 'not '}synchronised with a time server"
        yield _check("time", facts.synchronised, found, "run chrony or systemd-timesyncd: results may be misdated")
    if not generates:
        return
    remedy = "others share the sender's: boot with isolcpus= and nohz_full= for the cores in TRex's platform section"
    yield _check("isolated cores", bool(facts.isolated), ", ".join(map(str, facts.isolated)) or "none", remedy)
    found = "it moves interrupts to the sender's cores" if facts.irqbalance else "not running"
    yield _check("irqbalance", not facts.irqbalance, found, "systemctl disable --now irqbalance")
    pages, size = facts.huge_pages or 0, facts.huge_page_bytes or 0
    found = f"{pages} of {size >> 20} MiB, on {facts.numa_nodes} NUMA node(s)"
    remedy = "DPDK needs them: TRex allocates them as it starts; else vm.nr_hugepages=1024, or hugepages= at boot"
    yield _check("huge pages", bool(pages and size), found, remedy)


def _judge_load(facts: HostFacts) -> Check:
    if facts.busy is None or facts.stolen is None:
        return _check("other load", False, "cannot be read here (/proc/stat)", "measure on an otherwise idle Linux")
    if facts.stolen > STOLEN_SHARE:
        found = f"the hypervisor gave {format_share(facts.stolen)} of the time to others"
        return _check("other load", False, found, "measure on a machine of your own, or pin its virtual CPUs")
    found = f"{format_share(facts.busy)} of {facts.cpus} CPUs busy"
    return _check("other load", facts.busy <= BUSY_SHARE, found, "end what runs beside the tester")


def check_software(trex_dir: Path | None) -> Iterator[Check]:
    """Check Python and TRex's STL client."""
    yield _check("Python", True, f"{platform.python_version()} ({sys.executable})", "")
    yield attempt(Area.HOST, "STL client", lambda: str(load_client(trex_dir)))


def check_results(results: Path) -> Iterator[Check]:
    """Check whether results can be written, and how much space there is for them."""
    there = results.absolute()
    try:
        there = next(path for path in (there, *there.parents) if path.exists())  # PermissionError: it cannot be seen
        with tempfile.TemporaryFile(dir=there):
            pass
        free = shutil.disk_usage(there).free
    except OSError as error:
        yield Check(Area.RESULTS, "writing", State.BAD, f"{there}: {error.strerror}", "name another with --results")
        return
    yield Check(Area.RESULTS, "writing", State.GOOD, str(results))
    yield judge(Area.RESULTS, "disk", free >= ENOUGH_BYTES, f"{free / 1e9:.1f} GB free", "free some")


def _cpu_times() -> tuple[float, float, float] | None:
    """Read seconds of all CPUs: elapsed, busy, stolen."""
    lines = (_read(Path("/proc/stat")) or "").splitlines()
    with suppress(BenchError):
        times, programs = parse_stat(lines, {}), parse_programs(lines)
        return sum(t.total_s for t in times), sum(t.busy_s for t in times), sum(cpu[1] for cpu in programs.values())
    return None


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None


def _first_number(text: str | None) -> int | None:
    words = (text or "").split()
    return int(words[0]) if words and words[0].isdigit() else None


def _synchronised() -> bool | None:
    """Ask the kernel whether a time server's program synchronises its clock; None: unknown."""
    with suppress(OSError, AttributeError):
        # struct timex is 208 bytes on 64-bit Linux; modes = 0 only reads.
        state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.create_string_buffer(512))
        return None if state < 0 else state != _TIME_ERROR
    return None
