"""A pfSense in a few lines: FreeBSD's programs as far as the driver uses them, in the words of their sources.

Releases differ in what ``route add`` does to a second hop, in how arp fails, and in columns of netstat.

A pfSense answers a link that goes up or down some seconds later (src/etc/rc.linkup): it reloads its rules, with ``pfctl
-e`` (src/etc/inc/filter.inc, filter_configure_sync), and on an interface that it manages, with a fixed address, it does
``arp -d -i IF -a`` (src/etc/inc/interfaces.inc, interfaces_staticarp_configure).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_interface, ip_network

from box_pfsense_facts import Nic, Pfsense
from boxes import Said

__all__ = ["Nic", "PfsenseBox"]

ANSWERED_AFTER = 12


@dataclass
class PfsenseBox(Pfsense):
    """routes: (to, gateway, flags, interface). arp: by address.

    due: links whose event it has not answered yet, with how many commands later it does; it has answered all once
    ``sleep`` is over. alarm: a gateway's, as soon as counters are read: its rules are reloaded.
    """

    routes: list[tuple[str, str, str, str]] = field(
        default_factory=lambda: [("0.0.0.0/0", "192.168.1.254", "UGS", "igc0")]
    )
    arp_table: dict[str, tuple[str, str, bool, bool]] = field(default_factory=dict)
    firewall: str = "enabled"
    due: list[tuple[str, int]] = field(default_factory=list)
    alarm: bool = False
    programs: Sequence[str] = (
        *("ifconfig", "route", "arp", "ndp", "pfctl", "sysctl", "netstat", "vmstat", "cpuset"),
        *("grep", "sleep", "stat", "kenv", "cpucontrol"),
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
        """Return everything that can be set, to compare before and after."""
        links = {name: (nic.up, nic.ipv6_off, tuple(nic.addresses)) for name, nic in self.nics.items()}
        return links, sorted(self.routes), dict(self.arp_table), self.firewall, self.forwarding, self.forwarding6

    def reboot(self) -> None:
        """Everything that was set at run time is gone."""
        fresh = PfsenseBox(self.release)
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
        number = "1008843" if self.netlink else "8843"
        lines = [
            f"{name}: flags={number}<{','.join(flags + ['LOWER_UP'] * (self.netlink and nic.up))}> metric 0 mtu 1500",
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
            if same and (not self.nexthops or gateway in [one[1] for one in same]):
                return Said(f"{told} fib 0: route already in table\n", "", 1)
            self.routes.append((to, gateway, _flags(rest), name))
            return Said(f"{told}\n")
        there = [one for one in same if not gateway or one[1] == gateway] if self.nexthops else same
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
            if self.netlink:
                return Said("", f"arp: delete: cannot locate {host}\n", 0)
            return Said(
                "", f"arp: delete: cannot locate {host}\narp: cannot intuit interface index and type for {host}\n", 1
            )
        if words[0] == "-d":
            if host not in self.arp_table and self.netlink:
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
            lines = [
                f"Status: {self.firewall.capitalize()} for 0 days 00:12:34           Debug: Urgent",
                "",
                "Counters",
            ]
            lines += [f"  {reason:<25} {7:14} {0.0:14.1f}/s" for reason in ("match", "memory")]
            return Said("\n".join([*lines, ""]))
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
            known = self.release >= 14 and words[1] == "kern.boot_id"
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

    def _netstat(self, words: list[str]) -> Said:
        if words[0] == "-rnW":
            count = "Nhop#    Mtu" if self.nexthops else "Use    Mtu"
            lines = [f"Destination        Gateway            Flags   {count}      Netif Expire"]
            version = 6 if words[-1] == "inet6" else 4
            for to, gateway, flags, name in self._table():
                if ip_network(to).version != version:
                    continue
                shown = "default" if to in ("0.0.0.0/0", "::/0") else to
                lines.append(f"{shown:<18} {gateway:<18} {flags:<5} 7  1500 {name:>10}")
            family = "Internet6" if version == 6 else "Internet"
            return Said(f"Routing tables\n\n{family}:\n" + "\n".join(lines) + "\n")
        if words[0] == "-ibdnW" and self.alarm:
            self.firewall = "enabled"
        return self._counted(words)


def _nd6(nic: Nic) -> str:
    """Return flags as sbin/ifconfig/af_nd6.c does: 14.1 without ``_ipv6`` in rc.conf was seen as IFDISABLED."""
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
