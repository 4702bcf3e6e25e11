"""Which driver speaks to which DUT."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ..config import DutConfig
from ..core.errors import DutError
from ..transport import Transport
from . import linux
from .linux import LinuxDut
from .model import Attestation, Command, Dut

DRIVERS: Mapping[str, Callable[[DutConfig, Transport, Mapping[int, str], Mapping[str, Any]], Dut]] = {
    "linux": LinuxDut,
}

PLANS: Mapping[str, Callable[[DutConfig, Mapping[int, str]], Sequence[Command]]] = {"linux": linux.plan}
"""Driver -> what it would send to a DUT; pure."""

_BY_HAND = "use --no-apply to measure a DUT you configured by hand"


def require_driver(config: DutConfig) -> None:
    """DutError unless this version can configure that DUT; before anything is opened or touched."""
    if config.driver not in DRIVERS:
        raise DutError(
            f"{config.name}: driver {config.driver} is not in this version, {', '.join(DRIVERS)} is", _BY_HAND
        )


def open_dut(
    config: DutConfig,
    connect: Callable[[], Transport],
    tester_macs: Mapping[int, str],
    host_facts: Mapping[str, Any] | None = None,
) -> Dut:
    """The DUT of this config, reached by what ``connect`` opens.

    tester_macs: MAC of each of the tester's ports, which the DUT's neighbours are pinned to where the config says
    ``mac: tester``. host_facts: what the host of a namespace knows and the namespace does not.
    """
    require_driver(config)
    return DRIVERS[config.driver](config, connect(), tester_macs, host_facts or {})


def not_attested(
    config: DutConfig, reason: str = "--no-apply: nothing was applied and nothing was read back"
) -> Attestation:
    """The statement about a DUT that somebody configured by hand."""
    return Attestation(config.name, config.driver, False, {"not attested": reason})


def planned_only(config: DutConfig, tester_macs: Mapping[int, str]) -> Attestation:
    """The statement about a simulated DUT: the commands that would have been sent to a real one."""
    if config.driver in PLANS:
        planned = [asdict(command) for command in PLANS[config.driver](config, tester_macs)]
        facts: dict[str, Any] = {"not attested": "--sim: a twin forwards; planned, not sent", "planned": planned}
    else:
        facts = {"not attested": f"--sim: a twin forwards; driver {config.driver} is not in this version"}
    return Attestation(config.name, config.driver, False, facts)
