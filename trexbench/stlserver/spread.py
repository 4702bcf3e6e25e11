"""Moves a router's work to CPUs of its own: ``python -m trexbench.stlserver.spread --interfaces d0,d1 --cpus 1``.

On veth the CPU that sends also receives: the router's work would run in the sender's time. An XDP program on the
receiving interfaces puts every frame into a queue instead, which a kernel thread on the router's CPU empties into
the network stack, as a NIC with its interrupt there would. A full queue drops, and what is beyond the router's
capacity costs it nothing: the curve has a clean knee and a flat top. The program stays with the interfaces.

With several CPUs queue q of interface number i goes to the CPU in place (q + i) modulo their number, so that two
interfaces of one queue each keep two CPUs busy. What a queue to a CPU drops is counted nowhere that can be read; what
was handed over is (``ethtool -S``: rx_queue_N_xdp_redirect).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from trexbench.stlserver import bpf
from trexbench.stlserver.bpf_asm import R1, R2, R3, R6, Assembler, Helper
from trexbench.stlserver.engine import EngineError
from trexbench.stlserver.netdev import NetDevice, inside

DEFAULT_QUEUE_FRAMES = 4096
DEFAULT_NICENESS = -20
_RX_QUEUE_INDEX = 16
"""Where struct xdp_md has it."""


def spread(
    interfaces: Sequence[str],
    cpus: Sequence[int],
    *,
    netns: str | None = None,
    queue_frames: int = DEFAULT_QUEUE_FRAMES,
    niceness: int = DEFAULT_NICENESS,
) -> list[int]:
    """Let one kernel thread on each of ``cpus`` do the work of the ``interfaces``; gives their process ids.

    niceness: of those threads; they compete with everything else on their CPUs, unlike a soft interrupt. Raises
    EngineError, in one line.
    """
    bpf.require_kernel()
    if not 1 <= queue_frames <= 16384:
        raise EngineError(f"a queue of {queue_frames} frames is not possible; 1 to 16384")
    with contextlib.ExitStack() as stack:
        queues = []
        for cpu in cpus:
            queues.append(bpf.CpuQueue(cpu, queue_frames))
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
    """The program of one interface. queues: map and CPU of each; first: which of them its receive queue 0 gets."""
    asm = Assembler()
    asm.load(4, R6, R1, _RX_QUEUE_INDEX)
    asm.alu("add", R6, first)
    asm.alu("mod", R6, len(queues))
    for place, (queue_fd, cpu) in enumerate(queues):
        if place < len(queues) - 1:
            asm.jump_if("ne", R6, place, f"not.{place}")
        asm.map_fd(R1, queue_fd)
        asm.mov(R2, cpu)
        asm.mov(R3, 0)
        asm.call(Helper.REDIRECT_MAP)
        asm.exit()
        if place < len(queues) - 1:
            asm.label(f"not.{place}")
    return asm.assemble()


def _attach(program: int, name: str) -> None:
    with contextlib.closing(NetDevice(name)) as device:
        device.attach_xdp_for_good(program)


def _kernel_thread(name: str) -> int:
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and (entry / "comm").read_text().strip() in (name, name[:15]):
                return int(entry.name)
    raise EngineError(f"the kernel thread {name} is not to be seen in /proc; run in the host's pid namespace")


def _numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",")]


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit code: 0 done, 1 not possible, 2 wrong usage."""
    parser = argparse.ArgumentParser(prog="python -m trexbench.stlserver.spread", description=__doc__)
    parser.add_argument("--interfaces", required=True, metavar="D0,D1")
    parser.add_argument("--cpus", required=True, type=_numbers, metavar="N,M")
    parser.add_argument("--netns", metavar="NAME", help="network namespace that holds the interfaces")
    parser.add_argument("--queue", type=int, default=DEFAULT_QUEUE_FRAMES, metavar="FRAMES")
    parser.add_argument("--nice", type=int, default=DEFAULT_NICENESS, metavar="N", help="of the kernel threads")
    args = parser.parse_args(argv)
    try:
        threads = spread(
            args.interfaces.split(","), args.cpus, netns=args.netns, queue_frames=args.queue, niceness=args.nice
        )
    except (EngineError, OSError) as error:
        print(f"spread: {error}", file=sys.stderr)
        return 1
    for thread, cpu in zip(threads, args.cpus, strict=True):
        print(f"{args.interfaces}: received by kernel thread {thread} on CPU {cpu}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
