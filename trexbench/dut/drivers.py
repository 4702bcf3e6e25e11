"""The driver of each kind of DUT."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict

from ..transport import Transport
from . import unmanaged
from .commands import driver as commands
from .commands.driver import CommandsDut
from .freebsd import changes as pfsense
from .freebsd.driver import PfsenseDut
from .linux import changes as linux
from .linux.driver import LinuxDut
from .model import Attestation, Change, Dut, Wanted
from .unmanaged import UnmanagedDut
from .vpp import changes as vpp
from .vpp.driver import VppDut

DRIVERS: Mapping[str, Callable[[Wanted, Transport], Dut]] = {
    "linux": LinuxDut,
    "pfsense": PfsenseDut,
    "vpp": VppDut,
    "commands": CommandsDut,
    "none": UnmanagedDut,
}

PLANS: Mapping[str, Callable[[Wanted], Sequence[Change]]] = {
    "linux": linux.plan_from_nothing,
    "pfsense": pfsense.plan_from_nothing,
    "vpp": vpp.plan_from_nothing,
    "commands": commands.plan_from_nothing,
    "none": unmanaged.plan_from_nothing,
}
"""Driver -> what it would do to a DUT on which nothing is set; pure."""


def open_dut(wanted: Wanted, transport: Transport) -> Dut:
    """The DUT of this config, reached by this transport."""
    return DRIVERS[wanted.config.driver](wanted, transport)


def planned_only(wanted: Wanted) -> Attestation:
    """The attestation of a simulated DUT: the commands that would have been sent to a real one."""
    changes = PLANS[wanted.config.driver](wanted)
    planned = [asdict(command) for change in changes for command in change.do]
    facts = {"not attested": "--sim: a twin forwards; planned, not sent", "planned": planned}
    return Attestation(wanted.config.name, wanted.config.driver, False, facts)
