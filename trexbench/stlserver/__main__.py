"""Command line of the server: ``python -m trexbench.stlserver --interfaces p0,p1``, and of ``trexbench lab serve``."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import click

from ..core.errors import ConfigError, LabError
from ..core.units import parse_speed
from .engine import Engine, EngineError
from .rpc.server import ServerError, StlServer

DEFAULT_RPC_PORT = 4501
DEFAULT_PUB_PORT = 4500
PR_SET_PDEATHSIG = 1


class _Rare(click.Option):
    """An option that ``trexbench lab serve --help`` leaves out."""

    usual = False


def _speed(text: str) -> float:
    try:
        return parse_speed(text)
    except ConfigError as error:
        raise click.BadParameter(str(error)) from error


def macs(text: str) -> list[str | None]:
    """Parse aa:bb:cc:dd:ee:ff,...: the neighbour of each port in order, "-" where it is unknown."""
    addresses = text.lower().split(",")
    for mac in addresses:
        if mac != "-" and re.fullmatch(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}", mac) is None:
            raise click.BadParameter(f"{mac!r} is not a MAC address (nor - for none)")
    return [None if mac == "-" else mac for mac in addresses]


def _cpus(text: str) -> list[int]:
    cpus = text.split(",") if text else []
    if not all(cpu.isascii() and cpu.isdigit() for cpu in cpus) or len(set(cpus)) != len(cpus):
        raise click.BadParameter(f"{text!r} is not a list of different CPUs")
    return [int(cpu) for cpu in cpus]


def _interface_names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names) or len(set(names)) != len(names):
        raise click.BadParameter(f"{text!r} is not a list of different interfaces")
    return names


_tcp_port = partial(click.option, metavar="N", type=click.IntRange(0, 65535))


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--interfaces", metavar="P0,P1", type=_interface_names, help="Interfaces that are the ports, in order.")
@click.option("--netns", metavar="NAME", help="Network namespace of the interfaces. Default: that of this process.")
@click.option("--speed", type=_speed, metavar="SPEED", help="Port speed, as 10gbit. Default: the NIC's, else 10gbit.")
@click.option("--cpu", metavar="N,M", type=_cpus, default="", help="CPUs that send, one for each pair of ports.")
@click.option("--skb", cls=_Rare, is_flag=True, help="Do without XDP in the drivers: slower, but works with any NIC.")
@click.option("--rpc-cpu", cls=_Rare, type=int, metavar="N", help="CPU that answers clients. Default: any.")
@click.option(
    "--limit-pps",
    cls=_Rare,
    type=click.FloatRange(0, min_open=True),
    metavar="PPS",
    help="Frames per second and port that are sent at most, whatever clients ask for.",
)
@click.option("--dst-mac", metavar="MAC,MAC", type=macs, help="Destination MACs of the ports, in order; -: unknown.")
@click.option("--host", metavar="HOST", default="127.0.0.1", help="Address to listen on. Default: 127.0.0.1.")
@_tcp_port("--rpc-port", default=DEFAULT_RPC_PORT, help=f"RPC (sync) port. Default: {DEFAULT_RPC_PORT}.")
@_tcp_port("--pub-port", default=DEFAULT_PUB_PORT, help=f"Event (async) port. Default: {DEFAULT_PUB_PORT}.")
@click.option(
    "--die-with-parent",
    is_flag=True,
    hidden=True,
    help="Stop when standard input (a pipe that the parent holds) closes or the parent dies.",
)
def serve(**options: Any) -> None:
    """An STL (TRex stateless) server that sends real packets on Linux interfaces."""
    sys.exit(run(None, **options))


def _kernel_engine(args: SimpleNamespace) -> Engine:
    # imported late: it is slow to load, and neither --help nor a simulated DUT needs it
    from .kernel.engine import KernelEngine
    from .kernel.port import MODES, SKB

    options = {"netns": args.netns, "cpus": args.cpu, "dst_macs": args.dst_mac, "limit_pps": args.limit_pps}
    engine = KernelEngine(args.interfaces, speed_bps=args.speed, modes=(SKB,) if args.skb else MODES, **options)
    for port in engine.ports:
        for remark in port.remarks:
            print(f"stlserver: {remark}", file=sys.stderr)
    return engine


def _watch_parent(server: StlServer) -> None:
    """Stop the server when the parent is gone: by the kernel's signal where there is one, by the pipe in any case."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)

    def wait() -> None:
        while os.read(sys.stdin.fileno(), 4096):
            continue
        server.request_stop()

    threading.Thread(target=wait, name="parent-watch", daemon=True).start()


def _take_real_time_priority(flags: int = 0) -> None:
    with contextlib.suppress(OSError):  # not permitted
        os.sched_setscheduler(0, os.SCHED_FIFO | flags, os.sched_param(1))


def _answer_promptly(cpu: int | None) -> None:
    """Give the RPC thread priority over all others, on this CPU (None: any); threads started later do not inherit it.

    Nothing may preempt it between the readings of two ports; it takes less than one percent of a CPU. Without the
    right to raise priorities nothing changes.
    """
    if cpu is not None:
        os.sched_setaffinity(0, {cpu})
    _take_real_time_priority(os.SCHED_RESET_ON_FORK)
    # Where the kernel shares CPUs out by session (autogroup), priorities count inside a session only, and the sender's
    # would mean nothing against other sessions' processes. So a session's leader asks for the session as a whole.
    if os.getsid(0) == os.getpid():
        with contextlib.suppress(OSError), open("/proc/self/autogroup", "w", encoding="ascii") as group:
            group.write("-20")


def run(engine: Engine | None, make: Callable[..., StlServer] = StlServer, **options: Any) -> int:
    """Serve ``engine``, or the one that the options of ``serve`` describe, until asked to stop.

    Returns the exit code: 0 stopped when asked, 7 could not start. Raises click.UsageError for options that contradict
    each other.
    """
    args = SimpleNamespace(**options)
    if engine is None and not args.interfaces:
        raise click.UsageError("no ports: name their --interfaces, or simulate a DUT with --sim")
    if engine is not None and args.interfaces:
        raise click.UsageError("a simulated DUT has ports of its own: leave --interfaces out")
    if args.dst_mac and args.interfaces and len(args.dst_mac) != len(args.interfaces):
        raise click.UsageError(f"--dst-mac: {len(args.dst_mac)} addresses for {len(args.interfaces)} interfaces")
    usable = sorted(os.sched_getaffinity(0))
    if args.rpc_cpu is not None and args.rpc_cpu not in usable:
        raise click.UsageError(f"--rpc-cpu: {args.rpc_cpu} is not usable here; usable: {usable}")
    try:
        engine = engine or _kernel_engine(args)
        # ZMQ's threads, which carry every request and reply, inherit this: a busy sender would delay them by 0.5 s
        _take_real_time_priority()
        server = make(engine, args.host, args.rpc_port, args.pub_port)
    except (EngineError, ServerError, OSError) as error:
        print(f"stlserver: {error}", file=sys.stderr)
        return LabError.exit_code
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: server.request_stop())
    if args.die_with_parent:
        _watch_parent(server)
    _answer_promptly(args.rpc_cpu)
    listed = ",".join(port.name for port in engine.ports)
    modes = ",".join(filter(None, (port.mode for port in engine.ports)))
    rpc, pub = (f"tcp://{server.host}:{port}" for port in (server.rpc_port, server.pub_port))
    print(f"ready rpc={rpc} pub={pub} ports={listed}{modes and f' modes={modes}'}", flush=True)
    server.run()
    return 0


if __name__ == "__main__":
    serve(prog_name="python -m trexbench.stlserver")
