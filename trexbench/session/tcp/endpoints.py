"""Client, router and server of TCP tests: opened, locked, configured, read back; and what a revert of them undoes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ...config.endpoints import EndpointConfig
from ...config.model import DutConfig
from ...core.tcp.tunnel import DUT_SERVER, NOT_READ, SIT
from ...dut import Attestation, Change, Wanted, not_attested
from ...dut.apply import Reverted, apply, revert, summary
from ...dut.endpoints import endpoint_wanted, router_wanted
from ...dut.journal import FileJournal, journal_dir
from ...endpoint import EndpointHost
from ...lab import Lab, LabSpec, RunningLab
from ..dut import ConnectedDut, connect_dut
from ..wan import NetemLine, open_line, require_wan, wan_host_wanted
from .tunnels import OpenTunnel, Pppoe, dialled, tunnelled


@dataclass(frozen=True, kw_only=True)
class Endpoint(EndpointHost):
    """One host, configured. addresses: towards the DUT. attestation: what was read back.

    bypass: its addresses on the cable that leads around the DUT, by version of IP; empty: there is none.
    """

    interface: str
    bypass: Mapping[int, str]
    bypass_interface: str
    connected: ConnectedDut
    attestation: Attestation


@dataclass(frozen=True)
class Endpoints:
    """The three hosts of a run. dut: the router, whose ``observed`` has its counters. lab: None where it is in none.

    pppoe: between DUT and server. line: the WAN. opened: a tunnel that programs hold open, whose inner addresses its
    ends have then; outside: these endpoints without it. runs_linux: the DUT is known as Linux.
    """

    client: Endpoint
    server: Endpoint
    dut: ConnectedDut
    attestation: Attestation
    lab: RunningLab | None = None
    sit: str = ""
    """Means of 6in4 between DUT and server, as in TcpEnvironment; empty: there is none."""
    pppoe: Pppoe | None = None
    runs_linux: bool = False
    opened: OpenTunnel | None = None
    outside: Endpoints | None = None
    line: NetemLine | None = None

    @property
    def beneath(self) -> Endpoints:
        """These endpoints without the tunnel that was opened: its ends by their addresses outside of it."""
        return self.outside or self

    @property
    def hosts(self) -> tuple[ConnectedDut, ConnectedDut]:
        """Client and server."""
        return self.client.connected, self.server.connected


@contextmanager
def open_endpoints(
    config: DutConfig, doing: str, say: Callable[[str], None] = lambda _: None, apply_it: bool = True
) -> Iterator[Endpoints]:
    """The lab, the router and both endpoints until the end of the block, locked, as the config wants them.

    apply_it: without it nothing is changed nor read back. A DUT that trexbench does not know as Linux is taken as it
    is. Changes stay, as those of a DUT for ramps do, until ``dut revert`` (or as long as the run's own lab).
    """
    with ExitStack() as stack:
        lab = None
        require_wan(config)
        if config.lab is not None:
            of = Lab(LabSpec.from_config(config, 1 if config.in_vm else None), config.command_name)
            say(f"{'using' if of.stands else 'bringing up'} the lab of {config.name}")
            lab = stack.enter_context(of.running())
        facts = _facts(lab.host_facts) if lab is not None else {}
        temporary = lab is not None and lab.ephemeral
        sit = "" if config.hosts.through.between != DUT_SERVER else SIT if apply_it else NOT_READ
        if sit:
            say(f"tunnel: {config.hosts.tunnel} by {sit}")

        def opened(wanted: Wanted, what: str, change: bool) -> tuple[ConnectedDut, Callable[[], Attestation]]:
            """Return the host and a read-back for later: a cable has no carrier until its other end is up as well."""
            there = stack.enter_context(connect_dut(wanted, doing, temporary, what))
            if not change:
                return there, lambda: not_attested(wanted.config)
            say(f"configuring {wanted.config.name}")
            changed = apply(there.dut, there.transport, there.journal, variant=wanted.variant)
            say(f"  {summary(changed)}")
            return there, lambda: replace(there.dut.verify(), changed=changed).require_match()

        if config.driver == "linux":
            dut, read_back = opened(router_wanted(config, facts, sit == SIT), "the DUT", apply_it)
        else:
            why = f"driver {config.driver}: for TCP it is taken as it is"
            dut, _ = opened(Wanted(config, host_facts=facts), "the DUT", change=False)
            read_back = partial(not_attested, config, why)
        ends = [
            (role, one, *opened(endpoint_wanted(config, role, tunnelled=sit == SIT), f"the {role}", apply_it))
            for role, one, _ in config.hosts.roles
        ]
        say("reading them back")
        attestation = read_back()
        client, server = (_endpoint(role, one, facts, there, read()) for role, one, there, read in ends)
        routing = config.linux.cpus or tuple(facts.get("lab", {}).get("router_cpus") or ())
        cpus = {"server": server.cpus, "dut": routing}
        pppoe = stack.enter_context(dialled(config, server.transport, dut.transport, cpus, say))
        line = stack.enter_context(open_line(config, dut, doing))
        if line is not None:
            say(f"WAN: {line.wan}, by {line.by}")
        ways = {"client": client.transport, "server": server.transport, "dut": dut.transport}
        through = stack.enter_context(tunnelled(config, ways, {**cpus, "client": client.cpus}, dut, say))
        runs_linux = config.driver == "linux"
        found = Endpoints(client, server, dut, attestation, lab, sit, pppoe, runs_linux, line=line)
        yield found if through is None else _inside(found, through)


def _inside(found: Endpoints, opened: OpenTunnel) -> Endpoints:
    """The ends of the tunnel with their inner addresses."""
    client, server = (
        replace(one, addresses=opened.addresses.get(one.name, one.addresses)) for one in (found.client, found.server)
    )
    return replace(found, client=client, server=server, opened=opened, outside=found)


def revert_endpoints(
    config: DutConfig, announce: Callable[[Change], None] = lambda _: None
) -> Iterator[tuple[str, Reverted]]:
    """Undo what runs have changed on the other hosts, by the host's name; those without changes are not reached."""
    roles = ("client", "server") if config.endpoints is not None else ()
    hosts = [(f"the {role}", endpoint_wanted(config, role)) for role in roles]
    if (between := wan_host_wanted(config)) is not None:
        hosts.append(("the WAN host", between))
    for what, wanted in hosts:
        if FileJournal(wanted.config.name, journal_dir()).entries():
            with connect_dut(wanted, "dut revert", what=what) as found:
                yield wanted.config.name, revert(found.dut, found.transport, found.journal, announce)


def _facts(host_facts: Mapping[str, Any]) -> dict[str, Any]:
    """A lab's facts with the steering of its endpoints' cables in place of that of the tester's."""
    lab = host_facts.get("lab")
    if not lab or "endpoints" not in lab:
        return dict(host_facts)
    threaded = lab["endpoints"]["steer"] == "threaded"
    return {**host_facts, "lab": {**lab, "steer": "threaded" if threaded else "rps", "threaded": threaded}}


def _endpoint(
    role: str, one: EndpointConfig, facts: Mapping[str, Any], there: ConnectedDut, attestation: Attestation
) -> Endpoint:
    placed = facts.get("lab", {}).get("endpoint_cpus", {}).get(role, ())
    bypass = one.bypass
    return Endpoint(
        role,
        there.transport,
        {own.version: str(own.ip) for own in one.addresses},
        one.cpus or tuple(placed),
        interface=one.interface,
        bypass={own.version: str(own.ip) for own in bypass.addresses} if bypass is not None else {},
        bypass_interface=bypass.interface if bypass is not None else "",
        connected=there,
        attestation=attestation,
    )
