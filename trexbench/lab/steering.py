"""Moves a kernel router's work to CPUs of its own.

On veth the CPU that sends also receives: the router's work would run in the sender's time. An XDP program on the
receiving interfaces instead puts every frame into a queue, which a kernel thread on the router's CPU empties into the
network stack, as a NIC with its interrupt there would. A full queue drops frames, which costs the router nothing: the
curve has a clear knee and a flat top. The program stays attached as long as the interfaces exist.

With several CPUs queue q of interface number i is served by CPU number (q + i) modulo their count, so that two
interfaces of one queue each keep two CPUs busy. No readable counter shows the drops of a CPU's queue; frames handed
over are counted (``ethtool -S``: rx_queue_N_xdp_redirect).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from functools import partial

from ..stlserver.engine import EngineError
from ..stlserver.kernel import bpf
from ..stlserver.kernel.bpf_asm import R1, R2, R3, R6, Assembler, Helper
from ..stlserver.kernel.netdev import NetDevice, inside
from .host import processes

QUEUE_FRAMES = 4096
"""Frames that a CPU's queue holds."""
_RX_QUEUE_INDEX = 16
"""Offset of that field in struct xdp_md."""


def steer(interfaces: Sequence[str], cpus: Sequence[int], netns: str, niceness: int = -20) -> list[int]:
    """Have one kernel thread on each of ``cpus`` do the work of the ``interfaces``; return their pids.

    niceness: of those threads; unlike a soft interrupt, they compete with everything else on their CPUs.
    """
    bpf.require_kernel()
    with contextlib.ExitStack() as stack:
        queues = []
        for cpu in cpus:
            queues.append(bpf.CpuQueue(cpu, QUEUE_FRAMES))
            stack.callback(os.close, queues[-1].fd)
        for index, name in enumerate(interfaces):
            code = to_queues([(queue.fd, cpu) for queue, cpu in zip(queues, cpus, strict=True)], index)
            program = bpf.load_xdp("trexbench_cpu", code)
            stack.callback(os.close, program)
            inside(netns, partial(_attach, program, name))
        threads = [_kernel_thread(queue.thread_name) for queue in queues]
        for thread in threads:
            os.setpriority(os.PRIO_PROCESS, thread, niceness)
    return threads


def to_queues(queues: Sequence[tuple[int, int]], first: int = 0) -> bytes:
    """Assemble the program of one interface. queues: map and CPU of each; first: index of receive queue 0's."""
    asm = Assembler()
    asm.load(4, R6, R1, _RX_QUEUE_INDEX)
    asm.alu("add", R6, first)
    asm.alu("mod", R6, len(queues))
    for place, (queue_fd, cpu) in enumerate(queues):
        last = place == len(queues) - 1
        with contextlib.nullcontext() if last else asm.unless("ne", R6, place):
            asm.map_fd(R1, queue_fd)
            asm.mov(R2, cpu)
            asm.mov(R3, 0)
            asm.call(Helper.REDIRECT_MAP)
            asm.exit()
    return asm.assemble()


def _attach(program: int, name: str) -> None:
    """Attach natively, until the interface goes or ``ip link set NAME xdp off``."""
    from pyroute2 import IPRoute
    from pyroute2.netlink.exceptions import NetlinkError

    xdp = {"attrs": [("IFLA_XDP_FD", program), ("IFLA_XDP_FLAGS", bpf.XDP_FLAGS_DRV_MODE)]}
    with contextlib.closing(NetDevice(name)) as device, IPRoute() as kernel:
        try:
            kernel.link("set", index=device.ifindex, IFLA_XDP=xdp)
        except NetlinkError as error:
            raise EngineError(f"interface {name}: cannot attach an XDP program: {os.strerror(error.code)}") from None


def _kernel_thread(name: str) -> int:
    for pid, process in processes():
        if process in (name, name[:15]):
            return pid
    raise EngineError(f"the kernel thread {name} is not in /proc; run in the host's pid namespace")
