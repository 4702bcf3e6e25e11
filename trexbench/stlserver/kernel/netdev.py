"""Network interfaces as the kernel reports them, their namespaces, and frames that a NIC refused."""

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
_NO_BUS = ("tap", "tun", "N/A")  # bus addresses that virtual interfaces give
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
    """Run ``work`` in the namespace, on a thread of its own so that the caller stays where it is."""
    if netns is None:
        return work()
    with ThreadPoolExecutor(1, f"netns-{netns}") as thread:
        thread.submit(enter_netns, netns).result()
        return thread.submit(work).result()


@dataclass(frozen=True)
class LinkCounters:
    """Frames that an interface sent or dropped, by the kernel's count."""

    tx_packets: int
    tx_dropped: int  # refused on the way out (on veth: the peer's ring was full)
    rx_errors: int  # damaged, or lost in the NIC
    rx_dropped: int  # refused on the way in, or missed by the NIC


class NetDevice:
    """One Ethernet interface, seen through sockets that stay in the namespace where they were opened."""

    def __init__(self, name: str) -> None:
        """Open an interface of the calling thread's namespace; EngineError if there is none of that name."""
        if not 0 < len(name.encode()) < 16:
            raise EngineError(f"'{name}' is not an interface name; see 'ip link'")
        self.name = name
        self._ioctl = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        # stays this namespace's file, whichever thread reads it later
        self._totals = os.open("/proc/thread-self/net/dev", os.O_RDONLY | os.O_CLOEXEC)
        try:
            self.ifindex: int = struct.unpack_from("i", self._ask(_SIOCGIFINDEX), 16)[0]
            family, address = struct.unpack_from("H6s", self._ask(_SIOCGIFHWADDR), 16)
            if family != _ARPHRD_ETHER:
                raise EngineError(f"interface {name} is not Ethernet; name an Ethernet interface")
            about = self._ethtool(_ETHTOOL_GDRVINFO)
            self.driver, bus = (part.split(b"\0")[0].decode(errors="replace") for part in (about[4:36], about[100:132]))
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
        """Speed of a NIC; None if unknown, or if the interface is virtual: a TAP claims 10 Mbit/s."""
        with contextlib.suppress(EngineError):
            return parse_speed(self._ethtool(_ETHTOOL_GSET)) if self.pci else None
        return None

    @property
    def features(self) -> int:
        """Features of a NIC that are on (the first 32); 0 if it reports none, or is virtual."""
        with contextlib.suppress(EngineError):
            return int(struct.unpack_from("I", self._ethtool(_ETHTOOL_GFEATURES, 2), 16)[0]) if self.pci else 0
        return 0

    @property
    def xdp_attached(self) -> int:
        """Mode of the attached XDP program, by the kernel's number: 1 driver, 2 skb; 0: none is attached."""
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
        """True if the interface and its link partner are up."""
        return self._flags() & (_IFF_UP | _IFF_RUNNING) == _IFF_UP | _IFF_RUNNING

    def set_promiscuous(self, enabled: bool) -> None:
        flags = self._flags()
        flags = flags | _IFF_PROMISC if enabled else flags & ~_IFF_PROMISC
        self._ask(_SIOCSIFFLAGS, struct.pack("H", flags))

    def counters(self) -> LinkCounters:
        """Read the kernel's totals from a file that takes no lock: netlink waits while a link is configured."""
        for line in os.pread(self._totals, 1 << 20, 0).decode().splitlines():
            name, colon, numbers = line.partition(":")
            if colon and name.strip() == self.name:
                return parse_totals(numbers)
        raise EngineError(f"interface {self.name} has gone")

    def close(self) -> None:
        self._ioctl.close()
        self._netlink.close()
        os.close(self._totals)


def parse_xdp(answer: bytes) -> int:
    """Parse IFLA_XDP_ATTACHED in an answer about a link; 0 if there is none."""
    attributes = _parse_attributes(answer[32:])
    return (_parse_attributes(attributes.get(_IFLA_XDP, b"")).get(_IFLA_XDP_ATTACHED) or b"\0")[0]


def _parse_attributes(data: bytes) -> dict[int, bytes]:
    """Parse netlink attributes into values by type, without the flag for nesting."""
    attributes: dict[int, bytes] = {}
    while len(data) >= 4 and (size := struct.unpack_from("=H", data)[0]) >= 4:
        attributes[struct.unpack_from("=H", data, 2)[0] & 0x3FFF] = data[4:size]
        data = data[size + -size % 4 :]
    return attributes


def parse_speed(settings: bytes) -> float | None:
    """Parse the speed in a ``struct ethtool_cmd``."""
    low, high = struct.unpack_from("H", settings, 12)[0], struct.unpack_from("H", settings, 28)[0]
    mbps = high << 16 | low
    return None if mbps in (0, 0xFFFF, 0xFFFFFFFF) else mbps * 1e6


def parse_totals(numbers: str) -> LinkCounters:
    """Parse an interface's line of /proc/net/dev, from behind the colon."""
    values = [int(word) for word in numbers.split()]
    rx_errors, rx_dropped, rx_overruns = values[2:5]
    return LinkCounters(
        tx_packets=values[9], tx_dropped=values[11], rx_errors=rx_errors + rx_overruns, rx_dropped=rx_dropped
    )


_MOST_IN_FLIGHT = 1024  # frames that a driver may have taken and not counted yet
_DRAINED_S = 0.1  # a resting port that has counted no frame for this long has none in flight


@dataclass
class Refusals:
    """Frames that a NIC's driver has refused. It counts a frame only once that has left the ring."""

    clock: Callable[[], float] = time.monotonic
    unsent: int = 0  # certainly refused, even if all that can be are in flight: they do not count as sent
    known: int = 0  # these, and up to _MOST_IN_FLIGHT more that only a port at rest reveals
    _at_rest: tuple[int, float] | None = field(default=None, init=False)  # driver's count, and since when it stands

    def see(self, attempted: int, counted: int, resting: bool) -> None:
        """Add a reading: frames given to the driver, and frames that it has counted."""
        uncounted = attempted - counted
        self.unsent = max(self.unsent, uncounted - _MOST_IN_FLIGHT)
        self.known = max(self.known, self.unsent)
        if not resting:
            self._at_rest = None
        elif self._at_rest is None or self._at_rest[0] != counted:
            self._at_rest = counted, self.clock()
        elif self.clock() - self._at_rest[1] >= _DRAINED_S:
            self.known = max(self.known, uncounted)
