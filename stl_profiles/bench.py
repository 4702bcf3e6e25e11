"""The traffic of trexbench's modes, for trexbench and for TRex's console alike:

    start -f stl_profiles/bench.py -m 50% -t size=64,vm=var2

size   frame size in bytes with its FCS, 64 to 9216, or imix: 28 of 60, 16 of 590 and 4 of 1514 bytes
vm     none    one flow, 16.0.0.1 -> 48.0.0.1
       var1    the source steps through 16.0.0.4-254
       var2    source and destination step together: 251 flows, as the pairs repeat in lockstep
       random  a random source out of the same range
       tuple   every source of the range with every source port from 1234 to 65500

Odd ports send the other way: 48.x -> 16.x. The destination's UDP port is 12, the source's 1025.
"""

import argparse

from trex_stl_lib.api import IP, STLVM, UDP, Ether, STLPktBuilder, STLStream, STLTXCont

IMIX = ((60, 28), (590, 16), (1514, 4))  # bytes, packets per second
FCS, SHORTEST, LONGEST = 4, 64, 9216


class Bench:
    def get_streams(self, direction=0, tunables=(), **older):
        """``tunables`` is a command line; older TRex passes each tunable by its name."""
        size, vm = parse(tunables or [f"--{name}={older[name]}" for name in ("size", "vm") if name in older])
        ends = ("16.0.0", "48.0.0") if direction == 0 else ("48.0.0", "16.0.0")
        return [stream(frame, pps, vm, *ends) for frame, pps in (IMIX if size == "imix" else ((size, 1),))]


def parse(words):
    parser = argparse.ArgumentParser(prog="bench.py", description="64 B to 9216 B and imix, one flow or many")
    parser.add_argument("--size", type=frame_size, default=64, help="64 to 9216, with FCS, or imix")
    parser.add_argument("--vm", default="none", choices=("none", "var1", "var2", "random", "tuple"))
    chosen = parser.parse_args(words)
    return chosen.size, chosen.vm


def frame_size(word):
    if word == "imix":
        return word
    if not word.isdecimal() or not SHORTEST <= int(word) <= LONGEST:
        raise argparse.ArgumentTypeError(f"{word!r} is neither imix nor a size from {SHORTEST} to {LONGEST}")
    return int(word)


def stream(frame, pps, vm, src, dst):
    host = 1 if vm == "none" else 4
    headers = Ether() / IP(src=f"{src}.{host}", dst=f"{dst}.{host}") / UDP(sport=1025, dport=12, chksum=0)
    padding = max(frame, SHORTEST) - FCS - len(headers)
    packet = STLPktBuilder(pkt=headers / ("x" * padding), vm=field_engine(vm, src, dst))
    return STLStream(packet=packet, mode=STLTXCont(pps=pps))


def field_engine(vm, src, dst):
    """What changes from packet to packet; a UDP checksum of zero means there is none to mend."""
    program = STLVM()
    if vm == "none":
        return program
    if vm == "tuple":
        program.tuple_var(name="src", ip_min=f"{src}.4", ip_max=f"{src}.254", port_min=1234, port_max=65500)
        program.write(fv_name="src.ip", pkt_offset="IP.src")
        program.write(fv_name="src.port", pkt_offset="UDP.sport")
    else:
        step(program, "src", src, "random" if vm == "random" else "inc")
    if vm == "var2":
        step(program, "dst", dst, "inc")
    program.fix_chksum()
    return program


def step(program, end, net, op):
    program.var(name=end, min_value=f"{net}.4", max_value=f"{net}.254", size=4, op=op)
    program.write(fv_name=end, pkt_offset=f"IP.{end}")


def register():
    return Bench()
