"""Sections of a DUT's file that belong to one driver, and its power meter."""

from __future__ import annotations

from dataclasses import dataclass

KEEP = "keep"
"""In place of a setting: leave it as the DUT has it."""


@dataclass(frozen=True)
class LinuxSettings:
    """What a Linux DUT shall be set to besides addresses and routes. Everything says ``keep`` to leave it alone.

    cpus: those that forward; empty: all. irqbalance: ``off`` stops it for the test. irqs: ``spread`` pins the
    interrupt of queue q of each port to the q-th of cpus. rps: receive packet steering, ``off``, or ``cpus`` to hand
    what every queue receives to all of cpus. governor: of every CPU, as in ``performance``. offloads: ethtool's
    features by name, on or off.
    """

    cpus: tuple[int, ...] = ()
    irqbalance: str = KEEP
    irqs: str = KEEP
    rps: str = KEEP
    governor: str = KEEP
    offloads: tuple[tuple[str, bool], ...] = ()


@dataclass(frozen=True)
class VppSettings:
    """How a VPP is spoken to and restarted.

    interfaces: ``dpdk`` (queues are set in startup_conf, which takes a restart) or ``af_packet`` (interfaces
    ``host-X`` are made on the Linux interface X, with their queues). socket: of its command line. restart: the
    command, as words. workers: threads that forward; None leaves them. rx_placement: (port, queue, worker) of queues
    that are not to stay where VPP put them; port is the tester's.
    """

    interfaces: str = "dpdk"
    socket: str = "/run/vpp/cli.sock"
    startup_conf: str = "/etc/vpp/startup.conf"
    restart: tuple[str, ...] = ("systemctl", "restart", "vpp")
    workers: int | None = None
    rx_placement: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True)
class PfsenseSettings:
    """firewall: ``off`` disables pf for the test."""

    firewall: str = "off"


POWER_READERS = ("shelly", "shelly-gen1", "tasmota", "ipmi", "rapl", "constant")


@dataclass(frozen=True)
class PowerConfig:
    """Where the DUT's power is read. type: one of POWER_READERS.

    url: of an HTTP plug, as http://192.0.2.7; channel: which of its outlets. watts: of ``constant``.
    ``ipmi`` asks the DUT's own controller (ipmitool dcmi), ``rapl`` its processor, both over the DUT's transport.
    """

    type: str
    url: str | None = None
    channel: int = 0
    watts: float | None = None
