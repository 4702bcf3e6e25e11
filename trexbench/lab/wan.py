"""A lab's long line: cables that a process makes of pairs of TAPs, and how it is asked."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..config.endpoints import endpoint_namespace
from ..core.errors import LabError
from ..lock import run_dir
from . import net, tap
from .server import Launch, python_path
from .spec import LabSpec, Placement

KIND = "wan"
READY_S = 20.0
TAP_FRAMES = 4096
"""Frames that a TAP holds until the process comes to read."""
_ANSWER_S = 5.0
_LONGEST_ANSWER = 1 << 16


@dataclass(frozen=True)
class WanCable:
    """to: ``server``, or ``tester``: its last port. dut, far: namespace, interface and MAC (empty: any) of each end."""

    to: str
    dut: tuple[str, str, str]
    far: tuple[str, str, str]


def cables_of(spec: LabSpec) -> tuple[WanCable, ...]:
    """Cables of a lab's line, which replace veth pairs; none where it has no line."""
    return tuple(_cables(spec)) if spec.wan is not None else ()


def _cables(spec: LabSpec) -> Iterator[WanCable]:
    for one in spec.endpoints:
        if one.role == "server":
            yield WanCable(
                "server", (spec.dut, one.dut, ""), (endpoint_namespace(spec.prefix, "server"), one.interface, "")
            )
    if spec.dut_interfaces:
        port, name = len(spec.dut_interfaces) - 1, spec.dut_interfaces[-1]
        far = (spec.tester, spec.tester_interfaces[port], spec.tester_macs[port])
        yield WanCable("tester", (spec.dut, name, spec.dut_macs[port]), far)


def make_taps(spec: LabSpec) -> None:
    """In namespaces that are there; all up, without carrier until the process is attached."""
    for cable in cables_of(spec):
        for space, name, mac in (cable.dut, cable.far):
            tap.make(space, name)
            address = {"address": mac} if mac else {}
            net.set_link(space, name, mtu=spec.settings.mtu, txqlen=TAP_FRAMES, **address)
            net.set_link(space, name, state="up")


def socket_of(prefix: str) -> Path:
    return run_dir() / f"{prefix}-wan.sock"


def launch(spec: LabSpec, placement: Placement, cpus: Sequence[int]) -> Launch:
    """It runs on those of these cores that do not forward, if there are any."""
    assert spec.wan is not None
    argv = [sys.executable, "-m", "trexbench.lab.cable"]
    for cable in cables_of(spec):
        argv += ["--ends", ",".join(f"{space}:{name}" for space, name, _ in (cable.dut, cable.far))]
        if cable.to == "tester" or spec.settings.endpoints.mode == "mtu":
            argv += ["--napi", ":".join(cable.dut[:2])]  # the router polls, and may merge what arrives
    argv += ["--socket", str(socket_of(spec.prefix)), "--wan", json.dumps(asdict(spec.wan))]
    others = [cpu for cpu in cpus if cpu not in placement.router] or list(cpus)
    argv += ["--cpus", ",".join(map(str, others))]
    return Launch(KIND, tuple(argv), {"PYTHONPATH": python_path(), "PYTHONUNBUFFERED": "1"})


def answers(spec: LabSpec) -> bool:
    try:
        ask(spec.prefix, {"counts": True})
    except LabError:
        return False
    return True


def ask(prefix: str, question: dict[str, Any]) -> dict[str, Any]:
    """Return the answer of the lab's line; LabError where it is not there, or refuses."""
    try:
        with socket.socket(socket.AF_UNIX) as there:
            there.settimeout(_ANSWER_S)
            there.connect(str(socket_of(prefix)))
            there.sendall(json.dumps(question).encode() + b"\n")
            heard = b""
            while not heard.endswith(b"\n") and len(heard) < _LONGEST_ANSWER:
                data = there.recv(_LONGEST_ANSWER)
                if not data:
                    raise ConnectionError("it ended")
                heard += data
            answer: dict[str, Any] = json.loads(heard)
    except (OSError, ValueError) as error:
        what = f"the cable of lab {prefix} does not answer ({error})"
        raise LabError(what, "trexbench lab down, then again") from None
    if "error" in answer:
        raise LabError(f"the cable of lab {prefix} refuses: {answer['error']}", "take other settings")
    return answer
