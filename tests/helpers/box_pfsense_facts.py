"""Facts that a fake pfSense reports: sysctls, counters, interrupts, files, in the words of FreeBSD's sources.

An ix counts as sys/dev/ixgbe/if_ix.c does: frames that it missed are in Ipkts (gprc), never in Idrop, in Ierrs only
since 13, there with bad checksums that are no loss, and by themselves in mac_stats.rx_missed_packets; its queues count
what they handed on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import ip_interface

from boxes import Said

RELEASES = {
    12: ("12.2-STABLE", "1202507"),
    13: ("13.2-RELEASE", "1302001"),
    14: ("14.1-RELEASE", "1401000"),
    15: ("15.0-RELEASE", "1500068"),
}
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
    unsent: int = 0
    oerrs: int = 0
    crc: int = 0
    bad_sums: int = 0
    vlan: str = ""
    ipv6_off: bool = False
    duplicated: str = ""


def nics() -> dict[str, Nic]:
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
class Pfsense:
    """release: of FreeBSD, 12 to 15. queues: receive queues of each ix.

    sysctls: values beside those that every box has. microcode: what ``cpucontrol`` prints of it; None: cpuctl(4) is not
    loaded. denied: the user may not ask it. booted: messages of the boot. assigned: interfaces that pfSense manages, by
    /conf/config.xml. permanent: what arp prints of an entry of ``arp -S``; 14.0, whose arp sends no NTF_STICKY
    (usr.sbin/arp/arp_netlink.c), has other words.
    """

    release: int = 12
    nics: dict[str, Nic] = field(default_factory=nics)
    permanent: str = "permanent"
    forwarding: str = "1"
    forwarding6: str = "0"
    queues: int = 4
    bound: bool = True
    boot_s: int = 1637938203
    ticks: int = 1000
    sysctls: dict[str, str] = field(default_factory=dict)
    bios: str = "ADI_PLCC-01.00.00.10"
    microcode: str | None = None
    denied: bool = False
    booted: str = "CPU microcode: updated from 0x20 to 0x24\n"
    assigned: Sequence[str] = ("igc0",)

    @property
    def nexthops(self) -> bool:
        """13: several of them, and other columns of netstat."""
        return self.release >= 13

    @property
    def netlink(self) -> bool:
        """14: by which arp and ndp work."""
        return self.release >= 14

    def _values(self) -> dict[str, str]:
        values = {
            "kern.ostype": "FreeBSD",
            "kern.osrelease": self._release()[0],
            "kern.osreldate": self._release()[1],
            "kern.ident": "pfSense",
            "kern.boottime": f"{{ sec = {self.boot_s}, usec = 7 }} Fri Nov 26 14:50:03 2021",
            "kern.clockrate": "{ hz = 1000, tick = 1000, profhz = 8128, stathz = 127 }",
            "kern.cp_times": " ".join(
                f"10 0 {self.ticks * (cpu + 1)} 5 {100000 + self.ticks * (4 - cpu)}" for cpu in range(4)
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
            values[f"{dev}.mac_stats.checksum_errs"] = str(nic.bad_sums)
            for leaf in ("ill_errs", "rec_len_errs", *_RECEIVED_BADLY):
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
        return RELEASES[self.release]

    def _counted(self, words: list[str]) -> Said:
        if words[0] == "-ibdnW":
            lines = [
                "Name    Mtu Network   Address      Ipkts Ierrs Idrop     Ibytes    Opkts Oerrs     Obytes  Coll  Drop"
            ]
            for index, (name, nic) in enumerate(self.nics.items()):
                label = name if nic.up else f"{name}*"
                good = nic.rx + nic.missed if name.startswith("ix") else nic.rx
                errors = nic.crc + (nic.missed if self.release >= 13 or not name.startswith("ix") else 0)
                errors += nic.bad_sums if self.release == 13 and name.startswith("ix") else 0
                # sys/net/iflib.c of 15.0, iflib_if_transmit: OQDROPS, of which ix and ixl have a number of their own
                drop = nic.refused if self.release >= 15 and not name.startswith("ix") else nic.unsent
                counts = f"{good} {errors} 0 0 {nic.tx} {nic.oerrs} 0 0 {drop}"
                lines.append(f"{label} 1500 <Link#{index + 1}> {nic.mac} {counts}")
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
        return Said(
            "ip:\n\t12 total packets received\n\t41 output packets dropped due to no bufs, etc.\n"
            "\t3 output packets discarded due to no route\n"
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
            found = self.assigned if words[-1] == "/conf/config.xml" else ()  # OPNsense has no /cf
            return Said("".join(f"<if>{name}</if>\n" for name in found), "", not found)
        if words[0] == "-sh":
            return Said(self.booted if words[1] in self.booted else "", "", words[1] not in self.booted)
        return Said("/etc/version:21.05-RELEASE\n/etc/platform:pfSense\n")
