"""Search for what can make the 6in4 tunnel between DUT and server, by trials on both that leave nothing behind."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address

from ..config.endpoints import TransportConfig
from ..config.model import DutConfig
from ..core.errors import DutError
from ..core.tcp.model import TUNNELS
from ..core.tcp.tunnel import DUT_SERVER
from ..dut.endpoints import TUNNEL_NAME, TunnelWay, endpoints_of
from ..dut.model import NO_DEVICE, SixInFourEnd
from ..lab.server import python_path
from ..lab.sixinfour import TRY
from .dut import reached

TRIAL_S = 60.0
_HERE = ("netns", "local")
"""Transports to hosts of this machine, into whose kernel trexbench itself can load programs."""


@dataclass(frozen=True)
class TunnelUse:
    """The tunnel of a run, in TcpEnvironment's words. way: how it is made; None: it is not to be made."""

    tunnel: str = TUNNELS[0]
    by: str = ""
    without: str = ""
    way: TunnelWay | None = None


def find_tunnel(config: DutConfig, apply_it: bool) -> TunnelUse:
    """The kernel's own device where DUT and server have it, else programs in its place, else none and why.

    apply_it: without it the tunnel is taken as it is.
    """
    through = endpoints_of(config).through
    kind = through.kind
    if through.between != DUT_SERVER:
        return TunnelUse()
    if not apply_it:
        return TunnelUse(kind, "not read")
    hosts = {"the DUT": config.transport, "the server": endpoints_of(config).server.transport}
    lacks = dict(_lacks_device(hosts))
    if not lacks:
        return TunnelUse(kind, "sit", way=TunnelWay())
    load = ("env", f"PYTHONPATH={python_path()}", sys.executable, "-m", "trexbench.lab.sixinfour")
    reasons = [f"{who} has no device for {kind} ({said})" for who, said in lacks.items()]
    for who, to in hosts.items():
        if to.type not in _HERE:
            reasons.append(f"{who} is another machine, where trexbench loads no program")
        elif said := _fails(to, (*load, TRY)):
            reasons.append(f"{who} takes no program in its place ({said})")
    if len(reasons) > len(lacks):
        return TunnelUse(without="; ".join(reasons))
    return TunnelUse(kind, "tc-bpf", way=TunnelWay(load))


def _lacks_device(hosts: dict[str, TransportConfig]) -> Iterator[tuple[str, str]]:
    """Yield each host whose kernel lacks it, and what it said when tried in a network of its own, gone afterwards."""
    some = SixInFourEnd("", IPv4Address("192.0.2.1"), IPv4Address("192.0.2.2"), name=TUNNEL_NAME)
    make = ("unshare", "--net", *some.device)
    for who, to in hosts.items():
        said = _fails(to, make)
        if NO_DEVICE in said:  # what else may be wrong is told when it is made
            yield who, said


def _fails(to: TransportConfig, argv: tuple[str, ...]) -> str:
    """Run the command and return what it says where it fails; empty: it does not."""
    with reached(to) as transport:
        try:
            done = transport.run(argv, TRIAL_S)
        except DutError as error:
            return str(error)
    return done.complaint if done.returncode else ""
