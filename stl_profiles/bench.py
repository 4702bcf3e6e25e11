"""The traffic of trexbench's modes, for trexbench and for TRex's console alike:

    start -f stl_profiles/bench.py -m 50% -t size=64,vm=var2,ip=6

size   frame size in bytes with its FCS, 64 to 9216, or imix: 28 of 60, 16 of 590 and 4 of 1514 bytes
vm     none    one flow, 16.0.0.1 -> 48.0.0.1
       var1    the source steps through 16.0.0.4-254
       var2    source and destination step together: 251 flows, as the pairs repeat in lockstep
       random  a random source out of the same range
       tuple   every source of the range with every source port from 1234 to 65500
ip     4, or 6: 2001:2:0:16::1 -> 2001:2:0:48::1, and hosts ::4 to ::fe; no frame is then shorter than 78 bytes

Odd ports send the other way: 48.x -> 16.x. Ports 2 and 3 send between 16.1.0.x and 48.1.0.x (2001:2:1:...), 4 and 5
between 16.2.0.x and 48.2.0.x and so on, so that routes can lead each pair its own way. The destination's UDP port is
12, the source's 1025.
"""

import argparse

from trex_stl_lib.api import IP, STLVM, UDP, CTRexVmInsFixHwCs, Ether, IPv6, STLPktBuilder, STLStream, STLTXCont

IMIX = ((60, 28), (590, 16), (1514, 4))  # bytes, packets per second
FCS, LONGEST = 4, 9216


class Family:
    """layer: header. nets: of a pair of ports, {} for its number; low: the last four bytes of their host 0 of pair 0;
    each: what every further pair adds to these. at: where they stand in an address. shortest: frame with its FCS. udp:
    fields of the UDP header.
    """

    def __init__(self, layer, nets, low, each, at, shortest, **udp):
        self.layer, self.nets, self.low, self.each, self.at = layer, nets, low, each, at
        self.shortest, self.udp = shortest, udp

    def sent_by(self, direction, pair):
        """Return this family for a pair of ports, with the sender's net first."""
        step = -1 if direction else 1
        nets, low = [net.format(pair) for net in self.nets], [one + pair * self.each for one in self.low]
        return Family(self.layer, nets[::step], low[::step], 0, self.at, self.shortest, **self.udp)


FAMILIES = {
    # a UDP checksum of zero means there is none to mend
    4: Family(IP, ("16.{}.0.", "48.{}.0."), (16 << 24, 48 << 24), 1 << 16, 0, 64, chksum=0),
    # IPv6 has to have one. 78 bytes are the smallest frames of IPv6 tests elsewhere (FD.io CSIT), too
    6: Family(IPv6, ("2001:2:{:x}:16::", "2001:2:{:x}:48::"), (0, 0), 0, 12, 78),
}


class Bench:
    def get_streams(self, direction=0, tunables=(), port_id=0, **older):
        """``tunables`` is a command line; older TRex passes each tunable by its name."""
        wanted = parse(tunables or [f"--{name}={older[name]}" for name in ("size", "vm", "ip") if name in older])
        family = FAMILIES[wanted.ip].sent_by(direction, port_id // 2)
        sizes = IMIX if wanted.size == "imix" else ((wanted.size, 1),)
        return [stream(frame, pps, wanted.vm, family) for frame, pps in sizes]


def parse(words):
    parser = argparse.ArgumentParser(prog="bench.py", description="64 B to 9216 B and imix, one flow or many")
    parser.add_argument("--size", type=frame_size, default=64, help="64 to 9216, with FCS, or imix")
    parser.add_argument("--vm", default="none", choices=("none", "var1", "var2", "random", "tuple"))
    parser.add_argument("--ip", type=int, default=4, choices=sorted(FAMILIES))
    return parser.parse_args(words)


def frame_size(word):
    if word == "imix":
        return word
    if not word.isdecimal() or not FAMILIES[4].shortest <= int(word) <= LONGEST:
        raise argparse.ArgumentTypeError(
            f"{word!r} is neither imix nor a size from {FAMILIES[4].shortest} to {LONGEST}"
        )
    return int(word)


def stream(frame, pps, vm, family):
    src, dst = (f"{net}{1 if vm == 'none' else 4}" for net in family.nets)
    headers = Ether() / family.layer(src=src, dst=dst) / UDP(sport=1025, dport=12, **family.udp)
    padding = max(frame, family.shortest) - FCS - len(headers)
    packet = STLPktBuilder(pkt=headers / ("x" * padding), vm=field_engine(vm, family))
    return STLStream(packet=packet, mode=STLTXCont(pps=pps))


def field_engine(vm, family):
    """Return the program that changes fields from packet to packet."""
    program = STLVM()
    if vm == "none":
        return program
    layer, (src, dst) = family.layer.__name__, family.low
    if vm == "tuple":
        program.tuple_var(name="src", ip_min=src + 4, ip_max=src + 254, port_min=1234, port_max=65500)
        program.write(fv_name="src.ip", pkt_offset=f"{layer}.src", offset_fixup=family.at)
        program.write(fv_name="src.port", pkt_offset="UDP.sport")
    else:
        step(program, f"{layer}.src", src, family.at, "random" if vm == "random" else "inc")
    if vm == "var2":
        step(program, f"{layer}.dst", dst, family.at, "inc")
    if layer == "IP":
        program.fix_chksum()
    else:
        program.fix_chksum_hw(l3_offset=layer, l4_offset="UDP", l4_type=CTRexVmInsFixHwCs.L4_TYPE_UDP)
    return program


def step(program, field, low, at, op):
    name = field[-3:]
    program.var(name=name, min_value=low + 4, max_value=low + 254, size=4, op=op)
    program.write(fv_name=name, pkt_offset=field, offset_fixup=at)


def register():
    return Bench()
