"""Facts that the kernel reports about a network interface, the namespace it is in, and frames that a NIC refused."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import socket
import struct
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from ..engine import EngineError

_T = TypeVar("_T")
CLONE_NEWNET = 0x40000000
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _SIOCGIFMTU, _SIOCGIFHWADDR = 0x8913, 0x8914, 0x8921, 0x8927
_SIOCETHTOOL, _SIOCGIFINDEX = 0x8946, 0x8933
_ETHTOOL_GSET, _ETHTOOL_GDRVINFO, _ETHTOOL_GFEATURES = 0x1, 0x3, 0x3A
STRIPS_VLANS, FILTERS_VLANS = 1 << 8, 1 << 9
"""Features: takes the tags off received frames before a program sees them; drops those of VLANs that it is not in."""
_NO_BUS = ("tap", "tun", "N/A")
"""Words of virtual interfaces for the place of a NIC."""
_GETLINK, _IFLA_XDP, _IFLA_XDP_ATTACHED = 18, 43, 2
_IFF_UP, _IFF_RUNNING, _IFF_PROMISC = 0x1, 0x40, 0x100
_ARPHRD_ETHER = 1

LIBC = ctypes.CDLL(None, use_errno=True)


def enter_netns(name: str) -> None:
    """Move the calling thread into the named network namespace (``ip netns``)."""
    path = f"/run/netns/{name}"
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise EngineError(f"network namespace '{name}': {error.strerror}; see 'ip netns list'") from None
    try:
        if LIBC.setns(descriptor, CLONE_NEWNET) != 0:  # os.setns exists only since Python 3.12
            reason = os.strerror(ctypes.get_errno())
            raise EngineError(f"cannot enter network namespace '{name}': {reason}; run as root")
    finally:
        os.close(descriptor)


def inside(netns: str | None, work: Callable[[], _T]) -> _T:
    """Run ``work`` in the namespace, in a thread of its own so that the caller stays where it is."""
    if netns is None:
        return work()
    with ThreadPoolExecutor(1, f"netns-{netns}") as thread:
        thread.submit(enter_netns, netns).result()
        return thread.submit(work).result()


@dataclass(frozen=True)
class LinkCounters:
    """Frames that the kernel dropped at an interface.

    tx_dropped: refused on the way out (on veth: the ring of the peer was full). rx_dropped: likewise on the
    way in, with those that the NIC missed. rx_errors: damaged, or lost in the NIC.
    """

    tx_packets: int
    tx_dropped: int
    rx_errors: int
    rx_dropped: int


class NetDevice:
    """One Ethernet interface, seen through sockets that stay in the namespace where they were opened."""

    def __init__(self, name: str) -> None:
        """Raises EngineError if there is no such interface in the calling thread's namespace."""
        if not 0 < len(name.encode()) < 16:
            raise EngineError(f"'{name}' is not an interface name; see 'ip link'")
        self.name = name
        self._ioctl = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        # The file stays that of this namespace, whichever thread reads it later.
        self._totals = os.open("/proc/thread-self/net/dev", os.O_RDONLY | os.O_CLOEXEC)
        try:
            self.ifindex: int = struct.unpack_from("i", self._ask(_SIOCGIFINDEX), 16)[0]
            family, address = struct.unpack_from("H6s", self._ask(_SIOCGIFHWADDR), 16)
            if family != _ARPHRD_ETHER:
                raise EngineError(f"interface {name} is not Ethernet; name an Ethernet interface")
            about = self._ethtool(_ETHTOOL_GDRVINFO)
            self.driver = _text(about[4:36])
            bus = _text(about[100:132])
            self.pci = "" if bus in _NO_BUS else bus
        except EngineError:
            self.close()
            raise
        self.mac = address.hex(":")

    def _ask(self, request: int, payload: bytes = b"") -> bytes:
        packed = struct.pack("16s24s", self.name.encode(), payload)
        try:
            return fcntl.ioctl(self._ioctl, request, packed)
        except OSError as error:
            raise EngineError(f"interface {self.name}: {error.strerror}; see 'ip link'") from None

    def _ethtool(self, command: int, size: int = 0) -> bytes:
        buffer = ctypes.create_string_buffer(struct.pack("II", command, size), 256)
        self._ask(_SIOCETHTOOL, struct.pack("P", ctypes.addressof(buffer)))
        return buffer.raw

    @property
    def speed_bps(self) -> float | None:
        """Speed of a NIC; None where it does not know any, or is virtual: a TAP claims 10 Mbit/s."""
        with contextlib.suppress(EngineError):
            return parse_speed(self._ethtool(_ETHTOOL_GSET)) if self.pci else None
        return None

    @property
    def features(self) -> int:
        """Features of a NIC that are on (the first 32); 0 where it reports none, or is virtual."""
        with contextlib.suppress(EngineError):
            return int(struct.unpack_from("I", self._ethtool(_ETHTOOL_GFEATURES, 2), 16)[0]) if self.pci else 0
        return 0

    @property
    def xdp_attached(self) -> int:
        """Place of the XDP program, by the kernel's number: 1 in the driver, 2 behind it; 0: none is attached."""
        message = struct.pack("=IHHII BxHiII", 32, _GETLINK, 1, 0, 0, 0, 0, self.ifindex, 0, 0)
        self._netlink.send(message)
        return parse_xdp(self._netlink.recv(1 << 16))

    @property
    def mtu(self) -> int:
        return int(struct.unpack_from("i", self._ask(_SIOCGIFMTU), 16)[0])

    def _flags(self) -> int:
        return int(struct.unpack_from("H", self._ask(_SIOCGIFFLAGS), 16)[0])

    @property
    def is_up(self) -> bool:
        return bool(self._flags() & _IFF_UP)

    @property
    def carrier(self) -> bool:
        """True if the interface is up, and its link partner too."""
        return self._flags() & (_IFF_UP | _IFF_RUNNING) == _IFF_UP | _IFF_RUNNING

    def set_promiscuous(self, enabled: bool) -> None:
        flags = self._flags()
        flags = flags | _IFF_PROMISC if enabled else flags & ~_IFF_PROMISC
        self._ask(_SIOCSIFFLAGS, struct.pack("H", flags))

    def counters(self) -> LinkCounters:
        """The kernel's totals, from a file that takes no lock: netlink waits while somebody configures a link."""
        text = os.pread(self._totals, 1 << 20, 0).decode()
        for line in text.splitlines():
            name, colon, numbers = line.partition(":")
            if colon and name.strip() == self.name:
                return parse_totals(numbers)
        raise EngineError(f"interface {self.name} has gone")

    def close(self) -> None:
        self._ioctl.close()
        self._netlink.close()
        os.close(self._totals)


def _text(field: bytes) -> str:
    return field.split(b"\0")[0].decode(errors="replace")


def parse_xdp(answer: bytes) -> int:
    """IFLA_XDP_ATTACHED in an answer about a link; 0 where there is none."""
    attributes = _attributes(answer[32:])
    return (_attributes(attributes.get(_IFLA_XDP, b"")).get(_IFLA_XDP_ATTACHED) or b"\0")[0]


def _attributes(data: bytes) -> dict[int, bytes]:
    """Netlink's attributes by their numbers, without the flag of those that have others inside."""
    found: dict[int, bytes] = {}
    while len(data) >= 4 and (size := struct.unpack_from("=H", data)[0]) >= 4:
        found[struct.unpack_from("=H", data, 2)[0] & 0x3FFF] = data[4:size]
        data = data[size + -size % 4 :]
    return found


def parse_speed(settings: bytes) -> float | None:
    """The speed in a ``struct ethtool_cmd``."""
    low, high = struct.unpack_from("H", settings, 12)[0], struct.unpack_from("H", settings, 28)[0]
    mbps = high << 16 | low
    return None if mbps in (0, 0xFFFF, 0xFFFFFFFF) else mbps * 1e6


def parse_totals(numbers: str) -> LinkCounters:
    """One interface of /proc/net/dev, from behind the colon."""
    values = [int(word) for word in numbers.split()]
    rx_errors, rx_dropped, rx_overruns = values[2:5]
    return LinkCounters(
        tx_packets=values[9], tx_dropped=values[11], rx_errors=rx_errors + rx_overruns, rx_dropped=rx_dropped
    )


_ON_THEIR_WAY = 1024
"""Frames that a driver may have taken and not counted yet."""
_DRAINED_S = 0.1
"""A resting port that has counted no frame for so long has no more on their way."""


@dataclass
class Refusals:
    """Frames that a NIC's driver refused, so far: it counts one only once it has left the ring, and totals are read one
    by one.
    """

    clock: Callable[[], float] = time.monotonic
    unsent: int = 0
    """Refused for certain while the port sent: they do not count as sent."""
    known: int = 0
    """These, and up to _ON_THEIR_WAY that only a port at rest shows."""
    _still: tuple[int, float] | None = field(default=None, init=False)
    """The driver's count when the port came to rest, and when that was seen."""

    def see(self, attempted: int, counted: int, resting: bool) -> None:
        """Take in a reading: frames given to the driver, and those that it has counted."""
        lacking = attempted - counted
        self.unsent = max(self.unsent, lacking - _ON_THEIR_WAY)
        self.known = max(self.known, self.unsent)
        if not resting:
            self._still = None
        elif self._still is None or self._still[0] != counted:
            self._still = counted, self.clock()
        elif self.clock() - self._still[1] >= _DRAINED_S:
            self.known = max(self.known, lacking)
