"""The server by itself: ``python -m trexbench.stlserver --interfaces p0,p1``. ``trexbench lab serve`` adds to it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import sys
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import click

from ..core.errors import ConfigError
from ..core.units import parse_speed
from .engine import Engine, EngineError
from .rpc.server import ServerError, StlServer

DEFAULT_RPC_PORT = 4501
DEFAULT_PUB_PORT = 4500
PR_SET_PDEATHSIG = 1


class _Read(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.4 only
    """A type by the function that reads it and refuses in one line."""

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        self.name, self._read = name, read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return self._read(value) if isinstance(value, str) else value
        except (ValueError, ConfigError) as error:
            raise click.UsageError(f"argument {param.opts[0] if param else self.name}: {error}", ctx) from error


class _Rare(click.Option):
    """An option that ``trexbench lab serve --help`` leaves out."""

    usual = False


def _tcp_port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise ValueError(f"{text!r} is not a TCP port (0 for any free one)")
    return int(text)


def macs(text: str) -> list[str | None]:
    """aa:bb:cc:dd:ee:ff,...: one a port, in their order; "-" for a port whose neighbour is unknown."""
    found = text.lower().split(",")
    for one in found:
        if one != "-" and re.fullmatch(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}", one) is None:
            raise ValueError(f"{one!r} is not a MAC address (nor - for none)")
    return [None if one == "-" else one for one in found]


def _cpus(text: str) -> list[int]:
    cpus = text.split(",") if text else []
    if not all(one.isascii() and one.isdigit() for one in cpus) or len(set(cpus)) != len(cpus):
        raise ValueError(f"{text!r} is no list of different CPUs")
    return [int(one) for one in cpus]


def _names(text: str) -> list[str]:
    found = [one.strip() for one in text.split(",")]
    if not all(found) or len(set(found)) != len(found):
        raise ValueError(f"{text!r} is no list of different interfaces")
    return found


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--interfaces", type=_Read("P0,P1", _names), help="The ports, in their order.")
@click.option("--netns", metavar="NAME", help="Network namespace that holds the interfaces.")
@click.option("--speed", type=_Read("RATE", parse_speed), help="Port speed (the NIC's, else 10gbps).")
@click.option("--cpu", type=_Read("N,M", _cpus), default="", help="CPUs that send, one for each pair of ports.")
@click.option("--skb", cls=_Rare, is_flag=True, help="Do without XDP in the drivers: slower, with any NIC.")
@click.option("--rpc-cpu", cls=_Rare, type=int, metavar="N", help="CPU that answers (any).")
@click.option(
    "--limit-pps",
    cls=_Rare,
    type=click.FloatRange(0, min_open=True),
    metavar="PPS",
    help="Send no faster, whatever is asked.",
)
@click.option("--dst-mac", type=_Read("MAC,MAC", macs), help="The ports' neighbours, in their order; - for unknown.")
@click.option("--host", default="127.0.0.1", help="Address to listen on (127.0.0.1).")
@click.option("--rpc-port", type=_Read("N", _tcp_port), default=DEFAULT_RPC_PORT, help=f"({DEFAULT_RPC_PORT})")
@click.option("--pub-port", type=_Read("N", _tcp_port), default=DEFAULT_PUB_PORT, help=f"({DEFAULT_PUB_PORT})")
@click.option(
    "--die-with-parent",
    is_flag=True,
    hidden=True,
    help="Stop when standard input (a pipe that the parent holds) closes or the parent dies.",
)
def serve(**options: Any) -> None:
    """An STL (TRex stateless) server that sends real packets on Linux interfaces."""
    sys.exit(run(None, **options))


def _engine(args: SimpleNamespace) -> Engine:
    # heavy, and needless for --help and a simulated DUT
    from .kernel.engine import KernelEngine
    from .kernel.port import MODES, SKB

    options = {"netns": args.netns, "cpus": args.cpu, "dst_macs": args.dst_mac, "limit_pps": args.limit_pps}
    engine = KernelEngine(args.interfaces, speed_bps=args.speed, modes=(SKB,) if args.skb else MODES, **options)
    for port in engine.ports:
        for remark in port.remarks:
            print(f"stlserver: {remark}", file=sys.stderr)
    return engine


def _watch_parent(server: StlServer) -> None:
    """Stop the server when the parent goes: the kernel's signal where there is one, the pipe in any case."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)

    def wait() -> None:
        while os.read(sys.stdin.fileno(), 4096):
            continue
        server.request_stop()

    threading.Thread(target=wait, name="parent-watch", daemon=True).start()


def _run_before_others(flags: int = 0) -> None:
    """Give this thread real-time priority, where that is permitted; flags: of ``sched_setscheduler``."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO | flags, os.sched_param(1))


def _answer_promptly(cpu: int | None) -> None:
    """Run the RPC thread on that CPU (None: on any), and before anything else; no thread begun later inherits that.

    Between the readings of two ports it must not be put aside; it takes less than one percent of a CPU. Where the
    kernel shares CPUs out by session (autogroup), priorities count only inside of one: the sender's would mean nothing
    against other sessions' processes. A server that leads its session therefore asks for that session as a whole.
    Without the right to ask for it things stay as they are.
    """
    if cpu is not None:
        os.sched_setaffinity(0, {cpu})
    _run_before_others(os.SCHED_RESET_ON_FORK)
    if os.getsid(0) == os.getpid():
        with contextlib.suppress(OSError), open("/proc/self/autogroup", "w", encoding="ascii") as group:
            group.write("-20")


def run(engine: Engine | None, make: Callable[..., StlServer] = StlServer, **options: Any) -> int:
    """Serve ``engine``, or the one that the options name, until asked to stop; options: those of ``serve``.

    make: returns the server. Returns the exit code: 0 stopped when asked, 1 could not begin. click.UsageError for
    options that do not go together.
    """
    args = SimpleNamespace(**options)
    if engine is None and not args.interfaces:
        raise click.UsageError("argument --interfaces is required")
    if engine is not None and args.interfaces:
        raise click.UsageError("a simulated DUT has ports of its own: leave --interfaces out")
    if args.dst_mac and args.interfaces and len(args.dst_mac) != len(args.interfaces):
        raise click.UsageError(f"--dst-mac: {len(args.dst_mac)} addresses for {len(args.interfaces)} interfaces")
    usable = sorted(os.sched_getaffinity(0))
    if args.rpc_cpu is not None and args.rpc_cpu not in usable:
        raise click.UsageError(f"--rpc-cpu: {args.rpc_cpu} is not usable here; usable: {usable}")
    try:
        engine = engine or _engine(args)
        # ZMQ's threads inherit this: each request and each reply passes them, and a busy sender delays them by 0.5 s
        _run_before_others()
        server = make(engine, args.host, args.rpc_port, args.pub_port)
    except (EngineError, ServerError, OSError) as error:
        print(f"stlserver: {error}", file=sys.stderr)
        return 1
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
