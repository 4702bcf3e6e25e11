"""The sending core: a thread that lets the kernel run the program, frame after frame, until it is told to stop."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import signal
import threading
import time

from trexbench.stlserver.bpf import XDP_FLAGS_SKB_MODE, ProgramSlot, attach_xdp, load_xdp, run_live
from trexbench.stlserver.engine import EngineError
from trexbench.stlserver.netdev import enter_netns
from trexbench.stlserver.xdp_receive import trampoline

_REPEAT = (1 << 32) - 1
_WAKE = signal.SIGRTMIN + 7
_CLONE_NEWNET = 0x40000000
_LOOPBACK_IFINDEX = 1
_libc = ctypes.CDLL(None, use_errno=True)


def _install_wake_handler() -> None:
    """Let the wake-up signal do nothing but interrupt a system call; works from any thread, unlike signal()."""
    _libc.signal.restype = ctypes.c_void_p
    _libc.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
    _libc.signal(int(_WAKE), ctypes.cast(_libc.abs, ctypes.c_void_p))


class _DispatcherHold:
    """Keeps the kernel's XDP dispatcher knowing the program, by attaching it to ``lo`` of a namespace of our own.

    Else every call makes the dispatcher learn and forget it: two waits for RCU, 5 to 30 ms each, in which nothing
    is sent. With it a call costs 0.1 ms. That ``lo`` is down and never sees a frame.
    """

    def __init__(self, program_fd: int) -> None:
        self.descriptors: list[int] = []
        thread = threading.Thread(target=self._attach, args=(program_fd,), name="trexbench-hold")
        thread.start()
        thread.join()

    def _attach(self, program_fd: int) -> None:
        if _libc.unshare(_CLONE_NEWNET) != 0:
            return
        with contextlib.suppress(OSError):
            self.descriptors.append(os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC))
            self.descriptors.append(attach_xdp(program_fd, _LOOPBACK_IFINDEX, XDP_FLAGS_SKB_MODE))

    def close(self) -> None:
        while self.descriptors:
            os.close(self.descriptors.pop())


class Sender:
    """One thread in BPF_PROG_TEST_RUN. It rests while nothing is to be sent.

    ifindex: any port of the group. cpu: pin to this CPU (None: where the scheduler likes).
    """

    def __init__(self, ifindex: int, *, netns: str | None, cpu: int | None, batch: int, niceness: int) -> None:
        self.ifindex, self.netns, self.cpu, self.batch, self.niceness = ifindex, netns, cpu, batch, niceness
        self.slot = ProgramSlot()
        self._main = load_xdp("trexbench_main", trampoline(self.slot.fd))
        self._hold = _DispatcherHold(self._main)
        self._changed = threading.Condition()
        self._wanted = False
        self._closing = False
        self._resting = True
        self._frame_size = 0
        self.failure: str | None = None
        _install_wake_handler()
        self._thread = threading.Thread(target=self._body, name="trexbench-sender", daemon=True)
        self._thread.start()

    @property
    def frame_size(self) -> int:
        """Frame size of the call under way; 0 while resting."""
        return self._frame_size if self._wanted else 0

    def waited_ns(self) -> int:
        """How long the thread has waited for its CPU, since it began: others were using it."""
        try:
            with open(f"/proc/self/task/{self._thread.native_id}/schedstat") as file:
                return int(file.read().split()[1])
        except OSError:
            return 0

    def put(self, program_fd: int) -> None:
        """Exchange the program, also while it runs."""
        self.slot.put(program_fd)

    def go(self, frame_size: int) -> None:
        """Run, with frames of this size to begin with."""
        with self._changed:
            self._frame_size, self._wanted = frame_size, True
            self._changed.notify_all()

    def rest(self, timeout_s: float = 1.0) -> bool:
        """End the call; True once the kernel has returned."""
        end = time.monotonic() + timeout_s
        with self._changed:
            self._wanted = False
            while not self._resting and time.monotonic() < end:
                self._wake()
                self._changed.wait(0.005)
            return self._resting

    def _wake(self) -> None:
        if self._thread.ident is not None and self._thread.is_alive():
            with contextlib.suppress(ProcessLookupError):
                signal.pthread_kill(self._thread.ident, _WAKE)

    def _prepare(self) -> None:
        if self.netns is not None:
            enter_netns(self.netns)
        if self.cpu is not None:
            os.sched_setaffinity(0, {self.cpu})
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), self.niceness)

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
            run_live(self._main, self.ifindex, bytes(self._frame_size), _REPEAT, self.batch)
        except OSError as error:
            if error.errno != errno.EINTR:
                raise OSError(error.errno, f"the kernel stopped sending: {error.strerror}") from None

    def close(self) -> None:
        self.rest()
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(1.0)
        self._hold.close()
        if self._main >= 0:
            os.close(self._main)
            self._main = -1
        self.slot.close()
