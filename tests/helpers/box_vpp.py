"""A VPP in a few lines: it keeps interfaces, addresses, neighbours and a FIB, and prints them as VPP 26.06 does.

It has the two habits that make a VPP lose packets while everything else reads back well: ``ip route add`` of a prefix
that is there adds a path, and a path whose interface was deleted stays dead, whatever is made in its place. vppctl
ends with 0 and CRLF, whatever was said.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_interface, ip_network

from boxes import Said

CONF = """\
# kept by hand
unix {
  nodaemon            # systemd starts it
  cli-listen /run/vpp/cli.sock
}
cpu {
  main-core 0
  workers 1
}
dpdk {
  dev default {
    num-rx-desc 512   # { not a brace
  }
  dev 0000:03:00.0 { num-tx-desc 1024 }
  dev 0000:03:00.1
  uio-driver vfio-pci
}
"""
RUNTIME = """\
Thread 0 vpp_main (lcore 0)
Time 5.0, 10.000000 sec internal node vector rate 0.00 loops/sec 1718360.12
  vector rates in 0.0000e0, out 0.0000e0, drop 0.0000e0, punt 0.0000e0
             Name                 State         Calls          Vectors        Suspends    Packet-Clocks   Vectors/Call
fib-walk                       "any wait"                0               0             3          1.66e4            0.00
---------------
Thread 1 vpp_wk_0 (lcore 1)
Time 5.0, 10.000000 sec internal node vector rate 55.31 loops/sec 8232.93
  vector rates in 2.8170e5, out 2.8170e5, drop 0.0000e0, punt 0.0000e0
             Name                 State         Calls          Vectors        Suspends    Packet-Clocks   Vectors/Call
dpdk-input                       polling           24233         1423616               0          4.17e3           58.75
ethernet-input                   active            24684         1423616               0          2.05e1           57.67
"""


@dataclass
class Card:
    """An interface. frames: by the name of a counter; queued: packets by receive queue."""

    index: int
    kind: str
    mac: str
    queues: int = 1
    up: bool = False
    link: bool = True
    mode: str = "polling"
    most: int = 64
    workers: list[str] = field(default_factory=list)
    frames: dict[str, int] = field(default_factory=dict)
    queued: dict[int, int] = field(default_factory=dict)


@dataclass
class Path:
    via: str
    index: int
    dead: bool = False


@dataclass
class VppBox:
    """nics: names of DPDK's. linux: interfaces that af_packet can be put on; scripted: those on which a start-up script
    does. deaf: so many commands after a restart
    find nobody at the socket. down: VPP does not run.
    """

    nics: Sequence[str] = ()
    linux: Sequence[str] = ("d0", "d1")
    socket: str = "/run/vpp/cli.sock"
    files: dict[str, str] = field(default_factory=dict)
    deaf_after_start: int = 0
    pid: int = 1000
    workers: int = 1
    deaf: int = 0
    down: bool = False
    cleared: int = 0
    cards: dict[str, Card] = field(default_factory=dict)
    addresses: dict[str, list[str]] = field(default_factory=dict)
    neighbours: dict[str, tuple[str, bool]] = field(default_factory=dict)
    routes: dict[str, list[Path]] = field(default_factory=dict)
    scripted: Sequence[str] = ()
    programs: Sequence[str] = ("vppctl", "sh", "cat", "tee", "grep", "systemctl")

    def __post_init__(self) -> None:
        self.files.setdefault("/etc/vpp/startup.conf", CONF)
        self.files.setdefault("/proc/sys/kernel/random/boot_id", "11111111-2222\n")
        self.files.setdefault("/proc/sys/kernel/osrelease", "5.15.0-generic\n")
        self.files.setdefault("/sys/devices/system/cpu/online", "0-3\n")
        for slot in (4, 5):
            self.files.setdefault(f"/sys/bus/pci/devices/0000:00:0{slot}.0/class", "0x020000\n")
        for at, name in enumerate(self.linux):
            self.files.setdefault(f"/sys/class/net/{name}/address", f"02:7b:78:00:01:{at:02x}\n")
        if not self.cards:
            self.start()

    def settings(self) -> object:
        """Return everything that a restart, or an interface made anew, can bring back, to compare before and after."""
        kept = copy.deepcopy(self)
        kept.pid = kept.deaf = kept.deaf_after_start = kept.cleared = 0
        kept.scripted = ()
        for card in kept.cards.values():
            card.mac, card.index = "", 0
        for paths in kept.routes.values():
            for path in paths:
                path.index = 0
        kept.addresses = {name: have for name, have in kept.addresses.items() if have}
        kept.routes = {to: paths for to, paths in kept.routes.items() if paths}
        return kept

    def run(self, argv: Sequence[str], input: str) -> Said:
        programs: dict[str, Callable[[Sequence[str], str], Said]] = {
            "vppctl": lambda words, _: self.vppctl(words),
            "sh": self.shell,
            "cat": lambda words, _: self.cat(words[1]),
            "tee": self.tee,
            "grep": lambda words, _: self.grep(words[3:]),
            "systemctl": lambda *_: self.start() or Said(),
        }
        return programs[argv[0]](argv, input)

    def start(self) -> None:
        """Nothing that was told to it by hand is left; startup.conf is read anew."""
        conf = re.sub(r"#.*", "", self.files["/etc/vpp/startup.conf"])
        self.pid, self.deaf = self.pid + 1, self.deaf_after_start
        number, cores = re.search(r"\bworkers (\d+)", conf), re.search(r"corelist-workers (\S+)", conf)
        self.workers = int(number[1]) if number else len(_cores(cores[1])) if cores else 0
        self.down = self.workers >= len(_cores(self.files["/sys/devices/system/cpu/online"].strip()))
        self.cards, self.addresses, self.neighbours, self.routes = {}, {}, {}, {}
        for at, name in enumerate(self.nics):
            function = name[-1]
            own = re.search(rf"dev 0000:03:00\.{function}\s*{{([^}}]*)}}", conf)
            default = re.search(r"dev default\s*{([^}]*)}", conf)
            said = [re.search(r"num-rx-queues (\d+)", one[1]) for one in (own, default) if one]
            queues = next((int(one[1]) for one in said if one), 1)
            self.cards[name] = Card(at + 1, "dpdk", f"90:ec:77:1b:63:0{at}", queues)
        for name in self.scripted:
            self.create(name, "1")
        self.place()

    def place(self, only: str = "") -> None:
        """Round robin over all ports, in the order in which they register."""
        workers, at = self.names()[1:] or ["vpp_main"], 0
        for name, card in self.cards.items():
            if only in ("", name):
                card.workers = [workers[(at + queue) % len(workers)] for queue in range(card.queues)]
            at += card.queues

    def names(self) -> list[str]:
        return ["vpp_main", *(f"vpp_wk_{at}" for at in range(self.workers))]

    def shell(self, argv: Sequence[str], input: str) -> Said:
        """The one script: each line of its input a question, answered under a heading."""
        out = ""
        for line in input.splitlines():
            if line.startswith("/"):
                out += f"=== {line}\n{self.files.get(line, '')}"
                continue
            said = self.vppctl(["vppctl", "-s", argv[3], *line.split()])
            out += f"=== {line}\n{said.stdout}"
            if said.returncode:
                return Said(out, said.stderr, said.returncode)
        return Said(out)

    def cat(self, path: str) -> Said:
        if path not in self.files:
            return Said(stderr=f"cat: {path}: No such file or directory\n", returncode=1)
        return Said(self.files[path])

    def tee(self, argv: Sequence[str], input: str) -> Said:
        self.files[argv[1]] = input
        return Said(input)

    def grep(self, paths: Sequence[str]) -> Said:
        found = "".join(f"{path}:{self.files[path]}" for path in paths if path in self.files)
        return Said(found, returncode=0 if all(path in self.files for path in paths) else 2)

    def vppctl(self, argv: Sequence[str]) -> Said:
        if self.down or self.deaf or argv[2] != self.socket:
            self.deaf = max(0, self.deaf - 1)
            return Said(stderr="connect: Connection refused\n", returncode=1)
        line = " ".join(argv[3:])
        for pattern, answer in self.commands().items():
            if match := re.fullmatch(pattern, line):
                return Said(answer(*match.groups()).replace("\n", "\r\n"))
        return Said(f"unknown input `{line}'\r\n")

    def commands(self) -> dict[str, Callable[..., str]]:
        return {
            "show version": lambda: "vpp v26.06-release built by root on vm at 2026-11-20T17:35:10\n",
            "show version verbose": lambda: (
                f"Version:                  v26.06-release\nCurrent PID:              {self.pid}\n"
            ),
            "show threads": self.show_threads,
            "show cpu": lambda: "Model name:               Atom\nBase frequency:           2.2000 GHz\n",
            "show runtime": lambda: RUNTIME,
            "clear runtime": self.clear_runtime,
            "show errors": self.show_errors,
            "show interface": self.show_interface,
            "show interface address": self.show_address,
            "show interface rx-placement": self.show_placement,
            "show hardware-interfaces": self.show_hardware,
            "show ip neighbors": self.show_neighbours,
            r"show ip6? fib table 0 (\S+)": self.show_fib,
            r"create sub-interfaces (\S+) (\d+) (dot1q|dot1ad) \d+(?: inner-dot1q \d+)? exact-match": self.create_vlan,
            r"delete (?:sub-interface|interface (?:virtio|vmxnet3)) (\S+)": self.delete,
            r"create host-interface name (\S+) num-rx-queues (\d+)(?: hw-addr (\S+))?": self.create,
            r"set interface mac address (\S+) (\S+)": self.set_mac,
            r"delete host-interface name (\S+)": lambda linux: self.delete(f"host-{linux}"),
            r"create interface (virtio|vmxnet3) (\S+) (?:rss-enabled|num-rx-queues (\d+))": self.create_native,
            r"set interface state (\S+) (up|down)": self.set_state,
            r"set interface rx-mode (\S+) (\S+)": self.set_mode,
            r"set interface rx-placement (\S+) queue (\d+) (main|worker \d+)": self.set_placement,
            r"set interface ip address (?:(del) )?(\S+) (\S+)": self.set_address,
            r"set ip neighbor (?:(del) )?(\S+) (\S+) (\S+)(?: (static))?": self.set_neighbour,
            r"ip route (add|del) (\S+)(?: via (\S+) (\S+))?": self.set_route,
        }

    # what changes it; each prints nothing where it succeeds

    def create(self, linux: str, queues: str, mac: str | None = None) -> str:
        name = f"host-{linux}"
        if linux not in self.linux:
            return "create host-interface: Invalid interface name\n"
        if name in self.cards:
            return "create host-interface: Interface elready exists\n"  # so VPP spells it
        free = next(at for at in range(1, 99) if at not in [card.index for card in self.cards.values()])
        mac = mac or f"02:fe:00:00:{self.pid % 100:02d}:{free:02d}"
        self.cards[name] = Card(free, "af_packet", mac, int(queues))
        self.cards[name].mode = "interrupt"
        self.place(name)
        return f"{name}\n"

    def create_vlan(self, parent: str, number: str, kind: str) -> str:
        if parent not in self.cards:
            return f"create sub-interfaces: unknown interface `{parent}'\n"
        free = next(at for at in range(1, 99) if at not in [card.index for card in self.cards.values()])
        self.cards[f"{parent}.{number}"] = Card(free, "vlan", self.cards[parent].mac, 0)
        return f"{parent}.{number}\n"

    def create_native(self, kind: str, device: str, queues: str | None) -> str:
        """A virtio NIC is used with all queues that it has, and vppctl says nothing of it."""
        name = f"{kind}-" + "/".join(f"{int(one, 16):x}" for one in re.split("[:.]", device))
        if name in self.cards:
            return f"create interface {kind}: {device}: pci address in use\n"
        free = next(at for at in range(1, 99) if at not in [card.index for card in self.cards.values()])
        self.cards[name] = Card(free, kind, f"02:7b:78:00:01:{free:02x}", int(queues or 3))
        self.place(name)
        return f"{name}\n" if kind == "vmxnet3" else ""

    def delete(self, name: str) -> str:
        card = self.cards.pop(name, None)
        for path in (path for paths in self.routes.values() for path in paths):
            path.dead = path.dead or (card is not None and path.index == card.index)
        self.addresses.pop(name, None)
        self.neighbours = {k: v for k, v in self.neighbours.items() if not k.endswith(f"%{name}")}
        return ""

    def set_state(self, name: str, word: str) -> str:
        if name not in self.cards:
            return f"set interface state: unknown interface `{name} {word}'\n"
        self.cards[name].up = word == "up"
        return ""

    def set_mac(self, name: str, mac: str) -> str:
        self.cards[name].mac = mac
        return ""

    def set_mode(self, name: str, mode: str) -> str:
        self.cards[name].mode = mode
        return ""

    def set_placement(self, name: str, queue: str, where: str) -> str:
        worker = "vpp_main" if where == "main" else f"vpp_wk_{where.split()[1]}"
        if int(queue) >= self.cards[name].queues:
            return f"set interface rx-placement: unknown queue {queue} on interface {name}\n"
        if worker not in self.names():
            return "set interface rx-placement: please specify valid worker thread or main\n"
        self.cards[name].workers[int(queue)] = worker
        return ""

    def set_address(self, delete: str | None, name: str, address: str) -> str:
        have = self.addresses.setdefault(name, [])
        if delete:
            if address not in have:
                return f"set interface ip address: {address} not found for interface {name}\n"
            have.remove(address)
            return ""
        for other, addresses in self.addresses.items():
            for one in addresses:
                if ip_interface(one).version != ip_interface(address).version:
                    continue
                clash = ip_interface(one).ip == ip_interface(address).ip or other != name
                if clash and ip_interface(one).network.overlaps(ip_interface(address).network):
                    clashes = f"conflicts with {one} for interface {other}"
                    return f"set interface ip address: failed to add {address} on {name} which {clashes}\n"
        have.append(address)
        return ""

    def set_neighbour(self, delete: str | None, name: str, address: str, mac: str, static: str | None) -> str:
        key = f"{address}%{name}"
        if name not in self.cards:
            return f"set ip neighbor: specify interface, IP address and MAC: `{name} {address} {mac}'\n"
        if delete:
            self.neighbours.pop(key, None)
        elif static or not self.neighbours.get(key, ("", False))[1]:
            self.neighbours[key] = (mac, bool(static))
        return ""

    def set_route(self, word: str, prefix: str, via: str | None, name: str | None) -> str:
        if name is not None and name not in self.cards:
            return f"ip route: parse error `via {via} {name}'\n"
        paths = self.routes.setdefault(prefix, [])
        if name is None or via is None:
            paths.clear()
        elif word == "del":
            paths[:] = [path for path in paths if (path.via, path.index) != (via, self.cards[name].index)]
        elif (via, self.cards[name].index) not in [(path.via, path.index) for path in paths]:
            paths.append(Path(via, self.cards[name].index))
        if not paths:
            del self.routes[prefix]
        return ""

    def clear_runtime(self) -> str:
        self.cleared += 1
        return ""

    # what shows it

    def show_threads(self) -> str:
        rows = [
            "ID     Name                Type        LWP     Sched Policy (Priority)  lcore  Core   Socket State     "
        ]
        for at, name in enumerate(self.names()):
            kind = "workers" if at else ""
            rows.append(f"{at:<7}{name:<20}{kind:<12}{self.pid + at:<8}{'other (0)':<25}{at:<7}{at:<7}{0:<7}")
        return "\n".join(rows) + "\n"

    def show_interface(self) -> str:
        rows = ["              Name               Idx    State  MTU (L3/IP4/IP6/MPLS)     Counter          Count     "]
        for name, card in sorted(self.cards.items()):
            state = "up" if card.up else "down"
            head = f"{name:<32}{card.index:^5}{state:^10}{'9000/0/0/0':^21}"
            for counter, count in {k: v for k, v in card.frames.items() if v}.items():
                rows.append(f"{head:<68}{counter:<16}{count:>16}")
                head = ""
            if head:
                rows.append(head)
        return "\n".join([*rows, f"{'local0':<32}{0:^5}{'down':^10}{'0/0/0/0':^21}"]) + "\n"

    def show_address(self) -> str:
        out = ""
        for name, card in sorted(self.cards.items()):
            out += f"{name} ({'up' if card.up else 'dn'}):\n"
            out += "".join(f"  L3 {address}\n" for address in self.addresses.get(name, []))
        return out + "local0 (dn):\n"

    def show_neighbours(self) -> str:
        rows = [
            "     Age                       IP                    Flags      Ethernet              Interface       "
        ]
        for key, (mac, static) in self.neighbours.items():
            address, _, name = key.partition("%")
            rows.append(f"{'7.5398':>12}{address:>25}{'S' if static else 'D':>19}    {mac} {name}")
        return "\n".join(rows) + "\n" if self.neighbours else ""

    def show_placement(self) -> str:
        out, node = "", ""
        for at, worker in enumerate(self.names()):
            rows = ""
            for name, card in self.cards.items():
                for queue in (queue for queue, one in enumerate(card.workers) if one == worker):
                    new = "dpdk-input" if card.kind == "dpdk" else "af-packet-input"
                    rows += "" if new == node else f" node {new}:\n"
                    rows, node = rows + f"    {name} queue {queue} ({card.mode})\n", new
            out += f"Thread {at} ({worker}):\n{rows}" if rows else ""
        return out

    def show_errors(self) -> str:
        rows = ["   Count                  Node                              Reason               Severity "]
        for name, card in self.cards.items():
            if refused := card.frames.get("refused"):
                rows.append(f"{refused:>10}{name + '-tx':^35}{'tx frame not ready':^35}{'error':^10}")
        rows.append(f"{7:>10}{'af-packet-input':^35}{'timed out block':^35}{'error':^10}")
        return "\n".join(rows) + "\n"

    def show_hardware(self) -> str:
        rows = ["              Name                Idx   Link  Hardware"]
        for name, card in sorted(self.cards.items()):
            if card.kind == "vlan":
                continue
            rows.append(f"{name:<32}{card.index:^6}{'up' if card.link else 'down':^8}{name}")
            rows.append(f"  Link speed: {'10 Gbps' if card.kind == 'dpdk' else 'unknown'}")
            rows += ["  RX Queues:", "    queue thread         mode      "]
            for queue, worker in enumerate(card.workers):
                rows.append(f"    {queue:<6}{f'{worker} ({self.names().index(worker)})':<15}{card.mode:<10}")
            rows.append(f"  Ethernet address {card.mac}")
            rows += self.show_dpdk(card) if card.kind == "dpdk" else ["  Linux PACKET socket interface v3"]
        return "\n".join([*rows, f"{'local0':<32}{0:^6}{'down':^8}local0", "  Link speed: unknown", "  local"]) + "\n"

    def show_dpdk(self, card: Card) -> list[str]:
        """After the format of VPP's dpdk plugin."""
        rows = [
            "  Intel X553 (ixgbe)",
            f"    carrier {'up full duplex max-frame-size 9022 ' if card.link else 'down '}",
            "    flags: admin-up maybe-multiseg tx-offload intel-phdr-cksum rx-ip4-cksum",
            f"    rx: queues {card.queues} (max {card.most}), desc 512 (min 32 max 4096 align 8)",
            f"    tx: queues {self.workers + 1} (max 64), desc 1024 (min 32 max 4096 align 8)",
            f"    pci: device 8086:15c4 subsystem 8086:0000 address 0000:03:00.0{card.index - 1} numa 0",
            "    max rx packet len: 15872",
            "    tx burst function: (not available)",
            "",
        ]
        total = sum(card.queued.values())
        if total:
            rows += [f"    {'rx frames ok':<40}{total:>16}", "    extended stats:"]
            rows += [f"      {f'rx_q{queue}_packets':<38}{count:>16}" for queue, count in card.queued.items() if count]
        return rows

    def show_fib(self, asked: str) -> str:
        """The longest prefix that holds what was asked, or the default drop."""
        inside = ip_network(asked)
        version, ethertype = inside.version, "0800" if inside.version == 4 else "86dd"
        nets = [net for net in map(ip_network, self.routes) if net.version == version]
        fits = [net for net in nets if inside.subnet_of(net)]  # type: ignore[arg-type]
        found = str(max(fits, key=lambda one: one.prefixlen)) if fits else {4: "0.0.0.0/0", 6: "::/0"}[version]
        flow_hash = "flow hash:[src dst sport dport proto flowlabel ] epoch:0 flags:none locks:[]"
        rows = [f"ipv{version}-VRF:0, fib_index:0, {flow_hash}"]
        rows += [f"{found} fib:0 index:17 locks:2", "  CLI refs:1 src-flags:added,contributing,active,"]
        rows.append(f"    path-list:[25] locks:2 flags:shared, uPRF-list:{self.pid} len:2 itfs:[1, 2, ]")
        buckets = []
        for at, path in enumerate(self.routes.get(found, [])):
            flags = "drop" if path.dead else "resolved"
            rows.append(
                f"      path:[{at}] pl-index:25 ip{version} weight=1 pref=0 attached-nexthop:  oper-flags:{flags},"
            )
            if path.dead:
                rows += [f"        {path.via} if_index:{path.index}", "        unresolved"]
                continue
            name = next(name for name, card in self.cards.items() if card.index == path.index)
            pinned = self.neighbours.get(f"{path.via}%{name}")
            forwards = f"arp-ipv{version}: via {path.via} {name}"
            if pinned:
                rewrite = (pinned[0] + self.cards[name].mac).replace(":", "")
                forwards = f"ipv{version} via {path.via} {name}: mtu:9000 next:4 flags:[] {rewrite}{ethertype}"
            rows += [f"        {path.via} {name}", f"      [@0]: {forwards}"]
            buckets.append(f"[@5]: {forwards}")
        if found not in self.routes:
            rows += [
                "      path:[0] pl-index:0 ip4 weight=1 pref=0 special:  cfg-flags:drop,",
                "        [@0]: dpo-drop ip4",
            ]
        buckets = buckets or ["[@0]: dpo-drop ip4"]
        rows += ["", " forwarding:   unicast-ip4-chain"]
        rows.append(f"  [@0]: dpo-load-balance: [proto:ip4 index:18 buckets:{len(buckets)} uRPF:19 to:[{self.pid}:99]]")
        return "\n".join([*rows, *(f"    [{at}] {bucket}" for at, bucket in enumerate(buckets))]) + "\n"


def _cores(text: str) -> list[int]:
    found: list[int] = []
    for part in text.split(","):
        low, _, high = part.partition("-")
        found += range(int(low), int(high or low) + 1)
    return found
