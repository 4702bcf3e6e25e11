"""Calls bpf(2) by ctypes: maps in shared memory, programs, links, live test runs."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import platform
import re
import struct

from ..engine import EngineError
from .netdev import LIBC

_SYSCALL_NUMBER = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "ppc64le": 361, "s390x": 351}
_MAP_CREATE, _MAP_UPDATE, _PROG_LOAD, _PROG_TEST_RUN, _OBJ_GET_INFO, _LINK_CREATE = 0, 2, 5, 10, 15, 28
_PROG_TYPE_XDP = 6
_MAP_TYPE_ARRAY, _MAP_TYPE_PROG_ARRAY, _MAP_TYPE_DEVMAP, _MAP_TYPE_CPUMAP = 2, 3, 14, 16
_F_MMAPABLE = 1 << 10
_ATTACH_TYPE_XDP = 37
_F_TEST_XDP_LIVE_FRAMES = 1 << 1
XDP_FLAGS_SKB_MODE, XDP_FLAGS_DRV_MODE = 1 << 1, 1 << 2
OLDEST_KERNEL = (5, 18)


def kernel_version(release: str | None = None) -> tuple[int, int]:
    """Version (major, minor) of a release like "6.18.44-generic", or of this kernel; OLDEST_KERNEL without numbers."""
    numbers = re.findall(r"\d+", release or platform.release())
    return (int(numbers[0]), int(numbers[1])) if len(numbers) > 1 else OLDEST_KERNEL


def require_kernel() -> None:
    """Raise EngineError if this kernel or processor cannot send live frames."""
    if platform.machine() not in _SYSCALL_NUMBER:
        raise EngineError(f"cannot send frames on a {platform.machine()} processor; use a real TRex instead")
    if kernel_version() < OLDEST_KERNEL:
        raise EngineError(
            f"Linux {platform.release()} is too old to send frames from BPF; "
            f"boot {OLDEST_KERNEL[0]}.{OLDEST_KERNEL[1]} or newer, or use a real TRex"
        )


def bpf(command: int, attr: ctypes.Array[ctypes.c_char]) -> int:
    """Make one bpf(2) call, without the GIL; OSError with the kernel's errno."""
    number = _SYSCALL_NUMBER[platform.machine()]
    result = int(LIBC.syscall(number, command, ctypes.byref(attr), len(attr)))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def _attr(layout: str, *values: object) -> ctypes.Array[ctypes.c_char]:
    return ctypes.create_string_buffer(struct.pack(layout, *values).ljust(128, b"\0"), 128)


def _explain(what: str, error: OSError) -> EngineError:
    if error.errno in (errno.EPERM, errno.EACCES):
        return EngineError(f"{what}: not permitted; run as root (CAP_BPF, CAP_NET_ADMIN and CAP_NET_RAW)")
    return EngineError(f"{what}: {error.strerror}")


def _new_map(what: str, kind: int, value_bytes: int, entries: int, flags: int, name: str) -> int:
    """Create a map with keys of 32 bits; an EngineError calls it ``what``."""
    try:
        return bpf(_MAP_CREATE, _attr("=IIIIIII16s", kind, 4, value_bytes, entries, flags, 0, 0, name.encode()[:15]))
    except OSError as error:
        raise _explain(f"cannot create {what}", error) from None


def _put(map_fd: int, key: int, value: int) -> None:
    words = (ctypes.c_uint32 * 2)(key, value)
    bpf(_MAP_UPDATE, _attr("=IIQQQ", map_fd, 0, ctypes.addressof(words), ctypes.addressof(words) + 4, 0))


class SharedMap:
    """An array map with one value that this process also sees as memory.

    ``words`` shows it as 64-bit words: a write is one store, seen by the program at once.
    """

    def __init__(self, name: str, size: int) -> None:
        self.size = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        self.fd = _new_map(f"a BPF map of {self.size} bytes", _MAP_TYPE_ARRAY, self.size, 1, _F_MMAPABLE, name)
        self._memory = mmap.mmap(self.fd, self.size)
        self.words = memoryview(self._memory).cast("B").cast("Q")

    def close(self) -> None:
        self.words.release()
        self._memory.close()
        os.close(self.fd)


class MapTable:
    """A BPF table with 32-bit numbers: of programs, for tail calls, or of interfaces, for programs that send."""

    def __init__(self, what: str, kind: int, entries: int, name: str) -> None:
        self.fd = _new_map(f"a BPF {what}", kind, 4, entries, 0, name)

    def put(self, key: int, value: int) -> None:
        """Enter a program's descriptor, or an interface of the calling thread's network namespace."""
        _put(self.fd, key, value)

    def close(self) -> None:
        os.close(self.fd)


def program_slot() -> MapTable:
    """Make a table of one program, so that the code behind a running one can be exchanged."""
    return MapTable("program table", _MAP_TYPE_PROG_ARRAY, 1, "trexbench_slot")


def device_table(entries: int) -> MapTable:
    """Make a table of interfaces by port number, for programs that send, from any network namespace."""
    return MapTable("table of interfaces", _MAP_TYPE_DEVMAP, entries, "trexbench_ports")


class CpuQueue:
    """A queue of ``frames`` frames to a kernel thread on ``cpu``, which hands them to the network stack.

    It lives as long as a program refers to it.
    """

    def __init__(self, cpu: int, frames: int) -> None:
        what = f"a queue of {frames} frames to CPU {cpu}"
        self.fd = _new_map(what, _MAP_TYPE_CPUMAP, 4, cpu + 1, 0, "trexbench_cpu")
        try:
            _put(self.fd, cpu, frames)
        except OSError as error:
            raise _explain(f"cannot create {what}", error) from None
        info = (ctypes.c_uint32 * 22)()
        bpf(_OBJ_GET_INFO, _attr("=IIQ", self.fd, ctypes.sizeof(info), ctypes.addressof(info)))
        self.thread_name = f"cpumap/{cpu}/map:{info[1]}"


def load_xdp(name: str, code: bytes) -> int:
    """Load an XDP program and return its descriptor. An error ends with the verifier's last lines."""
    log = ctypes.create_string_buffer(1 << 16)
    source = ctypes.create_string_buffer(code, len(code))
    license_text = ctypes.create_string_buffer(b"GPL")
    count = len(code) // 8

    def attempt(level: int) -> int:
        logging = (level, len(log) if level else 0, ctypes.addressof(log) if level else 0, 0, 0)
        code_at, license_at = ctypes.addressof(source), ctypes.addressof(license_text)
        head, tail = (_PROG_TYPE_XDP, count, code_at, license_at), (name.encode()[:15], 0, _ATTACH_TYPE_XDP)
        return bpf(_PROG_LOAD, _attr("=IIQQIIQII16sII", *head, *logging, *tail))

    try:
        return attempt(0)
    except OSError as error:
        if error.errno in (errno.EPERM, errno.ENOSYS):
            raise _explain("cannot load a BPF program", error) from None
        failure = error
    try:
        return attempt(1)
    except OSError:
        verdict = " | ".join(log.value.decode(errors="replace").strip().splitlines()[-4:])
    raise EngineError(f"the kernel refuses the program {name} ({failure.strerror}): {verdict}")


def attach_xdp(program_fd: int, ifindex: int, flags: int) -> int:
    """Attach to an interface of the calling thread's network namespace, until the returned descriptor is closed."""
    return bpf(_LINK_CREATE, _attr("=IIIIQ", program_fd, ifindex, _ATTACH_TYPE_XDP, flags, 0))


def run_live(program_fd: int, ifindex: int, frame: bytes, repeat: int, batch: int) -> None:
    """Run the program ``repeat`` times in the kernel, each time with a frame it may send.

    Blocks until done or until a signal reaches the thread (InterruptedError).
    """
    data = ctypes.create_string_buffer(frame, len(frame))
    context = ctypes.create_string_buffer(struct.pack("=IIIIII", 0, len(frame), 0, ifindex, 0, 0), 24)
    frame_in, context_in = (len(frame), 0, ctypes.addressof(data), 0), (len(context), 0, ctypes.addressof(context), 0)
    options = (repeat, 0, *context_in, _F_TEST_XDP_LIVE_FRAMES, 0, batch)
    bpf(_PROG_TEST_RUN, _attr("=IIIIQQIIIIQQIII", program_fd, 0, *frame_in, *options))
