"""Frames of UDP, field engine programs over them, and namespaces in which they are sent: for the engine's tests."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from typing import Any

from trexbench.core.load.fieldengine import checksum
from trexbench.stlserver.kernel.netdev import NetDevice, inside

ROUTED_MACS = ("02:00:00:00:00:02", "02:00:00:00:01:02")
"""Addresses of the tester's ports in ``routed``."""
VLAN, QINQ = bytes.fromhex("81000064"), bytes.fromhex("88a800c8")
FIX = {"type": "fix_checksum_ipv4", "pkt_offset": 14}
FIX_UDP = {"type": "fix_checksum_hw", "l2_len": 14, "l3_len": 20, "l4_type": 11}


def udp(
    size: int = 60,
    version: int = 4,
    *,
    macs: str = "020000000002020000000001",
    ends: bytes = bytes([16, 0, 0, 4, 48, 0, 0, 4]),
    fill: bytes = b"",
    length: int | None = None,
    protocol: int = 17,
    options: int = 0,
    label: int = 0x12345,
) -> bytes:
    """A frame of ``size`` bytes without FCS; its IPv4 checksum is right, that of UDP is some number.

    ends: both IPv4 addresses. fill: the payload, else one in which every word differs. length: of the IP packet, where
    it is not the rest of the frame. options: words of them in the IPv4 header. label: of IPv6's flow.
    """
    length = size - 14 if length is None else length
    if version == 4:
        head = bytes([0x45 + options, 0]) + length.to_bytes(2, "big") + bytes.fromhex("0001000040") + bytes([protocol])
        rest = ends + b"\x01" * (4 * options)
        ip = head + checksum(head + rest).to_bytes(2, "big") + rest
    else:
        head = (6 << 28 | 0xAB << 20 | label).to_bytes(4, "big") + (length - 40).to_bytes(2, "big")
        ip = head + bytes([protocol, 64]) + bytes(range(32))
    layer4 = bytes.fromhex("04010c00") + (length - len(ip)).to_bytes(2, "big") + b"\x12\x34"
    payload = fill or bytes((7 * at + at // 251) % 256 for at in range(size))
    return (bytes.fromhex(macs + ("0800" if version == 4 else "86dd")) + ip + layer4 + payload)[:size]


def tagged(packet: bytes, *tags: bytes) -> bytes:
    return packet[:12] + b"".join(tags) + packet[12:]


def var(name: str, op: str, size: int, low: int, high: int, **more: Any) -> dict[str, Any]:
    base = {"type": "flow_var", "name": name, "op": op, "size": size, "min_value": low, "max_value": high}
    return {**base, "init_value": low, "step": 1, "split_to_cores": False, "next_var": None, **more}


def write(name: str, offset: int, add: int = 0, big: bool = True) -> dict[str, Any]:
    return {"type": "write_flow_var", "name": name, "pkt_offset": offset, "add_value": add, "is_big_endian": big}


def run(*argv: str) -> None:
    subprocess.run(argv, check=True, timeout=30, capture_output=True)


@contextlib.contextmanager
def namespaces(*names: str) -> Iterator[None]:
    """New network namespaces in which nothing sends of its own accord."""
    with contextlib.ExitStack() as made:
        for name in names:
            run("ip", "netns", "add", name)
            made.callback(run, "ip", "netns", "del", name)
            quiet = ("net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")
            run("ip", "netns", "exec", name, "sysctl", "-qw", *quiet)
        yield


def connect(netns: str, one: str, other: str) -> None:
    """Make a veth pair, whose ends are up."""
    run("ip", "-n", netns, "link", "add", one, "type", "veth", "peer", "name", other)
    for name in (one, other):
        run("ip", "-n", netns, "link", "set", name, "up")


@contextlib.contextmanager
def routed(prefix: str) -> Iterator[tuple[str, str, tuple[str, str]]]:
    """The tester's namespace with ports p0 and p1, the namespace of a Linux router with d0 and d1, and their MACs."""
    tester, dut = f"{prefix}t", f"{prefix}d"
    with namespaces(tester, dut):
        for number, side in enumerate(("16", "48")):
            near, far, link = f"p{number}", f"d{number}", f"100.65.{number + 1}"
            peer = ("peer", "name", far, "netns", dut)
            run("ip", "-n", tester, "link", "add", near, "address", ROUTED_MACS[number], "type", "veth", *peer)
            run("ip", "-n", dut, "addr", "add", f"{link}.1/24", "dev", far)
            run("ip", "-n", tester, "link", "set", near, "up")
            run("ip", "-n", dut, "link", "set", far, "up")
            neighbour = (f"{link}.2", "lladdr", ROUTED_MACS[number], "dev", far, "nud", "permanent")
            run("ip", "-n", dut, "neigh", "replace", *neighbour)
            run("ip", "-n", dut, "route", "add", f"{side}.0.0.0/8", "via", f"{link}.2")
        run("ip", "netns", "exec", dut, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        macs = inside(dut, lambda: [NetDevice(f"d{number}").mac for number in range(2)])
        yield tester, dut, (macs[0], macs[1])
