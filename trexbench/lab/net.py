"""Network namespaces and their contents: netlink, ioctl and /proc, used from inside the namespace."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import LabError
from ..host.files import mask
from ..stlserver.engine import EngineError
from ..stlserver.kernel.netdev import CLONE_NEWNET, LIBC, enter_netns
from ..transport import NetnsTransport
from .host import processes
from .spec import LabSpec

if TYPE_CHECKING:
    from pyroute2 import IPRoute

_TAGS_APART = frozenset({"tx-vlan-hw-insert", "tx-vlan-stag-hw-insert"})


def enter(name: str) -> None:
    """Move the calling thread into a namespace, with the threads and sockets that it makes later."""
    try:
        enter_netns(name)
    except EngineError as error:
        what, _, remedy = str(error).rpartition("; ")
        missing = not os.path.exists(f"/run/netns/{name}")
        raise LabError(what, "bring the lab up: trexbench lab up" if missing else remedy) from None


@contextlib.contextmanager
def inside(name: str) -> Iterator[None]:
    """Run the block in a namespace: the calling thread enters it and returns."""
    with returning():
        enter(name)
        yield


@contextlib.contextmanager
def returning() -> Iterator[None]:
    """Return the calling thread to its own namespace after the block, whichever one that entered."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield
    finally:
        try:
            away = not os.path.samestat(os.fstat(home), os.stat("/proc/thread-self/ns/net"))
            if away and LIBC.setns(home, CLONE_NEWNET) != 0:
                raise LabError("the caller's namespace cannot be entered again", "run as root")
        finally:
            os.close(home)


@contextlib.contextmanager
def netlink(what: str, remedy: str) -> Iterator[IPRoute]:
    """Open netlink in the calling thread's namespace. what, remedy: of the LabError if the kernel refuses."""
    from pyroute2 import IPRoute
    from pyroute2.netlink.exceptions import NetlinkError

    try:
        with IPRoute() as ip:
            yield ip
    except NetlinkError as error:
        raise LabError(f"{what}: {os.strerror(error.code) if error.code else error}", remedy) from None


def make_namespace(name: str) -> None:
    """Make a namespace without IPv6, whose router solicitations and the like would count as traffic."""
    from pyroute2 import netns

    try:
        netns.create(name)
    except OSError as error:
        raise LabError(f"namespace {name} cannot be made: {error.strerror}", "a container needs --privileged") from None
    with inside(name):
        for scope in ("all", "default"):
            write_sysctl(f"net.ipv6.conf.{scope}.disable_ipv6", "1", required=False)


def remove_namespace(name: str) -> None:
    """Remove its veth pairs and TAPs, which a process that still runs in it would keep; then the namespace."""
    from pyroute2 import IPRoute, netns

    with contextlib.suppress(LabError), inside(name), IPRoute() as ip:
        for link in ip.get_links():
            if link.get_nested("IFLA_LINKINFO", "IFLA_INFO_KIND") in ("veth", "tun"):
                with contextlib.suppress(Exception):  # it was removed together with its peer
                    ip.link("del", index=link["index"])
    with contextlib.suppress(FileNotFoundError):
        netns.remove(name)


def make_cables(spec: LabSpec) -> None:
    """Make one veth pair per port, each end in its own namespace, and set all links up, loopback included.

    A bypass has one pair for every two ports, with both ends in the tester's namespace.

    The tester has one transmit queue: a veth with an XDP program needs at least as many receive queues as its peer has
    transmit queues, so that the DUT's could not be set. The sender's CPU selects the receive queue in any case.
    """
    settings = spec.settings
    queues = max(spec.most_queues, settings.queues)
    common = {"mtu": settings.mtu, "txqlen": settings.txqueuelen, "num_rx_queues": queues}
    tester = {"net_ns_fd": spec.tester, "num_tx_queues": 1, **common}
    dut = {"net_ns_fd": spec.dut, "num_tx_queues": queues, **common}
    near = spec.tester_interfaces
    cables = list(zip(range(len(near)), near, spec.dut_interfaces, strict=True))
    if spec.bypass:
        cables, dut = [(index, near[index], near[index + 1]) for index in range(0, len(near), 2)], tester
    with netlink(f"veth pair of lab {spec.prefix}", "see whether the kernel has veth") as ip:
        for index, here, far in cables:
            peer = {"ifname": far, "address": spec.far_macs[index], **dut}
            ip.link("add", kind="veth", ifname=here, address=spec.tester_macs[index], peer=peer, **tester)
    for name in spec.namespaces:
        set_up(name)


def make_tap(space: str, name: str, several: bool = False) -> None:
    """Make a TAP that lives as long as this namespace, down and without carrier; several: with several queues."""
    remedy = "a virtual machine needs /dev/net/tun; a container needs it, too"
    with inside(space), netlink(f"TAP {name} in namespace {space}", remedy) as ip:
        flags = {"no_pi": 1, "vnet_hdr": 1, "multi_queue": int(several)}
        ip.link("add", ifname=name, kind="tuntap", mode="tap", ifr=flags)


def set_link(space: str, name: str, **attributes: Any) -> None:
    """Set attributes of an interface, as ``ip link set`` does."""
    with inside(space), netlink(f"{name} in namespace {space}", "correct lab: of the DUT") as ip:
        ip.link("set", index=ip.link_lookup(ifname=name)[0], **attributes)


def set_up(name: str) -> None:
    """Set all links of a namespace up."""
    with inside(name), netlink(f"links of namespace {name}", "see what ip link says there") as ip:
        for link in ip.get_links():
            ip.link("set", index=link["index"], state="up")


def tune(spec: LabSpec, router_cpus: Sequence[int]) -> None:
    """Set queues in use, GRO, RPS and threaded NAPI of the DUT's interfaces."""
    with inside(spec.dut):
        for name in spec.dut_interfaces:
            _set_gro_and_queues(spec, name)
    transport = NetnsTransport(spec.dut)
    steered = mask(router_cpus if spec.settings.steer == "rps" else ())
    for name in spec.dut_interfaces:
        for queue in range(spec.settings.queues):
            write_file(transport, f"/sys/class/net/{name}/queues/rx-{queue}/rps_cpus", steered)
    set_threaded(transport, spec.dut_interfaces, spec.settings.threaded, router_cpus)


def set_threaded(
    transport: NetnsTransport, names: Sequence[str], on: bool, cpus: Sequence[int], niceness: int = 0
) -> None:
    """Switch NAPI of these interfaces to kernel threads, which run on these CPUs; no CPUs: on any."""
    before = _napi_threads()
    for name in names:
        write_file(transport, f"/sys/class/net/{name}/threaded", str(int(on)))
    if on and cpus:
        for pid in _napi_threads() - before:
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(pid, cpus)
                os.setpriority(os.PRIO_PROCESS, pid, niceness)


def _set_gro_and_queues(spec: LabSpec, interface: str) -> None:
    """Set GRO, queues and VLAN offloads, without ethtool, which may not be installed."""
    from pyroute2.ethtool.ioctl import EthtoolError, IoctlEthtool

    with contextlib.closing(IoctlEthtool(interface)) as device:
        key = "gro"
        try:
            device.set_offload_flag("generic-receive-offload", spec.settings.gro)
            if spec.settings.queues < spec.most_queues:
                key, channels = "queues", device.get_channels()
                channels.rx_count = channels.tx_count = spec.settings.queues
                device.set_channels(channels)
            if spec.tagged:  # otherwise the tag travels beside the frame, unseen by the tester's XDP program
                key, features = "vlan", device.get_features()
                for name in _TAGS_APART & features.keys():
                    features[name] = False
                device.set_features(features)
        except (OSError, EthtoolError) as error:
            raise LabError(f"{key} of {interface}: {error}", f"correct lab.{key} of the DUT config") from None


def read_sysctl(name: str) -> str | None:
    """Read a kernel setting as the calling thread's namespace sees it; None if it does not exist."""
    try:
        return " ".join(_sysctl_path(name).read_text().split())
    except OSError:
        return None


def write_sysctl(name: str, value: str, required: bool = True) -> None:
    try:
        _sysctl_path(name).write_text(value)
    except OSError as error:
        if required:
            remedy = "correct or remove it in lab.sysctls of the DUT config"
            raise LabError(f"sysctl {name}={value}: {error.strerror}", remedy) from None


def _sysctl_path(name: str) -> Path:
    return Path("/proc/sys") / name.replace(".", "/")


def write_file(transport: NetnsTransport, path: str, value: str) -> None:
    done = transport.run(("tee", path), 10, value + "\n")
    if done.returncode:
        raise LabError(f"{path} does not take {value} ({done.complaint})", "correct the DUT config's lab: section")


def _napi_threads() -> set[int]:
    return {pid for pid, name in processes() if name.startswith("napi/")}  # such as napi/d0-8194
