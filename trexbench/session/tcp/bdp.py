"""Requests of ``trexbench bdp`` for a DUT behind a WAN: with the hosts' buffers as found, and as its BDP needs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...core.errors import ConfigError
from ...core.tcp.wan import format_size
from .request import LEAST_BUFFER, MOST_BUFFER, TcpRequest, TcpSetup, TcpWish, make_tcp_request, plan_of

FACTOR = 2.0
"""Multiple of the BDP that the document sets: half of a buffer is window."""
SWEEP = tuple(2.0**power for power in range(-4, 3))
"""Multiples of the BDP for a sweep, from a sixteenth to four."""


@dataclass(frozen=True)
class BdpWish:
    """Buffers in which legs differ: this factor of the BDP (None: FACTOR) or the stated sizes, in bytes, beside those
    found; or each factor of SWEEP."""

    factor: float | None = None
    sweep: bool = False
    buffers: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """ConfigError for what excludes one another."""
        given = {"--factor": self.factor is not None, "--sweep": self.sweep, "--buffers": bool(self.buffers)}
        if len(asked := [name for name, there in given.items() if there]) > 1:
            raise ConfigError(f"{asked[0]} and {asked[1]} exclude each other", "leave one of them out")
        if self.factor is not None and not 0 < self.factor <= 1000:
            raise ConfigError(f"--factor of {self.factor:g}", "take more than 0, and 1000 at most")

    def buffers_of(self, bdp_bytes: int) -> tuple[int | None, ...]:
        """Return the legs' buffer sizes, each once; None: as found. ConfigError for a size that no host takes."""
        if self.buffers:
            return tuple(dict.fromkeys((None, *self.buffers)))
        factors = SWEEP if self.sweep else (self.factor or FACTOR,)
        sizes = tuple(round(factor * bdp_bytes) for factor in factors)
        for factor, size in zip(factors, sizes, strict=True):
            if not LEAST_BUFFER <= size <= MOST_BUFFER:
                what = f"buffers of {format_size(size)}, {factor:g} times the BDP"
                most = f"{format_size(LEAST_BUFFER)} to {format_size(MOST_BUFFER)}"
                raise ConfigError(what, f"a host takes {most}: state them with --buffers, or another --wan")
        return sizes if self.sweep else (None, *sizes)


def make_bdp_request(dut: str, wanted: BdpWish, wish: TcpWish, setup: TcpSetup) -> TcpRequest:
    """The test that is asked for; ConfigError names what is wrong with it. wish: its buffers are those of wanted."""
    request = make_tcp_request(dut, wish, setup)
    wan = request.dut.wan
    if wan is None or not wan.bdp_bytes:
        told = "no WAN" if wan is None else f"a WAN of {wan}"
        raise ConfigError(f"{request.dut.name} has {told}: there is no BDP", "state one: --wan 20ms,1gbit")
    buffers = wanted.buffers_of(wan.bdp_bytes)
    return replace(request, plan=plan_of(replace(wish, buffers=buffers), request.dut), verb="bdp")
