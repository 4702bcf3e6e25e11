"""Programs beside the sending one: it is run by the trampoline; one forwards its frames, one counts those received."""

from __future__ import annotations

from .bpf_asm import R0, R1, R2, R3, R4, R6, R7, Assembler, Helper
from .xdp_count import count
from .xdp_latency import receive
from .xdp_layout import FCS_BYTES, PREFIX_BYTES, XDP_DROP, ReceivedWord


def trampoline(slot_fd: int) -> bytes:
    """A program that runs the one in the slot, so that streams can be exchanged while it runs."""
    asm = Assembler()
    asm.map_fd(R2, slot_fd)
    asm.mov(R3, 0)
    asm.call(Helper.TAIL_CALL)
    asm.exit(XDP_DROP)
    return asm.assemble()


def forwarder(devices_fd: int) -> bytes:
    """A program that takes the number of a port off each frame, and sends it there as the port's driver can."""
    asm = Assembler()
    asm.load(4, R2, R1, 0)
    asm.load(4, R3, R1, 4)
    asm.calc(R4, R2, "add", PREFIX_BYTES)
    asm.jump_if("gt", R4, R3, "dropped")
    asm.load(8, R7, R2, 0)
    asm.mov(R2, PREFIX_BYTES)
    asm.call(Helper.XDP_ADJUST_HEAD)
    asm.jump_if("ne", R0, 0, "dropped")
    asm.map_fd(R1, devices_fd)
    asm.mov(R2, R7)
    asm.mov(R3, 0)
    asm.call(Helper.REDIRECT_MAP)
    asm.exit()
    asm.label("dropped")
    asm.exit(XDP_DROP)
    return asm.assemble()


def receiver(counters_fd: int, timed_fd: int, flows_fd: int, cpus: int) -> bytes:
    """Drops every frame, counts those with a unicast destination and marked ones, and books timed ones.

    A router's ARP, IPv6 neighbour discovery and the like are no test traffic and are not counted. The host's own
    stack sees nothing of the port, as with TRex. Each CPU has a cache line of its own, so that no atomic operation is
    needed. cpus: a power of two.
    """
    asm = Assembler()
    asm.load(4, R2, R1, 0)
    asm.load(4, R3, R1, 4)
    asm.calc(R4, R2, "add", 14)
    asm.jump_if("gt", R4, R3, "dropped")
    asm.load(1, R7, R2, 0)
    asm.alu("and", R7, 1)
    asm.calc(R6, R3, "sub", R2)
    asm.alu("add", R6, FCS_BYTES)
    count(asm, flows_fd, cpus)
    receive(asm, timed_fd, cpus)
    asm.label("counted")
    asm.call(Helper.GET_SMP_PROCESSOR_ID)
    asm.alu("and", R0, cpus - 1)
    asm.alu("lsh", R0, 6)
    asm.map_value(R1, counters_fd)
    asm.alu("add", R1, R0)
    asm.jump_if("ne", R7, 0, "dropped")
    for word, step in ((ReceivedWord.PACKETS, 1), (ReceivedWord.BYTES, R6)):
        asm.change("add", R1, 8 * word, step, R2)
    asm.label("dropped")
    asm.exit(XDP_DROP)
    return asm.assemble()
