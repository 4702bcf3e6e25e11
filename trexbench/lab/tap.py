"""TAP devices: made in a namespace, where they stay until it goes, for a virtual machine's NICs."""

from __future__ import annotations

import fcntl
import struct

from ..core.errors import LabError
from . import net

_TUN = "/dev/net/tun"
_TUNSETIFF, _TUNSETPERSIST = 0x400454CA, 0x400454CB
_IFF_TAP, _IFF_MULTI_QUEUE, _IFF_NO_PI, _IFF_VNET_HDR = 0x0002, 0x0100, 0x1000, 0x4000


def make(space: str, name: str, several: bool = False) -> None:
    """A TAP that stays in this namespace, down and without carrier; several: it has more than one queue."""
    flags = _IFF_TAP | _IFF_NO_PI | _IFF_VNET_HDR | (_IFF_MULTI_QUEUE if several else 0)
    try:
        with net.inside(space), open(_TUN, "r+b", buffering=0) as handle:
            fcntl.ioctl(handle, _TUNSETIFF, struct.pack("16sH22x", name.encode(), flags))
            fcntl.ioctl(handle, _TUNSETPERSIST, 1)
    except OSError as error:
        remedy = f"a virtual machine needs {_TUN}; a container needs it, too"
        raise LabError(f"TAP {name} in namespace {space}: {error.strerror}", remedy) from None
