"""All checks, in the order in which a run would meet what they find."""

from __future__ import annotations

import contextlib
import ipaddress
import time
from collections.abc import Iterator
from pathlib import Path

from ..config.lookup import load_dut
from ..config.model import DutConfig, GeneratorConfig
from ..core.checks import Check
from ..lab import LabSpec, net
from ..lab.lab import status
from ..session.dut import endpoint_of
from ..session.options import Target
from ..session.testers import load, name_of_tester
from .dut import check_dut, check_lab
from .host import check_results, check_software, judge_host, read_host
from .tester import check_tester, judge_calibration


def examine(target: Target, results: Path) -> Iterator[Check]:
    """Every check, as soon as it is done; nothing is changed, no port is taken and no frame sent.

    target: its name is empty where no DUT is named.
    """
    config = load_dut(target.name, target.configs_dir, target.prefix) if target.name else None
    yield from check_software(target.trex_dir)
    yield from judge_host(read_host(), generates=_generates_here(target, config))
    yield from check_results(results)
    if config is not None and config.lab is not None:
        yield from check_lab(config, embedded=target.trex_dir is None)
    yield from _tester(target, config)
    yield judge_calibration(load(name_of_tester(config, target)), time.time())
    if config is not None:
        yield from check_dut(target, config)


def _generates_here(target: Target, config: DutConfig | None) -> bool:
    """Test whether a TRex on this machine sends: not a lab, whose cores are its own affair."""
    if config is not None and config.lab is not None:
        return False
    server = target.server or (config.generator.server if config is not None else "127.0.0.1")
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(server).is_loopback
    return server == "localhost"


def _tester(target: Target, config: DutConfig | None) -> Iterator[Check]:
    there = config.generator if config is not None else GeneratorConfig()
    endpoint = endpoint_of(there, target)
    ports, speed_bps = (config.tester_ports, config.speed_bps) if config is not None else ((), None)
    if config is None or config.lab is None:
        yield from check_tester(endpoint, ports, speed_bps, target.trex_dir)
    elif status(config.lab.prefix).condition == "up":
        with net.inside(LabSpec.from_config(config).tester):
            yield from check_tester(endpoint, ports, speed_bps, target.trex_dir)
