"""What a DUT config says, as data; all checked, nothing looked up."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from pathlib import Path

from ..core.units import Rate
from .settings import LinuxSettings, PfsenseSettings, PowerConfig, VppSettings
from .twin import RssSpec, TwinSpec


@dataclass(frozen=True)
class Neighbour:
    """The tester as the DUT shall see it; ``mac`` None stands for the tester's own port MAC."""

    address: IPv4Address
    mac: str | None = None


@dataclass(frozen=True)
class Port:
    """One cable: the tester's port index at one end, the DUT's interface with its address at the other."""

    tester: int
    interface: str
    address: IPv4Interface
    neighbour: Neighbour


@dataclass(frozen=True)
class Route:
    to: IPv4Network
    via: IPv4Address


@dataclass(frozen=True)
class TransportConfig:
    """How the DUT is reached. type: ``netns`` (namespace), ``local`` or ``ssh`` (host, user, port).

    host may be a name of the user's own ssh config, which also says user and port where they are None.
    """

    type: str
    namespace: str | None = None
    host: str | None = None
    user: str | None = None
    port: int | None = None


@dataclass(frozen=True)
class GeneratorConfig:
    """Where the STL server (TRex or the embedded one) listens."""

    server: str = "127.0.0.1"
    rpc_port: int = 4501
    pub_port: int = 4500


@dataclass(frozen=True)
class LabConfig:
    """How a DUT of namespaces is built on this machine; every field is a key of the ``lab:`` section.

    sender_cpu: core of the generator's packet engine; ``auto`` is the first usable core, ``any`` does not pin.
    router_cpus: cores that forward; ``auto`` is the first core that shares no hardware with the sender's.
    harness_cpu: core of trexbench itself, as sender_cpu; ``auto`` keeps it off the router's cores.
    steer: how frames that arrive at the DUT get to router_cpus, veth having no interrupt of its own: ``cpumap`` (a
    queue that a kernel thread on the first of them empties), ``rps`` (receive packet steering) or ``none``.
    threaded: NAPI of the DUT's interfaces in kernel threads, pinned to router_cpus.
    gro: generic receive offload on the DUT's interfaces; veth only polls with it (or with an XDP program).
    queues: receive and transmit queues of every veth. txqueuelen, mtu: of every veth.
    sender_limit_pps: per port, the embedded server sends no faster: a weak generator, to see how it is reported.
    sysctls: set in the DUT's namespace where they exist there, else on the host and put back afterwards.
    router: what forwards: the ``kernel``, or a ``vpp`` that is started in the DUT's namespace with its workers on
    router_cpus.
    """

    prefix: str = "tbx"
    sender_cpu: int | str = "auto"
    router_cpus: tuple[int, ...] | str = "auto"
    harness_cpu: int | str = "auto"
    steer: str = "cpumap"
    threaded: bool = False
    gro: bool = True
    router: str = "kernel"
    queues: int = 1
    txqueuelen: int = 1000
    mtu: int = 1500
    sender_limit_pps: float | None = None
    sysctls: tuple[tuple[str, str], ...] = (("net.core.netdev_max_backlog", "4096"),)


@dataclass(frozen=True)
class PlanDefaults:
    """What a run of this DUT does unless the command line says otherwise; None leaves it to the tool.

    warmup and ramp_to are rates as written, ``*_s`` are seconds, loss is a fraction, windows is a count.
    """

    warmup: Rate | None = None
    warmup_s: float | None = None
    ramp_to: Rate | None = None
    ramp_s: float | None = None
    hold_s: float | None = None
    confirm_s: float | None = None
    latency_s: float | None = None
    drain_s: float | None = None
    sample_s: float | None = None
    window_s: float | None = None
    loss: float | None = None
    windows: int | None = None
    stop_on_saturation: bool | None = None


@dataclass(frozen=True)
class DutConfig:
    """One file of dut_configs; ``name`` is the file's. rx_queues: the queue counts this DUT is measured with.

    speed_bps caps the line rate (L1 bit/s); None leaves it to the tester's ports. linux, vpp, pfsense: what belongs to
    that driver alone. rss: how the NICs choose a queue, where the DUT does not say. text is the file as it was read.
    """

    name: str
    file: Path
    driver: str
    transport: TransportConfig
    ports: tuple[Port, ...]
    routes: tuple[Route, ...]
    description: str = ""
    speed_bps: float | None = None
    rx_queues: tuple[int, ...] = ()
    generator: GeneratorConfig = field(default_factory=GeneratorConfig)
    plan: PlanDefaults = field(default_factory=PlanDefaults)
    linux: LinuxSettings = field(default_factory=LinuxSettings)
    vpp: VppSettings = field(default_factory=VppSettings)
    pfsense: PfsenseSettings = field(default_factory=PfsenseSettings)
    rss: RssSpec | None = None
    power: PowerConfig | None = None
    lab: LabConfig | None = None
    twin: TwinSpec | None = None
    notes: str = ""
    text: str = ""

    @property
    def offered_queues(self) -> tuple[int, ...]:
        """Receive queues per port that it can be measured with."""
        return self.rx_queues or ((self.twin.queues,) if self.twin is not None else (1,))

    @property
    def tester_ports(self) -> tuple[int, ...]:
        return tuple(port.tester for port in self.ports)

    def with_lab_prefix(self, prefix: str) -> DutConfig:
        """The same DUT in namespaces of other names, so that two labs can stand side by side."""
        if self.lab is None:
            return self
        return replace(
            self,
            lab=replace(self.lab, prefix=prefix),
            transport=replace(self.transport, namespace=dut_namespace(prefix)),
            vpp=replace(self.vpp, socket=vpp_socket(prefix)) if self.lab.router == "vpp" else self.vpp,
        )


def dut_namespace(prefix: str) -> str:
    return f"{prefix}-dut"


def vpp_socket(prefix: str) -> str:
    """The command line of a lab's own VPP; like its namespaces, it has one name on the machine."""
    return f"/run/trexbench-vpp/{prefix}/cli.sock"


def tester_namespace(prefix: str) -> str:
    return f"{prefix}-tester"
