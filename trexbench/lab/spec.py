"""Specification of a lab: names, addresses on the wire, and what runs on which core. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..config.endpoints import lab_namespace
from ..config.lab import LabConfig
from ..config.model import DutConfig
from ..core.errors import ConfigError

RPC_PORT = 4501
PUB_PORT = 4500


@dataclass(frozen=True)
class EndpointCable:
    """Host that tests the DUT with TCP, and its cable."""

    role: str
    interface: str
    dut: str
    """The DUT's interface at the other end."""
    bypass: str | None = None
    """Its interface on the cable to the other host, if there is one."""
    cpus: tuple[int, ...] = ()
    """CPUs of its programs; none: those that do not forward."""


@dataclass(frozen=True)
class LabSpec:
    """Two namespaces with one veth pair per port: the tester's ``p<i>`` and ``dut_interfaces[i]``."""

    prefix: str = "tbx"
    dut_interfaces: tuple[str, ...] = ("d0", "d1")
    speed_bps: float | None = None
    """Nominal L1 speed of the tester's ports (bit/s); None: the server decides."""
    settings: LabConfig = field(default_factory=LabConfig)
    rpc_port: int = RPC_PORT
    pub_port: int = PUB_PORT
    most_queues: int = 1
    """Queues that each of the DUT's interfaces can have; settings.queues are in use until the driver changes that."""
    tagged: bool = False
    """Frames have VLAN tags."""
    endpoints: tuple[EndpointCable, ...] = ()
    """Client and server, each in a namespace of its own; or none."""
    by_ssh: bool = False
    """Its virtual machine is reached by ssh, over a NIC of its own that reaches nothing else."""

    @classmethod
    def from_config(cls, config: DutConfig, queues: int | None = None) -> LabSpec:
        """Make the lab that a DUT config with a ``lab:`` section asks for.

        queues: of a run, for which a virtual machine gets NICs with no more, and as many cores. A VPP uses all that
        its NICs have: one that stays gets as many as a run that names no number asks for.
        """
        if config.lab is None:
            raise ConfigError(f"{config.name} has no lab", "only a DUT config with a lab: section has one")
        ports = sorted(config.cables, key=lambda port: port.tester)
        if [port.tester for port in ports] != list(range(len(ports))):
            what = f"{config.file}: the tester's ports of a lab count up from 0, not {list(config.tester_ports)}"
            raise ConfigError(what, "number them 0, 1, ...")
        vpp = config.lab.router == "vpp"
        roles = config.endpoints.roles if config.endpoints is not None else ()
        hosts = [(role, host, host.bypass) for role, host, _ in roles]
        return cls(
            prefix=config.lab.prefix,
            # VPP calls what it puts on the Linux interface d0 host-d0
            dut_interfaces=tuple(port.interface.removeprefix("host-" if vpp else "") for port in ports),
            speed_bps=config.speed_bps,
            settings=config.lab,
            rpc_port=config.generator.rpc_port,
            pub_port=config.generator.pub_port,
            most_queues=_most_queues(config, config.lab.queues, queues),
            tagged=any(port.vlan for port in ports),
            endpoints=tuple(
                EndpointCable(role, host.interface, host.dut.interface, bypass.interface if bypass else None, host.cpus)
                for role, host, bypass in hosts
                if host.dut is not None
            ),
            by_ssh=config.in_vm and config.transport.type == "ssh",
        )

    @property
    def tester(self) -> str:
        return lab_namespace(self.prefix, "tester")

    @property
    def dut(self) -> str:
        return lab_namespace(self.prefix, "dut")

    @property
    def namespaces(self) -> tuple[str, ...]:
        ends = (lab_namespace(self.prefix, end.role) for end in self.endpoints)
        return (self.tester, *(() if self.is_vm else (self.dut,)), *ends)

    @property
    def tester_interfaces(self) -> tuple[str, ...]:
        return tuple(f"p{index}" for index in range(len(self.dut_interfaces)))

    @property
    def tester_macs(self) -> dict[int, str]:
        """MAC of each of the tester's ports: the same in every lab, locally administered."""
        return {index: f"02:7b:78:00:00:{index:02x}" for index in range(len(self.dut_interfaces))}

    @property
    def dut_macs(self) -> dict[int, str]:
        """MAC of the DUT's interface at the other end, by the tester's port."""
        return {index: f"02:7b:78:00:01:{index:02x}" for index in range(len(self.dut_interfaces))}

    @property
    def bypass(self) -> bool:
        """True if there is no DUT: each of the tester's ports is cabled to the other one of its pair."""
        return self.settings.router == "bypass"

    @property
    def is_vm(self) -> bool:
        """True if its router is a virtual machine, which is in no namespace."""
        return self.settings.router == "vm"

    @property
    def far_macs(self) -> dict[int, str]:
        """MAC at the other end of each of the tester's ports."""
        return {index: self.tester_macs[index ^ 1] for index in self.tester_macs} if self.bypass else self.dut_macs


def _most_queues(config: DutConfig, of_veth: int, asked: int | None) -> int:
    if config.in_vm and config.driver == "vpp":
        return asked or config.offered_queues[0]
    return asked if asked and config.in_vm else max(of_veth, *config.rx_queues, 1)


@dataclass(frozen=True)
class Placement:
    """Cores by number; None or empty: not pinned."""

    sender: int | None = None
    router: tuple[int, ...] = ()
    harness: int | None = None
    warnings: tuple[str, ...] = ()
    endpoints: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Cores of the programs of client and server, by role; none if the lab has no endpoints."""

    @property
    def busy(self) -> set[int]:
        """Cores on which the lab sends and routes."""
        return {cpu for cpu in (self.sender, *self.router) if cpu is not None}

    def to_document(self) -> dict[str, Any]:
        cpus = {"sender_cpu": self.sender, "router_cpus": list(self.router), "harness_cpu": self.harness}
        ends = {role: list(own) for role, own in self.endpoints.items()}
        return {**cpus, **({"endpoint_cpus": ends} if ends else {})}


def place_endpoints(spec: LabSpec, placement: Placement, cpus: Sequence[int]) -> Placement:
    """Add the endpoints' cores to a placement: those of the config, else all of these that do not forward."""
    others = tuple(cpu for cpu in cpus if cpu not in placement.router) or tuple(cpus)
    chosen = {end.role: end.cpus or others for end in spec.endpoints}
    warnings = list(placement.warnings)
    for role, cores in chosen.items():
        if missing := {*cores} - {*cpus}:
            usable = ", ".join(map(str, cpus))
            what = f"endpoints.{role}.cpus: core {min(missing)} cannot be used, only {usable}"
            raise ConfigError(what, "correct the DUT config")
        if shared := {*cores} & {*placement.router}:
            warnings.append(f"the {role} and the router share core {min(shared)}: its CPU is that of both")
    return replace(placement, endpoints=chosen, warnings=tuple(warnings))


def place(settings: LabConfig, cpus: Sequence[int], siblings: Mapping[int, Sequence[int]]) -> Placement:
    """Place processes on these cores; siblings: the hyper-threads of each core, itself included."""
    taken = settings.router_cpus if isinstance(settings.router_cpus, tuple) else ()
    for cpu in (settings.sender_cpu, settings.harness_cpu, *taken):
        if isinstance(cpu, int) and cpu not in cpus:
            usable = ", ".join(map(str, cpus))
            raise ConfigError(f"lab: core {cpu} cannot be used, only {usable}", "correct the DUT config's lab: section")
    warnings: list[str] = []
    free = [cpu for cpu in cpus if cpu not in taken] or list(cpus)
    sender = _chosen_core(settings.sender_cpu, free[0])
    router = _router_cores(settings, cpus, siblings, free[0] if sender is None else sender)
    busy = Placement(sender, router).busy
    rest = [cpu for cpu in cpus if cpu not in busy] or [cpu for cpu in cpus if cpu not in router] or list(cpus)
    if sender in router:
        warnings.append(f"sender and router share core {sender}: the result is that of both, not of the router")
    elif len(cpus) > 1 and sender is not None and set(router) & set(siblings.get(sender, ())):
        warnings.append(f"the router's core and the sender's core {sender} share one physical core")
    return Placement(sender, router, _chosen_core(settings.harness_cpu, rest[0]), tuple(warnings))


def _chosen_core(setting: int | str, automatic: int) -> int | None:
    if isinstance(setting, int):
        return setting
    return automatic if setting == "auto" else None


def _router_cores(
    settings: LabConfig, cpus: Sequence[int], siblings: Mapping[int, Sequence[int]], sender: int
) -> tuple[int, ...]:
    if isinstance(settings.router_cpus, tuple):
        return settings.router_cpus
    if settings.router_cpus == "any":
        return ()
    others = [cpu for cpu in cpus if cpu != sender]
    apart = [cpu for cpu in others if cpu not in siblings.get(sender, ())]
    return tuple((apart or others or [sender])[:1])
