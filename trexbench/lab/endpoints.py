"""Client and server of a lab: namespaces beside the DUT's, each cabled to it, and a cable that bypasses it.

On veth the CPU that sends also receives, so that the router's work would run in the sender's process. It is moved in
one of two ways:

- Frames of up to 64 KB, and frames that nothing merges, go into a backlog: RPS hands them to the CPU of the host at
  which they arrive, the router's or an endpoint's.
- If the router merges frames (``mtu``), veth polls by NAPI; its threads run on the router's CPUs, and their time is
  exact. The endpoints receive by RPS as well.

Offloads are set once, before there is traffic: changing them under load can freeze a veth's queue for good.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Any

from ..config.endpoints import lab_namespace
from ..core.errors import LabError
from ..host.files import mask
from ..transport import NetnsTransport, run_checked
from . import net
from .spec import EndpointCable, LabSpec, Placement

FRAME_OVERHEAD = 24
"""Bytes of a frame on a line that a qdisc does not count: FCS, preamble and gap."""
_BURST_S, _QUEUE_S = 0.002, 0.05
"""Burst of a line after a pause, and its queue, as times at its rate."""
_FRAME_BY_FRAME_BPS, _AT_ONCE = 250e6, 4
"""Up to this rate TCP hands a line single frames; above it this many together."""
_NICENESS = -20
"""Niceness of NAPI's threads: unlike a soft interrupt, they compete with everything else on their CPUs."""
_TSO, _GSO, _GRO = "tx-tcp*segmentation", "tx-generic-segmentation", "rx-gro"
"""The kernel's names of features."""


def tune(spec: LabSpec, placement: Placement) -> None:
    """Set offloads, steering and lines of a lab whose cables are there."""
    mode, line_bps = spec.settings.endpoints.mode, spec.settings.endpoints.line_bps
    endpoints_off = {"full": [], "packet": [_TSO, _GSO]}.get(mode, [_TSO])
    for end in spec.endpoints:
        space = lab_namespace(spec.prefix, end.role)
        for name in _interfaces(end):
            _set_offloads(space, name, endpoints_off, gro=False, later=spec.is_vm and name == end.interface)
        if not spec.is_vm:
            _set_offloads(spec.dut, end.dut, [_TSO, _GSO] if mode == "packet" else [], gro=mode == "mtu")
    for name in spec.namespaces:
        net.set_up(name)
    _steer(spec, placement)
    if line_bps is not None:
        for end in spec.endpoints:
            _shape(NetnsTransport(lab_namespace(spec.prefix, end.role)), end.interface, line_bps, spec.settings.mtu)


def facts_of(spec: LabSpec) -> dict[str, Any]:
    """Return the endpoints' cabling, as facts of a run, which the namespaces do not report."""
    mode = spec.settings.endpoints.mode
    way = "threaded" if mode == "mtu" else "rps"
    return {"offloads": mode, "line_bps": spec.settings.endpoints.line_bps, "steer": way}


def _interfaces(end: EndpointCable) -> tuple[str, ...]:
    return (end.interface,) if end.bypass is None else (end.interface, end.bypass)


def make_cables(spec: LabSpec) -> None:
    """Make veth pairs in namespaces that are there; a virtual machine has interfaces of its own."""
    common = {"mtu": spec.settings.mtu, "txqlen": spec.settings.txqueuelen}
    ends = [(lab_namespace(spec.prefix, end.role), end) for end in spec.endpoints]
    cables = [((space, end.interface), (spec.dut, end.dut)) for space, end in ends if not spec.is_vm]
    cables += [((a, x.bypass), (b, y.bypass)) for (a, x), (b, y) in pairwise(ends) if x.bypass and y.bypass]
    names = ", ".join(f"{name}-{far}" for (_, name), (_, far) in cables)
    with net.netlink(f"veth pairs {names} of lab {spec.prefix}", "correct endpoints: of the DUT") as ip:
        for (here, name), (there, far) in cables:
            peer = {"ifname": far, "net_ns_fd": there, **common}
            ip.link("add", kind="veth", ifname=name, net_ns_fd=here, peer=peer, **common)


def _set_offloads(space: str, name: str, off: Sequence[str], gro: bool, later: bool = False) -> None:
    """Set offloads, without ethtool, which may not be installed.

    later: the kernel may grant them later, as a TAP's, once the guest's driver has said what it accepts.
    """
    from pyroute2.ethtool.ioctl import EthtoolError, IoctlEthtool

    with net.inside(space), contextlib.closing(IoctlEthtool(name)) as device:
        try:
            features = device.get_features()
            for feature in list(features.keys()):
                for pattern, on in ((_TSO, _TSO not in off), (_GSO, _GSO not in off), (_GRO, gro)):
                    if fnmatchcase(feature, pattern) and features.is_available(feature):
                        features[feature] = on
            device.set_features(features)
        except (OSError, EthtoolError) as error:
            if later and not error.args:
                return
            said = error if error.args else "the kernel did not grant all of them"
            raise LabError(f"offloads of {name}: {said}", "correct lab.endpoints.offloads of the DUT config") from None


def _steer(spec: LabSpec, placement: Placement) -> None:
    router = NetnsTransport(spec.dut)
    threaded = facts_of(spec)["steer"] == "threaded"
    for end in spec.endpoints:
        here = NetnsTransport(lab_namespace(spec.prefix, end.role))
        for name in _interfaces(end):
            _set_rps(here, name, placement.endpoints[end.role])
        if not spec.is_vm:
            _set_rps(router, end.dut, () if threaded else placement.router)
    if threaded:
        net.set_threaded(router, [end.dut for end in spec.endpoints], True, placement.router, _NICENESS)


def _set_rps(transport: NetnsTransport, name: str, cpus: Sequence[int]) -> None:
    net.write_file(transport, f"/sys/class/net/{name}/queues/rx-0/rps_cpus", mask(cpus))


def _shape(transport: NetnsTransport, name: str, line_bps: float, mtu: int) -> None:
    """Limit the direction in which this end sends to a line of this rate (L1)."""
    # TCP's packets are cut to the MTU behind the qdisc, which counts the overhead once. On a fast line single frames
    # would take too much time; TCP then hands over as many as it may.
    at_once = 1 if line_bps <= _FRAME_BY_FRAME_BPS else _AT_ONCE
    burst = max(int(line_bps * _BURST_S / 8), 4 * mtu)
    rate = f"rate {line_bps:.0f}bit burst {burst} latency {_QUEUE_S * 1000:g}ms overhead {at_once * FRAME_OVERHEAD}"
    run_checked(transport, ("ip", "link", "set", "dev", name, "gso_max_segs", str(at_once)))
    run_checked(transport, ("tc", "qdisc", "replace", "dev", name, "root", "tbf", *rate.split()))
