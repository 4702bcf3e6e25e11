"""Output in the form that documents and sources give it, for parsers of which too little was recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_KENV = """\
smbios.bios.version="ADI_PLCC-01.00.00.10"
smbios.planar.product="Cordoba"
smbios.system.product="6100"
zfs_load="YES"
"""
RINGS = """\
Ring parameters for enp3s0f0:
Pre-set maximums:
RX:\t\t\t4096
RX Mini:\t\tn/a
RX Jumbo:\t\tn/a
TX:\t\t\t4096
TX push buff len:\tn/a
Current hardware settings:
RX:\t\t\t512
RX Mini:\t\tn/a
RX Jumbo:\t\tn/a
TX:\t\t\t256
RX Buf Len:\t\tn/a
TX Push:\t\toff
"""
COALESCING = """\
Coalesce parameters for enp3s0f0:
Adaptive RX: on  TX: off
stats-block-usecs:\tn/a
sample-interval:\tn/a

rx-usecs:\t50
rx-frames:\tn/a
rx-usecs-irq:\tn/a
rx-frames-irq:\t256

tx-usecs:\t30
tx-frames:\t0
tx-usecs-irq:\tn/a

CQE mode RX: n/a  TX: n/a
"""
_HASH = """\
RX flow hash indirection table for enp3s0f0 with 4 RX ring(s):
    0:      0     1     2     3     0     1     2     3
    8:      0     1     2     3     0     1     2     3
RSS hash key:
6d:5a:56:da:25:5b:0e:c2:41:67:25:3d:43:a3:8f:b0:d0:ca:2b:cb:ae:7b:30:b4:77:cb:2d:a3:80:30:f2:0c:6a:42:b7:3b:be:ac:01:fa
RSS hash function:
    toeplitz: on
    xor: off
    crc32: off
"""
_QDISC = '[{"kind":"noqueue","handle":"0:","dev":"d0","root":true,"options":{},"bytes":0,"packets":0,"drops":7}]'
QDISCS_OF_A_WAN = (
    '[{"kind":"netem","handle":"7b0:","root":true,"refcnt":3,"options":{"limit":62500,"delay":{"delay":0.01,"jitter":0,'
    '"correlation":0},"rate":{"rate":125000000000,"packetoverhead":0,"cellsize":0,"celloverhead":0},"ecn":false,'
    '"gap":0},"bytes":2002,"packets":21,"drops":0,"overlimits":0,"requeues":0,"backlog":0,"qlen":0},{"kind":"tbf",'
    '"handle":"7b1:","parent":"7b0:1","options":{"rate":125000000,"burst":500000,"lat":16000},"bytes":2002,"packets":21'
    ',"drops":0,"overlimits":0,"requeues":0,"backlog":0,"qlen":0}]'
)
"""``tc -j -s qdisc show dev d1`` of iproute2 6.1 on Linux 6.1 (Debian 12), of a WAN of 20ms,1gbit; and of LOSSY."""
QDISCS_WITH_LOSS = (
    '[{"kind":"netem","handle":"7b0:","root":true,"refcnt":2,"options":{"limit":43750,"delay":{"delay":0.01,"jitter":'
    '0.003,"correlation":0},"loss-random":{"loss":0.015,"correlation":0},"rate":{"rate":125000000000,"packetoverhead":0'
    ',"cellsize":0,"celloverhead":0},"ecn":false,"gap":0},"bytes":29358,"packets":301,"drops":2,"overlimits":0,'
    '"requeues":0,"backlog":0,"qlen":0},{"kind":"tbf","handle":"7b1:","parent":"7b0:1","options":{"rate":125000000,'
    '"burst":500000,"lat":4000},"bytes":29358,"packets":301,"drops":0,"overlimits":0,"requeues":0,"backlog":0,"qlen":0}]'
)
LOSSY = "20ms,1gbit,loss=1.5%,jitter=3ms,queue=1mb"
_ETHTOOL_S = """\
NIC statistics:
     rx_packets: 1218965
     rx_queue_0_packets: 609482
     rx_queue_1_packets: 609483
     rx_queue_0_xdp_redirect: 5
"""
_NFT = '{"nftables": [{"metainfo": {"version": "1.0.6"}}, {"table": {}}, {"rule": {"expr": []}}]}'
_RAPL = """\
/sys/class/powercap/intel-rapl:0/name:package-0
/sys/class/powercap/intel-rapl:0/energy_uj:262143328850
/sys/class/powercap/intel-rapl:0/max_energy_range_uj:262143328850
"""

CONNTRACK_STAT = (
    "entries  clashres found new invalid ignore delete chainlength insert insert_failed drop early_drop icmp_error  "
    "expect_new expect_create expect_delete search_restart\n"
) + "".join("00000fce " + f" {0:08x}" * 8 + f" 000000c8 {drop:08x}" + f" {0:08x}" * 6 + "\n" for drop in (0x1D8, 0x16F))
"""Counters of two CPUs, after net/netfilter/nf_conntrack_standalone.c, ct_cpu_seq_show."""

SAMPLES: Mapping[str, Sequence[str]] = {
    "dut.freebsd.parse.media_speed_bps": ("Ethernet autoselect (10Gbase-SR <full-duplex>)", "1000baseT <full-duplex>"),
    "dut.freebsd.parse.parse_ndp": (
        "Neighbor    Linklayer Address  Netif Expire    S Flags\n"
        "2001:2:0:1::2   68:5:ca:32:45:94     ix0 permanent R p\nfe80::1%ix1  (incomplete) ix1 23s S\n",
    ),
    "dut.linux.parse.own_nft_rules": (
        '{"nftables": [{"chain": {"family": "inet", "table": "trexbench", "name": "forward"}}, '
        '{"rule": {"family": "inet", "table": "trexbench", "chain": "forward", "expr": []}}]}',
    ),
    "host.ping.parse_ping": (
        "PING 10.0.1.5 (10.0.1.5) 56(84) bytes of data.\n64 bytes from 10.0.1.5: icmp_seq=1 ttl=63 time=0.072 ms\n\n"
        "--- 10.0.1.5 ping statistics ---\n1 packets transmitted, 1 received, 0% packet loss, time 0ms\n"
        "rtt min/avg/max/mdev = 0.072/0.072/0.072/0.000 ms\n",
    ),
    "dut.freebsd.parse.parse_opaque": ("kern.boot_id=Format: Length:16 Dump:0x2b1d732b2c1b8134cf3b7161650b01d8\n",),
    "dut.freebsd.parse.parse_struct": ("{ now = 1637938203, sec = 1637938203, usec = 7 } Fri Nov 26 14:50:03 2021",),
    "host.freebsd.parse_kenv": (_KENV,),
    "host.freebsd.parse_microcode": (
        "MSR 0x8b: 0x0000002e 0x00000000\n",
        "CPU microcode: updated from 0x20 to 0x24\n",
    ),
    "host.linux.parse_conntrack": (CONNTRACK_STAT,),
    "host.linux.parse_nic_counters": (_ETHTOOL_S,),
    "host.linux.queue_counts": (_ETHTOOL_S,),
    "dut.linux.parse.queue_of": ("enp3s0f0-TxRx-1",),
    "host.linux.parse_perf": (
        "1234567,,cycles,1000,100.00,,\n",
        "12,,cycles:u,1000,100.00,,\n",
        "6766433,,cpu_core/cycles/,16067551558,100.00,,\n<not counted>,,cpu_atom/cycles/,0,100.00,,\n",
    ),
    "host.linux.parse_snmp6": ("Ip6InReceives                   \t900\nIp6InNoRoutes \t7\nIcmp6InMsgs \t3\n",),
    "dut.linux.wan.parse_qdiscs": (QDISCS_OF_A_WAN, QDISCS_WITH_LOSS, _QDISC),
    "dut.linux.parse.count_iptables_rules": ("*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -i lo -j ACCEPT\nCOMMIT\n",),
    "dut.linux.parse.count_nft_rules": (_NFT,),
    "dut.linux.parse.parse_coalescing": (COALESCING,),
    "dut.linux.parse.parse_hash": (_HASH,),
    "dut.linux.parse.parse_hash_fields": (
        "UDP over IPV4 flows use these fields for computing Hash flow key:\nIP SA\n",
    ),
    "host.power.parse_ipmi": ("\n    Instantaneous power reading:                    57 Watts\n",),
    "host.power.parse_rapl": (_RAPL,),
    "host.power.parse_shelly": ('{"id":0,"output":true,"apower":18.9,"aenergy":{"total":1234.5,"by_minute":[0.1]}}',),
    "host.power.parse_shelly_gen1": (
        '{"meters":[{"power":18.9,"is_valid":true,"total":77}]}',
        '{"emeters":[{"power":1}]}',
    ),
    "host.power.parse_tasmota": ('{"StatusSNS":{"ENERGY":{"Total":1.5,"Power":19}}}',),
}


PROC_STAT = """\
openvpn 2.6 (x): 1547 (openvpn 2.6 (x)) S 1 1547 1547 0 -1 4194560 812 0 3 0 660 9330 0 0 20 0 1 0 880331 12345 900 \
18446744073709551615 1 1 0 0 0 0 0 4096 2 0 0 0 17 3 0 0 0 0 0 0 0 0 0 0 0 0 0
ksoftirqd/1: 22 (ksoftirqd/1) S 2 0 0 0 -1 69238848 0 0 0 0 0 155 0 0 20 0 1 0 7 0 0 18446744073709551615 0 0 0 0 0 0 \
0 2147483647 0 1 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0
kworker/2:1-wg-crypt-wg0: 571 (kworker/2:1-wg-crypt-wg0) I 2 0 0 0 -1 69238880 0 0 0 0 0 4210 0 0 20 0 1 0 9 0 0 \
18446744073709551615 0 0 0 0 0 0 0 2147483647 0 1 0 0 17 2 0 0 0 0 0 0 0 0 0 0 0 0 0
"""
"""Name, then /proc/PID/stat, as man 5 proc describes it."""
