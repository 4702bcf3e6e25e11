"""A pfSense in a few lines: FreeBSD's programs as far as the driver uses them, in the words of their sources.

``modern``: FreeBSD 14, else 12.2. They differ in what ``route add`` does to a second hop, in how arp fails, and in
columns of netstat.

An ix counts as sys/dev/ixgbe/if_ix.c does: frames that it missed are in Ipkts (gprc), never in Idrop, in Ierrs only
where ``modern``, and by themselves in mac_stats.rx_missed_packets; its queues count what they handed on.

A pfSense answers a link that goes up or down some seconds later (src/etc/rc.linkup): it reloads its rules, with ``pfctl
-e`` (src/etc/inc/filter.inc, filter_configure_sync), and on an interface that it manages, with a fixed address, it does
``arp -d -i IF -a`` (src/etc/inc/interfaces.inc, interfaces_staticarp_configure).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_interface, ip_network

from boxes import Said

ANSWERED_AFTER = 12
_RECEIVED_BADLY = ("recv_undersized", "recv_fragmented", "recv_oversized", "recv_jabberd")


@dataclass
class Nic:
    mac: str
    up: bool = False
    addresses: list[str] = field(default_factory=list)
    cable: bool = True
    media: str = "Ethernet autoselect (10Gbase-SR <full-duplex,rxpause,txpause>)"
    rx: int = 0
    tx: int = 0
    missed: int = 0
    refused: int = 0
    crc: int = 0
    vlan: str = ""
    ipv6_off: bool = False
    duplicated: str = ""


def _nics() -> dict[str, Nic]:
    return {
        "ix0": Nic("90:ec:77:1b:63:55"),
        "ix1": Nic("90:ec:77:1b:63:56"),
        "igc0": Nic(
            "90:ec:77:1b:63:57",
            up=True,
            addresses=["192.168.1.1/24"],
            media="Ethernet autoselect (1000baseT <full-duplex>)",
        ),
    }


@dataclass
class PfsenseBox:
    """queues: receive queues of each ix. routes: (to, gateway, flags, interface). arp: by address.

    sysctls: values beside those that every box has. microcode: what ``cpucontrol`` prints of it; None: cpuctl(4) is not
    loaded. denied: the user may not ask it. booted: messages of the boot. assigned: interfaces that pfSense manages, by
    /cf/conf/config.xml. due: links whose event it has not answered yet, with how many commands later it does; it has
    answered all once ``sleep`` is over. alarm: a gateway's, as soon as counters are read: its rules are reloaded.
    absent: CPUs that are off, which sys/kern/kern_clock.c gives zeros in kern.cp_times. unrouted: packets that had no
    route. stepped_s: by how much its clock was set since it booted, which moves kern.boottime. permanent: what arp
    prints of an entry of ``arp -S``; 14.0, whose arp sends no NTF_STICKY (usr.sbin/arp/arp_netlink.c), has other words.
    """

    modern: bool = False
    nics: dict[str, Nic] = field(default_factory=_nics)
    routes: list[tuple[str, str, str, str]] = field(
        default_factory=lambda: [("0.0.0.0/0", "192.168.1.254", "UGS", "igc0")]
    )
    arp_table: dict[str, tuple[str, str, bool, bool]] = field(default_factory=dict)
    permanent: str = "permanent"
    firewall: str = "enabled"
    forwarding: str = "1"
    forwarding6: str = "0"
    queues: int = 4
    bound: bool = True
    boot_s: int = 1637938203
    stepped_s: int = 0
    absent: Sequence[int] = ()
    unrouted: int = 3
    ticks: int = 1000
    sysctls: dict[str, str] = field(default_factory=dict)
    bios: str = "ADI_PLCC-01.00.00.10"
    microcode: str | None = None
    denied: bool = False
    booted: str = "CPU microcode: updated from 0x20 to 0x24\n"
    assigned: Sequence[str] = ("igc0",)
    due: list[tuple[str, int]] = field(default_factory=list)
    alarm: bool = False
    programs: Sequence[str] = (
        "ifconfig",
        "route",
        "arp",
        "ndp",
        "pfctl",
        "sysctl",
        "netstat",
        "vmstat",
        "cpuset",
        "grep",
        "sleep",
        "stat",
        "kenv",
        "cpucontrol",
    )

    def run(self, argv: Sequence[str], input: str) -> Said:
        self.due = [(name, left - 1) for name, left in self.due]
        self.answer([name for name, left in self.due if left <= 0])
        return getattr(self, f"_{argv[0]}")(list(argv[1:]))

    def answer(self, links: Sequence[str]) -> None:
        """Do what rc.linkup does for these links."""
        self.due = [(name, left) for name, left in self.due if name not in links]
        for link in links:
            self.firewall = "enabled"
            if link in self.assigned:
                self.arp_table = {host: one for host, one in self.arp_table.items() if one[1] != link}

    def _sleep(self, words: list[str]) -> Said:
        self.answer([name for name, _ in self.due])
        return Said()

    def _stat(self, words: list[str]) -> Said:
        missing = "stat: /var/run/dmesg.boot: stat: No such file or directory\n"
        return Said(f"{self.boot_s + 5}\n", missing, 1)

    def settings(self) -> object:
        """What can be set, to compare before and after."""
        links = {name: (nic.up, nic.ipv6_off, tuple(nic.addresses)) for name, nic in self.nics.items()}
        return links, sorted(self.routes), dict(self.arp_table), self.firewall, self.forwarding, self.forwarding6

    def reboot(self) -> None:
        """Everything that was set at run time is gone."""
        fresh = PfsenseBox(self.modern)
        self.nics, self.routes, self.arp_table = fresh.nics, fresh.routes, {}
        self.firewall, self.forwarding, self.boot_s = "enabled", "1", self.boot_s + 600

    def _ifconfig(self, words: list[str]) -> Said:
        if words == ["-a"]:
            return Said("".join(self._shown(name) for name in self.nics))
        if words[1:2] == ["create"]:
            told = dict(zip(words[2:-1:2], words[3:-1:2], strict=True))
            parent = self.nics[told["vlandev"]]
            kind = told.get("vlanproto", "802.1q")
            line = f"vlan: {told['vlan']} vlanproto: {kind} vlanpcp: 0 parent interface: {told['vlandev']}"
            self.nics[words[0]] = Nic(parent.mac, up=words[-1] == "up", vlan=line)
            self.due.append((words[0], ANSWERED_AFTER))
            return Said()
        nic = self.nics.get(words[0])
        if nic is not None and words[1:] in (["inet6", "ifdisabled"], ["inet6", "-ifdisabled"]):
            nic.ipv6_off = words[2] == "ifdisabled"
            return Said()
        if nic is None:
            return Said("", f"ifconfig: interface {words[0]} does not exist\n", 1)
        if words[1:] in (["up"], ["down"]):
            if nic.up != (words[1] == "up"):
                self.due.append((words[0], ANSWERED_AFTER))
            nic.up = words[1] == "up"
            return Said()
        if len(words) == 4 and words[1] in ("inet", "inet6") and words[3] == "-alias":
            return self._take_address(nic, words[2])
        if words[1] == "destroy" and nic.vlan:
            del self.nics[words[0]]
            self.routes = [one for one in self.routes if one[3] != words[0]]
            return Said()
        if len(words) == 4 and words[1] in ("inet", "inet6") and words[3] == "alias":
            nic.up = True  # ether_ioctl sets it with the first address
            if words[2] not in nic.addresses:
                nic.addresses.append(words[2])
            return Said()
        return Said("", f"ifconfig: {words[1]}: bad value\n", 1)

    def _take_address(self, nic: Nic, address: str) -> Said:
        found = [one for one in nic.addresses if one.partition("/")[0] == address]
        if not found:
            return Said("", "ifconfig: ioctl (SIOCDIFADDR): Can't assign requested address\n", 1)
        nic.addresses.remove(found[0])
        gone = ip_interface(found[0]).network
        self.arp_table = {host: entry for host, entry in self.arp_table.items() if ip_address(host) not in gone}
        return Said()

    def _shown(self, name: str) -> str:
        nic = self.nics[name]
        flags = (
            ["UP", "BROADCAST", "RUNNING", "SIMPLEX", "MULTICAST"] if nic.up else ["BROADCAST", "SIMPLEX", "MULTICAST"]
        )
        number = "1008843" if self.modern else "8843"
        lines = [
            f"{name}: flags={number}<{','.join(flags + ['LOWER_UP'] * (self.modern and nic.up))}> metric 0 mtu 1500",
            "\toptions=e138bb<RXCSUM,TXCSUM,VLAN_MTU,VLAN_HWTAGGING,JUMBO_MTU,VLAN_HWCSUM,WOL_UCAST,WOL_MCAST,WOL_MAGIC>",
            f"\tether {nic.mac}",
            "\tinet6 fe80::92ec:77ff:fe1b:6355%ix0 prefixlen 64 scopeid 0x1",
        ]
        for address in nic.addresses:
            one = ip_interface(address)
            if one.version == 6:
                why = " duplicated" if str(one.ip) == nic.duplicated else ""  # sbin/ifconfig/af_inet6.c
                lines.append(f"\tinet6 {one.ip} prefixlen {one.network.prefixlen}{why}")
                continue
            mask = f"0x{int(one.network.netmask):08x}"
            lines.append(f"\tinet {one.ip} netmask {mask} broadcast {one.network.broadcast_address}")
        lines += [f"\t{nic.vlan}"] if nic.vlan else []
        status = "active" if nic.up and nic.cable else "no carrier"
        media = nic.media if status == "active" else "Ethernet autoselect"
        return "\n".join([*lines, f"\tmedia: {media}", f"\tstatus: {status}", f"\tnd6 options={_nd6(nic)}", ""])

    def _table(self) -> list[tuple[str, str, str, str]]:
        """Routes, and those that come with addresses."""
        own = [
            (str(ip_interface(address).network), f"link#{index + 1}", "U", name)
            for index, (name, nic) in enumerate(self.nics.items())
            if nic.up
            for address in nic.addresses
        ]
        return [*self.routes, *own]

    def _on_link(self, address: str) -> str | None:
        for to, gateway, _, name in self._table():
            if gateway.startswith("link#") and ip_address(address) in ip_network(to):
                return name
        return None

    def _route(self, words: list[str]) -> Said:
        words = [word for word in words if word != "-6"]
        if words[:2] == ["-n", "get"]:
            return self._route_get(words[2])
        verb, to, rest = words[0], words[2], words[3:]
        gateway = rest[0] if rest and not rest[0].startswith("-") else ""
        if "-interface" in rest:
            name = rest[rest.index("-interface") + 1]
            gateway = f"link#{list(self.nics).index(name) + 1}"
        else:
            name = self._on_link(gateway) or "" if gateway else ""
        told = f"{verb} net {to}: gateway {gateway}" if gateway else f"{verb} net {to}"
        same = [one for one in self.routes if one[0] == to]
        if verb == "add":
            if not name:
                return Said(
                    f"{told} fib 0: Network is unreachable\n",
                    "route: writing to routing socket: Network is unreachable\n",
                    1,
                )
            if same and (not self.modern or gateway in [one[1] for one in same]):
                return Said(f"{told} fib 0: route already in table\n", "", 1)
            self.routes.append((to, gateway, _flags(rest), name))
            return Said(f"{told}\n")
        there = [one for one in same if not gateway or one[1] == gateway] if self.modern else same
        if verb != "delete" or not there:
            return Said(f"{told} fib 0: not in table\n", "route: route has not been found\n", 1)
        self.routes.remove(there[0])
        return Said(f"{told}\n")

    def _route_get(self, host: str) -> Said:
        found = [one for one in self._table() if ip_address(host) in ip_network(one[0])]
        if not found:
            return Said("", "route: route has not been found\n", 1)
        to, gateway, flags, name = max(found, key=lambda one: ip_network(one[0]).prefixlen)
        words = {"G": "GATEWAY", "B": "BLACKHOLE", "R": "REJECT", "S": "STATIC"}
        shown = ["UP", *(word for flag, word in words.items() if flag in flags), "DONE"]
        via = f"    gateway: {gateway}\n" if "G" in flags else ""
        net = ip_network(to)
        return Said(
            f"   route to: {host}\ndestination: {net.network_address}\n       mask: {net.netmask}\n{via}"
            "        fib: 0\n"
            f"  interface: {name}\n      flags: <{','.join(shown)}>\n"
            " recvpipe  sendpipe  ssthresh  rtt,msec    mtu        weight    expire\n"
            "       0         0         0         0      1500         1         0 \n"
        )

    def _arp(self, words: list[str]) -> Said:
        if words == ["-an"]:
            return Said(
                "".join(_arp_line(host, one, self.permanent) for host, one in self.arp_table.items() if ":" not in host)
            )
        host = words[1]
        if words[0] == "-n":  # arp.c, get
            found = self.arp_table.get(host)
            return (
                Said(_arp_line(host, found, self.permanent)) if found else Said(f"{host} ({host}) -- no entry\n", "", 1)
            )
        name = self._on_link(host)
        if name is None:
            if self.modern:
                return Said("", f"arp: delete: cannot locate {host}\n", 0)
            return Said(
                "", f"arp: delete: cannot locate {host}\narp: cannot intuit interface index and type for {host}\n", 1
            )
        if words[0] == "-d":
            if host not in self.arp_table and self.modern:
                return Said("", f"arp: delete {host}: No such file or directory\n", 1)
            self.arp_table.pop(host, None)
            return Said(f"{host} ({host}) deleted\n")
        self.arp_table[host] = (words[2], name, "temp" not in words, "pub" in words)
        return Said()

    def _ndp(self, words: list[str]) -> Said:
        six = {host: entry for host, entry in self.arp_table.items() if ":" in host}
        if words == ["-an"]:
            rows = [f"{host} {mac} {name} permanent R R{'p' * proxy}" for host, (mac, name, _, proxy) in six.items()]
            return Said("\n".join(["Neighbor  Linklayer Address  Netif Expire    S Flags", *rows, ""]))
        if words[0] == "-n":
            return Said() if words[1] in six else Said(f"{words[1]} ({words[1]}) -- no entry\n", "", 1)
        if words[0] == "-d":
            return Said() if self.arp_table.pop(words[1], None) else Said("", f"ndp: {words[1]}: not found\n", 1)
        # ndp.c, set: words but temp and proxy are skipped
        self.arp_table[words[1]] = (words[2], self._on_link(words[1]) or "", True, "proxy" in words)
        return Said()

    def _pfctl(self, words: list[str]) -> Said:
        if words == ["-s", "info"]:
            return Said(
                f"Status: {self.firewall.capitalize()} for 0 days 00:12:34           Debug: Urgent\n\nState Table\n"
            )
        if words == ["-s", "rules"]:
            return Said("scrub on ix0 all fragment reassemble\nblock drop in log inet all\npass out all keep state\n")
        wanted = {"-d": "disabled", "-e": "enabled"}[words[0]]
        if self.firewall == wanted:
            return Said("", f"pfctl: pf {'not' if wanted == 'disabled' else 'already'} enabled\n", 1)
        self.firewall = wanted
        return Said("", f"pf {wanted}\n")

    def _sysctl(self, words: list[str]) -> Said:
        values = self._values()
        if words[0] == "-Ni":
            trees = tuple(f"{tree}." for tree in words[1:])
            return Said("".join(f"{name}\n" for name in values if name.startswith(trees)))
        if words[0] == "-xei":  # sbin/sysctl/sysctl.c, show_var: without -x it prints nothing of kern.boot_id
            known = self.modern and words[1] == "kern.boot_id"
            return Said(f"{words[1]}=Format: Length:16 Dump:0x{self.boot_s:032x}\n" if known else "")
        if words[0] == "-ei":
            return Said("".join(f"{name}={values[name]}\n" for name in words[1:] if name in values))
        name, _, value = words[0].partition("=")
        if name == "net.inet6.ip6.forwarding":
            self.forwarding6 = value
            return Said()
        if name != "net.inet.ip.forwarding":
            return Said("", f"sysctl: unknown oid '{name}'\n", 1)
        was, self.forwarding = self.forwarding, value
        return Said(f"{name}: {was} -> {value}\n")

    def _values(self) -> dict[str, str]:
        values = {
            "kern.ostype": "FreeBSD",
            "kern.osrelease": self._release()[0],
            "kern.osreldate": self._release()[1],
            "kern.ident": "pfSense",
            "kern.boottime": f"{{ sec = {self.boot_s + self.stepped_s}, usec = 7 }} Fri Nov 26 14:50:03 2021",
            "kern.clockrate": "{ hz = 1000, tick = 1000, profhz = 8128, stathz = 127 }",
            "kern.cp_times": " ".join(
                "0 0 0 0 0"
                if cpu in self.absent
                else f"10 0 {self.ticks * (cpu + 1)} 5 {100000 + self.ticks * (4 - cpu)}"
                for cpu in range(4)
            ),
            "kern.smp.cpus": "4",
            "hw.model": "Intel(R) Atom(TM) CPU C3558 @ 2.20GHz",
            "net.inet.ip.forwarding": self.forwarding,
            "net.inet6.ip6.forwarding": self.forwarding6,
            "net.inet.ip.redirect": "1",
            "net.isr.dispatch": "direct",
            "net.isr.numthreads": "4",
            "net.isr.bindthreads": "0",
            "dev.cpu.0.freq_levels": "2200/18000 2100/16884",
            "dev.cpu.0.freq": "2200",
        }
        for unit in (0, 1):
            nic, dev = self.nics.get(f"ix{unit}") or Nic(""), f"dev.ix.{unit}"
            values[f"{dev}.%desc"] = "Intel(R) X553 N (SFP+)"
            values[f"{dev}.fw_version"] = "eTrack 0x80000877"
            values[f"{dev}.iflib.driver_version"] = "4.0.1-k"
            values[f"{dev}.iflib.override_nrxqs"] = "0"
            values[f"{dev}.mac_stats.crc_errs"] = str(nic.crc)
            for leaf in ("ill_errs", "rec_len_errs", "checksum_errs", *_RECEIVED_BADLY):
                values[f"{dev}.mac_stats.{leaf}"] = "0"
            values[f"{dev}.mac_stats.rx_missed_packets"] = str(nic.missed)
            for queue in range(self.queues):
                values[f"{dev}.iflib.txq{queue}.r_drops"] = str(nic.refused if queue == 0 else 0)
                values[f"{dev}.queue{queue}.rx_packets"] = str(nic.rx // self.queues)
                values[f"{dev}.queue{queue}.tx_packets"] = str(nic.tx // self.queues)
        return values | self.sysctls

    def _release(self) -> tuple[str, str]:
        if self.permanent != "permanent":
            return "14.0-RELEASE", "1400097"
        return ("14.1-RELEASE", "1401000") if self.modern else ("12.2-STABLE", "1202507")

    def _netstat(self, words: list[str]) -> Said:
        if words[0] == "-rnW":
            count = "Nhop#    Mtu" if self.modern else "Use    Mtu"
            lines = [f"Destination        Gateway            Flags   {count}      Netif Expire"]
            version = 6 if words[-1] == "inet6" else 4
            for to, gateway, flags, name in self._table():
                if ip_network(to).version != version:
                    continue
                shown = "default" if to in ("0.0.0.0/0", "::/0") else to
                lines.append(f"{shown:<18} {gateway:<18} {flags:<5} 7  1500 {name:>10}")
            family = "Internet6" if version == 6 else "Internet"
            return Said(f"Routing tables\n\n{family}:\n" + "\n".join(lines) + "\n")
        if words[0] == "-ibdnW":
            self.firewall = "enabled" if self.alarm else self.firewall
            lines = [
                "Name    Mtu Network   Address      Ipkts Ierrs Idrop     Ibytes    Opkts Oerrs     Obytes  Coll  Drop"
            ]
            for index, (name, nic) in enumerate(self.nics.items()):
                label = name if nic.up else f"{name}*"
                good = nic.rx + nic.missed if name.startswith("ix") else nic.rx
                errors = nic.crc + (nic.missed if self.modern or not name.startswith("ix") else 0)
                lines.append(f"{label} 1500 <Link#{index + 1}> {nic.mac} {good} {errors} 0 0 {nic.tx} 0 0 0 0")
                lines += [
                    f"{name} - {ip_interface(a).network} {a.partition('/')[0]} 3 - - 252 3 - 252 - -"
                    for a in nic.addresses
                ]
            return Said("\n".join(lines) + "\n")
        if words[0] == "-Q":
            return Said(
                "Workstreams:\n"
                "WSID CPU   Name     Len WMark   Disp'd  HDisp'd   QDrops   Queued  Handled\n"
                "   0   0   ip         0     0       12        0        2        0       12\n"
                "   0   0   igmp       0     0        0        0        9        0        0\n"
            )
        one = "" if self.unrouted == 1 else "s"  # usr.bin/netstat/inet.c, ip_stats
        return Said(
            f"ip:\n\t12 total packets received\n\t{self.unrouted} output packet{one} discarded due to no route\n"
        )

    def _vmstat(self, words: list[str]) -> Said:
        lines = [
            "interrupt                          total       rate",
            "cpu0:timer                        123456        100",
        ]
        for unit in (0, 1):
            lines += [
                f"irq{264 + 5 * unit + q}: ix{unit}:rxq{q}            {100 * q}          1" for q in range(self.queues)
            ]
            lines.append(f"irq{268 + 5 * unit}: ix{unit}:aq                     2          0")
        return Said("\n".join([*lines, "Total                             123999        101", ""]))

    def _cpuset(self, words: list[str]) -> Said:
        irq = int(words[2])
        return Said(f"irq {irq} mask: {(irq - 264) % 5 % 4 if self.bound else '0, 1, 2, 3'}\n")

    def _kenv(self, words: list[str]) -> Said:
        return Said(
            f'smbios.bios.reldate="04/02/2021"\nsmbios.bios.vendor="ADI"\nsmbios.bios.version="{self.bios} "\n'
            'smbios.planar.product="Cordoba"\nsmbios.planar.serial="1234"\nsmbios.planar.version=""\n'
            'smbios.system.product="6100"\nzfs_load="YES"\n'
        )

    def _cpucontrol(self, words: list[str]) -> Said:
        why = "Permission denied" if self.denied else "No such file or directory" if self.microcode is None else ""
        if why:
            return Said("", f"cpucontrol: error opening {words[2]} for reading: {why}\n", 1)
        return Said(f"MSR {words[1]}: {self.microcode}\n")

    def _grep(self, words: list[str]) -> Said:
        if words[0] == "-sho":
            return Said("".join(f"<if>{name}</if>\n" for name in self.assigned), "", not self.assigned)
        if words[0] == "-sh":
            return Said(self.booted if words[1] in self.booted else "", "", words[1] not in self.booted)
        return Said("/etc/version:21.05-RELEASE\n/etc/platform:pfSense\n")


def _nd6(nic: Nic) -> str:
    """As sbin/ifconfig/af_nd6.c does: what the project saw of 14.1 without ``_ipv6`` in rc.conf is IFDISABLED."""
    return "29<PERFORMNUD,IFDISABLED,AUTO_LINKLOCAL>" if nic.ipv6_off else "21<PERFORMNUD,AUTO_LINKLOCAL>"


def _flags(words: Sequence[str]) -> str:
    found = "U" if "-interface" in words else "UG"
    found += "" if "-nostatic" in words else "S"
    letters = {"-blackhole": "B", "-reject": "R", "-proto1": "1", "-proto2": "2"}
    return found + "".join(letter for word, letter in letters.items() if word in words)


def _arp_line(host: str, entry: tuple[str, str, bool, bool], words: str) -> str:
    mac, name, permanent, published = entry
    age = words if permanent else "expires in 1187 seconds"
    return f"? ({host}) at {mac} on {name} {age}{' published' if published else ''} [ethernet]\n"
