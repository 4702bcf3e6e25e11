"""Run all checks, in the order in which a run would meet their findings; here those of tester, lab and DUT."""

from __future__ import annotations

import contextlib
import ipaddress
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from ..config.endpoints import TransportConfig
from ..config.lookup import load_dut
from ..config.model import DutConfig, GeneratorConfig
from ..core.calibration import Calibration
from ..core.checks import Area, Check, State, attempt, failed, judge
from ..core.errors import BenchError, DutError
from ..core.tcp.wan import Wan
from ..core.units import format_bits, format_pps
from ..generator.trex.connect import ServerFacts, describe
from ..generator.trex.ports import SIMULATED, ethernet_of, has_flow_control, lack_of_destination, nominal_bps, obstacles
from ..lab import LabSpec, host, net, vm
from ..lab.lab import status
from ..lab.spec import place
from ..session.dut import ConnectedDut, connect_target, endpoint_of, reached
from ..session.options import Target
from ..session.testers import load, name_of_tester
from ..session.wan import made_by, require_wan
from .host import check_results, check_software, judge_host, read_host

OLD_DAYS = 90
"""Age from which a tester's calibration is old: drivers, kernels and cables change."""
MOST_OFFSET_S = 2.0
"""Offset between the clocks of the DUT and of this machine above which logs are hard to compare."""
_check = partial(Check, Area.TESTER)


def examine(target: Target, results: Path) -> Iterator[Check]:
    """Yield every check as soon as it is done; nothing is changed, no port is taken and no frame sent.

    target: its name is empty where no DUT is named.
    """
    config = load_dut(target.name, target.configs_dir, target.prefix) if target.name else None
    yield from check_software(target.trex_dir)
    yield from judge_host(read_host(), generates=_generates_here(target, config))
    yield from check_results(results)
    if config is not None and config.lab is not None:
        yield from check_lab(config, embedded=target.trex_dir is None)
    if _needs_tester(target, config):
        yield from _check_tester(target, config)
        yield judge_calibration(load(name_of_tester(config, target)), time.time())
    if config is not None:
        yield from check_dut(target, config)


def _needs_tester(target: Target, config: DutConfig | None) -> bool:
    """Test whether frames are sent: not to a DUT with endpoints alone, unless a server is named."""
    return config is None or bool(config.cables) or target.server is not None


def _generates_here(target: Target, config: DutConfig | None) -> bool:
    """Test whether a TRex on this machine sends; a lab selects its cores by itself and does not count."""
    if not _needs_tester(target, config) or (config is not None and config.lab is not None):
        return False
    server = target.server or (config.generator.server if config is not None else "127.0.0.1")
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(server).is_loopback
    return server == "localhost"


def _check_tester(target: Target, config: DutConfig | None) -> Iterator[Check]:
    endpoint = endpoint_of(config.generator if config is not None else GeneratorConfig(), target)
    ports, speed_bps = (config.tester_ports, config.speed_bps) if config is not None else ((), None)
    where: contextlib.AbstractContextManager[object] = contextlib.nullcontext()
    if config is not None and config.lab is not None:
        if status(config.lab.prefix).condition != "up":
            return
        where = net.inside(LabSpec.from_config(config).tester)
    try:
        with where:
            facts = describe(endpoint, target.trex_dir)
    except BenchError as error:
        yield failed(Area.TESTER, "server", error)
        return
    yield from judge_tester(str(endpoint), facts, ports, speed_bps)


def judge_tester(where: str, facts: ServerFacts, ports: Sequence[int], speed_bps: float | None) -> Iterator[Check]:
    """Judge a server's description of itself. ports: those that a run will use, or all. speed_bps: of the config."""
    version, system = facts.version, facts.system
    cores = f"sending cores: {system.get('dp_core_count', '?')} ({system.get('core_type', 'CPU unknown')})"
    yield _check("server", State.GOOD, f"{version.get('version')} {version.get('mode', '')} at {where}, {cores}")
    yield _check("client", State.GOOD, f"{facts.client} and the server speak the same API")
    described = {int(port["index"]): port for port in system["ports"]}
    used = ports or sorted(described)
    for port in used:
        if port in described:
            yield from _judge_port(f"port {port}", described[port], facts.ports[port], version, speed_bps)
        else:
            found = f"the server has no such port, only {', '.join(map(str, sorted(described))) or 'none'}"
            yield _check(f"port {port}", State.BAD, found, "correct ports[].tester")
    ports_used = [described[port] for port in used if port in described]
    # frames that cross to another NUMA node are sent more slowly
    nodes = sorted({int(port["numa"]) for port in ports_used if int(port.get("numa", -1)) >= 0})
    if nodes:
        found, remedy = f"ports on node {', '.join(map(str, nodes))}", "use ports of one node, and its sending cores"
        yield judge(Area.TESTER, "NUMA", len(nodes) == 1, found, remedy)
    virtual = sorted({str(port.get("driver")) for port in ports_used if port.get("is_virtual")})
    if virtual == [SIMULATED]:
        yield _check("driver", State.DOUBTFUL, f"{SIMULATED}: its frames are a model's", "for real ones: a TRex server")
    elif virtual:
        found = f"{', '.join(virtual)}: virtual ports, without the speed and the counters of a NIC"
        yield _check("driver", State.DOUBTFUL, found, "give TRex NICs of its own (trex_cfg.yaml, dpdk_setup_ports.py)")


def _judge_port(
    name: str,
    described: Mapping[str, Any],
    status: Mapping[str, Any],
    version: Mapping[str, Any],
    speed_bps: float | None,
) -> Iterator[Check]:
    speed = nominal_bps(described, status)
    ether = ethernet_of(status)
    driver, place = described.get("driver", "driver unknown"), described.get("pci_addr")
    text = f"{driver}{f' at {place}' if place not in (None, 'N/A') else ''}, MAC {ether.get('src', 'unknown')}"
    yield _check(name, State.GOOD, f"{text}, {format_bits(speed) if speed else 'speed unknown'}")
    if speed and speed_bps and speed < speed_bps:
        found = f"{format_bits(speed)}, less than the {format_bits(speed_bps)} of the DUT's config"
        yield _check(f"{name} speed", State.DOUBTFUL, found, "correct speed: or use a faster port")
    if has_flow_control(status):
        found = "on: PAUSE frames hold a sender back where frames should be lost"
        yield _check(f"{name} flow control", State.DOUBTFUL, found, "start TRex without --no-flow-control-change")
    for what, found, remedy in obstacles(status):
        yield _check(f"{name} {what}", State.BAD, found, remedy)
    if (lack := lack_of_destination(status, version)) is not None:
        yield _check(f"{name} destination", State.BAD, *lack)


def judge_calibration(known: Calibration | None, now_s: float) -> Check:
    """Judge whether the tester's own limit without a DUT is known, and how old that is."""
    remedy = "with its ports cabled back to back: trexbench lab calibrate"
    if known is None:
        return _check("calibration", State.DOUBTFUL, "it is not known what this tester carries without a DUT", remedy)
    days = (now_s - datetime.fromisoformat(known.measured.replace("Z", "+00:00")).timestamp()) / 86400
    most = max((limit.carried_pps for limit in known.limits), default=0.0)
    found = f"{format_pps(most)} in one direction at most, {known.server}, measured {days:.0f} days ago"
    return judge(Area.TESTER, "calibration", days <= OLD_DAYS, found, remedy)


def check_lab(config: DutConfig, embedded: bool) -> Iterator[Check]:
    """Check whether this machine can host the DUT's lab. embedded: with the embedded server."""
    spec = LabSpec.from_config(config)
    try:
        host.check(embedded)
        if spec.is_vm:
            vm.check(spec)
        cpus = host.usable_cpus()
        placement = place(spec.settings, cpus, host.siblings(cpus))
    except BenchError as error:
        yield failed(Area.LAB, "machine", error)
        return
    yield Check(Area.LAB, "machine", State.GOOD, "root, iproute2, and a kernel that sends live frames")
    routers = ", ".join(map(str, placement.router))
    yield Check(Area.LAB, "cores", State.GOOD, f"core {placement.sender} sends, {routers} forward")
    for warning in placement.warnings:
        yield Check(Area.LAB, "cores", State.DOUBTFUL, warning, "use a machine with more cores")
    yield Check(Area.LAB, "state", State.GOOD, str(status(spec.prefix)))


def _describe_wan(config: DutConfig, wan: Wan) -> str:
    require_wan(config)
    return f"{wan}, by {made_by(wan)}"


def _describe_host(transport: TransportConfig) -> str:
    with reached(transport) as there:
        done = there.run(["python3", "--version"], 10.0)
        if done.returncode != 0:
            raise DutError(f"{there.place} has no python3", "install it, 3.7 or later: TCP tests need it")
        return f"{there.place}, {done.stdout.strip()}"


def check_dut(target: Target, config: DutConfig) -> Iterator[Check]:
    """Reach the DUT and the hosts of TCP tests as a run would, and read all that its driver needs; change nothing."""
    if config.wan is not None:
        yield attempt(Area.DUT, "WAN", partial(_describe_wan, config, config.wan))
    for role, end, _ in config.hosts.roles if config.endpoints is not None and config.lab is None else ():
        yield attempt(Area.DUT, role, partial(_describe_host, end.transport))
    if config.lab is not None and status(config.lab.prefix).condition != "up":
        found = "its lab is down: a run brings it up for itself"
        yield Check(Area.DUT, config.name, State.GOOD, found, f"to check it too: trexbench lab up --dut {config.name}")
        return
    if not config.is_reached:
        yield Check(Area.DUT, config.name, State.GOOD, f"driver: {config.driver}: it is not reached, nothing is read")
        return
    try:
        with connect_target(target, "doctor") as there:
            yield from _check_reached(there, config)
    except BenchError as error:
        yield failed(Area.DUT, config.name, error)


def _check_reached(there: ConnectedDut, config: DutConfig) -> Iterator[Check]:
    begun = time.monotonic()
    now = there.transport.run(["date", "+%s.%N"], 10.0)
    took_s = time.monotonic() - begun
    yield Check(Area.DUT, "reached", State.GOOD, f"{there.transport.place}, in {1000 * took_s:.0f} ms")
    yield judge_clock(now.stdout, time.time(), took_s)
    changes = there.dut.plan()
    what = f"settings that a run would change: {len(changes)}" if changes else "as its config says"
    yield Check(Area.DUT, "settings", State.GOOD, f"rights, tools and interfaces are there; {what}")
    if not changes:
        attested = there.dut.verify()
        for mismatch in attested.mismatches:
            yield Check(Area.DUT, "settings", State.BAD, str(mismatch))
        for doubt in attested.doubts:
            yield Check(Area.DUT, "settings", State.DOUBTFUL, doubt)
        if not attested.attested:
            yield Check(Area.DUT, "settings", State.DOUBTFUL, attested.reason, "results will say so")
    if not config.is_observed:
        yield Check(Area.DUT, "counters", State.DOUBTFUL, "its config names none", "commands.counters: docs/duts.md")
        return
    missing = "; ".join(dict.fromkeys(missing.reason for missing in there.observed.observe().missing))
    yield judge(Area.DUT, "counters", not missing, missing or "all that its driver knows can be read", "")


def judge_clock(said: str, now_s: float, took_s: float) -> Check:
    match = re.match(r"[0-9]{1,12}(\.[0-9]+)?", said.strip())
    if match is None:
        return Check(Area.DUT, "time", State.DOUBTFUL, "the DUT does not report its time")
    offset_s = float(match[0]) - now_s
    found = f"its clock is {abs(offset_s):.0f} s {'ahead of' if offset_s > 0 else 'behind'} this machine's"
    near = abs(offset_s) <= MOST_OFFSET_S + took_s
    return judge(Area.DUT, "time", near, found, "synchronise both with a time server")
