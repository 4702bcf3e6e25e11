"""A Linux router that is a few dictionaries: what the driver reads and writes there, with the kernel's side effects.

Its NICs (two of ixgbe's manner) lose the CPUs of their interrupts and the RPS masks of queues that go when the number
of queues changes; turning forwarding on or off writes to every interface, and turns accept_redirects the other way.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Any

from boxes import Said

FORWARD = "/proc/sys/net/ipv4/ip_forward"
CONF = "/proc/sys/net/ipv4/conf"
CONF6 = "/proc/sys/net/ipv6/conf"
FORWARD6 = f"{CONF6}/all/forwarding"
NO_SUCH = Said(stderr="No such file or directory", returncode=1)


def error(text: str) -> Said:
    return Said(stderr=f"RTNETLINK answers: {text}\n", returncode=2)


@dataclass
class Nic:
    """kind: of channels, ``combined`` or ``rx``; None for a NIC that has none to tell. irq: of queue 0.

    tunnel: its ends and TTL, by ip's words; it is a sit device then. table: queues in its hash's table, where the
    driver leaves that alone, as virtio_net does.
    """

    mac: str
    irq: int
    up: bool = False
    cable: bool = True
    addresses: list[str] = field(default_factory=list)
    kind: str | None = "combined"
    most: int = 4
    queues: int = 4
    table: int | None = None
    offloads: dict[str, bool] = field(
        default_factory=lambda: {"generic-receive-offload": True, "large-receive-offload": True, "lro": False}
    )
    driver: str = "ixgbe"
    counters: dict[str, int] = field(default_factory=dict)
    mtu: int = 1500
    tunnel: dict[str, str] | None = None
    stats: dict[str, dict[str, int]] = field(default_factory=lambda: {"rx": {"packets": 0}, "tx": {"packets": 0}})


@dataclass
class LinuxBox:
    """files: of /proc and /sys, by path. interrupts: rows besides those of its queues.

    routes: as ``ip -json`` shows them, with the words that made each.
    """

    programs: Sequence[str] = ("ip", "tee", "cat", "grep", "readlink", "ethtool", "systemctl", "pgrep", "tc")
    nics: dict[str, Nic] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    routes: list[list[str]] = field(default_factory=list)
    neighbours: dict[str, tuple[str, str]] = field(default_factory=dict)
    interrupts: list[str] = field(default_factory=list)
    irqbalance: bool = True
    systemd: bool = True
    sit: bool = True

    def __post_init__(self) -> None:
        if self.nics:
            return
        self.nics = {"enp3s0f0": Nic("00:08:a2:00:00:01", 50), "enp3s0f1": Nic("00:08:a2:00:00:02", 60)}
        self.files = {
            "/proc/sys/kernel/random/boot_id": "c3f5215b-70e8-4971-8dff-2d3a6870539e",
            "/proc/self/ns/net": "net:[4026531840]",
            "/proc/sys/kernel/osrelease": "5.13.0-21-generic",
            FORWARD: "0",
            FORWARD6: "0",
            f"{CONF}/all/accept_redirects": "1",
            f"{CONF}/all/rp_filter": "0",
            "/sys/devices/system/cpu/online": "0-3",
            "/proc/stat": "cpu  1 1 1 1 1 1 1 0 0 0\n"
            + "\n".join(f"cpu{cpu} 10 0 20 1000 5 1 {100 * cpu} 7 0 0" for cpu in range(4)),
            "/proc/cpuinfo": "\n".join(f"processor\t: {cpu}\ncpu MHz\t\t: 2200.000" for cpu in range(4)),
            "/proc/net/snmp": "Ip: InReceives InHdrErrors InDiscards\nIp: 900 3 4\n",
            "/proc/net/netstat": "TcpExt: IPReversePathFilter\nTcpExt: 5\nIpExt: InNoRoutes\nIpExt: 6\n",
            "/proc/net/softnet_stat": "".join(f"000000ff 0000000{cpu} 00000010 00000000\n" for cpu in range(4)),
            "/proc/softirqs": "  CPU0 CPU1 CPU2 CPU3\n NET_TX: 0 1 2 3\n NET_RX: 10 11 12 13\n",
        }
        for cpu in range(4):
            self.files[f"/sys/devices/system/cpu/cpufreq/policy{cpu}/scaling_governor"] = "powersave"
        for name in self.nics:
            self.files[f"{CONF}/{name}/forwarding"] = "0"
            self.files[f"{CONF}/{name}/rp_filter"] = "0"
            self.files |= {f"{CONF6}/{name}/forwarding": "0", f"{CONF6}/{name}/disable_ipv6": "1"}
            self.files[f"/proc/net/dev_snmp6/{name}"] = (
                "ifIndex \t2\nIp6InReceives \t70\nIp6InNoRoutes \t8\nIcmp6InMsgs \t9\n"
            )
            self._set_queues(name, 4)

    def settings(self) -> object:
        """Return everything, to compare before and after."""
        return copy.deepcopy(self)

    def run(self, argv: Sequence[str], input: str) -> Said:
        said: Said = getattr(self, f"_{argv[0]}")(list(argv[1:]), input)
        return said

    def _cat(self, words: list[str], _: str) -> Said:
        if words == ["/proc/interrupts"]:
            return Said(self._interrupts())
        return Said(self.files[words[0]] + "\n") if words[0] in self.files else NO_SUCH

    _readlink = _cat

    def _tee(self, words: list[str], input: str) -> Said:
        (path,) = words
        if path not in self.files:
            return Said(stderr=f"tee: {path}: No such file or directory\n", returncode=1)
        value = input.strip()
        if path == FORWARD and value != self.files[path]:
            self.files |= {f"{CONF}/{name}/forwarding": value for name in self.nics}
            self.files[f"{CONF}/all/accept_redirects"] = "0" if value == "1" else "1"
            for nic in self.nics.values():
                nic.offloads["large-receive-offload"] &= value == "0"
        if path == FORWARD6 and value != self.files[path]:
            self.files |= {f"{CONF6}/{name}/forwarding": value for name in self.nics}
        if path.endswith("/disable_ipv6") and value == "1":
            nic = self.nics[path.split("/")[-2]]
            nic.addresses = [one for one in nic.addresses if ":" not in one]
        self.files[path] = value
        return Said(input)

    def _grep(self, words: list[str], _: str) -> Said:
        included = [word.partition("=")[2] for word in words if word.startswith("--include=")]
        paths = [word for word in words if word.startswith("/")]
        if words[0].startswith("-r"):
            paths = [path for path in self.files for below in paths if path.startswith(f"{below}/")]
        paths = [path for path in paths if not included or path.rpartition("/")[2] in included]
        files = self.files | {"/proc/net/dev": self._net_dev(), "/proc/interrupts": self._interrupts()}
        lines = [f"{path}:{line}" for path in paths for line in files.get(path, "").splitlines()]
        return Said("\n".join(lines), returncode=0 if lines else 1)

    def _systemctl(self, words: list[str], _: str) -> Said:
        if not self.systemd:
            return Said(stderr="System has not been booted with systemd as init system (PID 1).\n", returncode=1)
        if words[0] == "is-active":
            return Said("active\n") if self.irqbalance else Said("inactive\n", returncode=3)
        self.irqbalance = words[0] == "start"
        return Said()

    def _pgrep(self, words: list[str], _: str) -> Said:
        return Said("712\n") if self.irqbalance else Said(returncode=1)

    def _tc(self, words: list[str], _: str) -> Said:
        return Said(json.dumps([{"kind": "mq", "dev": name, "root": True, "drops": 2} for name in self.nics]))

    # queues and interrupts

    def _set_queues(self, name: str, queues: int) -> None:
        nic, base = self.nics[name], f"/sys/class/net/{name}"
        before = nic.queues
        nic.queues = queues
        for queue in range(nic.most):
            rps, msi = f"{base}/queues/rx-{queue}/rps_cpus", f"{base}/device/msi_irqs/{nic.irq + queue}"
            affinity = f"/proc/irq/{nic.irq + queue}/smp_affinity_list"
            if queue < queues:
                if queue >= before or rps not in self.files:
                    self.files[rps] = "0"
                self.files |= {msi: "msix", affinity: "0-3"}
            else:
                for path in (rps, msi, affinity):
                    self.files.pop(path, None)

    def _net_dev(self) -> str:
        """Return the table of /proc/net/dev: of 16 columns, the second and the tenth are packets."""
        rows = ["Inter-|   Receive            |  Transmit", " face |bytes    packets errs|bytes    packets errs"]
        for name, nic in self.nics.items():
            received, sent = nic.stats["rx"]["packets"], nic.stats["tx"]["packets"]
            rows.append(f"{name}: 1 {received} 0 0 0 0 0 0 2 {sent} 0 0 0 0 0 0")
        return "\n".join(rows)

    def _interrupts(self) -> str:
        rows = ["            CPU0       CPU1       CPU2       CPU3"]
        for name, nic in self.nics.items():
            for queue in range(nic.queues if nic.up else 0):
                # tg3.c, tg3_request_irq: its first vector is the link's
                label = f"{name}-rx-{queue + 1}" if nic.driver == "tg3" else f"{name}-TxRx-{queue}"
                rows.append(f" {nic.irq + queue}: 0 0 0 0  IR-PCI-MSI 1572864-edge      {label}")
        return "\n".join([*rows, *self.interrupts, "LOC:  1  1  1  1   Local timer interrupts"])

    def _ethtool(self, words: list[str], _: str) -> Said:
        words = [word for word in words if word != "--json"]
        name = words[1]
        if name not in self.nics:
            return Said(stderr="Cannot get device settings: No such device\n", returncode=71)
        nic = self.nics[name]
        if words[0] in ("-x", "-n") and nic.tunnel is not None:
            return Said(stderr="netlink error: Operation not supported\n", returncode=1)
        if words[0] == "-k":
            return Said(json.dumps([{"ifname": name, **{key: {"active": on} for key, on in nic.offloads.items()}}]))
        if words[0] == "-K":
            if words[2] not in nic.offloads:
                return Said(stderr=f"ethtool: bad command line argument(s) {words[2]}\n", returncode=1)
            nic.offloads[words[2]] = words[3] == "on"
            return Said()
        if words[0] == "-i":
            return Said(f"driver: {nic.driver}\nversion: 5.13\nfirmware-version: 0x8000087c\n")
        if words[0] == "-g":
            return Said("Pre-set maximums:\nRX:\t4096\nTX:\t4096\nCurrent hardware settings:\nRX:\t512\nTX:\t512\n")
        if words[0] == "-c":
            return Said(f"Adaptive RX: on  TX: off\nrx-usecs:\t{nic.stats['rx']['packets']}\ntx-usecs:\t10\n")
        if words[0] == "-S" and not nic.counters:
            return Said(stderr="no stats available\n", returncode=94)
        if words[0] == "-S":
            return Said("NIC statistics:\n" + "".join(f"     {key}: {n}\n" for key, n in nic.counters.items()))
        if words[0] == "-x":
            count = nic.table or nic.queues
            rows = "\n".join(f"    {at}:  " + " ".join(f"{(at + i) % count:5}" for i in range(8)) for at in (0, 8))
            return Said(
                f"RX flow hash indirection table for {name} with 4 RX ring(s):\n{rows}\nRSS hash key:\n6d:5a:01\n"
            )
        if words[0] == "-n":
            ports = "L4 bytes 0 & 1 [TCP/UDP src port]\n" if words[3] == "udp6" else ""
            return Said(f"UDP over IPV4 flows use these fields for computing Hash flow key:\nIP SA\nIP DA\n{ports}")
        if nic.kind is None:
            return Said(stderr="netlink error: Operation not supported\n", returncode=1)
        if words[0] == "-X":
            if int(words[3]) > nic.queues:
                return Said(stderr="Cannot set RX flow hash configuration: Invalid argument\n", returncode=1)
            nic.table = int(words[3])
            return Said()
        if words[0] == "-L":
            if words[2] != nic.kind or not 1 <= int(words[3]) <= nic.most:
                return Said(stderr="netlink error: Invalid argument\n", returncode=1)
            if int(words[3]) < (nic.table or 1):
                return Said(stderr="channel counts are too low for existing indirection table settings\n", returncode=1)
            self._set_queues(name, int(words[3]))
            return Said()
        return Said(_channels(nic))

    # ip

    def _ip(self, words: list[str], _: str) -> Said:
        options = [word for word in words if word.startswith("-")]
        words = words[len(options) :]
        handler = getattr(self, f"_ip_{words[0]}_{words[1]}")
        if "dev" in words and words[words.index("dev") + 1] not in self.nics:
            return Said(stderr=f'Cannot find device "{words[words.index("dev") + 1]}"\n', returncode=1)
        said: Said = handler(words[2:], "-s" in options)
        return said

    def _ip_link_show(self, words: list[str], counted: bool) -> Said:
        return Said(json.dumps([_link(name, nic, counted) for name, nic in self.nics.items()]))

    def _ip_link_add(self, words: list[str], _: bool) -> Said:
        told = dict(zip(words[::2], words[1::2], strict=True))
        name = told.pop("name")
        if told.pop("type") != "sit" or not self.sit:
            return Said(stderr="Error: Unknown device type.\n", returncode=2)
        if name in self.nics:
            return error("File exists")
        self.nics[name] = Nic("", 90, kind=None, most=0, queues=0, driver="sit", tunnel=told)
        for conf, settings in ((CONF, ("forwarding", "rp_filter")), (CONF6, ("forwarding", "disable_ipv6"))):
            self.files |= {f"{conf}/{name}/{one}": self.files[f"{conf}/enp3s0f0/{one}"] for one in settings}
        self.files |= {f"{CONF}/{name}/{one}_redirects": "1" for one in ("accept", "send")}
        self.files |= {f"{CONF6}/{name}/accept_redirects": "1", f"{CONF6}/{name}/disable_ipv6": "1"}
        return Said()

    def _ip_link_del(self, words: list[str], _: bool) -> Said:
        (name,) = words
        if self.nics.pop(name, None) is None:
            return Said(stderr=f'Cannot find device "{name}"\n', returncode=1)
        self.files = {path: value for path, value in self.files.items() if f"/{name}/" not in path}
        self.routes = [route for route in self.routes if name not in route]
        return Said()

    def _ip_link_set(self, words: list[str], _: bool) -> Said:
        _, name, *size, state = words
        self.nics[name].mtu = int(size[1]) if size else self.nics[name].mtu
        self.nics[name].up = state == "up"
        if state == "down":
            self.routes = [route for route in self.routes if name not in route]
            self.neighbours = {key: one for key, one in self.neighbours.items() if not key.endswith(f"%{name}")}
        return Said()

    def _ip_address_show(self, words: list[str], _: bool) -> Said:
        return Said(json.dumps([{"ifname": name, "addr_info": _infos(nic)} for name, nic in self.nics.items()]))

    def _ip_address_replace(self, words: list[str], _: bool) -> Said:
        there = self.nics[words[2]].addresses
        if ":" in words[0] and self.files[f"{CONF6}/{words[2]}/disable_ipv6"] == "1":
            return error("Permission denied")
        if ":" in words[0] and words[3:] != ["nodad"]:
            return error("it would be tentative for a second")
        if words[0] not in there:
            there.append(words[0])
        return Said()

    def _ip_address_del(self, words: list[str], _: bool) -> Said:
        there = self.nics[words[2]].addresses
        if words[0] not in there:
            return error("Cannot assign requested address")
        there.remove(words[0])
        return Said()

    def _ip_neigh_show(self, words: list[str], _: bool) -> Said:
        name = words[1]
        found = {key: one for key, one in self.neighbours.items() if key.endswith(f"%{name}")}
        rows = [
            {"dst": key.split("%")[0], "lladdr": mac, "state": [state.upper()]} for key, (mac, state) in found.items()
        ]
        return Said(json.dumps(rows))

    def _ip_neigh_replace(self, words: list[str], _: bool) -> Said:
        self.neighbours[f"{words[0]}%{words[6]}"] = (words[2], words[4])
        return Said()

    def _ip_neigh_del(self, words: list[str], _: bool) -> Said:
        return Said() if self.neighbours.pop(f"{words[0]}%{words[2]}", None) else error("No such file or directory")

    def _ip_route_show(self, words: list[str], _: bool) -> Said:
        asked = ip_network(words[-1])
        nets = [(next(ip_network(word) for word in route if "/" in word), route) for route in self.routes]
        found = [route for net, route in nets if net.version == asked.version and _inside(net, asked)]
        return Said(json.dumps([_route(route) for route in found]))

    def _ip_route_replace(self, words: list[str], _: bool) -> Said:
        net = next(word for word in words if "/" in word)
        here = next((at for at, route in enumerate(self.routes) if net in route), len(self.routes))
        self.routes[here : here + 1] = [words]
        return Said()

    def _ip_route_del(self, words: list[str], _: bool) -> Said:
        found = [route for route in self.routes if route[: len(words)] == words]
        self.routes = [route for route in self.routes if route not in found]
        return Said() if found else error("No such process")

    def _ip_route_get(self, words: list[str], _: bool) -> Said:
        host = ip_address(words[0])
        nets = [(ip_network(one[0]), one) for one in self.routes if "/" in one[0]]
        route = next((one for net, one in nets if net.version == host.version and host in net), None)
        dropped = "iif" in words and self.files[FORWARD if host.version == 4 else FORWARD6] != "1"
        if route is None or dropped:
            return error("No route to host")
        return Said(json.dumps([_route(route)]))


def _inside(net: Any, other: Any) -> bool:
    return bool(net.subnet_of(other))


def _infos(nic: Nic) -> list[dict[str, Any]]:
    split = [one.split("/") for one in nic.addresses]
    return [{"family": "inet6" if ":" in ip else "inet", "local": ip, "prefixlen": int(n)} for ip, n in split]


def _channels(nic: Nic) -> str:
    def part(count: int) -> str:
        rx, combined = (str(count), "n/a") if nic.kind == "rx" else ("n/a", str(count))
        return f"RX:\t\t{rx}\nTX:\t\t{rx}\nOther:\t\t1\nCombined:\t{combined}\n"

    return f"Channel parameters:\nPre-set maximums:\n{part(nic.most)}Current hardware settings:\n{part(nic.queues)}"


def _link(name: str, nic: Nic, counted: bool) -> dict[str, Any]:
    flags = ["UP", "LOWER_UP"] if nic.up and nic.cable else ["UP"] if nic.up else []
    found: dict[str, Any] = {"ifname": name, "flags": flags, "address": nic.mac, "mtu": nic.mtu, "qdisc": "mq"}
    if nic.tunnel is not None:
        data = {**nic.tunnel, "ttl": int(nic.tunnel["ttl"])}
        found["linkinfo"] = {"info_kind": "sit", "info_data": data}
    return {**found, "stats64": nic.stats} if counted else found


def _route(words: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {"type": words[0], "dst": words[1]} if words[0] == "blackhole" else {"dst": words[0]}
    for word, key in (("via", "gateway"), ("dev", "dev"), ("proto", "protocol"), ("metric", "metric")):
        if word in words:
            value = words[words.index(word) + 1]
            found[key] = int(value) if key == "metric" else value
    if ":" in found["dst"]:
        found.setdefault("metric", 1024)
    return found
