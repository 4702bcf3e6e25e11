"""Runs the server by itself: ``python -m trexbench.stlserver --interfaces p0,p1``."""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import re
import signal
import sys
import threading
from collections.abc import Sequence

from trexbench.stlserver.engine import Engine, EngineError
from trexbench.stlserver.engine_fake import FakeEngine
from trexbench.stlserver.faults import Fault, FaultError, parse_fault
from trexbench.stlserver.server import ServerError, StlServer

DEFAULT_RPC_PORT = 4501
DEFAULT_PUB_PORT = 4500
PR_SET_PDEATHSIG = 1
SCALES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}


def speed_bps(text: str) -> float:
    """10gbps, 1gbit, 2.5gbit/s: bit/s."""
    return _scaled(text, r"(?:bps|bit|bit/s)", "a speed such as 10gbps or 1gbit")


def rate_pps(text: str) -> float:
    """1.5mpps, 200kpps, 1000: packets/s."""
    return _scaled(text, r"(?:pps)?", "a rate such as 1.5mpps or 200000")


def _scaled(text: str, unit: str, wanted: str) -> float:
    match = re.fullmatch(rf"(\d+(?:\.\d+)?)([kmgt]?){unit}", text.strip().lower())
    if match is None or float(match[1]) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not {wanted}")
    return float(match[1]) * SCALES[match[2]]


def tcp_port(text: str) -> int:
    """0 (any free port) to 65535."""
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a TCP port (0 for any free one)")
    return int(text)


def macs(text: str) -> list[str | None]:
    """aa:bb:cc:dd:ee:ff,...: one a port, in their order; "-" for a port whose neighbour is unknown."""
    found: list[str | None] = []
    for one in text.split(","):
        if one != "-" and re.fullmatch(r"(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}", one) is None:
            raise argparse.ArgumentTypeError(f"{one!r} is not a MAC address (nor - for none)")
        found.append(None if one == "-" else one.lower())
    return found


def names(text: str) -> list[str]:
    """Interface names, separated by commas."""
    found = [one.strip() for one in text.split(",")]
    if not all(found) or len(set(found)) != len(found):
        raise argparse.ArgumentTypeError(f"{text!r} is no list of different interfaces")
    return found


def fault(text: str) -> Fault:
    """die@20s, hang@20s:5s, ...: as docs/faults.md lists them."""
    try:
        return parse_fault(text)
    except FaultError as err:
        raise argparse.ArgumentTypeError(str(err)) from err


def _parser(own_engine: bool, epilog: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m trexbench.stlserver" if epilog is None else "trexbench serve",
        description="An STL (TRex stateless) server that sends real packets on Linux interfaces.",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_mutually_exclusive_group(required=not own_engine)
    what.add_argument("--interfaces", type=names, metavar="P0,P1", help="the ports, in their order")
    what.add_argument(
        "--fake-ports", type=int, metavar="N", help="no packets: N ports that forward perfectly, for tests"
    )
    parser.add_argument("--netns", metavar="NAME", help="network namespace that holds the interfaces")
    parser.add_argument("--speed", type=speed_bps, default=10e9, metavar="RATE", help="port speed (10gbps)")
    parser.add_argument("--cpu", type=int, metavar="N", help="CPU that sends")
    parser.add_argument("--rpc-cpu", type=int, metavar="N", help="CPU that answers (any)")
    parser.add_argument("--limit-pps", type=rate_pps, metavar="RATE", help="send no faster, whatever is asked")
    parser.add_argument(
        "--dst-mac", type=macs, metavar="MAC,MAC", help="the ports' neighbours, in their order; - for unknown"
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (127.0.0.1)")
    parser.add_argument("--rpc-port", type=tcp_port, default=DEFAULT_RPC_PORT, metavar="N")
    parser.add_argument("--pub-port", type=tcp_port, default=DEFAULT_PUB_PORT, metavar="N")
    parser.add_argument(
        "--fault",
        type=fault,
        action="append",
        default=[],
        metavar="SPEC",
        help="for tests, may be repeated: die@20s hang@20s:5s drop@20s:3 link1-down@20s:2s reset@20s steal0@20s "
        "stale@20s:10s; times count from the first start of traffic",
    )
    parser.add_argument(
        "--die-with-parent",
        action="store_true",
        help="stop when standard input (a pipe that the parent holds) closes or the parent dies",
    )
    return parser


def _engine(args: argparse.Namespace) -> Engine:
    if args.interfaces is None:
        return FakeEngine(args.fake_ports, speed_bps=args.speed)
    # heavy, and needless for --help and --fake-ports
    from trexbench.stlserver.engine_kernel import KernelEngine

    return KernelEngine(
        args.interfaces,
        speed_bps=args.speed,
        netns=args.netns,
        cpu=args.cpu,
        dst_macs=args.dst_mac,
        limit_pps=args.limit_pps,
    )


def _watch_parent(server: StlServer) -> None:
    """Stop the server when the parent goes: the kernel's signal where there is one, the pipe in any case."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)

    def wait() -> None:
        while os.read(sys.stdin.fileno(), 4096):
            continue
        server.request_stop()

    threading.Thread(target=wait, name="parent-watch", daemon=True).start()


def _answer_promptly(cpu: int | None) -> None:
    """Run the RPC thread on that CPU (None: on any), and before anything else there.

    Between the readings of two ports it must not be put aside; it takes less than one percent of a CPU. Where the
    kernel shares CPUs out by session (autogroup), priorities count only inside of one: the sender's would mean nothing
    against other sessions' processes. A server that leads its session therefore asks for that session as a whole.
    Without the right to ask for it things stay as they are.
    """
    if cpu is not None:
        os.sched_setaffinity(0, {cpu})
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    if os.getsid(0) == os.getpid():
        with contextlib.suppress(OSError), open("/proc/self/autogroup", "w", encoding="ascii") as group:
            group.write("-20")


def main(argv: Sequence[str] | None = None, engine: Engine | None = None, epilog: str | None = None) -> int:
    """Returns the exit code: 0 stopped when asked, 1 could not begin, 2 wrong usage; a fault may kill the process.

    engine: serves in place of one that the arguments name. epilog: the end of the help, of whoever calls this.
    """
    parser = _parser(engine is not None, epilog)
    args = parser.parse_args(argv)
    if engine is not None and (args.interfaces or args.fake_ports is not None):
        parser.error("a simulated DUT has ports of its own: leave --interfaces and --fake-ports out")
    if args.fake_ports is not None and not 1 <= args.fake_ports <= 16:
        parser.error("--fake-ports: 1 to 16")
    if args.dst_mac and args.interfaces and len(args.dst_mac) != len(args.interfaces):
        parser.error(f"--dst-mac: {len(args.dst_mac)} addresses for {len(args.interfaces)} interfaces")
    if args.rpc_cpu is not None and args.rpc_cpu not in os.sched_getaffinity(0):
        parser.error(f"--rpc-cpu: {args.rpc_cpu} is not usable here; usable: {sorted(os.sched_getaffinity(0))}")
    try:
        server = StlServer(
            engine or _engine(args), host=args.host, rpc_port=args.rpc_port, pub_port=args.pub_port, faults=args.fault
        )
    except FaultError as err:
        parser.error(f"argument --fault: {err}")
    except (EngineError, ServerError, OSError) as err:
        print(f"stlserver: {err}", file=sys.stderr)
        return 1
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: server.request_stop())
    if args.die_with_parent:
        _watch_parent(server)
    _answer_promptly(args.rpc_cpu)
    listed = ",".join(server.port_names)
    rpc, pub = (f"tcp://{server.host}:{port}" for port in (server.rpc_port, server.pub_port))
    print(f"ready rpc={rpc} pub={pub} ports={listed}", flush=True)
    server.run()
    if server.died:
        os.kill(os.getpid(), signal.SIGKILL)  # a dead process says nothing and cleans nothing up
    return 0


if __name__ == "__main__":
    sys.exit(main())
