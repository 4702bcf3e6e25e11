"""Specification of a lab: names, addresses on the wire, and which core does what. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..config.endpoints import EndpointsConfig, lab_namespace
from ..config.model import DutConfig, LabConfig
from ..core.errors import ConfigError

RPC_PORT = 4501
PUB_PORT = 4500


@dataclass(frozen=True)
class EndpointCable:
    """One of the hosts that test the DUT with TCP, and its cable: interface here, and of the DUT at the other end.

    bypass: its interface of the cable to the other host, if there is one. cpus: of its programs; none: those that do
    not forward.
    """

    role: str
    interface: str
    dut: str
    bypass: str | None = None
    cpus: tuple[int, ...] = ()


@dataclass(frozen=True)
class LabSpec:
    """Two namespaces with one veth pair per port: the tester's ``p<i>`` and ``dut_interfaces[i]``.

    endpoints: client and server, each in a namespace of its own; or none.

    speed_bps: the nominal L1 speed of the tester's ports (bit/s), None leaves it to the server. most_queues: that each
    of the DUT's interfaces can have; settings.queues of them are in use until the driver changes that. tagged: frames
    have VLAN tags.
    """

    prefix: str = "tbx"
    dut_interfaces: tuple[str, ...] = ("d0", "d1")
    speed_bps: float | None = None
    settings: LabConfig = field(default_factory=LabConfig)
    rpc_port: int = RPC_PORT
    pub_port: int = PUB_PORT
    most_queues: int = 1
    tagged: bool = False
    endpoints: tuple[EndpointCable, ...] = ()
    by_ssh: bool = False
    """Its virtual machine is reached by ssh, over a NIC of its own that reaches nothing else."""

    @classmethod
    def from_config(cls, config: DutConfig, queues: int | None = None) -> LabSpec:
        """The lab that a DUT config with a ``lab:`` section asks for.

        queues: of a run, for which a virtual machine gets NICs with no more, and as many cores. A VPP uses all that
        its NICs have: one that stays gets as many as a run that names no number asks for.
        """
        if config.lab is None:
            raise ConfigError(f"{config.name} has no lab", "only a DUT config with a lab: section has one")
        ports = sorted(config.cables, key=lambda port: port.tester)
        if [port.tester for port in ports] != list(range(len(ports))):
            raise ConfigError(
                f"{config.file}: the tester's ports of a lab count up from 0, not {list(config.tester_ports)}",
                "number them 0, 1, ...",
            )
        vpp = config.lab.router == "vpp"
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
            endpoints=_cables_of(config.endpoints),
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
        ends = (lab_namespace(self.prefix, one.role) for one in self.endpoints)
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
        """There is no DUT: each of the tester's ports is cabled to the other one of its pair."""
        return self.settings.router == "bypass"

    @property
    def is_vm(self) -> bool:
        """Its router is a virtual machine, which is in no namespace."""
        return self.settings.router == "vm"

    @property
    def far_macs(self) -> dict[int, str]:
        """MAC at the other end of each of the tester's ports."""
        return {index: self.tester_macs[index ^ 1] for index in self.tester_macs} if self.bypass else self.dut_macs


def _most_queues(config: DutConfig, of_veth: int, asked: int | None) -> int:
    if config.in_vm and config.driver == "vpp":
        return asked or config.offered_queues[0]
    return asked if asked and config.in_vm else max(of_veth, *config.rx_queues, 1)


def _cables_of(found: EndpointsConfig | None) -> tuple[EndpointCable, ...]:
    return tuple(
        EndpointCable(role, one.interface, one.dut.interface, one.bypass.interface if one.bypass else None, one.cpus)
        for role, one, _ in (found.roles if found is not None else ())
        if one.dut is not None
    )


@dataclass(frozen=True)
class Placement:
    """Cores by number. sender, harness: None: not pinned; router: empty: not pinned.

    endpoints: cores of the programs of client and server, by role; none where the lab has no endpoints.
    """

    sender: int | None
    router: tuple[int, ...]
    harness: int | None
    warnings: tuple[str, ...] = ()
    endpoints: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def to_document(self) -> dict[str, Any]:
        found = {"sender_cpu": self.sender, "router_cpus": list(self.router), "harness_cpu": self.harness}
        return {**found, **({"endpoint_cpus": dict(self.endpoints)} if self.endpoints else {})}


def place_endpoints(spec: LabSpec, placement: Placement, cpus: Sequence[int]) -> Placement:
    """Add the endpoints' cores to a placement: those of the config, else all of these that do not forward."""
    others = tuple(cpu for cpu in cpus if cpu not in placement.router) or tuple(cpus)
    chosen = {one.role: one.cpus or others for one in spec.endpoints}
    warnings = list(placement.warnings)
    for role, cores in chosen.items():
        if missing := {*cores} - {*cpus}:
            usable = ", ".join(map(str, cpus))
            what = f"endpoints.{role}.cpus: core {min(missing)} cannot be used, only {usable}"
            raise ConfigError(what, "correct the DUT config")
        if shared := {*cores} & {*placement.router}:
            warnings.append(f"the {role} and the router share core {min(shared)}: its CPU is that of both")
    return replace(placement, endpoints=chosen, warnings=tuple(warnings))


def cores_of(placement: Mapping[str, Any]) -> set[int]:
    """The cores on which a lab with this placement (as a document) sends and routes."""
    return {cpu for cpu in (placement.get("sender_cpu"), *placement.get("router_cpus", ())) if cpu is not None}


def place(settings: LabConfig, cpus: Sequence[int], siblings: Mapping[int, Sequence[int]]) -> Placement:
    """Which process runs on which of these cores; siblings: the hyper-threads of each core, itself included."""
    taken = settings.router_cpus if isinstance(settings.router_cpus, tuple) else ()
    for cpu in (settings.sender_cpu, settings.harness_cpu, *taken):
        if isinstance(cpu, int) and cpu not in cpus:
            usable = ", ".join(map(str, cpus))
            raise ConfigError(f"lab: core {cpu} cannot be used, only {usable}", "correct the DUT config's lab: section")
    warnings: list[str] = []
    free = [cpu for cpu in cpus if cpu not in taken] or list(cpus)
    sender = _one(settings.sender_cpu, free[0])
    router = _router(settings, cpus, siblings, free[0] if sender is None else sender)
    both = {cpu for cpu in (sender, *router) if cpu is not None}
    rest = [cpu for cpu in cpus if cpu not in both] or [cpu for cpu in cpus if cpu not in router] or list(cpus)
    if sender in router:
        warnings.append(f"sender and router share core {sender}: the result is that of both, not of the router")
    elif len(cpus) > 1 and sender is not None and set(router) & set(siblings.get(sender, ())):
        warnings.append(f"the router's core and the sender's core {sender} share one physical core")
    return Placement(sender, router, _one(settings.harness_cpu, rest[0]), tuple(warnings))


def _one(setting: int | str, automatic: int) -> int | None:
    if isinstance(setting, int):
        return setting
    return automatic if setting == "auto" else None


def _router(
    settings: LabConfig, cpus: Sequence[int], siblings: Mapping[int, Sequence[int]], sender: int
) -> tuple[int, ...]:
    if isinstance(settings.router_cpus, tuple):
        return settings.router_cpus
    if settings.router_cpus == "any":
        return ()
    others = [cpu for cpu in cpus if cpu != sender]
    apart = [cpu for cpu in others if cpu not in siblings.get(sender, ())]
    return tuple((apart or others or [sender])[:1])
