"""A connected DUT: its driver, its transport, the journal of its changes, and the lock on it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..config.endpoints import TransportConfig
from ..config.lookup import load_dut
from ..config.model import DRIVERS, DutConfig, GeneratorConfig
from ..core.dut.telemetry import Observation
from ..core.errors import DutError, GeneratorError, NoInterface
from ..core.tcp.tunnel import DUT_SERVER
from ..dut import Dut, Wanted, open_dut
from ..dut.journal import FileJournal, Journal, NoJournal, journal_dir
from ..dut.recording import Recording, RecordingTransport, record
from ..dut.tcp_hosts import router_wanted
from ..generator.trex.connect import ServerAddress, describe
from ..lab.lab import facts_of, said_of
from ..lab.spec import LabSpec
from ..lock import locked, run_dir
from ..transport import Transport, open_transport
from .options import Target, TesterChoice
from .request import choose_queues
from .watch import Observed, WithMeter

ReadMacs = Callable[[DutConfig, ServerAddress, Path | None], Mapping[int, str]]


@dataclass(frozen=True)
class ConnectedDut:
    dut: Dut
    transport: Transport
    journal: Journal
    observed: Observed
    """The DUT with the power meter that its config names, if any."""
    variant: str | None = None
    """Variant that it is in."""
    unsteady: bool = False
    """True if its system may undo settings by itself."""


@contextmanager
def reached(to: TransportConfig, bring_up: str = "") -> Iterator[Transport]:
    """Open a host of a config. bring_up: command that makes a lab's namespace, for the message if that is missing."""
    transport = open_transport(to, run_dir(), bring_up)
    try:
        yield transport
    finally:
        transport.close()


@contextmanager
def connect_dut(
    wanted: Wanted,
    doing: str,
    temporary: bool = False,
    what: str = "the DUT",
    through: Callable[[Transport], Transport] = lambda transport: transport,
) -> Iterator[ConnectedDut]:
    """Open the DUT, locked: no other trexbench on this machine changes it until the end of the block.

    temporary: the DUT is removed at the end of the run, so that its changes need no journal. what: its role in
    messages. through: wraps its transport.
    """
    config = wanted.config
    with reached(config.transport, f"trexbench lab up --dut {config.command_name}" if config.lab else "") as opened:
        transport = through(opened)
        name = re.sub(r"[^A-Za-z0-9_.-]", "_", f"dut-{transport.place}-{config.transport.port or ''}")
        with locked(name, f"{what} on {transport.place} is in use", doing):
            dut = open_dut(wanted, transport)
            journal = NoJournal() if temporary else FileJournal(config.name, journal_dir())
            observed: Observed = dut
            if config.power is not None:
                from ..host.power import open_meter

                observed = WithMeter(dut, open_meter(config.power, transport))
            try:
                yield ConnectedDut(dut, transport, journal, observed, wanted.variant, DRIVERS[config.driver].unsteady)
            except NoInterface as error:
                lab, is_own = config.lab, str(error).startswith(f"{config.name}: ")  # not an endpoint's
                if lab is not None and is_own and (said := said_of(lab.prefix)):
                    raise NoInterface(f"{error}; {said}") from None
                raise


@contextmanager
def connect_target(
    target: Target,
    doing: str,
    macs_of: ReadMacs | None = None,
    through: Callable[[Transport], Transport] = lambda transport: transport,
) -> Iterator[ConnectedDut]:
    """Open the DUT that the user names, as connect_dut does. macs_of: known_macs, or a stand-in for it."""
    config = load_dut(target.name, target.configs_dir, target.prefix).with_variant(target.variant)
    queues = choose_queues(config, target.rx_queues)
    endpoint = endpoint_of(config.generator, target)
    macs = (macs_of or known_macs)(config, endpoint, target.trex_dir)
    # Facts that the lab's host knows, but not its DUT's namespace.
    wanted = Wanted(config, macs, queues, {} if config.lab is None else facts_of(LabSpec.from_config(config)))
    if not config.cables and config.driver == "linux":  # nothing but endpoints: see config.schema
        tunnelled = config.endpoints is not None and config.endpoints.through.between == DUT_SERVER
        wanted = router_wanted(config, tunnelled=tunnelled)
    with connect_dut(wanted, doing, through=through) as connected:
        yield connected


def record_dut(target: Target, macs_of: ReadMacs) -> Recording:
    """Record the DUT's answers to its driver's commands that only read; DutError where it answers none."""
    recorders: list[RecordingTransport] = []

    def through(transport: Transport) -> Transport:
        recorders.append(RecordingTransport(transport))
        return recorders[0]

    with connect_target(target, "dut record", macs_of, through) as connected:
        recording = record(connected.dut, recorders[0], load_dut(target.name, target.configs_dir, target.prefix))
    if not recording.answers:
        why = "; ".join(dict.fromkeys(recording.failures.values())) or "its config names nothing to read"
        raise DutError(f"{target.name} answered nothing", why)
    return recording


def observe_twice(connected: ConnectedDut, seconds: float) -> tuple[Observation, Observation, float]:
    """Read the DUT's counters, again after ``seconds``, and return the time between; DutError if there are none."""
    begun = time.monotonic()
    before = connected.observed.observe(clear=True)
    ports = any(port.rx_packets is not None or port.tx_packets is not None for port in before.ports)
    if not (ports or before.cpus or before.queues or before.threads):
        reasons = dict.fromkeys(missing.reason for missing in before.missing)
        raise DutError(f"nothing is counted on {connected.transport.place}", "; ".join(reasons) or "it has no counters")
    time.sleep(seconds)
    between_s = time.monotonic() - begun
    return before, connected.observed.observe(), between_s


def endpoint_of(config: GeneratorConfig, asked: TesterChoice) -> ServerAddress:
    """Address of a DUT's tester, as asked or as its config says."""
    server, rpc_port = asked.server or config.server, asked.rpc_port or config.rpc_port
    return ServerAddress(server, rpc_port, asked.pub_port or config.pub_port)


def known_macs(config: DutConfig, endpoint: ServerAddress, trex_dir: Path | None = None) -> Mapping[int, str]:
    """MACs of the tester's ports if the config lacks them: a lab's are known, another tester is asked."""
    if not config.asks_for_macs:
        return {}
    if config.lab is not None:
        return LabSpec.from_config(config).tester_macs
    return describe(endpoint, trex_dir).macs


def macs_or_names(say: Callable[[str], None]) -> ReadMacs:
    """Make a known_macs that returns ``mac-of-port-0`` and the like if the tester cannot be asked, and says so."""

    def read(config: DutConfig, endpoint: ServerAddress, trex_dir: Path | None) -> Mapping[int, str]:
        try:
            return known_macs(config, endpoint, trex_dir)
        except GeneratorError as error:
            say(f"mac-of-port-N stands for the MAC of the tester's port N: {error}")
            return {port: f"mac-of-port-{port}" for port in config.tester_ports}

    return read
