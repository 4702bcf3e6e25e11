"""A long line as a process: it joins pairs of TAPs in namespaces, and what enters one leaves the other later.

    python -m trexbench.lab.cable --ends tbx-dut:e1,tbx-server:s0 --socket PATH --wan '{"delay_s": 0.02}'

Several pairs (--ends once for each) are lines of their own with the same settings.

What passes, and when, is core.tcp.line's; frames of 64 KB pass as they are, cut only where some of their segments are
dropped or lost. A frame's way begins when this process reads it. It is asked through the socket, a line of JSON for
each question and each answer: ``{"set": WAN}`` is answered when the settings are in force, ``{"counts": true}`` with
what passed so far. It ends with SIGTERM, and when an end goes.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import json
import math
import os
import select
import socket
import sys
from collections import deque
from dataclasses import asdict
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any

import msgspec

from ..core.errors import BenchError
from ..core.tcp.line import OneWay
from ..core.tcp.wan import LONGEST_S, MOST_LOSS, Wan
from ..stlserver.kernel.netdev import NetDevice
from . import host, net, tap
from .vnet import VNET_BYTES, Segments, cut, runs_of, segments_of

HELD_BYTES = 256_000_000
"""Most bytes that one direction holds, whatever its settings: 10 Gbit/s for 0.2 s; more is dropped."""
_OVERHEAD = 160
"""Memory of a frame besides its bytes."""
_LONGEST_FRAME = VNET_BYTES + 65536 + 64
_READ_BYTES, _READ_FRAMES = 500_000, 64
"""Most bytes and frames read from one end at once, before what is due is sent: some 0.2 ms."""
_PR_SET_TIMERSLACK = 29
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3
_CLIENTS, _LONGEST_QUESTION = 8, 4096


class CableDirection:
    """From one TAP to the other."""

    def __init__(self, source: int, sink: int, wan: Wan) -> None:
        self._source, self._sink = source, sink
        self._line = OneWay(wan, Random())
        self._waiting: deque[tuple[float, bytes]] = deque()
        self._held = self._frames = self._bytes = self._packets = 0
        self._queue_drops = self._losses = self._held_drops = self._refused = 0
        self._late_s = 0.0

    def change(self, wan: Wan) -> None:
        """Set other settings, from now on."""
        latest_s = self._line.change(wan, monotonic())
        self._waiting = deque((min(at_s, latest_s), frame) for at_s, frame in self._waiting)

    def read(self) -> None:
        """Take what has come, some of it."""
        source, take, hold, taken, held = self._source, self._line.take, self._waiting.append, 0, 0
        full = self._held > HELD_BYTES
        for _ in range(_READ_FRAMES):
            try:
                frame = os.read(source, _LONGEST_FRAME)
            except BlockingIOError:
                break
            taken += len(frame)
            if full:
                self._held_drops += 1
            elif frame[1] and (whole := segments_of(frame)) is not None:
                self._take_segments(frame, whole)
            else:
                at_s, kept, lost = take(monotonic(), len(frame) - VNET_BYTES)
                if kept and not lost:
                    hold((at_s, frame))
                    held += len(frame) + _OVERHEAD
                else:
                    self._queue_drops += 1 - kept
                    self._losses += len(lost)
            if taken > _READ_BYTES:
                break
        self._held += held

    def _take_segments(self, frame: bytes, whole: Segments) -> None:
        at_s, kept, lost = self._line.take(monotonic(), whole.size, whole.count, whole.each)
        self._queue_drops += whole.count - kept
        self._losses += len(lost)
        parts = [frame]
        if lost or kept < whole.count:
            parts = [cut(frame, whole, first, end) for first, end in runs_of(kept, lost)]
        for part in parts:
            self._waiting.append((at_s, part))
            self._held += len(part) + _OVERHEAD

    def deliver(self) -> float:
        """Send what is due; returns when the next is, infinity where nothing waits."""
        waiting, sink, now_s = self._waiting, self._sink, monotonic()
        until_s, frames, size, at_s = now_s, 0, 0, 0.0
        while waiting and (at_s := waiting[0][0]) <= until_s:
            frame = waiting.popleft()[1]
            self._held -= len(frame) + _OVERHEAD
            try:
                os.write(sink, frame)
            except OSError:  # that end is down
                self._refused += 1
                continue
            now_s = monotonic()
            self._late_s += now_s - at_s
            frames += 1
            size += len(frame)
        self._frames += frames
        self._bytes += size - frames * VNET_BYTES
        return at_s if waiting else math.inf

    def counts(self) -> dict[str, Any]:
        """frames, bytes: delivered, a frame of several segments as one. Drops and losses: in packets.

        late_s: how late all frames left, added up.
        """
        return {
            "frames": self._frames,
            "bytes": self._bytes,
            "queue_drops": self._queue_drops,
            "losses": self._losses,
            "held_drops": self._held_drops,
            "refused": self._refused,
            "waiting": len(self._waiting),
            "late_s": self._late_s,
        }


class Cables:
    """Each with both directions, and those who ask. ends: of each cable, ``NAMESPACE:INTERFACE``."""

    def __init__(self, ends: list[list[str]], napi: frozenset[str], wan: Wan, listener: socket.socket) -> None:
        self._devices: list[NetDevice] = []
        self._ways: dict[int, CableDirection] = {}
        for pair in ends:
            here, there = (self._attach(end, end in napi) for end in pair)
            self._ways |= {here: CableDirection(here, there, wan), there: CableDirection(there, here, wan)}
        self._wan, self._listener = wan, listener
        self._clients: dict[int, tuple[socket.socket, bytearray]] = {}

    def _attach(self, end: str, napi: bool) -> int:
        space, _, name = end.partition(":")
        handle = tap.attach(space, name, napi)
        with net.inside(space):
            self._devices.append(NetDevice(name))
        return handle

    def run(self) -> None:
        """Until an end goes: OSError."""
        ways, listening = self._ways, self._listener.fileno()
        delivering = [way.deliver for way in ways.values()]
        while True:
            due = min([deliver() for deliver in delivering])
            wait_s = None if due == math.inf else max(0.0, due - monotonic())
            for handle in select.select([*ways, listening, *self._clients], [], [], wait_s)[0]:
                if (way := ways.get(handle)) is not None:
                    way.read()
                else:
                    self._serve(handle)

    def _serve(self, handle: int) -> None:
        """Nobody who asks is waited for."""
        if handle == self._listener.fileno():
            client, _ = self._listener.accept()
            client.setblocking(False)
            if len(self._clients) >= _CLIENTS:
                client.close()
            else:
                self._clients[client.fileno()] = (client, bytearray())
            return
        client, heard = self._clients[handle]
        try:
            data = client.recv(_LONGEST_QUESTION)
            heard += data
            if not data or len(heard) > _LONGEST_QUESTION:
                raise ConnectionError
            while b"\n" in heard:
                line, _, rest = bytes(heard).partition(b"\n")
                heard[:] = rest
                client.sendall(json.dumps(self._answer(line)).encode() + b"\n")
        except OSError:
            del self._clients[handle]
            client.close()

    def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            asked = json.loads(line)
            if "set" in asked:
                wan = read_wan(asked["set"])
                for way in self._ways.values():
                    way.change(wan)
                self._wan = wan
            elif "counts" not in asked:
                raise ValueError("neither set nor counts is asked")
        except (ValueError, TypeError) as error:
            return {"error": str(error)[:200]}
        return {"wan": asdict(self._wan), "ways": self._counts()}

    def _counts(self) -> list[dict[str, Any]]:
        """Counts of each cable, from its first end, then its second; missed: what its TAP dropped, read too late."""
        return [
            {**way.counts(), "missed": device.counters().tx_dropped}
            for way, device in zip(self._ways.values(), self._devices, strict=True)
        ]


def read_wan(values: object) -> Wan:
    """ValueError for what is none."""
    wan = msgspec.convert(values, Wan)
    if wan.delay_s > LONGEST_S or wan.loss > MOST_LOSS:
        raise ValueError(f"at most {LONGEST_S:g} s and a loss of {MOST_LOSS:g}")
    return wan


def _listen(path: str) -> socket.socket:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX)
    before = os.umask(0o177)
    try:
        listener.bind(path)
    finally:
        os.umask(before)
    listener.listen()
    listener.setblocking(False)
    return listener


def _be_punctual() -> None:
    """Wake up on time, keep memory that was used once, and make no pauses; nothing here refers to itself."""
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_TIMERSLACK, 1000)
    with contextlib.suppress(AttributeError):  # of glibc only
        for name, size in ((_M_TRIM_THRESHOLD, HELD_BYTES), (_M_MMAP_THRESHOLD, 1 << 25), (_M_TOP_PAD, 1 << 24)):
            libc.mallopt(name, size)
    host.run_in_real_time()
    gc.freeze()
    gc.disable()


def main() -> int:
    parser = argparse.ArgumentParser(prog="trexbench.lab.cable")
    end = "NAMESPACE:INTERFACE"
    parser.add_argument("--ends", required=True, action="append", metavar=f"{end},{end}", help="of one cable")
    parser.add_argument("--napi", default=[], action="append", metavar=end, help="an end that merges what arrives")
    parser.add_argument("--socket", required=True)
    parser.add_argument("--wan", required=True, metavar="JSON")
    parser.add_argument("--cpus", default="", metavar="NUMBER,...", help="where it may run; none: anywhere")
    asked = parser.parse_args()
    ends = [one.split(",") for one in asked.ends]
    try:
        listener = _listen(asked.socket)
        cables = Cables(ends, frozenset(asked.napi), read_wan(json.loads(asked.wan)), listener)
    except (BenchError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if asked.cpus:
        os.sched_setaffinity(0, map(int, asked.cpus.split(",")))
    _be_punctual()
    try:
        cables.run()
    except OSError as error:
        print(f"an end of the cable has gone: {error}", file=sys.stderr)
    finally:
        Path(asked.socket).unlink(missing_ok=True)
    return 1


if __name__ == "__main__":
    sys.exit(main())
