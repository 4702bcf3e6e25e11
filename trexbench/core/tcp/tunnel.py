"""Tunnels that a TCP test can go through: their ends, and the bytes that each adds to a packet. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..errors import ConfigError

NO_TUNNEL = "none"
SIT, NOT_READ = "sit", "not read"
"""Means of 6in4: the kernel's device; or whatever there is, taken as it is."""
CLIENT_SERVER, CLIENT_DUT, DUT_SERVER = "client-server", "client-dut", "dut-server"
SMALLEST_MTU, LARGEST_MTU = 576, 9000
_ENDS = (CLIENT_SERVER, CLIENT_DUT)
_OUTER, _UDP = 20, 8


@dataclass(frozen=True)
class TunnelKind:
    """A kind of tunnel: its cost per packet, and its choices."""

    header_bytes: Mapping[int, int] = field(default_factory=dict)
    """Before and after a packet of this IP version, including the outer IPv4 header."""
    betweens: tuple[str, ...] = _ENDS
    """Possible ends; the first is the default."""
    ciphers: tuple[str, ...] = ()
    """Likewise; empty: nothing to choose."""
    align: int = 1
    """Multiple of bytes to which the encrypted part is padded."""


KINDS: Mapping[str, TunnelKind] = {
    NO_TUNNEL: TunnelKind(betweens=("",)),
    "6in4": TunnelKind({6: _OUTER}, (DUT_SERVER,)),
    "relay": TunnelKind({4: _OUTER + _UDP + 8}),  # its token
    "openvpn": TunnelKind(
        {4: _OUTER + _UDP + 24},  # opcode and peer, number, tag
        ciphers=("AES-256-GCM", "AES-128-GCM", "CHACHA20-POLY1305"),
    ),
    "wireguard": TunnelKind({4: _OUTER + _UDP + 32}),  # type and receiver, number, tag
    "gre": TunnelKind({4: _OUTER + 4}),
    "vxlan": TunnelKind({4: _OUTER + _UDP + 8 + 14}),  # a frame of Ethernet inside
    # SPI and number, IV, two bytes of trailer, tag
    "ipsec": TunnelKind({4: _OUTER + 8 + 8 + 2 + 16}, ciphers=("AES-256-GCM", "AES-128-GCM"), align=4),
}


@dataclass(frozen=True)
class Tunnel:
    """A tunnel as a test asks for it."""

    kind: str = NO_TUNNEL
    """One of KINDS."""
    between: str = ""
    """``client-server``: the DUT forwards the outer packets; ``client-dut``: the DUT is an end, and masquerades."""
    mtu: int | None = None
    """Inside it; None: what the line leaves."""
    cipher: str = ""

    @property
    def is_opened(self) -> bool:
        """True if programs hold it open for the test, with addresses of its own; it then carries IPv4 only."""
        return self.between in _ENDS

    def inner_mtu(self, line_mtu: int) -> int:
        """Return the MTU inside it; ConfigError if the line leaves less than was asked for."""
        kind = KINDS[self.kind]
        room = line_mtu - kind.header_bytes[4]
        room -= (room + 2) % kind.align
        if self.mtu is not None and self.mtu > room:
            what = f"tunnel {self.kind} with an MTU of {self.mtu}: a line of {line_mtu} leaves {room}"
            raise ConfigError(what, f"write mtu={room}, or less")
        return self.mtu or room

    def __str__(self) -> str:
        """Format the tunnel as parse_tunnel reads it, without defaults."""
        kind = KINDS[self.kind]
        words = [self.kind]
        words += [self.between] if self.between != kind.betweens[0] else []
        words += [f"mtu={self.mtu}"] if self.mtu is not None else []
        words += [f"cipher={self.cipher}"] if kind.ciphers and self.cipher != kind.ciphers[0] else []
        return ",".join(words)


def hosts_of(between: str) -> str:
    """Format a tunnel's ends: ``client and DUT``."""
    return between.replace("-", " and ").replace("dut", "DUT")


def parse_tunnel(text: str) -> Tunnel:
    """Parse ``relay`` or ``openvpn,client-dut,mtu=1400,cipher=AES-128-GCM``; ConfigError for anything else."""
    kind, *parts = (part.strip() for part in text.split(","))
    if kind not in KINDS:
        raise ConfigError(f"{kind[:80]!r} is not known", f"write one of {', '.join(KINDS)}")
    known = KINDS[kind]
    stated: dict[str, str] = {}
    for part in parts:
        key, named, value = part.partition("=")
        key, value = (key.strip(), value.strip()) if named else ("between", part)
        if key not in ("between", "mtu", "cipher") or key in stated:
            what = f"{part[:40]!r} of tunnel {kind}"
            raise ConfigError(f"{what} not understood", f"write it as {kind},{known.betweens[0]},mtu=1400")
        stated[key] = value
    return Tunnel(
        kind,
        _one_of(kind, "between", stated.get("between"), known.betweens),
        _mtu(kind, stated.get("mtu"), bool({*known.betweens} & {*_ENDS})),
        _one_of(kind, "cipher", stated.get("cipher"), known.ciphers or ("",)),
    )


def _one_of(kind: str, key: str, value: str | None, able: tuple[str, ...]) -> str:
    if value is None:
        return able[0]
    if value not in able:
        remedy = f"write one of {', '.join(able)}" if any(able) else "leave it out"
        raise ConfigError(f"tunnel {kind}: {key} {value[:40]!r} is not possible", remedy)
    return value


def _mtu(kind: str, value: str | None, able: bool) -> int | None:
    if value is None:
        return None
    if not able:
        raise ConfigError(f"tunnel {kind}: its MTU follows from the line's", "leave it out")
    if not (value.isascii() and value.isdigit() and SMALLEST_MTU <= int(value[:6]) <= LARGEST_MTU):
        raise ConfigError(f"tunnel {kind}: {value[:20]!r} is not an MTU", f"write {SMALLEST_MTU} to {LARGEST_MTU}")
    return int(value)
