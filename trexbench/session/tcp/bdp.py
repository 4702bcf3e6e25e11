"""Requests of ``trexbench bdp`` for a DUT behind a WAN: with the hosts' buffers as found, and as its BDP needs."""

from __future__ import annotations

from dataclasses import replace

from ...core.errors import ConfigError
from .options import BdpWish, TcpSetup, TcpWish
from .request import TcpRequest, make_tcp_request, plan_of


def make_bdp_request(dut: str, wanted: BdpWish, wish: TcpWish, setup: TcpSetup) -> TcpRequest:
    """The test that is asked for; ConfigError names what is wrong with it. wish: its buffers are those of wanted."""
    request = make_tcp_request(dut, wish, setup)
    wan = request.dut.wan
    if wan is None or not wan.bdp_bytes:
        told = "no WAN" if wan is None else f"a WAN of {wan}"
        raise ConfigError(f"{request.dut.name} has {told}: there is no BDP", "state one: --wan 20ms,1gbit")
    buffers = wanted.buffers_of(wan.bdp_bytes)
    return replace(request, plan=plan_of(replace(wish, buffers=buffers), request.dut), verb="bdp")
