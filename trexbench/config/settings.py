"""Sections of a DUT config that belong to one driver, and its power meter."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from ..core.errors import ConfigError
from . import readers as r
from .yamltree import Value

KEEP = "keep"
"""Value of a setting that is left as it is on the DUT."""

_PATH = r.pattern(r"/[A-Za-z0-9_./+-]*", "an absolute path", "/run/vpp/cli.sock", 200)
_WORD = r.pattern(r"[A-Za-z0-9_./:=@%+-]+", "a word of a command", "[systemctl, restart, vpp]", 200)
_GOVERNOR = r.pattern(r"[a-z_]+", "a governor", "performance", 32)
_URL = r.pattern(r"https?://[A-Za-z0-9.:\[\]_-]+(?:/[A-Za-z0-9._~/-]*)?", "an HTTP address", "http://192.0.2.7", 200)

_PLACE = re.compile(r"(\d{1,3}):(\d{1,3}):(\d{1,3})")
OFFLOADS = r.pairs("feature", "[a-z][a-z0-9-]{0,63}", "generic-receive-offload: off", r.boolean)
_SYSCTL = r"(?:net|kernel|vm)(?:\.[A-Za-z0-9_-]+)+"


def sysctls(setting: Callable[[Value], str]) -> Callable[[Value], tuple[tuple[str, str], ...]]:
    """Settings of a kernel by name."""
    return r.pairs("kernel setting", _SYSCTL, "net.core.netdev_max_backlog", setting)


def _url_without_secrets(value: Value) -> str:
    """The config is stored with every result, and what is wrong with it is printed."""
    if re.search("[@?#]", value.text()):
        what = "holds more than an address: a user, a password or a token would be stored with every result"
        raise ConfigError(what, "leave it out, and set TREXBENCH_POWER_USER and TREXBENCH_POWER_PASSWORD")
    return _URL(value)


def _command(value: Value) -> tuple[str, ...]:
    words = r.list_of("word", _WORD)(value)
    if not words:
        raise ConfigError("no command", "write its words as [systemctl, restart, vpp]")
    return words


def _placements(value: Value) -> tuple[tuple[int, int, int], ...]:
    found = []
    for item in value.items("placement"):
        match = _PLACE.fullmatch(item.text())
        if not match:
            raise item.wrong(f"{item.text()[:40]!r} is not a placement", "write PORT:QUEUE:WORKER, as in '0:1:2'")
        found.append((int(match[1]), int(match[2]), int(match[3])))
    if len({(port, queue) for port, queue, _ in found}) != len(found):
        raise ConfigError("a queue is placed twice", "name each PORT:QUEUE once")
    return tuple(found)


@dataclass(frozen=True)
class LinuxSettings:
    """Settings of a Linux DUT besides addresses and routes; ``keep`` leaves one as it is.

    cpus: those that forward; empty: all. irqbalance: ``off`` stops it for the test. irqs: ``spread`` pins the
    interrupt of queue q of each port to the q-th of cpus. rps: receive packet steering, ``off``, or ``cpus`` to hand
    what every queue receives to all of cpus. governor: of every CPU, as in ``performance``. offloads: ethtool's
    features by name, on or off.
    """

    cpus: Annotated[tuple[int, ...], r.integers(0, 4095)] = ()
    irqbalance: Annotated[str, r.choice("off", KEEP)] = KEEP
    irqs: Annotated[str, r.choice("spread", KEEP)] = KEEP
    rps: Annotated[str, r.choice("off", "cpus", KEEP)] = KEEP
    governor: Annotated[str, _GOVERNOR] = KEEP
    offloads: Annotated[tuple[tuple[str, bool], ...], OFFLOADS] = ()


@dataclass(frozen=True)
class VppSettings:
    """Access, setup and restart of VPP.

    interfaces: ``dpdk`` (queues are set in startup_conf, which needs a restart), ``af_packet`` (interface
    ``host-X`` is made on the Linux interface X, with its queues) or ``native`` (VPP's own drivers: ``virtio-0/0/4/0``
    or ``vmxnet3-0/0/4/0`` is made on the PCI device 0000:00:04.0). socket: of VPP's CLI. restart: the command, as
    words. workers: threads that forward; None leaves them as they are. rx_placement: (port, queue, worker) of queues
    that are to move; port is the tester's.
    """

    interfaces: Annotated[str, r.choice("dpdk", "af_packet", "native")] = "dpdk"
    socket: Annotated[str, _PATH] = "/run/vpp/cli.sock"
    startup_conf: Annotated[str, _PATH] = "/etc/vpp/startup.conf"
    restart: Annotated[tuple[str, ...], _command] = ("systemctl", "restart", "vpp")
    workers: Annotated[int | None, r.integer(0, 256)] = None
    rx_placement: Annotated[tuple[tuple[int, int, int], ...], _placements] = ()


@dataclass(frozen=True)
class PfsenseSettings:
    """firewall: ``off`` disables pf for the test."""

    firewall: Annotated[str, r.choice("off", KEEP)] = "off"


@dataclass(frozen=True)
class LabEndpoints:
    """Cabling of a lab's endpoints to the DUT.

    offloads: ``full`` (frames of up to 64 KB, as hosts and veth have them by themselves), ``mtu`` (endpoints send no
    frame longer than the MTU, the router may merge them: GRO) or ``packet`` (nothing merges or splits frames anywhere);
    None: ``full``, with a line ``mtu``. line_bps: L1 rate of each endpoint's cable; None: as fast as it goes.
    """

    offloads: Annotated[str | None, r.choice("full", "mtu", "packet")] = None
    line_bps: Annotated[float | None, r.speed, "line"] = None

    @property
    def mode(self) -> str:
        return self.offloads or ("full" if self.line_bps is None else "mtu")


POWER_READERS = {
    "shelly": ("url", "channel"),
    "shelly-gen1": ("url", "channel"),
    "tasmota": ("url", "channel"),
    "ipmi": (),
    "rapl": (),
    "constant": ("watts",),
}
"""Types of power meter, and the keys of each besides ``type``."""
ASK_THE_DUT = ("ipmi", "rapl")
"""Types that run a command on the DUT."""


@dataclass(frozen=True)
class PowerConfig:
    """Where the DUT's power is read. type: one of POWER_READERS.

    url: of an HTTP plug, as http://192.0.2.7; channel: which of its outlets. watts: of ``constant``.
    ``ipmi`` asks the DUT's own controller (ipmitool dcmi), ``rapl`` its processor, both over the DUT's transport.
    """

    type: Annotated[str, r.choice(*POWER_READERS)]
    url: Annotated[str | None, _url_without_secrets] = None
    channel: Annotated[int, r.integer(0, 63)] = 0
    watts: Annotated[float | None, r.number(0.001, 1e6)] = None
