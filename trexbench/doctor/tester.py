"""The traffic generator, as its server describes it: versions, ports, links, who owns them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from ..core.calibration import Calibration
from ..core.checks import Area, Check, State, failed, judge
from ..core.errors import BenchError
from ..core.units import format_bits, format_pps
from ..generator.trex.connect import ServerAddress, ServerFacts, describe
from ..generator.trex.ports import SIMULATED, lack_of_destination, obstacles

OLD_DAYS = 90
"""A tester's calibration is old after so long: drivers, kernels and cables change."""


def check_tester(
    endpoint: ServerAddress, ports: Sequence[int], speed_bps: float | None, trex_dir: Path | None
) -> Iterator[Check]:
    """ports: that a run will use; all where empty. speed_bps: the line rate that the DUT's config states."""
    try:
        facts = describe(endpoint, trex_dir)
    except BenchError as error:
        yield failed(Area.TESTER, "server", error)
        return
    yield from judge_tester(str(endpoint), facts, ports, speed_bps)


def judge_tester(where: str, facts: ServerFacts, ports: Sequence[int], speed_bps: float | None) -> Iterator[Check]:
    """Judge what a server said of itself."""
    version, system = facts.version, facts.system
    cores = f"sending cores: {system.get('dp_core_count', '?')} ({system.get('core_type', 'CPU unknown')})"
    yield _check("server", State.GOOD, f"{version.get('version')} {version.get('mode', '')} at {where}, {cores}")
    yield _check("client", State.GOOD, f"{facts.client} and the server speak the same API")
    described = {int(one["index"]): one for one in system["ports"]}
    listed = ", ".join(map(str, sorted(described))) or "none"
    used = ports or sorted(described)
    for port in used:
        if port in described:
            yield from _judge_port(f"port {port}", described[port], facts.ports[port], version, speed_bps)
        else:
            found = f"the server has no such port, only {listed}"
            yield _check(f"port {port}", State.BAD, found, "correct ports[].tester")
    yield from _judge_places([described[port] for port in used if port in described])


def _judge_port(
    name: str,
    described: Mapping[str, Any],
    status: Mapping[str, Any],
    version: Mapping[str, Any],
    speed_bps: float | None,
) -> Iterator[Check]:
    speed = float(status["attr"].get("speed") or 0.0) * 1e9
    ether = status["attr"].get("layer_cfg", {}).get("ether", {})
    driver, place = described.get("driver", "driver unknown"), described.get("pci_addr")
    text = f"{driver}{f' at {place}' if place not in (None, 'N/A') else ''}, MAC {ether.get('src', 'unknown')}"
    yield _check(name, State.GOOD, f"{text}, {format_bits(speed) if speed else 'speed unknown'}")
    if speed and speed_bps and speed < speed_bps:
        found = f"{format_bits(speed)}, less than the {format_bits(speed_bps)} of the DUT's config"
        yield _check(f"{name} speed", State.DOUBTFUL, found, "correct speed: or use a faster port")
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


def _check(what: str, state: State, found: str, remedy: str = "") -> Check:
    return Check(Area.TESTER, what, state, found, remedy)
