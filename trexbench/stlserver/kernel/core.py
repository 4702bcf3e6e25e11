"""One sending core: loads the program of its ports, stops them at once, measures how busy it is."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from dataclasses import asdict

from ..engine import PortLoad
from . import bpf
from .port import KernelPort
from .sender import Sender
from .xdp_layout import FRACTION_BITS, CoreWord, Gate
from .xdp_program import SenderProgram

_STOP_SETTLES_NS = 100_000
_STOP_AT_MOST_NS = 50_000_000
_LOAD_WINDOW_S = 0.5


class SendingCore:
    """Sends for its ports, which no other core does; ``devices`` is the table of all ports, ``cpu`` as in Sender."""

    def __init__(self, ports: Sequence[KernelPort], devices: bpf.MapTable, *, cpu: int | None) -> None:
        self._ports, self._devices = ports, devices
        self._epoch_ns = time.monotonic_ns()
        self._load_mark = (self._epoch_ns, 0, [0] * len(ports))
        self._cpu_percent = [0.0] * len(ports)
        with contextlib.ExitStack() as opened:
            self._memory = opened.enter_context(contextlib.closing(bpf.SharedMap("trexbench_core", 64)))
            self._sender = opened.enter_context(contextlib.closing(Sender(devices.fd, cpu=cpu)))
            self._opened = opened.pop_all()

    @property
    def failure(self) -> str | None:
        return self._sender.failure

    def start(self, port: KernelPort) -> None:
        """Send what the port was prepared for, and go on with the core's other ports."""
        running = [item for item in self._ports if item is port or item.busy]
        plans = [
            (item.plan, item.memory.fd, item.rows.fd if item.rows else -1) for item in running if item.plan is not None
        ]
        # NICs' drivers move a frame's bounds, which the kernel sets right only where the program has moved them, too
        spare = int(any(item.device.pci for item in running))
        size = max(self._sender.frame_size, *(plan.frame_size + spare for plan, *_ in plans))
        if self._sender.frame_size < size:
            self._sender.rest()
        program = SenderProgram(plans, self._memory.fd, self._devices.fd, size, self._epoch_ns)
        descriptor = bpf.load_xdp("trexbench_send", program.code())
        self._sender.slot.put(0, descriptor)
        os.close(descriptor)
        port.reported = False
        port.gate = Gate.ARMED
        if not self._sender.frame_size:
            self._mark_load()
            self._sender.go(size)

    def pause(self, port: KernelPort) -> None:
        port.pause()
        self._await_turn()

    def stop(self, port: KernelPort) -> None:
        while port.gate != Gate.CLOSED:
            port.gate = Gate.CLOSED
            # the program may have been about to open the gate: it is closed only if it still is after the turn
            if not self._await_turn():
                self._sender.rest()
                port.gate = Gate.CLOSED
        self.rest_if_idle()

    def _await_turn(self) -> bool:
        """Wait until the sender has read the clock so late that its batch has left, too; False if it does not."""
        asked_ns = time.monotonic_ns()
        while self._sender.frame_size:
            now_ns = time.monotonic_ns()
            seen_ns = (int(self._memory.words[CoreWord.NOW]) >> FRACTION_BITS) + self._epoch_ns
            if seen_ns > asked_ns + _STOP_SETTLES_NS:
                return True
            if now_ns > asked_ns + _STOP_AT_MOST_NS:
                return False
            time.sleep(0.0002)
        return True

    def rest_if_idle(self) -> None:
        if self._sender.frame_size and not any(port.busy for port in self._ports):
            self._sender.rest()

    def load(self) -> list[PortLoad]:
        """Load by port: that of the core they share, or 100 % at a port's own ``limit_pps``."""
        for port in self._ports:
            port.settle_losses()
        then_ns, idle_before, sent_before = self._load_mark
        passed_ns = time.monotonic_ns() - then_ns
        if not self._sender.frame_size:
            self._cpu_percent = [0.0] * len(self._ports)
            self._mark_load()
        elif passed_ns >= _LOAD_WINDOW_S * 1e9:
            idle_ns = (int(self._memory.words[CoreWord.IDLE_TIME]) - idle_before) / (1 << FRACTION_BITS)
            self._cpu_percent = [max(0.0, min(100.0, 100.0 * (1.0 - idle_ns / passed_ns)))] * len(self._ports)
            for number, (port, before) in enumerate(zip(self._ports, sent_before, strict=True)):
                if port.limit_pps:
                    rate = (port.moved().packets - before) / passed_ns * 1e9
                    percent = max(self._cpu_percent[number], 100.0 * rate / port.limit_pps)
                    self._cpu_percent[number] = min(100.0, percent)
            self._mark_load()
        taken = asdict(self._sender.taken())
        return [
            PortLoad(**taken, cpu_percent=percent, queue_full=round(port.lost_slots) + port.overrun())
            for percent, port in zip(self._cpu_percent, self._ports, strict=True)
        ]

    def _mark_load(self) -> None:
        self._load_mark = (
            time.monotonic_ns(),
            int(self._memory.words[CoreWord.IDLE_TIME]),
            [port.moved().packets for port in self._ports],
        )

    def close(self) -> None:
        self._opened.close()
