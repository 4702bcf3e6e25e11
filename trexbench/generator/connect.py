"""The way to a TRex server: reach it, connect, check the ports, take them; and give them back whatever happens."""

from __future__ import annotations

import getpass
import io
import os
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from dataclasses import dataclass
from typing import Any

from trexbench.core.errors import BenchError, GeneratorError, PortOwned
from trexbench.core.ports import Clock

from .client import Client, load_client
from .guard import Guard
from .rpc import Channel, Refusal, uninterrupted
from .trex import TrexGenerator, brief, foreign

RPC_PORT, EVENT_PORT = 4501, 4500


@dataclass(frozen=True)
class Endpoint:
    """Where a TRex server listens; timeout_s bounds every exchange with it."""

    server: str = "127.0.0.1"
    rpc_port: int = RPC_PORT
    event_port: int = EVENT_PORT
    timeout_s: float = 3.0

    def __str__(self) -> str:
        return f"{self.server}:{self.rpc_port}"


@contextmanager
def connect(
    endpoint: Endpoint,
    ports: Sequence[int],
    clock: Clock,
    *,
    trex_dir: str | None = None,
    force: bool = False,
    guarded: bool = True,
) -> Iterator[TrexGenerator]:
    """Ports that are ours, idle and up, until the end of the block; a watchdog process stops them if we are killed.

    force takes ports from another owner and stops what they send; without it a foreign owner is PortOwned.
    """
    reach(endpoint)
    client = load_client(trex_dir)
    stl = _session(client, endpoint)
    try:
        channel = Channel(stl.conn.rpc, clock.now)
        _take(client, stl, channel, endpoint, ports, force)
        generator = TrexGenerator(client, stl, channel, ports, clock)
        with _guard(endpoint, channel, generator) if guarded else nullcontext():
            try:
                yield generator
            except BaseException:
                # A server that does not answer is left to the watchdog, which tries for longer than a user waits.
                with suppress(BenchError):
                    if channel.answering:
                        generator.release()
                raise
            _give_back(generator, channel)
    finally:
        with uninterrupted():
            stl.conn.disconnect()


def read_macs(endpoint: Endpoint, ports: Sequence[int], trex_dir: str | None = None) -> dict[int, str]:
    """The MAC of each of these ports that the server names, without taking any."""
    reach(endpoint)
    stl = _session(load_client(trex_dir), endpoint)
    try:
        channel = Channel(stl.conn.rpc, time.monotonic)
        calls = [("get_port_status", {"port_id": port, "profile_id": "*", "block": False}) for port in ports]
        found = dict(zip(ports, channel.batch(calls).results, strict=True))
    finally:
        with uninterrupted():
            stl.conn.disconnect()
    macs = {}
    for port, status in found.items():
        if isinstance(status, Refusal):
            raise GeneratorError(f"TRex server {endpoint} says nothing of port {port}", status.text)
        mac = status["attr"].get("layer_cfg", {}).get("ether", {}).get("src")
        if mac:
            macs[port] = str(mac)
    return macs


def _give_back(generator: TrexGenerator, channel: Channel) -> None:
    """At the end of a block that raised nothing. What it was told of already is not raised on its way out.

    Else a run that lost its server would lose what it returns, too. The watchdog tries on where nobody answers.
    """
    if channel.answering:
        with suppress(PortOwned) if generator.robbed else nullcontext():
            generator.release()


def reach(endpoint: Endpoint) -> None:
    """Whether anybody listens there; ZeroMQ itself would only wait."""
    for port, what in ((endpoint.rpc_port, "TRex server"), (endpoint.event_port, "TRex server's events")):
        try:
            socket.create_connection((endpoint.server, port), endpoint.timeout_s).close()
        except OSError as err:
            reason = err.strerror or str(err) or type(err).__name__
            raise GeneratorError(
                f"no {what} at {endpoint.server}:{port} ({reason})",
                "start it (t-rex-64 -i --stl, or trexbench serve), or name another with --server",
            ) from err


def _session(client: Client, endpoint: Endpoint) -> Any:
    with client.namespace(), uninterrupted():
        stl = client.api.STLClient(
            username=_who(),
            server=endpoint.server,
            sync_port=endpoint.rpc_port,
            async_port=endpoint.event_port,
            verbose_level="none",
            logger=_silent(client),
            sync_timeout=endpoint.timeout_s,
            async_timeout=endpoint.timeout_s,
        )
        try:
            with redirect_stdout(io.StringIO()):  # the client prints what it cannot decode
                stl.connect()
        except client.api.TRexError as err:
            stl.conn.disconnect()
            raise _no_session(client, endpoint, brief(err)) from err
        # Its subscriber thread is needed to connect, and never after: it costs processor time at every event, and
        # would end this process with SIGTERM when it crashes. Link, owner and state are asked for instead.
        stl.conn.async_.disconnect()
        # The client waits four times its time-out for a dead server; once is enough to know.
        stl.conn.rpc.set_retry_base(False)
    return stl


def _no_session(client: Client, endpoint: Endpoint, text: str) -> GeneratorError:
    if "configuration mismatch" in text.lower() or "ASTF" in text:
        return GeneratorError(f"TRex server {endpoint} is not in stateless mode ({text})", "start it with --stl")
    if "mismatch" in text:
        return GeneratorError(
            f"TRex server {endpoint} and the client {client.origin} {client.version} do not fit ({text})",
            "use the server's own client: --trex-dir DIR, its installation",
        )
    return GeneratorError(f"no session with the TRex server {endpoint}", text)


def _take(client: Client, stl: Any, channel: Channel, endpoint: Endpoint, ports: Sequence[int], force: bool) -> None:
    known = sorted(int(port) for port in stl.ports)
    missing = [port for port in ports if port not in known]
    if missing:
        listed = ", ".join(map(str, known)) or "none"
        raise GeneratorError(f"TRex server {endpoint} has no port {missing[0]}", f"its ports are {listed}")
    before = {port: channel.call("get_port_status", port_id=port, profile_id="*", block=False) for port in ports}
    if not force:
        for port, status in before.items():
            _free(endpoint, port, status)
    with client.namespace(), uninterrupted():
        foreign(client, str(endpoint), stl.acquire, ports=list(ports), force=force, sync_streams=False)
    try:
        for port, status in before.items():
            _prepare(client, stl, channel, endpoint, port, status)
    except BaseException:
        with client.namespace(), uninterrupted(), suppress(BenchError):
            foreign(client, str(endpoint), stl.release, ports=list(ports))
        raise


def _free(endpoint: Endpoint, port: int, status: Mapping[str, Any]) -> None:
    if status["owner"]:
        raise PortOwned(
            f"port {port} of TRex server {endpoint} belongs to {status['owner']!r}",
            "wait until it is given back, or take it with --force",
        )
    if status["state"] not in ("IDLE", "STREAMS"):
        raise GeneratorError(
            f"port {port} of TRex server {endpoint} is busy ({status['state']}) without an owner",
            "--force stops it and takes it",
        )


def _prepare(
    client: Client, stl: Any, channel: Channel, endpoint: Endpoint, port: int, status: Mapping[str, Any]
) -> None:
    owned = {"port_id": port, "handler": stl.ports[port].handler}
    if status["state"] not in ("IDLE", "STREAMS"):
        channel.call("stop_traffic", profile_id="*", **owned)
        with client.namespace(), uninterrupted():
            stl.ports[port].sync()  # the client took its state from before, and would refuse to load streams
    if status.get("service"):
        channel.call("service", enabled=False, filtered=False, **owned)
    if status["attr"].get("promiscuous", {}).get("enabled"):
        channel.call("set_port_attr", attr={"promiscuous": {"enabled": False}}, **owned)
    if not status["attr"].get("link", {}).get("up", True):
        raise GeneratorError(f"port {port} of TRex server {endpoint} has no link", "check the cable and the other end")


def _guard(endpoint: Endpoint, channel: Channel, generator: TrexGenerator) -> Guard:
    guard = Guard.start(endpoint.server, endpoint.rpc_port, channel.api_h, generator.handlers())
    generator.guarded_by(guard)
    return guard


def _who() -> str:
    """The owner that others will read about: person, machine, and which run."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in some containers
        user = f"uid {os.getuid()}"
    return f"{user}@{socket.gethostname()} (trexbench {os.getpid()})"


def _silent(client: Client) -> Any:
    """The client's logger prints to our screen; this one is mute."""
    logger = client.api.Logger

    class Silent(logger):  # type: ignore[misc, valid-type]
        def _write(self, msg: Any, newline: bool) -> None:
            return None

        def _flush(self) -> None:
            return None

    return Silent("none")
