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
"""Value of a setting that is left as it is."""

_PATH = r.pattern(r"/[A-Za-z0-9_./+-]*", "an absolute path", "/run/vpp/cli.sock", 200)
_WORD = r.pattern(r"[A-Za-z0-9_./:=@%+-]+", "a word of a command", "[systemctl, restart, vpp]", 200)
_GOVERNOR = r.pattern(r"[a-z_]+", "a governor", "performance", 32)
_URL = r.pattern(r"https?://[A-Za-z0-9.:\[\]_-]+(?:/[A-Za-z0-9._~/-]*)?", "an HTTP address", "http://192.0.2.7", 200)

_PLACE = re.compile(r"(\d{1,3}):(\d{1,3}):(\d{1,3})")
OFFLOADS = r.pairs("feature", "[a-z][a-z0-9-]{0,63}", "generic-receive-offload: off", r.boolean)
_SYSCTL = r"(?:net|kernel|vm)(?:\.[A-Za-z0-9_-]+)+"


def sysctls(setting: Callable[[Value], str]) -> Callable[[Value], tuple[tuple[str, str], ...]]:
    """Reader of kernel settings by name."""
    return r.pairs("kernel setting", _SYSCTL, "net.core.netdev_max_backlog", setting)


@r.takes(anyOf=[_URL])
def _url_without_secrets(value: Value) -> str:
    # The config is stored with every result, and errors in it are printed.
    if re.search("[@?#]", value.text()):
        what = "contains more than an address: a user, password or token would be stored with every result"
        raise ConfigError(what, "leave it out, and set TREXBENCH_POWER_USER and TREXBENCH_POWER_PASSWORD")
    return _URL(value)


@r.takes(type="array", items=_WORD)
def _command(value: Value) -> tuple[str, ...]:
    words = r.list_of("word", _WORD)(value)
    if not words:
        raise ConfigError("no command", "write its words as [systemctl, restart, vpp]")
    return words


@r.takes(type="array", items=r.ONE_VALUE)
def _placements(value: Value) -> tuple[tuple[int, int, int], ...]:
    placements = []
    for item in value.items("placement"):
        match = _PLACE.fullmatch(item.text())
        if not match:
            raise item.wrong(f"{item.text()[:40]!r} is not a placement", "write PORT:QUEUE:WORKER, as in '0:1:2'")
        placements.append((int(match[1]), int(match[2]), int(match[3])))
    if len({(port, queue) for port, queue, _ in placements}) != len(placements):
        raise ConfigError("a queue is placed twice", "name each PORT:QUEUE once")
    return tuple(placements)


@dataclass(frozen=True)
class LinuxSettings:
    """Settings of a Linux DUT besides addresses and routes; ``keep`` leaves a setting as it is."""

    cpus: Annotated[tuple[int, ...], r.integers(0, 4095)] = ()
    """CPUs that forward, and whose time is counted; none: all."""
    irqbalance: Annotated[str, r.choice("off", KEEP)] = KEEP
    """``off`` stops it for the test."""
    irqs: Annotated[str, r.choice("spread", KEEP)] = KEEP
    """``spread`` pins the interrupt of queue q of each port to the q-th of ``cpus``."""
    rps: Annotated[str, r.choice("off", "cpus", KEEP)] = KEEP
    """Receive packet steering: ``off``, or ``cpus`` to spread the frames of every queue over all of ``cpus``."""
    governor: Annotated[str, _GOVERNOR] = KEEP
    """Frequency governor of every CPU, such as ``performance``."""
    offloads: Annotated[tuple[tuple[str, bool], ...], OFFLOADS] = ()
    """Features by the names of ``ethtool -k``, on or off."""


@dataclass(frozen=True)
class VppSettings:
    """Access, setup and restart of VPP."""

    interfaces: Annotated[str, r.choice("dpdk", "af_packet", "native")] = "dpdk"
    """Origin of its interfaces.

    ``dpdk``: startup_conf names them, and changing their queues needs a restart. ``af_packet``: ``host-X`` is created
    on the Linux interface X, with its queues. ``native``: VPP's own drivers create ``virtio-0/0/4/0`` or
    ``vmxnet3-0/0/4/0`` on the PCI device 0000:00:04.0.
    """
    socket: Annotated[str, _PATH] = "/run/vpp/cli.sock"
    """Socket of VPP's CLI."""
    startup_conf: Annotated[str, _PATH] = "/etc/vpp/startup.conf"  # where queues and workers are set
    restart: Annotated[tuple[str, ...], _command] = ("systemctl", "restart", "vpp")
    """Command that restarts VPP so that they apply: [systemctl, restart, vpp]."""
    workers: Annotated[int | None, r.integer(0, 256)] = None
    """Number of threads that forward; None leaves it as it is."""
    rx_placement: Annotated[tuple[tuple[int, int, int], ...], _placements] = ()
    """Queues to move, as PORT:QUEUE:WORKER: the tester's port, the queue of the interface that faces it, the worker."""


@dataclass(frozen=True)
class PfsenseSettings:
    """Settings of a pfSense."""

    firewall: Annotated[str, r.choice("off", KEEP)] = "off"
    """``off`` disables pf for the test; ``keep`` leaves it alone."""


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
    """Meter of the DUT's power."""

    type: Annotated[str, r.choice(*POWER_READERS)]
    """HTTP plug (``shelly``, ``shelly-gen1``, ``tasmota``), DUT's own controller (``ipmi``: ipmitool dcmi) or processor
    (``rapl``), both read over the DUT's transport, or ``constant``."""
    url: Annotated[str | None, _url_without_secrets] = None
    """Address of an HTTP plug, as in http://192.0.2.7."""
    channel: Annotated[int, r.integer(0, 63)] = 0
    """Outlet of the plug."""
    watts: Annotated[float | None, r.number(0.001, 1e6)] = None
    """Power in W that ``constant`` reports."""
