"""The sending thread, which lets the kernel run the program, frame after frame, until asked to stop."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from ..engine import EngineError, Taken
from .bpf import XDP_FLAGS_SKB_MODE, attach_xdp, load_xdp, program_slot, run_live
from .bpf_asm import R0, R1, R2, R3, R7, Assembler, Helper
from .netdev import CLONE_NEWNET, LIBC
from .xdp_layout import PREFIX_BYTES, XDP_DROP

_REPEAT = (1 << 32) - 1
_BATCH = 64  # turns between two checks of the kernel's scheduler
_NICENESS = -20
_WAKE = signal.SIGRTMIN + 7
_LOOPBACK_IFINDEX = 1
_TICK_NS = 10**9 // os.sysconf("SC_CLK_TCK")


def _attach_to_own_loopback(program_fd: int) -> int:
    """Move the calling thread into a new namespace and attach to its ``lo``, until the returned descriptor closes."""
    if LIBC.unshare(CLONE_NEWNET) != 0:
        raise EngineError(f"cannot make a network namespace: {os.strerror(ctypes.get_errno())}; run as root")
    return attach_xdp(program_fd, _LOOPBACK_IFINDEX, XDP_FLAGS_SKB_MODE)


def _hold_dispatcher(program_fd: int) -> list[int]:
    """Attach the program to ``lo`` of a new namespace, so that the kernel's XDP dispatcher keeps it registered.

    Otherwise every call registers and removes it: two waits for RCU, 5 to 30 ms each, in which nothing is sent. With it
    a call costs 0.1 ms. That ``lo`` is down and never sees a frame. Returns the descriptors to be held open.
    """
    held: list[int] = []

    def attach() -> None:
        with contextlib.suppress(OSError, EngineError):
            held.append(_attach_to_own_loopback(program_fd))
            held.append(os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC))

    with ThreadPoolExecutor(1, "trexbench-hold") as thread:
        thread.submit(attach).result()
    return held


class Sender:
    """One thread in BPF_PROG_TEST_RUN, which runs the program in ``slot`` and rests while nothing is to be sent.

    It lives in a network namespace of its own, at whose ``lo`` its frames begin. Those of ports without driver mode go
    into the stack there, from which the forwarder takes them. devices_fd: table of all ports. cpu: None for any.
    """

    def __init__(self, devices_fd: int, *, cpu: int | None) -> None:
        self.cpu = cpu
        self.slot = program_slot()
        self._main = load_xdp("trexbench_main", trampoline(self.slot.fd))
        self._held = _hold_dispatcher(self._main)
        self._forwarder = load_xdp("trexbench_fwd", forwarder(devices_fd))
        self._changed = threading.Condition()
        self._wanted = False
        self._closing = False
        self._resting = True
        self._frame_size = 0
        self._watch: TakenWatch | None = None
        self.failure: str | None = None
        # lets the wake-up signal do nothing but interrupt a system call; works on any thread, unlike signal.signal
        LIBC.signal.restype = ctypes.c_void_p
        LIBC.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
        LIBC.signal(int(_WAKE), ctypes.cast(LIBC.abs, ctypes.c_void_p))
        self._thread = threading.Thread(target=self._body, name="trexbench-sender", daemon=True)
        self._thread.start()

    @property
    def frame_size(self) -> int:
        """Frame size of the present call; 0 while resting."""
        return self._frame_size if self._wanted else 0

    def go(self, frame_size: int) -> None:
        """Run, beginning with frames of this size."""
        with self._changed:
            self._frame_size, self._wanted = frame_size, True
            self._changed.notify_all()

    def taken(self) -> Taken:
        return self._watch.read() if self._watch else Taken()

    def rest(self) -> None:
        """End the call, and wait until the kernel has returned, for a second at most."""
        end = time.monotonic() + 1.0
        with self._changed:
            self._wanted = False
            while not self._resting and time.monotonic() < end:
                if self._thread.ident is not None and self._thread.is_alive():
                    with contextlib.suppress(ProcessLookupError):
                        signal.pthread_kill(self._thread.ident, _WAKE)
                self._changed.wait(0.005)

    def _body(self) -> None:
        try:
            self._held.append(_attach_to_own_loopback(self._forwarder))
            if self.cpu is not None:
                os.sched_setaffinity(0, {self.cpu})
            with contextlib.suppress(PermissionError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
            self._watch = TakenWatch(self.cpu)
            while self._await_work():
                self._run()
        except (EngineError, OSError) as error:
            self.failure = str(error)
        finally:
            with self._changed:
                self._resting = True
                self._changed.notify_all()

    def _await_work(self) -> bool:
        with self._changed:
            self._resting = True
            self._changed.notify_all()
            while not self._wanted and not self._closing:
                self._changed.wait()
            self._resting = False
            return not self._closing

    def _run(self) -> None:
        try:
            run_live(self._main, _LOOPBACK_IFINDEX, bytes(self._frame_size), _REPEAT, _BATCH)
        except OSError as error:
            if error.errno != errno.EINTR:
                raise OSError(error.errno, f"the kernel stopped sending: {error.strerror}") from None

    def close(self) -> None:
        self.rest()
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(1.0)
        if self._watch:
            self._watch.close()
        for descriptor in (*self._held, self._main, self._forwarder):
            os.close(descriptor)
        self.slot.close()


class TakenWatch:
    """Reads what kept the thread that made it from its core: from any thread, even once that one has ended.

    cpu: the CPU whose stolen time is read; None for none.
    """

    def __init__(self, cpu: int | None) -> None:
        self._cpu = cpu
        self._files: list[int | None] = []
        for name in ("thread-self/schedstat", "thread-self/status", "stat"):
            try:
                self._files.append(os.open(f"/proc/{name}", os.O_RDONLY | os.O_CLOEXEC))
            except OSError:
                self._files.append(None)

    def read(self) -> Taken:
        texts = ["", "", ""]
        for number, descriptor in enumerate(self._files):
            if descriptor is not None:
                with contextlib.suppress(OSError):  # as of a thread that has ended
                    texts[number] = os.pread(descriptor, 1 << 16, 0).decode()
        return parse_taken(texts[0], texts[1], texts[2], self._cpu)

    def close(self) -> None:
        for descriptor in self._files:
            if descriptor is not None:
                os.close(descriptor)


def parse_taken(schedstat: str, status: str, stat: str, cpu: int | None) -> Taken:
    """Parse the files of these names in /proc (``stat``: of all CPUs)."""
    delays, switches = schedstat.split(), _words_after(status, "nonvoluntary_ctxt_switches:")
    times = _words_after(stat, f"cpu{cpu} ")
    return Taken(
        waited_ns=int(delays[1]) if len(delays) > 1 else None,
        preempted=int(switches[0]) if switches else None,
        stolen_ns=int(times[7]) * _TICK_NS if len(times) > 7 else None,
    )


def _words_after(text: str, name: str) -> list[str]:
    return next((line[len(name) :].split() for line in text.splitlines() if line.startswith(name)), [])


def trampoline(slot_fd: int) -> bytes:
    """Assemble a program that runs the one in the slot, so that streams can be exchanged while it runs."""
    asm = Assembler()
    asm.map_fd(R2, slot_fd)
    asm.mov(R3, 0)
    asm.call(Helper.TAIL_CALL)
    asm.exit(XDP_DROP)
    return asm.assemble()


def forwarder(devices_fd: int) -> bytes:
    """Assemble a program that takes the port's number off each frame and sends the frame to that port."""
    asm = Assembler()
    asm.bounds(R2, R3, R1, PREFIX_BYTES, "dropped")
    asm.load(8, R7, R2, 0)
    asm.mov(R2, PREFIX_BYTES)
    asm.call(Helper.XDP_ADJUST_HEAD)
    asm.jump_if("ne", R0, 0, "dropped")
    asm.redirect(devices_fd, R7)
    asm.label("dropped")
    asm.exit(XDP_DROP)
    return asm.assemble()
