"""What is attached to a port: the program that counts and drops received frames, and the sender's trampoline."""

from __future__ import annotations

from trexbench.stlserver.bpf_asm import R0, R1, R2, R3, R4, R6, R7, Assembler, Helper
from trexbench.stlserver.xdp_latency import receive
from trexbench.stlserver.xdp_layout import FCS_BYTES, XDP_DROP, Received


def trampoline(slot_fd: int) -> bytes:
    """A program that hands over to whatever the slot holds, so that streams can be exchanged while it runs."""
    asm = Assembler()
    asm.map_fd(R2, slot_fd)
    asm.mov(R3, 0)
    asm.call(Helper.TAIL_CALL)
    asm.exit(XDP_DROP)
    return asm.assemble()


def receiver(counters_fd: int, timed_fd: int, cpus: int) -> bytes:
    """Drops every frame and counts those with a unicast destination; books timed frames beside that.

    A router's ARP, IPv6 neighbour discovery and the like must not be taken for test traffic; they are counted
    apart. The host's own stack sees nothing of the port, as with TRex. One cache line per CPU, so that no atomic
    operation is needed. cpus: a power of two.
    """
    asm = Assembler()
    asm.load(4, R2, R1, 0)
    asm.load(4, R3, R1, 4)
    asm.mov(R4, R2)
    asm.alu("add", R4, 14)
    asm.jump_if("gt", R4, R3, "short")
    asm.load(1, R7, R2, 0)
    asm.alu("and", R7, 1)
    asm.mov(R6, R3)
    asm.alu("sub", R6, R2)
    asm.alu("add", R6, FCS_BYTES)
    receive(asm, timed_fd, cpus)
    asm.call(Helper.GET_SMP_PROCESSOR_ID)
    asm.alu("and", R0, cpus - 1)
    asm.alu("lsh", R0, 6)
    asm.map_value(R1, counters_fd)
    asm.alu("add", R1, R0)
    asm.jump_if("ne", R7, 0, "group")
    for word, step in ((Received.PACKETS, 1), (Received.BYTES, R6)):
        asm.load(8, R2, R1, 8 * word)
        asm.alu("add", R2, step)
        asm.store(8, R1, 8 * word, R2)
    asm.exit(XDP_DROP)
    asm.label("group")
    asm.load(8, R2, R1, 8 * Received.GROUP_PACKETS)
    asm.alu("add", R2, 1)
    asm.store(8, R1, 8 * Received.GROUP_PACKETS, R2)
    asm.label("short")
    asm.exit(XDP_DROP)
    return asm.assemble()
