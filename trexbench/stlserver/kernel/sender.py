"""The sending core: a thread that lets the kernel run the program, frame after frame, until it is told to stop."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from ..engine import EngineError
from .bpf import XDP_FLAGS_SKB_MODE, ProgramSlot, attach_xdp, load_xdp, run_live
from .netdev import CLONE_NEWNET, LIBC
from .taken import Taken, TakenWatch
from .xdp_receive import forwarder, trampoline

_REPEAT = (1 << 32) - 1
_BATCH = 64  # turns between two looks at the clock of the kernel's scheduler
_NICENESS = -20
_WAKE = signal.SIGRTMIN + 7
_LOOPBACK_IFINDEX = 1


def _install_wake_handler() -> None:
    """Let the wake-up signal do nothing but interrupt a system call; works from any thread, unlike signal()."""
    LIBC.signal.restype = ctypes.c_void_p
    LIBC.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
    LIBC.signal(int(_WAKE), ctypes.cast(LIBC.abs, ctypes.c_void_p))


def _attach_to_own_loopback(program_fd: int) -> int:
    """Move the calling thread into a new namespace and attach to its ``lo``; the descriptor that keeps it so."""
    if LIBC.unshare(CLONE_NEWNET) != 0:
        raise EngineError(f"cannot make a network namespace: {os.strerror(ctypes.get_errno())}; run as root")
    return attach_xdp(program_fd, _LOOPBACK_IFINDEX, XDP_FLAGS_SKB_MODE)


def _hold_dispatcher(program_fd: int) -> list[int]:
    """Attach the program to ``lo`` of a new namespace, so that the kernel's XDP dispatcher keeps knowing it.

    Else every call makes the dispatcher learn and forget it: two waits for RCU, 5 to 30 ms each, in which nothing
    is sent. With it a call costs 0.1 ms. That ``lo`` is down and never sees a frame. Returns the descriptors that keep
    it so.
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
    """One thread in BPF_PROG_TEST_RUN, which runs what is in ``slot``. It rests while nothing is to be sent.

    It lives in a network namespace of its own: its frames begin at the ``lo`` there, of whose stack the forwarder takes
    those of ports that have no driver mode. devices_fd: the table of all ports. cpu: pin to this CPU (None: where the
    scheduler likes).
    """

    def __init__(self, devices_fd: int, *, cpu: int | None) -> None:
        self.cpu = cpu
        self.slot = ProgramSlot()
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
        _install_wake_handler()
        self._thread = threading.Thread(target=self._body, name="trexbench-sender", daemon=True)
        self._thread.start()

    @property
    def frame_size(self) -> int:
        """Frame size of the call under way; 0 while resting."""
        return self._frame_size if self._wanted else 0

    def go(self, frame_size: int) -> None:
        """Run, with frames of this size to begin with."""
        with self._changed:
            self._frame_size, self._wanted = frame_size, True
            self._changed.notify_all()

    def taken(self) -> Taken:
        return self._watch.read() if self._watch else Taken()

    def rest(self) -> None:
        """End the call; returns once the kernel has returned, after a second in any case."""
        end = time.monotonic() + 1.0
        with self._changed:
            self._wanted = False
            while not self._resting and time.monotonic() < end:
                if self._thread.ident is not None and self._thread.is_alive():
                    with contextlib.suppress(ProcessLookupError):
                        signal.pthread_kill(self._thread.ident, _WAKE)
                self._changed.wait(0.005)

    def _prepare(self) -> None:
        self._held.append(_attach_to_own_loopback(self._forwarder))
        if self.cpu is not None:
            os.sched_setaffinity(0, {self.cpu})
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
        self._watch = TakenWatch(self.cpu)

    def _body(self) -> None:
        try:
            self._prepare()
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
