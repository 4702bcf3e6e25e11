"""Client, router and server of TCP tests: opened, locked, configured, read back, and reverted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ...config.endpoints import EndpointConfig
from ...config.model import DutConfig
from ...core.tcp.tunnel import DUT_SERVER, NOT_READ, SIT
from ...core.tcp.wan import Wan
from ...dut import Attestation, Change, Wanted, not_attested
from ...dut.apply import Reverted, apply, read_back, revert, summary
from ...dut.journal import FileJournal, journal_dir
from ...dut.tcp_hosts import endpoint_wanted, router_wanted
from ...endpoint.hosts import EndpointHost
from ...lab import Lab, LabSpec, RunningLab
from ..dut import ConnectedDut, connect_dut
from ..wan import made_by, open_line, require_wan, wan_host_wanted
from .tunnels import OpenTunnel, Pppoe, dialled, tunnelled


@dataclass(frozen=True, kw_only=True)
class Endpoint(EndpointHost):
    """One host, configured; ``addresses`` are those towards the DUT."""

    interface: str
    bypass: Mapping[int, str]
    """Addresses on the cable that leads around the DUT, by version of IP; empty: there is none."""
    bypass_interface: str
    connected: ConnectedDut
    attestation: Attestation


@dataclass(frozen=True)
class Endpoints:
    """The three hosts of a run, and what is between them."""

    client: Endpoint
    server: Endpoint
    dut: ConnectedDut
    attestation: Attestation
    """The DUT as it was read back."""
    lab: RunningLab | None = None
    sit: str = ""
    """Means of 6in4 between DUT and server, as in TcpEnvironment; empty: there is none."""
    pppoe: Pppoe | None = None
    runs_linux: bool = False
    opened: OpenTunnel | None = None
    """Tunnel that programs hold open; its ends have their inner addresses then."""
    outside: Endpoints | None = None
    """These endpoints without that tunnel."""
    line: Wan | None = None
    """The WAN."""

    @property
    def beneath(self) -> Endpoints:
        """These endpoints without the tunnel that was opened, with their addresses outside of it."""
        return self.outside or self

    @property
    def hosts(self) -> tuple[ConnectedDut, ConnectedDut]:
        """Client and server."""
        return self.client.connected, self.server.connected


@contextmanager
def open_endpoints(
    config: DutConfig, doing: str, say: Callable[[str], None] = lambda _: None, apply_it: bool = True
) -> Iterator[Endpoints]:
    """Open the lab, the router and both endpoints, locked and set as the config says.

    apply_it: False changes nothing and reads nothing back. A DUT that trexbench does not know as Linux is not changed
    either. Changes stay until ``dut revert`` (or the end of the run's own lab), like a DUT's for ramps.
    """
    with ExitStack() as stack:
        lab = None
        require_wan(config)
        if config.lab is not None:
            of_config = Lab(LabSpec.from_config(config, 1 if config.in_vm else None))
            say(f"{'using' if of_config.stands else 'bringing up'} the lab of {config.name}")
            lab = stack.enter_context(of_config.running())
        facts = _facts(lab.host_facts) if lab is not None else {}
        temporary = lab is not None and lab.ephemeral
        sit = "" if config.hosts.through.between != DUT_SERVER else SIT if apply_it else NOT_READ
        if sit:
            say(f"tunnel: {config.hosts.tunnel} by {sit}")

        def opened(wanted: Wanted, what: str, change: bool) -> tuple[ConnectedDut, Callable[[], Attestation]]:
            """Return the host and a read-back for later: a cable has no carrier until its other end is up as well."""
            host = stack.enter_context(connect_dut(wanted, doing, temporary, what))
            if not change:
                return host, lambda: not_attested(wanted.config)
            say(f"configuring {wanted.config.name}")
            changed = apply(host.dut, host.transport, host.journal, variant=wanted.variant)
            say(f"  {summary(changed)}")
            return host, lambda: replace(read_back(host.dut), changed=changed).require_match()

        if config.driver == "linux":
            dut, of_dut = opened(router_wanted(config, facts, sit == SIT), "the DUT", apply_it)
        else:
            why = f"driver {config.driver}: for TCP it is taken as it is"
            dut, _ = opened(Wanted(config, host_facts=facts), "the DUT", change=False)
            of_dut = partial(not_attested, config, why)
        ends = [
            (role, end, *opened(endpoint_wanted(config, role, tunnelled=sit == SIT), f"the {role}", apply_it))
            for role, end, _ in config.hosts.roles
        ]
        say("reading them back")
        attestation = of_dut()
        client, server = (_endpoint(role, end, facts, host, read()) for role, end, host, read in ends)
        routing = config.linux.cpus or tuple(facts.get("lab", {}).get("router_cpus") or ())
        cpus = {"server": server.cpus, "dut": routing}
        pppoe = stack.enter_context(dialled(config, server.transport, dut.transport, cpus, say))
        line = stack.enter_context(open_line(config, dut, doing))
        if line is not None:
            say(f"WAN: {line}, by {made_by(line)}")
        hosts = {"client": client.transport, "server": server.transport, "dut": dut.transport}
        tunnel = stack.enter_context(tunnelled(config, hosts, {**cpus, "client": client.cpus}, dut, say))
        runs_linux = config.driver == "linux"
        endpoints = Endpoints(client, server, dut, attestation, lab, sit, pppoe, runs_linux, line=line)
        yield endpoints if tunnel is None else _inside(endpoints, tunnel)


def _inside(outside: Endpoints, tunnel: OpenTunnel) -> Endpoints:
    """Give the ends of the tunnel their inner addresses."""
    ends = (outside.client, outside.server)
    client, server = (replace(end, addresses=tunnel.addresses.get(end.name, end.addresses)) for end in ends)
    return replace(outside, client=client, server=server, opened=tunnel, outside=outside)


def revert_endpoints(
    config: DutConfig, announce: Callable[[Change], None] = lambda _: None
) -> Iterator[tuple[str, Reverted]]:
    """Undo changes of runs on the other hosts, and yield the results by host; those without changes are not reached."""
    roles = ("client", "server") if config.endpoints is not None else ()
    hosts = [(f"the {role}", endpoint_wanted(config, role)) for role in roles]
    if (wan_host := wan_host_wanted(config)) is not None:
        hosts.append(("the WAN host", wan_host))
    for what, wanted in hosts:
        if FileJournal(wanted.config.name, journal_dir()).entries():
            with connect_dut(wanted, "dut revert", what=what) as host:
                yield wanted.config.name, revert(host.dut, host.transport, host.journal, announce)


def _facts(host_facts: Mapping[str, Any]) -> dict[str, Any]:
    """A lab's facts with the steering of its endpoints' cables instead of the tester's."""
    lab = host_facts.get("lab")
    if not lab or "endpoints" not in lab:
        return dict(host_facts)
    threaded = lab["endpoints"]["steer"] == "threaded"
    return {**host_facts, "lab": {**lab, "steer": "threaded" if threaded else "rps", "threaded": threaded}}


def _endpoint(
    role: str, config: EndpointConfig, facts: Mapping[str, Any], connected: ConnectedDut, attestation: Attestation
) -> Endpoint:
    placed = facts.get("lab", {}).get("endpoint_cpus", {}).get(role, ())
    bypass = config.bypass
    return Endpoint(
        role,
        connected.transport,
        {own.version: str(own.ip) for own in config.addresses},
        config.cpus or tuple(placed),
        interface=config.interface,
        bypass={own.version: str(own.ip) for own in bypass.addresses} if bypass is not None else {},
        bypass_interface=bypass.interface if bypass is not None else "",
        connected=connected,
        attestation=attestation,
    )
