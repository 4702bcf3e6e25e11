"""Moves a router's work to a CPU of its own: ``python -m trexbench.stlserver.spread --interfaces d0,d1 --cpu 1``.

On veth the CPU that sends also receives: the router's work would run in the sender's time. An XDP program on the
receiving interfaces puts every frame into a queue instead, which a kernel thread on the router's CPU empties into
the network stack, as a NIC with its interrupt there would. A full queue drops, and what is beyond the router's
capacity costs it nothing: the curve has a clean knee and a flat top. The program stays with the interfaces.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from trexbench.stlserver import bpf
from trexbench.stlserver.bpf_asm import R1, R2, R3, Assembler, Helper
from trexbench.stlserver.engine import EngineError
from trexbench.stlserver.netdev import NetDevice, inside

DEFAULT_QUEUE_FRAMES = 4096
DEFAULT_NICENESS = -20


def spread(
    interfaces: Sequence[str],
    cpu: int,
    *,
    netns: str | None = None,
    queue_frames: int = DEFAULT_QUEUE_FRAMES,
    niceness: int = DEFAULT_NICENESS,
) -> int:
    """Let one kernel thread on ``cpu`` do the work of all ``interfaces``; gives its process id.

    niceness: of that thread; it competes with everything else on its CPU, unlike a soft interrupt. Raises
    EngineError, in one line.
    """
    bpf.require_kernel()
    if not 1 <= queue_frames <= 16384:
        raise EngineError(f"a queue of {queue_frames} frames is not possible; 1 to 16384")
    queue = bpf.CpuQueue(cpu, queue_frames)
    program = bpf.load_xdp("trexbench_cpu", _to_queue(queue.fd, cpu))
    try:
        inside(netns, lambda: _attach(program, interfaces))
        thread = _kernel_thread(queue.thread_name)
        os.setpriority(os.PRIO_PROCESS, thread, niceness)
    finally:
        os.close(program)
        os.close(queue.fd)
    return thread


def _to_queue(queue_fd: int, cpu: int) -> bytes:
    asm = Assembler()
    asm.map_fd(R1, queue_fd)
    asm.mov(R2, cpu)
    asm.mov(R3, 0)
    asm.call(Helper.REDIRECT_MAP)
    asm.exit()
    return asm.assemble()


def _attach(program: int, interfaces: Sequence[str]) -> None:
    for name in interfaces:
        with contextlib.closing(NetDevice(name)) as device:
            device.attach_xdp_for_good(program)


def _kernel_thread(name: str) -> int:
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and (entry / "comm").read_text().strip() in (name, name[:15]):
                return int(entry.name)
    raise EngineError(f"the kernel thread {name} is not to be seen in /proc; run in the host's pid namespace")


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit code: 0 done, 1 not possible, 2 wrong usage."""
    parser = argparse.ArgumentParser(prog="python -m trexbench.stlserver.spread", description=__doc__)
    parser.add_argument("--interfaces", required=True, metavar="D0,D1")
    parser.add_argument("--cpu", required=True, type=int, metavar="N")
    parser.add_argument("--netns", metavar="NAME", help="network namespace that holds the interfaces")
    parser.add_argument("--queue", type=int, default=DEFAULT_QUEUE_FRAMES, metavar="FRAMES")
    parser.add_argument("--nice", type=int, default=DEFAULT_NICENESS, metavar="N", help="of the kernel thread")
    args = parser.parse_args(argv)
    try:
        thread = spread(
            args.interfaces.split(","), args.cpu, netns=args.netns, queue_frames=args.queue, niceness=args.nice
        )
    except (EngineError, OSError) as error:
        print(f"spread: {error}", file=sys.stderr)
        return 1
    print(f"{args.interfaces}: received by kernel thread {thread} on CPU {args.cpu}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
