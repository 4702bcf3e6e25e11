"""6in4 (RFC 4213) on a lab's cable where the kernel has no device for it: a pair of programs in tc's filters.

What leaves the interface as IPv6 gets an IPv4 header in front of it; what arrives with that header from the other end
loses it. Neighbour discovery, between link-local addresses or to groups, stays as it is. Frames of 64 KB stay whole.
The programs stay until the interface or its clsact goes. As a process, in the namespace of the interface:

    python -m trexbench.lab.sixinfour INTERFACE LOCAL REMOTE
    python -m trexbench.lab.sixinfour try
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from contextlib import ExitStack
from ipaddress import IPv4Address

from ..stlserver.engine import EngineError
from ..stlserver.kernel import bpf
from ..stlserver.kernel.bpf_asm import R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10, Assembler, Helper, Reg

TRY = "try"
_HEADER = 20
_ETHERNET, _TYPE_AT = 14, 12
_IPV4, _IPV6, _PROTOCOL, _TTL = 0x0800, 0x86DD, 41, 255
_AT_MAC, _FIXED_GSO, _ENCAP_IPV4, _DECAP_IPV6 = 1, 1 << 0, 1 << 1, 1 << 8
"""Arguments of bpf_skb_adjust_room: after Ethernet's header; TCP's output fits already; which header comes or goes."""
_SKB_PROTOCOL = 16
"""Its offset in struct __sk_buff."""
_PASS, _DROP = 0, 2
_NEW_NETWORK = 0x40000000


def _swapped(value: int) -> int:
    """A 16-bit word as the processor reads it from a packet."""
    return int(struct.unpack("=H", struct.pack("!H", value))[0])


def _swap(asm: Assembler, register: Reg) -> None:
    if sys.byteorder == "little":
        asm.swap(register, 16)


def _read(asm: Assembler, ethertype: int, size: int) -> None:
    """R6: the packet, R10 - 40: so many bytes of its IP header; packets of another type pass."""
    asm.mov(R6, R1)
    asm.load(4, R2, R6, _SKB_PROTOCOL)
    asm.jump_if("ne", R2, _swapped(ethertype), "pass")
    asm.mov(R1, R6)
    asm.mov(R2, _ETHERNET)
    asm.calc(R3, R10, "add", -40)
    asm.mov(R4, size)
    asm.call(Helper.SKB_LOAD_BYTES)
    asm.jump_if("ne", R0, 0, "pass")


def _grow(asm: Assembler, by: int, flags: int) -> None:
    asm.mov(R1, R6)
    asm.mov(R2, by)
    asm.mov(R3, _AT_MAC)
    asm.mov(R4, flags)
    asm.call(Helper.SKB_ADJUST_ROOM)
    asm.jump_if("ne", R0, 0, "drop")


def _write(asm: Assembler, size: int) -> None:
    """Store ``size`` bytes from R10 - 64 in the packet, from its Ethernet type on."""
    asm.mov(R1, R6)
    asm.mov(R2, _TYPE_AT)
    asm.calc(R3, R10, "add", -64)
    asm.mov(R4, size)
    asm.mov(R5, 0)
    asm.call(Helper.SKB_STORE_BYTES)
    asm.jump_if("ne", R0, 0, "drop")


def _end(asm: Assembler) -> bytes:
    asm.label("pass")
    asm.exit(_PASS)
    asm.label("drop")
    asm.exit(_DROP)
    return asm.assemble()


def encapsulation(local: IPv4Address, remote: IPv4Address) -> bytes:
    """The program for what leaves: IPv6 gets a header from local to remote."""
    asm = Assembler()
    _read(asm, _IPV6, 40)
    asm.load(1, R2, R10, -40 + 24)
    asm.jump_if("eq", R2, 0xFF, "pass")
    for at in (8, 24):
        asm.load(2, R2, R10, -40 + at)
        _swap(asm, R2)
        asm.alu("and", R2, 0xFFC0)
        asm.jump_if("eq", R2, 0xFE80, "pass")
    asm.load(2, R7, R10, -40 + 4)
    _swap(asm, R7)
    asm.alu("add", R7, 40 + _HEADER)
    words = (_IPV4, 0x4500, 0, 0, 0x4000, _TTL << 8 | _PROTOCOL, 0, *struct.unpack("!4H", local.packed + remote.packed))
    asm.calc(R8, R7, "add", sum(words[1:]))
    for _ in range(2):
        asm.calc(R9, R8, "rsh", 16)
        asm.alu("and", R8, 0xFFFF)
        asm.alu("add", R8, R9)
    asm.alu("xor", R8, 0xFFFF)
    _swap(asm, R7)
    _swap(asm, R8)
    for index, word in enumerate(words):
        asm.store(2, R10, -64 + 2 * index, _swapped(word))
    asm.store(2, R10, -64 + 4, R7)
    asm.store(2, R10, -64 + 12, R8)
    _grow(asm, _HEADER, _FIXED_GSO | _ENCAP_IPV4)
    _write(asm, 2 + _HEADER)
    return _end(asm)


def decapsulation(local: IPv4Address, remote: IPv4Address) -> bytes:
    """The program for what arrives: 6in4 from remote to local loses its header."""
    asm = Assembler()
    _read(asm, _IPV4, _HEADER)
    for size, at, wanted in ((1, 0, 0x45), (1, 9, _PROTOCOL)):
        asm.load(size, R2, R10, -40 + at)
        asm.jump_if("ne", R2, wanted, "pass")
    for at, address in ((12, remote), (16, local)):
        asm.load(4, R2, R10, -40 + at)
        asm.mov(R3, int(struct.unpack("=I", address.packed)[0]))
        asm.jump_if("ne", R2, R3, "pass")
    _grow(asm, -_HEADER, _FIXED_GSO | _DECAP_IPV6)
    asm.store(2, R10, -64, _swapped(_IPV6))
    _write(asm, 2)
    return _end(asm)


def name_of(local: IPv4Address, remote: IPv4Address) -> str:
    """By which the filters of a pair are known again."""
    return f"6in4:{local}>{remote}"


def attach(interface: str, local: IPv4Address, remote: IPv4Address) -> None:
    """Put the pair on an interface of the calling process's namespace, in the place of another one.

    EngineError where the kernel has not what it takes.
    """
    from pyroute2 import IPRoute
    from pyroute2.netlink.exceptions import NetlinkError

    with ExitStack() as stack:
        loaded = []
        for make in (encapsulation, decapsulation):
            loaded.append(bpf.load_classifier("trexbench_6in4", make(local, remote)))
            stack.callback(os.close, loaded[-1])
        _require_right(loaded[0], loaded[1], local, remote)
        ip = stack.enter_context(IPRoute())
        found = ip.link_lookup(ifname=interface)
        if not found:
            raise EngineError(f"interface {interface} is not there")
        try:
            ip.tc("replace", "clsact", found[0])
            for program, parent in zip(loaded, ("ffff:fff3", "ffff:fff2"), strict=True):
                how = {"fd": program, "name": name_of(local, remote), "direct_action": True, "prio": 1, "handle": 1}
                ip.tc("replace-filter", "bpf", found[0], parent=parent, **how)
        except NetlinkError as error:
            raise EngineError(f"tc's filters do not take a program on {interface}: {os.strerror(error.code)}") from None


def _require_right(encapsulating: int, decapsulating: int, local: IPv4Address, remote: IPv4Address) -> None:
    """EngineError unless this kernel's programs do with a frame what they are to do."""
    inner = struct.pack("!IHBB", 6 << 28, 8, 59, 64) + bytes([0xFD] * 16 + [0xFC] * 16) + bytes(8)
    there = bytes(12) + struct.pack("!H", _IPV6) + inner
    passed, outer = bpf.run_on(encapsulating, there)
    # seen from the other end
    back = decapsulation(remote, local)
    with ExitStack() as stack:
        other = bpf.load_classifier("trexbench_6in4", back)
        stack.callback(os.close, other)
        taken, again = bpf.run_on(other, outer)
    left, same = bpf.run_on(decapsulating, outer)
    wanted = struct.pack("!HHHHBBH", 0x4500, len(inner) + _HEADER, 0, 0x4000, _TTL, _PROTOCOL, 0)
    header = outer[_ETHERNET:][:_HEADER]
    made = header[:10] + bytes(2) == wanted[:10] + bytes(2) and header[12:] == local.packed + remote.packed
    if (passed, taken, left) != (_PASS,) * 3 or again != there or same != outer or not made:
        raise EngineError("the kernel's bpf_skb_adjust_room does not put 6in4's header on and take it off")


def _tried() -> None:
    """In a network of its own, which is gone afterwards."""
    if ctypes.CDLL(None, use_errno=True).unshare(_NEW_NETWORK) != 0:
        raise EngineError(f"a network namespace cannot be made: {os.strerror(ctypes.get_errno())}")
    attach("lo", IPv4Address("192.0.2.1"), IPv4Address("192.0.2.2"))


def main(argv: list[str]) -> int:
    """The exit code; a line on stderr where something is wrong."""
    try:
        if argv == [TRY]:
            _tried()
        else:
            attach(argv[0], IPv4Address(argv[1]), IPv4Address(argv[2]))
    except (EngineError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
