"""Connects to a TRex server: checks its ports, takes them, and gives them back whatever happens."""

from __future__ import annotations

import getpass
import io
import os
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, redirect_stdout, suppress
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from ...core.errors import BenchError, GeneratorError, PortBusy, PortOwned
from ...core.protocols import Clock
from ...signals import uninterrupted
from .client import Client, Meaning, brief, load_client, meaning_of
from .guard import Guard
from .ports import IDLE, TrexGenerator, ethernet_of, nominal_bps, obstacles, status_of
from .rpc import Call, Channel, Refusal

RPC_PORT, EVENT_PORT = 4501, 4500
_CONNECT_TRIES = 4
"""Time-outs to wait for an answer while no traffic runs: a server beside busy processes was silent for 3 s."""


@dataclass(frozen=True)
class ServerAddress:
    """Address of a TRex server."""

    server: str = "127.0.0.1"
    rpc_port: int = RPC_PORT
    event_port: int = EVENT_PORT
    timeout_s: float = 3.0  # of each exchange
    tries: int = 1  # time-outs to wait for an answer

    def __str__(self) -> str:
        return f"{self.server}:{self.rpc_port}"


@contextmanager
def connect(
    endpoint: ServerAddress,
    ports: Sequence[int],
    clock: Clock,
    *,
    trex_dir: str | None = None,
    force: bool = False,
    guarded: bool = True,
) -> Iterator[TrexGenerator]:
    """Acquire the ports, idle and up, until the end of the block; a watchdog process stops them if we are killed.

    ``force`` takes ports from another owner and stops their traffic; without it, PortBusy is raised.
    """
    reach(endpoint)
    client = load_client(trex_dir)
    with _session(client, endpoint) as stl, ExitStack() as stack:
        channel = Channel(stl.conn.rpc, clock.now)
        generator = None
        try:
            with uninterrupted():  # so that no port is ever ours without anybody to give it back
                _take(client, stl, channel, ports, force)
                generator = TrexGenerator(client, stl, channel, ports, clock)
                if guarded:
                    generator.guard = Guard(endpoint.server, endpoint.rpc_port, channel.api_h, generator.handlers())
                    stack.callback(generator.guard.close)
            yield generator
        except BaseException:
            with suppress(BenchError):
                if generator is not None and channel.answering and channel.unreachable() is None:
                    generator.release()
            raise
        # A server that does not answer is left to the watchdog, which tries for longer than a user would wait. A lost
        # port that the block knows of is not raised again here, or the run would lose its result.
        if channel.answering:
            with suppress(PortOwned) if generator.lost_a_port else nullcontext():
                generator.release()


@dataclass(frozen=True)
class ServerFacts:
    """Facts that a server reports without any port being taken; ``ports`` holds the status of each."""

    client: str
    version: Mapping[str, Any]
    system: Mapping[str, Any]
    ports: Mapping[int, Mapping[str, Any]]

    def speed_bps(self, port: int) -> float:
        described = {int(entry["index"]): entry for entry in self.system["ports"]}
        return nominal_bps(described[port], self.ports[port])

    @property
    def macs(self) -> dict[int, str]:
        """MAC of each port for which the server names one."""
        sources = {port: ethernet_of(status).get("src") for port, status in self.ports.items()}
        return {port: str(mac) for port, mac in sources.items() if mac}


def describe(endpoint: ServerAddress, trex_dir: str | os.PathLike[str] | None = None) -> ServerFacts:
    """Ask a server about itself and all of its ports."""
    reach(endpoint)
    client = load_client(trex_dir)
    with _session(client, endpoint) as stl:
        channel = Channel(stl.conn.rpc, time.monotonic)
        version, system = stl.get_server_version(), stl.get_server_system_info()
        ports = _ask_ports(channel, sorted(int(described["index"]) for described in system["ports"]))
    return ServerFacts(str(client), version, system, ports)


def _ask_ports(channel: Channel, ports: Sequence[int]) -> dict[int, Mapping[str, Any]]:
    """Ask for the status of these ports; to each, ``captured`` is added."""
    calls: list[Call] = [("get_port_status", status_of(port)) for port in ports]
    *answers, captures = channel.batch([*calls, ("capture", {"command": "status"})]).results
    bits = 0
    for filters in (one["filter"] for one in ([] if isinstance(captures, Refusal) else captures)):
        bits |= int(filters["rx"]) | int(filters["tx"])
    for port, status in zip(ports, answers, strict=True):
        if isinstance(status, Refusal):
            raise GeneratorError(f"TRex server {channel.where} does not describe port {port}", status.text)
    return {port: {**status, "captured": bits >> port & 1} for port, status in zip(ports, answers, strict=True)}


def reach(endpoint: ServerAddress) -> None:
    """Raise GeneratorError unless somebody listens there; ZeroMQ itself would only wait."""
    for port, what in ((endpoint.rpc_port, "TRex server"), (endpoint.event_port, "TRex server's events")):
        try:
            socket.create_connection((endpoint.server, port), endpoint.timeout_s).close()
        except (OSError, UnicodeError) as err:  # UnicodeError: of names that can be no host's, such as a..b
            reason = getattr(err, "strerror", None) or str(err) or type(err).__name__
            raise GeneratorError(
                f"no {what} at {endpoint.server}:{port} ({reason})",
                "start it (t-rex-64 -i --stl, or trexbench lab serve), or name another with --server",
            ) from err


@contextmanager
def _session(client: Client, endpoint: ServerAddress) -> Iterator[Any]:
    """Connect an STLClient, and disconnect it at the end of the block, also after a signal during the connecting."""
    stl = None
    try:
        with uninterrupted(), client.namespace():
            stl = client.api.STLClient(
                username=_owner_name(),
                server=endpoint.server,
                sync_port=endpoint.rpc_port,
                async_port=endpoint.event_port,
                verbose_level="none",
                logger=_silent(client),
                sync_timeout=endpoint.timeout_s,
                async_timeout=endpoint.timeout_s,
            )
            # The client's own subscriber is a thread that takes CPU time at every event, and ends this process with
            # SIGTERM if it crashes. Link, owner and state are polled instead.
            stl.conn.async_ = SimpleNamespace(
                connect=lambda: True, disconnect=lambda: None, barrier=lambda baseline=False: True
            )
            # The client's own __del__ ends the ZeroMQ context before it closes the socket. Called by the garbage
            # collector, that waits for ever: the context knows its sockets by weak references, which are gone by then.
            rpc = type(stl.conn.rpc)
            rpc.__del__ = rpc.disconnect
            stl.conn.rpc.retry_base = max(endpoint.tries, _CONNECT_TRIES) - 1
            with redirect_stdout(io.StringIO()):  # the client prints what it cannot decode
                stl.connect()
            stl.conn.rpc.retry_base = endpoint.tries - 1  # once connected, the client would wait four times
        yield stl
    except client.api.TRexError as err:
        raise _session_error(client, endpoint, brief(err)) from err
    finally:
        if stl is not None:
            with uninterrupted():
                stl.conn.disconnect()


def _session_error(client: Client, endpoint: ServerAddress, text: str) -> GeneratorError:
    meaning = meaning_of(text)
    if meaning is Meaning.OTHER_MODE:
        return GeneratorError(f"TRex server {endpoint} is not in stateless mode ({text})", "start it with --stl")
    if meaning is Meaning.OTHER_VERSION:
        return GeneratorError(
            f"TRex server {endpoint} and the client {client} do not fit ({text})",
            "use the server's own client: --trex-dir DIR, its installation",
        )
    return GeneratorError(f"no session with the TRex server {endpoint} ({text})", "look at its log, or restart it")


def _take(client: Client, stl: Any, channel: Channel, ports: Sequence[int], force: bool) -> None:
    known = sorted(int(port) for port in stl.ports)
    missing = [port for port in ports if port not in known]
    if missing:
        listed = ", ".join(map(str, known)) or "none"
        raise GeneratorError(f"TRex server {channel.where} has no port {missing[0]}", f"its ports are {listed}")
    before = _ask_ports(channel, ports)
    for port, status in before.items():
        for kind, text, remedy in obstacles(status, force):
            error = PortBusy if kind == "owner" else GeneratorError
            raise error(f"port {port} of TRex server {channel.where} {text}", remedy)
    client.call(channel.where, stl.acquire, ports=list(ports), force=force, sync_streams=False)
    try:
        for port, status in before.items():
            owned = {"port_id": port, "handler": stl.ports[port].handler}
            if status["state"] not in IDLE:
                channel.call("stop_traffic", profile_id="*", **owned)
                # otherwise the client remembers the state from before, and refuses to load streams
                client.call(channel.where, stl.ports[port].sync)
            if status.get("service"):
                channel.call("service", enabled=False, filtered=False, **owned)
            if status["attr"].get("promiscuous", {}).get("enabled"):
                channel.call("set_port_attr", attr={"promiscuous": {"enabled": False}}, **owned)
    except BaseException:
        with suppress(BenchError):
            client.call(channel.where, stl.release, ports=list(ports))
        raise


def _owner_name() -> str:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in some containers
        user = f"uid {os.getuid()}"
    return f"{user}@{socket.gethostname()} (trexbench {os.getpid()})"


def _silent(client: Client) -> Any:
    logger = client.api.Logger

    class Silent(logger):  # type: ignore[misc, valid-type]
        def _write(self, msg: Any, newline: bool) -> None:
            return None

        def _flush(self) -> None:
            return None

    return Silent("none")
