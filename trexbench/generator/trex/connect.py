"""Connects to a TRex server: reaches it, checks its ports, takes them, and gives them back whatever happens."""

from __future__ import annotations

import getpass
import io
import os
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, redirect_stdout, suppress
from dataclasses import dataclass
from typing import Any

from ...core.errors import BenchError, GeneratorError, PortBusy, PortOwned
from ...core.protocols import Clock
from ...signals import uninterrupted
from .client import Client, Meaning, brief, load_client, meaning_of
from .guard import Guard
from .ports import IDLE, TrexGenerator, ethernet_of, nominal_bps, obstacles, status_of
from .rpc import Channel, Refusal

RPC_PORT, EVENT_PORT = 4501, 4500


@dataclass(frozen=True)
class ServerAddress:
    """Where a TRex server listens. timeout_s: for each exchange with it; ``tries`` times that for an answer."""

    server: str = "127.0.0.1"
    rpc_port: int = RPC_PORT
    event_port: int = EVENT_PORT
    timeout_s: float = 3.0
    tries: int = 1

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

    force takes ports from another owner and stops what they send; without it a foreign owner is PortBusy.
    """
    reach(endpoint)
    client = load_client(trex_dir)
    with _session(client, endpoint) as stl, ExitStack() as stack:
        channel = Channel(stl.conn.rpc, clock.now)
        generator = None
        try:
            with uninterrupted():  # at no moment are ports ours that nobody would give back
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
        # A server that does not answer is left to the watchdog, which tries for longer than a user waits. A lost port
        # that the block knows of is not raised again here: the run would lose its result.
        if channel.answering:
            with suppress(PortOwned) if generator.lost_a_port else nullcontext():
                generator.release()


@dataclass(frozen=True)
class ServerFacts:
    """Facts that a server reports without any port being taken: version, system, and the status of each port."""

    client: str
    version: Mapping[str, Any]
    system: Mapping[str, Any]
    ports: Mapping[int, Mapping[str, Any]]

    def speed_bps(self, port: int) -> float:
        described = {int(one["index"]): one for one in self.system["ports"]}
        return nominal_bps(described[port], self.ports[port])

    @property
    def macs(self) -> dict[int, str]:
        """The MAC of each port that the server names one of."""
        sources = {port: ethernet_of(status).get("src") for port, status in self.ports.items()}
        return {port: str(mac) for port, mac in sources.items() if mac}


def describe(endpoint: ServerAddress, trex_dir: str | os.PathLike[str] | None = None) -> ServerFacts:
    """Ask a server about itself and all of its ports."""
    reach(endpoint)
    client = load_client(trex_dir)
    with _session(client, endpoint) as stl:
        channel = Channel(stl.conn.rpc, time.monotonic)
        version, system = stl.get_server_version(), stl.get_server_system_info()
        ports = sorted(int(one["index"]) for one in system["ports"])
        answers = channel.batch([("get_port_status", status_of(port)) for port in ports]).results
    for port, status in zip(ports, answers, strict=True):
        if isinstance(status, Refusal):
            raise GeneratorError(f"TRex server {endpoint} does not describe port {port}", status.text)
    return ServerFacts(str(client), version, system, dict(zip(ports, answers, strict=True)))


def reach(endpoint: ServerAddress) -> None:
    """GeneratorError unless somebody listens there; ZeroMQ itself would only wait."""
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
    """A connected STLClient; disconnected at the end of the block, and when a signal waited for the connection."""
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
            stl.conn.async_ = _NoEvents()
            _close_before_the_end(type(stl.conn.rpc))
            stl.conn.rpc.retry_base = endpoint.tries - 1
            with redirect_stdout(io.StringIO()):  # the client prints what it cannot decode
                stl.connect()
            stl.conn.rpc.retry_base = endpoint.tries - 1  # connected, the client would wait four times for any answer
        yield stl
    except client.api.TRexError as err:
        raise _no_session(client, endpoint, brief(err)) from err
    finally:
        if stl is not None:
            with uninterrupted():
                stl.conn.disconnect()


class _NoEvents:
    """Replaces the client's subscriber, a thread that costs CPU time at every event and ends this process with SIGTERM
    when it crashes. Link, owner and state are polled instead.
    """

    def connect(self) -> bool:
        return True

    def disconnect(self) -> None:
        return None

    def barrier(self, baseline: bool = False) -> bool:
        return True


def _close_before_the_end(connection: Any) -> None:
    """Make a connection that is garbage-collected close its socket before it ends its ZeroMQ context.

    The client's own ``__del__`` ends the context first. That waits for ever: the context knows its sockets by weak
    references, which the collector has cleared by then.
    """
    connection.__del__ = connection.disconnect


def _no_session(client: Client, endpoint: ServerAddress, text: str) -> GeneratorError:
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
    before = {port: channel.call("get_port_status", **status_of(port)) for port in ports}
    for port, status in before.items():
        for what, found, remedy in obstacles(status, force):
            raise (PortBusy if what == "owner" else GeneratorError)(
                f"port {port} of TRex server {channel.where} {found}", remedy
            )
    client.call(channel.where, stl.acquire, ports=list(ports), force=force, sync_streams=False)
    try:
        for port, status in before.items():
            _prepare(client, stl, channel, port, status)
    except BaseException:
        with suppress(BenchError):
            client.call(channel.where, stl.release, ports=list(ports))
        raise


def _prepare(client: Client, stl: Any, channel: Channel, port: int, status: Mapping[str, Any]) -> None:
    owned = {"port_id": port, "handler": stl.ports[port].handler}
    if status["state"] not in IDLE:
        channel.call("stop_traffic", profile_id="*", **owned)
        # else the client still knows the state from before, and refuses to load streams
        client.call(channel.where, stl.ports[port].sync)
    if status.get("service"):
        channel.call("service", enabled=False, filtered=False, **owned)
    if status["attr"].get("promiscuous", {}).get("enabled"):
        channel.call("set_port_attr", attr={"promiscuous": {"enabled": False}}, **owned)


def _owner_name() -> str:
    """Name that others read as the ports' owner: user, host and process."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in some containers
        user = f"uid {os.getuid()}"
    return f"{user}@{socket.gethostname()} (trexbench {os.getpid()})"


def _silent(client: Client) -> Any:
    """A logger for the client that prints nothing; its own prints to our screen."""
    logger = client.api.Logger

    class Silent(logger):  # type: ignore[misc, valid-type]
        def _write(self, msg: Any, newline: bool) -> None:
            return None

        def _flush(self) -> None:
            return None

    return Silent("none")
