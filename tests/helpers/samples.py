"""Output in the form that documents and sources give it, for parsers of which too little was recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_IFCONFIG = """\
ix0: flags=1008843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST,LOWER_UP> metric 0 mtu 1500
\toptions=e138bb<RXCSUM,TXCSUM,VLAN_MTU,VLAN_HWTAGGING,JUMBO_MTU>
\tether 90:ec:77:1b:63:55
\tinet6 fe80::92ec:77ff:fe1b:6355%ix0 prefixlen 64 scopeid 0x1
\tinet 100.65.1.1 netmask 0xffffff00 broadcast 100.65.1.255
\tinet 10.0.0.1/30 broadcast 10.0.0.3
\tmedia: Ethernet autoselect (10Gbase-SR <full-duplex,rxpause,txpause>)
\tstatus: active
\tnd6 options=21<PERFORMNUD,AUTO_LINKLOCAL>
tun0: flags=8051<UP,POINTOPOINT,RUNNING,MULTICAST> metric 0 mtu 1500
\tinet 10.8.0.1 --> 10.8.0.2 netmask 255.255.255.255
"""
_ROUTES = """\
Routing tables

Internet:
Destination        Gateway            Flags     Netif Expire
default            192.168.1.254      UGS        igc0
16.0.0.0/8         100.65.1.2         UGS         ix0
100.65.1.0/24      link#1             U           ix0
127.0.0.1          link#5             UH          lo0
"""
_PATH = """\
   route to: 16.0.0.1
destination: 16.0.0.0
       mask: 255.0.0.0
    gateway: 100.65.1.2
        fib: 0
  interface: ix0
      flags: <UP,GATEWAY,DONE,STATIC>
 recvpipe  sendpipe  ssthresh  rtt,msec    mtu        weight    expire
       0         0         0         0      1500         1         0
"""
_ARP = """\
? (100.65.1.2) at 00:1b:21:06:00:b4 on ix0 permanent [ethernet]
? (192.168.1.7) at (incomplete) on igc0 expired [ethernet]
? (192.168.1.9) at 0:1b:21:6:0:b5 on igc0 expires in 1100 seconds [ethernet]
"""
_SYSCTL = """\
kern.cp_times=100 0 200 300 4000 110 0 210 310 4100
kern.clockrate={ hz = 1000, tick = 1000, profhz = 8126, stathz = 127 }
dev.cpu.0.freq=2200
kern.boottime={ sec = 1637938203, usec = 7 } Fri Nov 26 14:50:03 2021
dev.ix.0.queue0.rx_packets=17
net.isr.maxthreads=4
"""
_NETSTAT_I = """\
Name    Mtu Network       Address              Ipkts Ierrs Idrop     Ibytes    Opkts Oerrs     Obytes  Coll  Drop
ix0    1500 <Link#1>      90:ec:77:1b:63:55  1218965     3     4   73137900  1218496     0   73109760     0     5
ix0       - 100.65.1.0/24 100.65.1.1               2     -     -        168        2     -        168     -     -
lo0*  16384 <Link#5>      lo0                      0     0     0          0        0     0          0     0     0
"""
_KENV = """\
smbios.bios.version="ADI_PLCC-01.00.00.10"
smbios.planar.product="Cordoba"
smbios.system.product="6100"
zfs_load="YES"
"""
_NETISR = """\
Configuration:
Setting                        Current        Limit
Thread count                         4            4

Workstreams:
WSID CPU   Name     Len WMark   Disp'd  HDisp'd   QDrops   Queued  Handled
   0   0   ip         0   256        0  1218965       12        7  1218972
   1   1   ip         0     9        0        0        3        9        9
   1   1   arp        0     1        2        0        0        0        2
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
_CHANNELS = """\
Channel parameters for enp3s0f0:
Pre-set maximums:
RX:\t\tn/a
TX:\t\tn/a
Other:\t\t1
Combined:\t16
Current hardware settings:
RX:\t\tn/a
TX:\t\tn/a
Other:\t\t1
Combined:\t4
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
_INTERRUPTS = """\
           CPU0       CPU1
 24:          1          0  IO-APIC   5-edge      ACPI:Ged
 34:    1131708         12  PCI-MSIX-0000:03:00.0   0-edge      enp3s0f0-TxRx-0
 35:          0      34230  PCI-MSIX-0000:03:00.0   1-edge      enp3s0f0-TxRx-1
NMI:          0          0   Non-maskable interrupts
"""
_STAT = """\
cpu  497046 509598 989188 2757245 5553 0 229752 1287 0 0
cpu0 140574 207594 569756 1468726 1140 0 115801 615 0 0
cpu1 356471 302004 419431 1288519 4412 0 113950 671 0 0
intr 57268976 0 0
"""
_NET_DEV = """\
Inter-|   Receive                                            |  Transmit
 face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls carrier compressed
    lo: 1064952   13058 0 0 0 0 0 0  1064952   13058 0 0 0 0 0 0
    d0:141504360 2358406 0 7 0 0 0 0 54662880  911048 0 0 0 0 0 0
"""
_SOFTIRQS = """\
                    CPU0       CPU1
          HI:          0          0
      NET_TX:       5792       5758
      NET_RX:  500040071  388329485
"""
_SOFTNET = """\
0a4ba3a7 00000000 00000037 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000
b3b47c64 02f8643d 00002d2d 00000000 00000000 00000000 00000000 00000000 00000000 00628e60 00000000 00000000 00000002
"""
_SNMP = """\
Ip: Forwarding DefaultTTL InReceives InHdrErrors InAddrErrors ForwDatagrams
Ip: 2 64 669300 0 0 -1
Udp: InDatagrams NoPorts
Udp: 17 0
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
_LINK_COUNTERS = (
    '[{"ifname":"d0","stats64":{"rx":{"bytes":6,"packets":1,"errors":0,"dropped":2,"missed_errors":0},'
    '"tx":{"bytes":0,"packets":3,"errors":0,"dropped":0}}}]'
)
_ETHTOOL_S = """\
NIC statistics:
     rx_packets: 1218965
     rx_queue_0_packets: 609482
     rx_queue_1_packets: 609483
     rx_queue_0_xdp_redirect: 5
"""
_CLOCKS = """\
/proc/cpuinfo:processor\t: 0
/proc/cpuinfo:cpu MHz\t\t: 2200.000
/sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq:2199999
"""
_NFT = '{"nftables": [{"metainfo": {"version": "1.0.6"}}, {"table": {}}, {"rule": {"expr": []}}]}'
_FIB = """\
ipv4-VRF:0, fib_index:0, flow hash:[src dst sport dport proto flowlabel ] epoch:0 flags:none locks:[adjacency:1, ]
16.0.0.0/8 fib:0 index:17 locks:2
  CLI refs:1 src-flags:added,contributing,active,
    path-list:[23] locks:2 flags:shared, uPRF-list:21 len:1 itfs:[1, ]
      path:[27] pl-index:23 ip4 weight=1 pref=0 attached-nexthop:  oper-flags:resolved,
        100.65.1.2 host-d0
      [@0]: ipv4 via 100.65.1.2 host-d0: mtu:9000 next:3 flags:[] f21fedc65df902fe0cee7c5e0800

 forwarding:   unicast-ip4-chain
  [@0]: dpo-load-balance: [proto:ip4 index:18 buckets:1 uRPF:21 to:[3907933:179764918]]
    [0] [@5]: ipv4 via 100.65.1.2 host-d0: mtu:9000 next:3 flags:[] f21fedc65df902fe0cee7c5e0800
"""
_VPP_VERSION = """\
Version:                  v26.06-release
Compiled by:              root
Current PID:              14556
"""
_VPP_CPU = """\
Model name:               Intel Atom C3558
Base frequency:           2.20 GHz
"""
_VPP_THREADS = """\
ID     Name                Type        LWP     Sched Policy (Priority)  lcore  Core   Socket State
0      vpp_main                        14556   other (0)                0      0      0
1      vpp_wk_0            workers     14557   other (0)                1      1      0
"""
_VPP_INTERFACES = """\
              Name               Idx    State  MTU (L3/IP4/IP6/MPLS)     Counter          Count
TenGigabitEthernet3/0/0           1      up          9000/0/0/0     rx packets               1218965
                                                                    rx bytes                73137900
                                                                    rx-miss                     1000
local0                            0     down          0/0/0/0
"""
_VPP_ADDRESSES = "host-d0 (up):\n  L3 100.65.1.1/24\nhost-d1 (up):\n  L3 100.65.2.1/24\nlocal0 (dn):\n"
_VPP_NEIGHBOURS = """\
     Age                       IP                    Flags      Ethernet              Interface
     40.7670               100.65.1.2                  S    f2:1f:ed:c6:5d:f9 host-d0
"""
_VPP_PLACEMENT = """\
Thread 1 (vpp_wk_0):
 node dpdk-input:
    TenGigabitEthernet3/0/0 queue 0 (polling)
    TenGigabitEthernet3/0/1 queue 1 (polling)
Thread 2 (vpp_wk_1):
 node dpdk-input:
    TenGigabitEthernet3/0/0 queue 1 (polling)
"""
_VPP_ERRORS = """\
   Count                  Node                              Reason               Severity
        12             ip4-input                       ip4 ttl <= 1                error
         3         host-d0-tx                    interface is down   error
"""
_VPP_HARDWARE = """\
              Name                Idx   Link  Hardware
TenGigabitEthernet3/0/0            1     up   TenGigabitEthernet3/0/0
  Link speed: 10 Gbps
  RX Queues:
    queue thread         mode
    0     vpp_wk_0 (1)   polling
    1     vpp_wk_1 (2)   polling
  Ethernet address 90:ec:77:1b:63:55
  Intel X553
    carrier up full duplex max-frame-size 9022
    flags: admin-up maybe-multiseg tx-offload
    rx: queues 2 (max 64), desc 1024 (min 32 max 4096 align 8)
    tx: queues 3 (max 64), desc 1024 (min 32 max 4096 align 8)
    pci: device 8086:15e5 subsystem 8086:0000 address 0000:03:00.00 numa 0
    rx frames ok                                     1218965
    rx q0 packets                                     609482
    rx q1 packets                                     609483
    rx missed errors                                    1000
local0                             0    down  local0
  Link speed: unknown
  local
"""
_RAPL = """\
/sys/class/powercap/intel-rapl:0/name:package-0
/sys/class/powercap/intel-rapl:0/energy_uj:262143328850
/sys/class/powercap/intel-rapl:0/max_energy_range_uj:262143328850
"""

SAMPLES: Mapping[str, Sequence[str]] = {
    "dut.freebsd.parse.media_speed_bps": ("Ethernet autoselect (10Gbase-SR <full-duplex>)", "1000baseT <full-duplex>"),
    "dut.freebsd.parse.network": ("16.0.0.0/8", "10.1/16", "127.0.0.1"),
    "host.files.parse_lines": ('/boot/loader.conf:hw.ix.num_queues="2"\n',),
    "dut.freebsd.parse.parse_firewall": ("Status: Enabled for 0 days 00:12:01           Debug: Urgent\n",),
    "dut.freebsd.parse.parse_interfaces": (_IFCONFIG,),
    "dut.freebsd.parse.parse_neighbours": (_ARP,),
    "dut.freebsd.parse.parse_ndp": (
        "Neighbor    Linklayer Address  Netif Expire    S Flags\n"
        "2001:2:0:1::2   68:5:ca:32:45:94     ix0 permanent R p\nfe80::1%ix1  (incomplete) ix1 23s S\n",
    ),
    "dut.freebsd.parse.parse_path": (_PATH,),
    "dut.linux.parse.own_nft_rules": (
        '{"nftables": [{"chain": {"family": "inet", "table": "trexbench", "name": "forward"}}, '
        '{"rule": {"family": "inet", "table": "trexbench", "chain": "forward", "expr": []}}]}',
    ),
    "host.ping.parse_ping": (
        "PING 10.0.1.5 (10.0.1.5) 56(84) bytes of data.\n64 bytes from 10.0.1.5: icmp_seq=1 ttl=63 time=0.072 ms\n\n"
        "--- 10.0.1.5 ping statistics ---\n1 packets transmitted, 1 received, 0% packet loss, time 0ms\n"
        "rtt min/avg/max/mdev = 0.072/0.072/0.072/0.000 ms\n",
    ),
    "dut.freebsd.parse.parse_routes": (_ROUTES,),
    "dut.freebsd.parse.parse_opaque": ("kern.boot_id=Format: Length:16 Dump:0x2b1d732b2c1b8134cf3b7161650b01d8\n",),
    "dut.freebsd.parse.parse_struct": ("{ now = 1637938203, sec = 1637938203, usec = 7 } Fri Nov 26 14:50:03 2021",),
    "host.freebsd.parse_sysctl": (_SYSCTL,),
    "host.freebsd.parse_cpu_times": (_SYSCTL,),
    "host.freebsd.parse_cpus": ("irq 264 mask: 0, 1, 2, 3\n",),
    "host.freebsd.parse_interface_counts": (_NETSTAT_I,),
    "host.freebsd.parse_interrupts": ("interrupt  total  rate\nirq264: ix0:rxq0    1218965    12\n",),
    "host.freebsd.parse_kenv": (_KENV,),
    "host.freebsd.parse_microcode": (
        "MSR 0x8b: 0x0000002e 0x00000000\n",
        "CPU microcode: updated from 0x20 to 0x24\n",
    ),
    "host.freebsd.parse_netisr_drops": (_NETISR,),
    "host.freebsd.parse_protocol": ("ip:\n\t14 total packets received\n\t3 output packets discarded\n",),
    "host.files.number": ("17", "-3"),
    "host.linux.parse_clocks": (_CLOCKS,),
    "host.linux.parse_interrupts": (_INTERRUPTS,),
    "host.linux.parse_link_counters": (_LINK_COUNTERS,),
    "host.linux.parse_net_dev": (_NET_DEV,),
    "host.linux.parse_nic_counters": (_ETHTOOL_S,),
    "host.linux.queue_counts": (_ETHTOOL_S,),
    "dut.linux.parse.queue_of": ("enp3s0f0-TxRx-1",),
    "host.linux.parse_perf": ("1234567,,cycles,1000,100.00,,\n", "12,,cycles:u,1000,100.00,,\n"),
    "host.linux.parse_qdisc_drops": (_QDISC,),
    "host.linux.parse_snmp": (_SNMP,),
    "host.linux.parse_snmp6": ("Ip6InReceives                   \t900\nIp6InNoRoutes \t7\nIcmp6InMsgs \t3\n",),
    "host.linux.parse_softirqs": (_SOFTIRQS,),
    "host.linux.parse_softnet": (_SOFTNET,),
    "host.linux.parse_stat": (_STAT,),
    "host.linux.parse_uptime": ("12345.67 23456.78\n",),
    "dut.linux.wan.parse_qdiscs": (QDISCS_OF_A_WAN, QDISCS_WITH_LOSS, _QDISC),
    "dut.linux.parse.parse_device": (
        '[{"ifname":"tb6in4","flags":["POINTOPOINT","NOARP","UP"],"mtu":1480,"linkinfo":{"info_kind":"sit",'
        '"info_data":{"proto":"ip6ip","remote":"10.0.1.5","local":"10.0.1.1","ttl":255,"pmtudisc":true}}}]',
    ),
    "dut.linux.parse.count_iptables_rules": ("*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -i lo -j ACCEPT\nCOMMIT\n",),
    "dut.linux.parse.count_nft_rules": (_NFT,),
    "dut.linux.parse.parse_channels": (_CHANNELS, RINGS),
    "dut.linux.parse.parse_coalescing": (COALESCING,),
    "host.files.parse_cpus": ("0-3,8", "0"),
    "host.linux.parse_driver": ("driver: ixgbe\nversion: 6.18.5\nfirmware-version: 0x800\nbus-info: 0000:03:00.0\n",),
    "dut.linux.parse.parse_hash": (_HASH,),
    "dut.linux.parse.parse_hash_fields": (
        "UDP over IPV4 flows use these fields for computing Hash flow key:\nIP SA\n",
    ),
    "host.files.parse_mask": ("00000000,0000000c", "3"),
    "dut.vpp.parse.parse_fib": (_FIB,),
    "dut.vpp.parse_show.parse_addresses": (_VPP_ADDRESSES,),
    "dut.vpp.parse_show.parse_clock": (_VPP_CPU,),
    "dut.vpp.parse_show.parse_errors": (_VPP_ERRORS,),
    "dut.vpp.parse_show.parse_hardware": (_VPP_HARDWARE,),
    "dut.vpp.parse_show.parse_interfaces": (_VPP_INTERFACES,),
    "dut.vpp.parse_show.parse_neighbours": (_VPP_NEIGHBOURS,),
    "dut.vpp.parse_show.parse_placement": (_VPP_PLACEMENT,),
    "dut.vpp.parse_show.parse_threads": (_VPP_THREADS,),
    "dut.vpp.parse_show.parse_version": (_VPP_VERSION,),
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
