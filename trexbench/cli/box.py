"""A DUT, opened for a verb: its driver, the way to it, the journal of its changes, and the lock on it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..config import DutConfig
from ..dut import Dut, Wanted, open_dut
from ..dut.journal import FileJournal, Journal, NoJournal, state_dir
from ..generator.connect import Endpoint, read_macs
from ..lab.spec import LabSpec
from ..lock import locked, run_dir
from ..transport import Transport, open_transport
from .watch import Observed, WithMeter


@dataclass(frozen=True)
class Opened:
    """observed: the DUT and, where its config names one, its power meter."""

    dut: Dut
    transport: Transport
    journal: Journal
    observed: Observed


@contextmanager
def opened(wanted: Wanted, doing: str, passing: bool = False) -> Iterator[Opened]:
    """The DUT until the end of the block; nobody else's trexbench on this machine touches it meanwhile.

    passing: it goes away with the run, so that no change of it is written down.
    """
    config = wanted.config
    way = config.transport
    transport = open_transport(way.type, way.namespace, host=way.host, user=way.user, port=way.port, run_dir=run_dir())
    try:
        name = re.sub(r"[^A-Za-z0-9_.-]", "_", f"dut-{transport.place}-{way.port or ''}")
        with locked(name, f"the DUT on {transport.place} is in use", doing):
            dut = open_dut(wanted, transport)
            journal = NoJournal() if passing else FileJournal(config.name, state_dir())
            observed: Observed = dut
            if config.power is not None:
                from ..dut.power import open_meter

                observed = WithMeter(dut, open_meter(config.power, transport))
            yield Opened(dut, transport, journal, observed)
    finally:
        transport.close()


def known_macs(config: DutConfig, endpoint: Endpoint, trex_dir: str | None = None) -> Mapping[int, str]:
    """MACs of the tester's ports where the config leaves them to the tester: a lab's are known, others are asked."""
    if all(port.neighbour.mac for port in config.ports):
        return {}
    if config.lab is not None:
        return LabSpec.from_config(config).tester_macs
    return read_macs(endpoint, config.tester_ports, trex_dir)


def lab_facts(config: DutConfig) -> Mapping[str, Any]:
    """What the host of a lab that is up knows and its DUT's namespace does not; nothing for other DUTs."""
    if config.lab is None:
        return {}
    from ..lab.lab import facts_of

    return facts_of(LabSpec.from_config(config))
