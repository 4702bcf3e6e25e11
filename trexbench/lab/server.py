"""The STL server on the tester's ports, the embedded one or a real TRex: started, awaited, stopped."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..child import child_argv, child_environment
from ..core.errors import ConfigError, LabError
from ..lock import run_dir
from . import net, state
from .spec import LabSpec, Placement
from .state import Process, Server

READY_S = 90.0
"""Time for a server to answer. The embedded one takes a second, and more than 20 beside 19 processes on two cores."""
_STOP_S = 5.0
_PR_SET_PDEATHSIG = 1
_LONGEST_SOCKET = 107
_COMPLAINT = re.compile(r"\b(error|cannot|fail\w*|unable)\b|vlib_|clib_", re.IGNORECASE)


@dataclass(frozen=True)
class Launch:
    """A command to start. kind: as in state.Server."""

    kind: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str | None = None


def embedded(spec: LabSpec, placement: Placement) -> Launch:
    argv = [*child_argv("trexbench.stlserver"), "--interfaces", ",".join(spec.tester_interfaces)]
    argv += ["--dst-mac", ",".join(spec.far_macs.values())]
    argv += ["--rpc-port", str(spec.rpc_port), "--pub-port", str(spec.pub_port)]
    if spec.speed_bps:
        argv += ["--speed", f"{spec.speed_bps / 1e6:g}mbit"]
    if placement.sender is not None:
        argv += ["--cpu", str(placement.sender)]
    if placement.harness is not None:
        argv += ["--rpc-cpu", str(placement.harness)]
    if spec.settings.sender_limit_pps is not None:
        argv += ["--limit-pps", f"{spec.settings.sender_limit_pps:.3f}"]
    return Launch("embedded", tuple(argv), {**child_environment(), "PYTHONUNBUFFERED": "1"})


def trex(spec: LabSpec, placement: Placement, directory: Path, config_file: Path) -> Launch:
    """Return how to launch TRex's own binary: its script ``t-rex-64`` kills the helpers of other TRex on this host."""
    binary = find_trex(directory)
    config_file.write_text(trex_config(spec, placement))
    options = ("--no-scapy-server", "--iom", "0")  # no screen of figures in the log
    # its watchdog would end it where a busy machine holds one of its threads up for a second
    argv = (str(binary), "-i", "--stl", "--software", "--no-watchdog", *options, "--cfg", str(config_file))
    library_path = f"{directory}:{directory / 'so' / os.uname().machine}"
    return Launch("trex", argv, {"LD_LIBRARY_PATH": library_path}, str(directory))


def find_trex(directory: Path) -> Path:
    """Find the TRex binary of an installation that this machine's processor can run."""
    has_avx = re.search(r"\bavx\b", Path("/proc/cpuinfo").read_text())
    names = ("_t-rex-64", "_t-rex-64-o") if has_avx else ("_t-rex-64-o", "_t-rex-64")
    for name in names:
        if os.access(directory / name, os.X_OK):
            return directory / name
    raise ConfigError(f"{directory}: no TRex there (no _t-rex-64)", "name the directory that t-rex-64 is in")


def trex_config(spec: LabSpec, placement: Placement) -> str:
    """Compose ``/etc/trex_cfg.yaml`` for these ports: one core, no huge pages."""
    # The prefix keeps DPDK's locks apart from those of another TRex on this host.
    lines = ["- version: 2", f"  prefix: {spec.prefix}", "  low_end: true"]
    if placement.sender is not None:
        lines.append(f"  low_end_core: {placement.sender}")
    lines.append(f"  interfaces: [{', '.join(repr(name) for name in spec.tester_interfaces)}]")
    lines += [f"  zmq_rpc_port: {spec.rpc_port}", f"  zmq_pub_port: {spec.pub_port}", "  port_info:"]
    for index, mac in spec.tester_macs.items():
        lines += [f"    - src_mac: '{mac}'", f"      dest_mac: '{spec.far_macs[index]}'"]
    return "\n".join(lines) + "\n"


def start(
    spec: LabSpec, launch: Launch, with_parent: bool, namespace: str | None = None
) -> tuple[Server, subprocess.Popen[bytes]]:
    """Start it in the tester's namespace (or another), in its own session; with_parent: killed when the caller dies.

    ``ip netns exec`` becomes the server itself (exec): its pid is the server's, and its /sys the namespace's.
    """
    log = run_dir() / f"{spec.prefix}-{'server' if namespace is None else launch.kind}.log"
    try:
        with log.open("wb") as output:
            process = subprocess.Popen(
                ["ip", "netns", "exec", namespace or spec.tester, *launch.argv],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=launch.cwd,
                env={**os.environ, **launch.env, state.MARK: spec.prefix},
                start_new_session=True,
                preexec_fn=die_with_parent() if with_parent else None,
            )
    except OSError as error:
        raise LabError(f"{launch.kind} server cannot be started: {error}") from None
    directory = launch.cwd if launch.kind == "trex" else None
    return Server(launch.kind, Process.of(process.pid), str(log), directory), process


def die_with_parent() -> Callable[[], None]:
    """Return a function that has a child, before it becomes the program, killed when the caller dies."""
    parent, libc = os.getpid(), ctypes.CDLL(None)

    def prepare() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return prepare


def require_short(spec: LabSpec, path: Path) -> None:
    """Raise LabError, before anything is made, for a socket path that is too long for the kernel."""
    if len(os.fsencode(path)) > _LONGEST_SOCKET:
        raise LabError(f"lab {spec.prefix}: {path} is too long for a socket", "write a shorter lab.prefix")


def await_ready(
    name: str,
    process: subprocess.Popen[bytes],
    log: str,
    ready: Callable[[], bool],
    within_s: float,
    cancelled: Callable[[], bool],
) -> None:
    """Wait until a process is ready; LabError, with a line of its log, if it ends or takes too long."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise LabError(f"{name} ended with code {process.returncode}: {telling_line(log)}", f"its log is {log}")
        if ready():
            return
        if cancelled():
            raise LabError(f"interrupted while {name} was starting")
        time.sleep(0.05)
    raise LabError(f"{name} did not answer within {within_s:g} s: {telling_line(log)}", f"its log is {log}")


def answers(spec: LabSpec) -> bool:
    """Test whether both of the server's ports, in the tester's namespace, accept connections."""
    for port in (spec.rpc_port, spec.pub_port):
        with net.inside(spec.tester), socket.socket() as probe:
            probe.settimeout(1.0)
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return False
    return True


def stop(prefix: str, netns_inode: int, known: Sequence[Process] = ()) -> None:
    """Send SIGTERM, then SIGKILL, to the lab's server and what it started; to nothing else.

    known: processes that the lab started, whose environment cannot be read for a moment after that.
    """

    def there() -> set[Process]:
        return {*state.server_processes(prefix, netns_inode), *(process for process in known if process.alive)}

    for number, patience_s in ((signal.SIGTERM, _STOP_S), (signal.SIGKILL, 2.0)):
        deadline, asked = time.monotonic() + patience_s, set[Process]()
        while time.monotonic() < deadline:
            if not (left := there()):
                return
            for process in left - asked:  # also those that begin meanwhile
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, number)
            asked |= left
            time.sleep(0.05)
    pids = ", ".join(str(process.pid) for process in there())
    raise LabError(f"the server of lab {prefix} does not end (process {pids})", "see 'ps' and 'dmesg'")


def telling_line(log: str, longest: int = 300) -> str:
    """Pick the line of a log that says why: the first that looks like an error, else the last if it has a word."""
    try:
        data = Path(log).read_bytes()[-8192:]
    except OSError:
        return "(no log)"
    lines = [line.strip() for line in data.decode(errors="replace").splitlines() if line.strip()]
    complaints = [line for line in lines if _COMPLAINT.search(line)]
    last = [line for line in lines[-1:] if re.search("[A-Za-z]", line)]
    return (complaints[:1] or last or ["(it said nothing)"])[0][:longest]
