"""What the kernel says about a network interface, and the namespace it is in; no third-party netlink library."""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from trexbench.stlserver.engine import EngineError

_T = TypeVar("_T")
_CLONE_NEWNET = 0x40000000
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _SIOCGIFMTU, _SIOCGIFHWADDR = 0x8913, 0x8914, 0x8921, 0x8927
_SIOCETHTOOL, _SIOCGIFINDEX = 0x8946, 0x8933
_ETHTOOL_GDRVINFO = 0x3
_IFF_UP, _IFF_RUNNING, _IFF_PROMISC = 0x1, 0x40, 0x100
_RTM_SETLINK = 19
_NLM_F_REQUEST, _NLM_F_ACK, _NLA_F_NESTED = 0x1, 0x4, 0x8000
_IFLA_XDP, _IFLA_XDP_FD, _IFLA_XDP_FLAGS = 43, 1, 3
_XDP_FLAGS_DRV_MODE = 1 << 2
_ARPHRD_ETHER = 1

_libc = ctypes.CDLL(None, use_errno=True)


def enter_netns(name: str) -> None:
    """Move the calling thread into the named network namespace (``ip netns``)."""
    path = f"/run/netns/{name}"
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise EngineError(f"network namespace '{name}': {error.strerror}; see 'ip netns list'") from None
    try:
        if _libc.setns(descriptor, _CLONE_NEWNET) != 0:
            reason = os.strerror(ctypes.get_errno())
            raise EngineError(f"cannot enter network namespace '{name}': {reason}; run as root")
    finally:
        os.close(descriptor)


def inside(netns: str | None, work: Callable[[], _T]) -> _T:
    """Run ``work`` in the namespace, in a thread of its own so that the caller stays where it is."""
    if netns is None:
        return work()
    results: list[_T] = []
    failures: list[BaseException] = []

    def body() -> None:
        try:
            enter_netns(netns)
            results.append(work())
        except BaseException as error:  # handed to the caller below
            failures.append(error)

    thread = threading.Thread(target=body, name=f"netns-{netns}")
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
    return results[0]


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
            self.driver = self._driver()
        except EngineError:
            self.close()
            raise
        self.mac = ":".join(f"{byte:02x}" for byte in address)

    def _ask(self, request: int, payload: bytes = b"") -> bytes:
        packed = struct.pack("16s24s", self.name.encode(), payload)
        try:
            return fcntl.ioctl(self._ioctl, request, packed)
        except OSError as error:
            raise EngineError(f"interface {self.name}: {error.strerror}; see 'ip link'") from None

    def _driver(self) -> str:
        buffer = ctypes.create_string_buffer(struct.pack("I", _ETHTOOL_GDRVINFO), 256)
        self._ask(_SIOCETHTOOL, struct.pack("P", ctypes.addressof(buffer)))
        return buffer.raw[4:36].split(b"\0")[0].decode(errors="replace")

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
        """Up, and the link partner too."""
        return self._flags() & (_IFF_UP | _IFF_RUNNING) == _IFF_UP | _IFF_RUNNING

    def set_promiscuous(self, enabled: bool) -> None:
        flags = self._flags()
        flags = flags | _IFF_PROMISC if enabled else flags & ~_IFF_PROMISC
        self._ask(_SIOCSIFFLAGS, struct.pack("H", flags))

    def attach_xdp_for_good(self, program_fd: int) -> None:
        """Attach natively, to stay until the interface goes or ``ip link set NAME xdp off``."""
        inner = struct.pack("HHiHHI", 8, _IFLA_XDP_FD, program_fd, 8, _IFLA_XDP_FLAGS, _XDP_FLAGS_DRV_MODE)
        attribute = struct.pack("HH", 4 + len(inner), _IFLA_XDP | _NLA_F_NESTED) + inner
        reply = self._request(_RTM_SETLINK, _NLM_F_REQUEST | _NLM_F_ACK, attribute)
        code = -int(struct.unpack_from("i", reply, 16)[0])
        if code:
            raise EngineError(f"interface {self.name}: cannot attach an XDP program: {os.strerror(code)}")

    def _request(self, kind: int, flags: int, attributes: bytes = b"") -> bytes:
        body = struct.pack("BxHiII", socket.AF_UNSPEC, 0, self.ifindex, 0, 0) + attributes
        self._netlink.send(struct.pack("IHHII", 16 + len(body), kind, flags, 1, 0) + body)
        return self._netlink.recv(1 << 16)

    def counters(self) -> LinkCounters:
        """The kernel's totals. Read where no lock is taken: netlink would wait for whoever configures a link."""
        text = os.pread(self._totals, 1 << 20, 0).decode()
        for line in text.splitlines():
            name, colon, numbers = line.partition(":")
            if colon and name.strip() == self.name:
                return parse_totals(numbers)
        raise EngineError(f"interface {self.name} has gone")

    def close(self) -> None:
        self._ioctl.close()
        self._netlink.close()
        if self._totals >= 0:
            os.close(self._totals)
            self._totals = -1


def parse_totals(numbers: str) -> LinkCounters:
    """One interface of /proc/net/dev, from behind the colon."""
    values = [int(word) for word in numbers.split()]
    rx_errors, rx_dropped, rx_overruns = values[2:5]
    return LinkCounters(
        tx_packets=values[9], tx_dropped=values[11], rx_errors=rx_errors + rx_overruns, rx_dropped=rx_dropped
    )
