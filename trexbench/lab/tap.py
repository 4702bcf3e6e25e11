"""TAP devices: made in a namespace, where they stay until it goes, and attached to by the cable's process."""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager

from ..core.errors import LabError
from . import net

_TUN = "/dev/net/tun"
_TUNSETIFF, _TUNSETPERSIST, _TUNSETOFFLOAD = 0x400454CA, 0x400454CB, 0x400454D0
_IFF_TAP, _IFF_NAPI, _IFF_MULTI_QUEUE, _IFF_NO_PI, _IFF_VNET_HDR = 0x0002, 0x0010, 0x0100, 0x1000, 0x4000
_TUN_F_CSUM, _TUN_F_TSO4, _TUN_F_TSO6, _TUN_F_TSO_ECN = 0x01, 0x02, 0x04, 0x08


@contextmanager
def _device(space: str, name: str, more: int) -> Iterator[int]:
    """Its descriptor, closed where the block fails; LabError as well for what the kernel refuses."""
    handle = -1
    try:
        with net.inside(space):
            handle = os.open(_TUN, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            flags = _IFF_TAP | _IFF_NO_PI | _IFF_VNET_HDR | more
            fcntl.ioctl(handle, _TUNSETIFF, struct.pack("16sH22x", name.encode(), flags))
            yield handle
    except OSError as error:
        remedy = f"a WAN's cable and a virtual machine need {_TUN}; a container needs it, too"
        raise LabError(f"TAP {name} in namespace {space}: {error.strerror}", remedy) from None
    except BaseException:
        if handle >= 0:
            os.close(handle)
        raise


def make(space: str, name: str, several: bool = False) -> None:
    """A TAP that stays in this namespace, down and without carrier; several: it has more than one queue."""
    with _device(space, name, _IFF_MULTI_QUEUE if several else 0) as handle:
        fcntl.ioctl(handle, _TUNSETPERSIST, 1)
    os.close(handle)


def attach(space: str, name: str, napi: bool = False) -> int:
    """Its descriptor: reads and writes do not wait; frames of up to 64 KB, as lab.vnet describes them.

    napi: what is written waits for a kernel thread, which merges it (net.set_threaded).
    """
    with _device(space, name, _IFF_NAPI if napi else 0) as handle:
        fcntl.ioctl(handle, _TUNSETOFFLOAD, _TUN_F_CSUM | _TUN_F_TSO4 | _TUN_F_TSO6 | _TUN_F_TSO_ECN)
    return handle
