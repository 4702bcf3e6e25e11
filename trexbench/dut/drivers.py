"""Which driver speaks to which DUT."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..config import DutConfig
from ..core.errors import DutError
from ..transport import Transport
from .linux import LinuxDut
from .model import Attestation, Dut

DRIVERS: Mapping[str, Callable[[DutConfig, Transport, Mapping[int, str], Mapping[str, Any]], Dut]] = {
    "linux": LinuxDut,
}

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
