"""Streams as one BPF program: each run sends the most overdue packet, or none.

Registers: R6 context, R7 due time, then packet, R8 the time, R9 the current port's state.
A run first finds the earliest due time of all streams. If the clock as an earlier run read it has reached that, the
packet goes out without another reading; otherwise the clock is read, and the run is idle if nothing is due. A port more
than its CREDIT behind owes the excess (LAG, OWED) rather than send it in a burst: each packet from then on comes a STEP
earlier. What exceeds OWED_MOST is given up (LOST_TIME). After a change of rate (FORGIVE) the time waited at the old
rate does not count as behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .bpf_asm import R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10, Assembler, Helper
from .xdp_latency import stamp
from .xdp_layout import (
    BIAS,
    FRACTION_BITS,
    NO_DEADLINE,
    PREFIX_BYTES,
    XDP_ABORTED,
    XDP_DROP,
    XDP_PASS,
    CoreWord,
    Gate,
    PortWord,
    StreamWord,
    ticks,
)
from .xdp_plan import PortPlan, StreamPlan, bursts_of

_MAX = (1 << 64) - 1
_SMALL = 1 << 31
_IDLE_TURN_AT_MOST_NS = 2000


@dataclass
class SenderProgram:
    """Generates the code for a set of ports."""

    ports: Sequence[tuple[PortPlan, int, int]]  # each with the descriptors of its map, and of that of its rows
    core_fd: int
    devices_fd: int
    frame_size: int
    epoch_ns: int  # the clock at time zero
    asm: Assembler = field(default_factory=Assembler)

    def code(self) -> bytes:
        asm, number = self.asm, 0
        asm.mov(R6, R1)
        asm.map_value(R1, self.core_fd)
        asm.load(8, R8, R1, 8 * CoreWord.NOW)
        asm.mov(R7, _MAX)
        asm.mov(R5, 0)
        for plan, fd, _ in self.ports:
            self._scan(plan, fd, number)
            number += len(plan.streams)
        asm.jump_if("le", R7, R8, "dispatch")
        self._read_clock()
        asm.label("dispatch")
        self._dispatch(0, number)
        streams = [(plan, stream, fd, rows_fd) for plan, fd, rows_fd in self.ports for stream in plan.streams]
        for number, (plan, stream, fd, rows_fd) in enumerate(streams):
            self._stream(number, plan, stream, fd)
            self._packet(plan, stream, rows_fd)
            asm.label(f"late{number}")
            self._late(f"on_time{number}")
        asm.label("idle")
        asm.store(8, R1, 8 * CoreWord.IDLE_BEFORE, 1)
        asm.exit(XDP_DROP)
        asm.label("refused")
        asm.change("add", R9, 8 * PortWord.REFUSED, 1)
        asm.exit(XDP_ABORTED)
        return asm.assemble()

    def _scan(self, plan: PortPlan, fd: int, first: int) -> None:
        """Set R7 to the earliest due time so far, and R5 to the number of its stream."""
        asm, done = self.asm, self.asm.fresh_label("port_done")
        asm.map_value(R9, fd)
        asm.load(8, R1, R9, 8 * PortWord.GATE)
        asm.jump_if("ne", R1, Gate.RUNNING, done)
        asm.mov(R3, _MAX)
        for number, stream in enumerate(plan.streams, first):
            skip = asm.fresh_label("not_earlier")
            if stream.bursts or not stream.spec.self_start:
                asm.load(8, R1, R9, stream.at(StreamWord.ACTIVE))
                asm.jump_if("eq", R1, 0, skip)
            asm.load(8, R1, R9, stream.at(StreamWord.LAST))
            asm.load(8, R2, R9, stream.at(StreamWord.INTERVAL))
            asm.alu("add", R1, R2)
            asm.jump_if("ge", R1, R3, skip)
            asm.mov(R3, R1)
            asm.mov(R4, number)
            asm.label(skip)
        asm.jump_if("eq", R3, -1, done)
        asm.load(8, R1, R9, 8 * PortWord.LAG)
        asm.alu("add", R3, R1)
        if plan.limited:
            asm.load(8, R1, R9, 8 * PortWord.LIMIT_NEXT)
            with asm.unless("ge", R3, R1):
                asm.mov(R3, R1)
        asm.jump_if("ge", R3, R7, done)
        asm.mov(R7, R3)
        asm.mov(R5, R4)
        asm.label(done)

    def _read_clock(self) -> None:
        """Set R8 to now, open armed ports, close those past their deadline; idle if nothing is due."""
        asm = self.asm
        asm.store(8, R10, -8, R5)
        asm.call(Helper.KTIME_GET_NS)
        asm.mov(R1, self.epoch_ns)
        asm.alu("sub", R0, R1)
        asm.alu("lsh", R0, FRACTION_BITS)
        asm.map_value(R1, self.core_fd)
        asm.calc(R2, R0, "sub", R8)
        asm.mov(R8, R0)
        asm.store(8, R1, 8 * CoreWord.NOW, R8)
        # book the time since an idle turn (R2), which cpu_percent leaves out
        booked = asm.fresh_label("booked")
        asm.load(8, R3, R1, 8 * CoreWord.IDLE_BEFORE)
        asm.jump_if("eq", R3, 0, booked)
        asm.jump_if("gt", R2, ticks(_IDLE_TURN_AT_MOST_NS), booked)
        asm.change("add", R1, 8 * CoreWord.IDLE_TIME, R2, R3)
        asm.label(booked)
        for port, (plan, fd, _) in enumerate(self.ports):
            self._housekeeping(port, plan, fd)
        asm.jump_if("gt", R7, R8, "idle")
        asm.store(8, R1, 8 * CoreWord.IDLE_BEFORE, 0)
        asm.load(8, R5, R10, -8)

    def _housekeeping(self, port: int, plan: PortPlan, fd: int) -> None:
        asm, done = self.asm, f"kept{port}"
        asm.map_value(R9, fd)
        asm.load(8, R3, R9, 8 * PortWord.GATE)
        asm.jump_if("eq", R3, Gate.RUNNING, f"running{port}")
        asm.jump_if("ne", R3, Gate.ARMED, done)
        asm.mov(R3, R8)
        asm.mov(R4, BIAS)
        asm.alu("sub", R3, R4)
        asm.store(8, R9, 8 * PortWord.LAG, R3)
        asm.store(8, R9, 8 * PortWord.LIMIT_NEXT, R8)
        asm.load(8, R3, R9, 8 * PortWord.DURATION)
        asm.mov(R4, NO_DEADLINE)
        with asm.unless("eq", R3, 0):
            asm.calc(R4, R8, "add", R3)
        asm.store(8, R9, 8 * PortWord.DEADLINE, R4)
        asm.store(8, R9, 8 * PortWord.GATE, Gate.RUNNING)
        asm.jump(done)
        asm.label(f"running{port}")
        asm.load(8, R3, R9, 8 * PortWord.FORGIVE)
        with asm.unless("eq", R3, 0):
            asm.alu("sub", R3, 1)
            asm.store(8, R9, 8 * PortWord.FORGIVE, R3)
        asm.load(8, R3, R9, 8 * PortWord.DEADLINE)
        asm.jump_if("lt", R8, R3, done)
        asm.store(8, R9, 8 * PortWord.GATE, Gate.ENDED)
        asm.exit(XDP_DROP)
        asm.label(done)

    def _dispatch(self, low: int, high: int) -> None:
        """Jump to the code of stream R5, by bisection."""
        if high - low == 1:
            self.asm.jump(f"stream{low}")
            return
        middle = (low + high) // 2
        with self.asm.unless("ge", R5, middle):
            self._dispatch(low, middle)
        self._dispatch(middle, high)

    def _stream(self, number: int, plan: PortPlan, stream: StreamPlan, fd: int) -> None:
        asm, late, on_time = self.asm, f"late{number}", f"on_time{number}"
        asm.label(f"stream{number}")
        asm.map_value(R9, fd)
        asm.load(8, R3, R9, stream.at(StreamWord.LAST))
        asm.load(8, R2, R9, stream.at(StreamWord.INTERVAL))
        asm.alu("add", R3, R2)
        if plan.limited:
            self._take_limit()
        asm.store(8, R9, stream.at(StreamWord.LAST), R3)
        asm.calc(R1, R8, "sub", R7)
        asm.load(8, R2, R9, 8 * PortWord.CREDIT)
        asm.load(8, R3, R9, 8 * PortWord.FORGIVE)
        with asm.unless("eq", R3, 0):
            asm.load(8, R2, R9, stream.at(StreamWord.INTERVAL))
        asm.jump_if("gt", R1, R2, late)
        asm.label(on_time)
        asm.change("add", R9, stream.at(StreamWord.SENT), 1)
        # while the port owes anything, its virtual time catches up by a step
        asm.load(8, R1, R9, 8 * PortWord.OWED)
        with asm.unless("eq", R1, 0):
            asm.alu("sub", R1, 1)
            asm.store(8, R9, 8 * PortWord.OWED, R1)
            asm.load(8, R2, R9, 8 * PortWord.STEP)
            asm.change("sub", R9, 8 * PortWord.LAG, R2)
        if stream.bursts:
            self._burst(number, plan, stream)

    def _take_limit(self) -> None:
        """Book this packet on the port's limit, and set R7 to its due time without that."""
        asm = self.asm
        asm.load(8, R1, R9, 8 * PortWord.LAG)
        asm.calc(R7, R3, "add", R1)
        asm.load(8, R4, R9, 8 * PortWord.LIMIT_INTERVAL)
        asm.calc(R1, R4, "lsh", 4)
        asm.calc(R2, R8, "sub", R1)
        asm.load(8, R1, R9, 8 * PortWord.LIMIT_NEXT)
        with asm.unless("ge", R1, R2):
            asm.mov(R1, R2)
        asm.alu("add", R1, R4)
        asm.store(8, R9, 8 * PortWord.LIMIT_NEXT, R1)

    def _late(self, on_time: str) -> None:
        """Put the port's virtual time back by as much as it is behind (R1) beyond what is allowed (R2)."""
        asm = self.asm
        asm.load(8, R3, R9, 8 * PortWord.FORGIVE)
        with asm.unless("ne", R3, 0):
            asm.alu("sub", R1, R2)
            asm.load(8, R4, R9, 8 * PortWord.OWED)
            asm.load(8, R5, R9, 8 * PortWord.OWED_MOST)
            asm.load(8, R7, R9, 8 * PortWord.STEP)
            asm.mov(R3, 0)
            with asm.unless("ge", R4, R5):  # more than OWED_MOST just after that was lowered
                asm.calc(R3, R5, "sub", R4)
                asm.alu("mul", R3, R7)
            asm.calc(R2, R1, "sub", R3)
            with asm.unless("lt", R1, R3):
                asm.change("add", R9, 8 * PortWord.LOST_TIME, R2, R3)
                asm.mov(R4, R5)
                asm.mov(R7, _MAX)
            asm.calc(R3, R1, "div", R7)
            asm.alu("add", R4, R3)
            asm.store(8, R9, 8 * PortWord.OWED, R4)
        asm.store(8, R9, 8 * PortWord.FORGIVE, 0)
        asm.change("add", R9, 8 * PortWord.LAG, R1, R3)
        asm.jump(on_time)

    def _burst(self, number: int, plan: PortPlan, stream: StreamPlan) -> None:
        asm, spec, go = self.asm, stream.spec, f"send{number}"
        asm.change("sub", R9, stream.at(StreamWord.BURST_LEFT), 1)
        asm.jump_if("ne", R1, 0, go)
        endless = bursts_of(spec) == 0
        if not endless:
            asm.change("sub", R9, stream.at(StreamWord.BURSTS_LEFT), 1)
            asm.jump_if("eq", R1, 0, f"last{number}")
        asm.mov(R1, spec.total_pkts)
        asm.store(8, R9, stream.at(StreamWord.BURST_LEFT), R1)
        self._schedule(stream, stream, spec.ibg_us)
        if not endless:
            asm.jump(go)
            self._last_burst(number, plan, stream)
        asm.label(go)

    def _last_burst(self, number: int, plan: PortPlan, stream: StreamPlan) -> None:
        """End the stream: start the next one, or end the port after its last.

        Endless bursts go without: the verifier refuses code that nothing jumps to.
        """
        asm, go = self.asm, f"send{number}"
        asm.label(f"last{number}")
        asm.store(8, R9, stream.at(StreamWord.ACTIVE), 0)
        none = f"no_next{number}"
        if stream.next_slot >= 0:
            self._next_stream(stream, plan.streams[stream.next_slot], none)
            asm.jump(go)
        asm.label(none)
        asm.change("sub", R9, 8 * PortWord.ACTIVE, 1)
        asm.jump_if("ne", R1, 0, go)
        asm.store(8, R9, 8 * PortWord.GATE, Gate.ENDED)

    def _schedule(self, after: StreamPlan, stream: StreamPlan, gap_us: float) -> None:
        """Make the next packet of ``stream`` due ``gap_us`` after the one just sent by ``after``."""
        asm = self.asm
        asm.load(8, R1, R9, after.at(StreamWord.LAST))
        asm.mov(R2, ticks(gap_us * 1e3))
        asm.alu("add", R1, R2)
        asm.load(8, R2, R9, stream.at(StreamWord.INTERVAL))
        asm.alu("sub", R1, R2)
        asm.store(8, R9, stream.at(StreamWord.LAST), R1)

    def _next_stream(self, stream: StreamPlan, following: StreamPlan, none: str) -> None:
        """Start the next stream as TRex does: not if it is running, nor when this one ends for the Nth of N actions."""
        asm = self.asm
        asm.load(8, R1, R9, following.at(StreamWord.ACTIVE))
        asm.jump_if("ne", R1, 0, none)
        if stream.spec.action_count:
            asm.load(8, R1, R9, stream.at(StreamWord.ACTION_LEFT))
            with asm.unless("eq", R1, 0):
                asm.alu("sub", R1, 1)
                asm.store(8, R9, stream.at(StreamWord.ACTION_LEFT), R1)
                asm.jump_if("eq", R1, 0, none)
        asm.mov(R1, following.spec.total_pkts)
        asm.store(8, R9, following.at(StreamWord.BURST_LEFT), R1)
        asm.mov(R1, bursts_of(following.spec))
        asm.store(8, R9, following.at(StreamWord.BURSTS_LEFT), R1)
        asm.store(8, R9, following.at(StreamWord.ACTIVE), 1)
        self._schedule(stream, following, following.spec.isg_us)

    def _packet(self, plan: PortPlan, stream: StreamPlan, rows_fd: int) -> None:
        asm, packet = self.asm, stream.frames.packet
        asm.bounds(R7, R2, R6, len(packet), "refused")
        self._write_constants(packet)
        if stream.frames.row_bytes:
            self._write_row(stream, rows_fd)
        if stream.mark is not None:
            stamp(asm, stream.frames, stream.mark, stream.at(StreamWord.SENT))
        self._resize(stream)
        if not plan.skb:
            asm.redirect(self.devices_fd, plan.port)
            return
        # hand the frame to the stack, where ``forwarder`` finds the port's number before it
        asm.mov(R1, R6)
        asm.mov(R2, -PREFIX_BYTES)
        asm.call(Helper.XDP_ADJUST_HEAD)
        asm.jump_if("ne", R0, 0, "refused")
        asm.bounds(R7, R2, R6, PREFIX_BYTES, "refused")
        asm.store(8, R7, 0, plan.port)
        asm.exit(XDP_PASS)

    def _write_constants(self, packet: bytes) -> None:
        """Write the whole packet: the page comes back as the last receiver left it."""
        asm, held, at = self.asm, -1, 0
        while at < len(packet):
            size = next(size for size in (8, 4, 2, 1) if at + size <= len(packet))
            value = int.from_bytes(packet[at : at + size], "little")
            if size < 8 or value < _SMALL:
                asm.store(size, R7, at, value)
            else:
                if value != held:
                    asm.mov(R0, value)
                asm.store(8, R7, at, R0)
                held = value
            at += size

    def _write_row(self, stream: StreamPlan, rows_fd: int) -> None:
        """Write what changes in the stream's next frame, and set R8 to the frame's length if that does."""
        asm, frames, next_at = self.asm, stream.frames, stream.at(StreamWord.NEXT_FRAME)
        asm.load(8, R1, R9, next_at)
        asm.jump_if("ge", R1, frames.count, "refused")
        asm.map_value(R2, rows_fd, stream.rows_at)
        asm.calc(R3, R1, "mul", frames.row_bytes)
        asm.alu("add", R2, R3)
        asm.alu("add", R1, 1)
        with asm.unless("lt", R1, frames.count):
            asm.mov(R1, 0)
        asm.store(8, R9, next_at, R1)
        at = 0
        if frames.cut:
            asm.load(2, R8, R2, 0)
            at = 2
        for place, size in frames.pieces:
            asm.load(size, R1, R2, at)
            asm.store(size, R7, place, R1)
            at += size

    def _resize(self, stream: StreamPlan) -> None:
        """Cut the frame to its length; last, since that makes R7 invalid for the verifier."""
        asm, frames = self.asm, stream.frames
        if frames.cut:
            asm.change("add", R9, stream.at(StreamWord.BYTES), R8)
            asm.calc(R2, R8, "sub", self.frame_size)
        elif len(frames.packet) == self.frame_size:
            return
        else:
            asm.mov(R2, len(frames.packet) - self.frame_size)
        asm.mov(R1, R6)
        asm.call(Helper.XDP_ADJUST_TAIL)
        asm.jump_if("ne", R0, 0, "refused")
