"""All checks, in the order in which a run would meet what they find; here those of the traffic generator, as its server
describes it: versions, ports, links, who owns them.
"""

from __future__ import annotations

import contextlib
import ipaddress
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from ..config.lookup import load_dut
from ..config.model import DutConfig, GeneratorConfig
from ..core.calibration import Calibration
from ..core.checks import Area, Check, State, failed, judge
from ..core.errors import BenchError
from ..core.units import format_bits, format_pps
from ..generator.trex.connect import ServerFacts, describe
from ..generator.trex.ports import SIMULATED, ethernet_of, lack_of_destination, nominal_bps, obstacles
from ..lab import LabSpec, net
from ..lab.lab import status
from ..session.dut import endpoint_of
from ..session.options import Target
from ..session.testers import load, name_of_tester
from .dut import check_dut, check_lab
from .host import check_results, check_software, judge_host, read_host

OLD_DAYS = 90
"""A tester's calibration is old after so long: drivers, kernels and cables change."""
_check = partial(Check, Area.TESTER)


def examine(target: Target, results: Path) -> Iterator[Check]:
    """Every check, as soon as it is done; nothing is changed, no port is taken and no frame sent.

    target: its name is empty where no DUT is named.
    """
    config = load_dut(target.name, target.configs_dir, target.prefix) if target.name else None
    yield from check_software(target.trex_dir)
    yield from judge_host(read_host(), generates=_generates_here(target, config))
    yield from check_results(results)
    if config is not None and config.lab is not None:
        yield from check_lab(config, embedded=target.trex_dir is None)
    yield from _tester(target, config)
    yield judge_calibration(load(name_of_tester(config, target)), time.time())
    if config is not None:
        yield from check_dut(target, config)


def _generates_here(target: Target, config: DutConfig | None) -> bool:
    """Test whether a TRex on this machine sends: not a lab, whose cores are its own affair."""
    if config is not None and config.lab is not None:
        return False
    server = target.server or (config.generator.server if config is not None else "127.0.0.1")
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(server).is_loopback
    return server == "localhost"


def _tester(target: Target, config: DutConfig | None) -> Iterator[Check]:
    there = config.generator if config is not None else GeneratorConfig()
    endpoint = endpoint_of(there, target)
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
    """Judge what a server said of itself. ports: that a run will use; all where empty. speed_bps: the line rate that
    the DUT's config states.
    """
    version, system = facts.version, facts.system
    cores = f"sending cores: {system.get('dp_core_count', '?')} ({system.get('core_type', 'CPU unknown')})"
    yield _check("server", State.GOOD, f"{version.get('version')} {version.get('mode', '')} at {where}, {cores}")
    yield _check("client", State.GOOD, f"{facts.client} and the server speak the same API")
    described = {int(one["index"]): one for one in system["ports"]}
    used = ports or sorted(described)
    for port in used:
        if port in described:
            yield from _judge_port(f"port {port}", described[port], facts.ports[port], version, speed_bps)
        else:
            found = f"the server has no such port, only {', '.join(map(str, sorted(described))) or 'none'}"
            yield _check(f"port {port}", State.BAD, found, "correct ports[].tester")
    yield from _judge_places([described[port] for port in used if port in described])


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
    if int(status["attr"].get("fc", {}).get("mode", -1)) > 0:
        found = "on: PAUSE frames hold a sender back where frames should be lost"
        yield _check(f"{name} flow control", State.DOUBTFUL, found, "start TRex without --no-flow-control-change")
    for what, found, remedy in obstacles(status):
        yield _check(f"{name} {what}", State.BAD, found, remedy)
    if (lack := lack_of_destination(status, version)) is not None:
        yield _check(f"{name} destination", State.BAD, *lack)


def _judge_places(ports: Sequence[Mapping[str, Any]]) -> Iterator[Check]:
    """All ports of a test on one NUMA node: frames that cross to another are slower to send."""
    nodes = sorted({int(one["numa"]) for one in ports if int(one.get("numa", -1)) >= 0})
    if nodes:
        found, remedy = f"ports on node {', '.join(map(str, nodes))}", "use ports of one node, and its sending cores"
        yield judge(Area.TESTER, "NUMA", len(nodes) == 1, found, remedy)
    virtual = sorted({str(one.get("driver")) for one in ports if one.get("is_virtual")})
    if virtual == [SIMULATED]:
        yield _check("driver", State.DOUBTFUL, f"{SIMULATED}: its frames are a model's", "for real ones: a TRex server")
    elif virtual:
        found = f"{', '.join(virtual)}: virtual ports, without the speed and the counters of a NIC"
        yield _check("driver", State.DOUBTFUL, found, "give TRex NICs of its own (trex_cfg.yaml, dpdk_setup_ports.py)")


def judge_calibration(known: Calibration | None, now_s: float) -> Check:
    """Check whether it is known what the tester carries without a DUT, and how old that is."""
    remedy = "with its ports cabled back to back: trexbench lab calibrate"
    if known is None:
        return _check("calibration", State.DOUBTFUL, "it is not known what this tester carries without a DUT", remedy)
    days = (now_s - datetime.fromisoformat(known.measured.replace("Z", "+00:00")).timestamp()) / 86400
    most = max((limit.carried_pps for limit in known.limits), default=0.0)
    found = f"{format_pps(most)} in one direction at most, {known.server}, measured {days:.0f} days ago"
    return judge(Area.TESTER, "calibration", days <= OLD_DAYS, found, remedy)
