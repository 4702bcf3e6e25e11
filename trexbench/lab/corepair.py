"""Round trip of a cache line between two cores, and the clock of each: the way that a lab's frames take.

BPF programs measure, so no interpreter is in the figures. One on each core hands a word of shared memory to and fro;
another times a chain of multiplications. They run in threads of real-time priority, which the kernel lets in between
two batches of frames. The asking side goes first, since nobody knows when the router's core lets it in; it calls the
other one and waits in its program, so that the sender's core is taken for the exchange only. Every program ends after
a bounded number of instructions.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from dataclasses import dataclass

from ..stlserver.kernel import bpf
from ..stlserver.kernel.bpf_asm import R0, R1, R2, R3, R6, R7, R8, R9, R10, Assembler, Helper
from .host import run_in_real_time

TURNS, CHUNK = 64, 8
"""Round trips of one measurement; the fastest so many in a row are its result, so that interruptions do not count."""
LOOKS = 512
"""At the word, in one pass of a program. It calls itself 33 times, the most that the kernel allows, and then ends."""
PATIENCE_S = 0.005
PRIORITY = 2
"""Above the harness and the sender."""
MULTIPLICATIONS, UNROLLED, CYCLES_EACH = 2000, 8, 3
"""Each takes as many cycles since it needs the result of the one before (x86-64, arm64)."""
CHAINS = 2
"""The faster one counts."""

# Words of the shared memory: that which is handed over, and a cache line for each side.
_TURN = 0
_ASKER, _ANSWERER = 16, 32
_WANTED, _BEGAN_NS, _LEAST_NS, _CHAIN_NS = range(4)
"""Within a side's line: the turn it waits for; when its chunk began; the least time of a chunk, and of a chain."""
_NONE = (1 << 63) - 1


@dataclass(frozen=True)
class PairTimes:
    """A cache line's round trip, None where the cores did not meet in time; the clocks of both, asking side first."""

    round_trip_ns: float | None
    clocks_hz: tuple[float | None, float | None]


def turns(memory_fd: int, slot_fd: int, line: int, first: int) -> bytes:
    """The program of one side: it waits for its turn, gives it back with one more, and so on.

    line: its own words; first: the turn it begins with. Until then it reads the clock between looks, to wait longer.
    """
    asm = Assembler()
    asm.store(8, R10, -8, R1)
    asm.map_value(R6, memory_fd)
    asm.load(8, R8, R6, 8 * (line + _WANTED))
    asm.mov(R7, 0)
    asm.label("look")
    asm.load(8, R9, R6, 8 * _TURN)
    asm.jump_if("eq", R9, R8, "mine")
    asm.calc(R1, R8, "rsh", 1)  # not R8 itself: the verifier would follow each of its values from here on
    with asm.unless("ne", R1, first >> 1):
        asm.call(Helper.KTIME_GET_NS)
    asm.jump("next")
    asm.label("mine")
    asm.alu("add", R9, 1)
    asm.store(8, R6, 8 * _TURN, R9)
    asm.alu("add", R8, 2)
    asm.jump_if("ge", R9, 2 * TURNS, "done")
    if line == _ASKER:
        _note_chunk(asm)
    asm.label("next")
    asm.alu("add", R7, 1)
    asm.jump_if("lt", R7, LOOKS, "look")
    asm.store(8, R6, 8 * (line + _WANTED), R8)
    asm.load(8, R1, R10, -8)
    asm.map_fd(R2, slot_fd)
    asm.mov(R3, 0)
    asm.call(Helper.TAIL_CALL)
    asm.label("done")
    asm.exit(0)
    return asm.assemble()


def _note_chunk(asm: Assembler) -> None:
    """After every CHUNK round trips: how long they took, if that is the least so far."""
    asm.calc(R1, R9, "and", 2 * CHUNK - 1)
    with asm.unless("ne", R1, 1):
        asm.call(Helper.KTIME_GET_NS)
        asm.load(8, R1, R6, 8 * (_ASKER + _BEGAN_NS))
        asm.store(8, R6, 8 * (_ASKER + _BEGAN_NS), R0)
        with asm.unless("eq", R1, 0):
            asm.alu("sub", R0, R1)
            _store_least(asm, _ASKER + _LEAST_NS)


def chain(memory_fd: int, line: int) -> bytes:
    """The program that times MULTIPLICATIONS, each of the result of the one before."""
    asm = Assembler()
    asm.map_value(R6, memory_fd)
    asm.mov(R7, 0)
    asm.mov(R8, 3)
    asm.call(Helper.KTIME_GET_NS)
    asm.mov(R9, R0)
    asm.label("again")
    for _ in range(UNROLLED):
        asm.alu("mul", R8, R8)
    asm.alu("add", R7, UNROLLED)
    asm.jump_if("lt", R7, MULTIPLICATIONS, "again")
    asm.call(Helper.KTIME_GET_NS)
    asm.alu("sub", R0, R9)
    _store_least(asm, line + _CHAIN_NS)
    asm.exit(0)
    return asm.assemble()


def _store_least(asm: Assembler, word: int) -> None:
    """The word becomes R0 where that is less."""
    asm.load(8, R1, R6, 8 * word)
    with asm.unless("ge", R0, R1):
        asm.store(8, R6, 8 * word, R0)


class CorePair:
    """Measures two cores, as often as asked; EngineError where BPF programs cannot be loaded."""

    def __init__(self, asking_cpu: int, answering_cpu: int) -> None:
        with contextlib.ExitStack() as opened:
            self._memory = opened.enter_context(contextlib.closing(bpf.SharedMap("trexbench_pair", 8 * 64)))
            self._events = [os.eventfd(0) for _ in range(3)]
            for event in self._events:
                opened.callback(os.close, event)
            ask, answer, _ = self._events
            sides: tuple[tuple[int, int, int, int, list[int]], ...]
            sides = ((asking_cpu, _ASKER, 2, ask, [answer]), (answering_cpu, _ANSWERER, 1, answer, []))
            self._closing, self._running = False, 0
            self._threads = []
            for cpu, line, first, called, calls in sides:
                slot = opened.enter_context(contextlib.closing(bpf.ProgramSlot()))
                programs = [
                    bpf.load_free("trexbench_turns", turns(self._memory.fd, slot.fd, line, first)),
                    bpf.load_free("trexbench_chain", chain(self._memory.fd, line)),
                ]
                for program in programs:
                    opened.callback(os.close, program)
                slot.put(programs[0])
                arguments = cpu, [programs[0], *programs[1:] * CHAINS], called, calls
                self._threads.append(
                    threading.Thread(target=self._serve, name="core-pair", args=arguments, daemon=True)
                )
            for thread in self._threads:
                thread.start()
            self._opened = opened.pop_all()

    def _serve(self, cpu: int, programs: list[int], called: int, calls: list[int]) -> None:
        """One side's thread: at each event ``called`` it sets the events ``calls`` and runs its programs."""
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, {cpu})
        run_in_real_time(priority=PRIORITY)
        while os.eventfd_read(called) and not self._closing:
            for event in calls:
                os.eventfd_write(event, 1)
            with contextlib.suppress(OSError):
                for program in programs:
                    bpf.run_here(program)
            os.eventfd_write(self._events[2], 1)

    def measure(self) -> PairTimes | None:
        """The times now; None where a core did not let its thread in, within PATIENCE_S."""
        if not self._await_both(0.0):
            return None
        words = self._memory.words
        words[_TURN] = 1
        for line, first in ((_ASKER, 2), (_ANSWERER, 1)):
            words[line + _WANTED], words[line + _BEGAN_NS] = first, 0
            words[line + _LEAST_NS] = words[line + _CHAIN_NS] = _NONE
        self._running = 2
        os.eventfd_write(self._events[0], 1)
        if not self._await_both(PATIENCE_S):
            return None
        least_ns, *chains_ns = (
            None if words[word] == _NONE else int(words[word])
            for word in (_ASKER + _LEAST_NS, _ASKER + _CHAIN_NS, _ANSWERER + _CHAIN_NS)
        )
        asking_hz, answering_hz = (ns and 1e9 * MULTIPLICATIONS * CYCLES_EACH / ns for ns in chains_ns)
        return PairTimes(least_ns and least_ns / CHUNK, (asking_hz, answering_hz))

    def _await_both(self, patience_s: float) -> bool:
        """Wait for both sides, at most patience_s; return whether they are done."""
        done, end_s = self._events[2], time.monotonic() + patience_s
        while self._running:
            ready, _, _ = select.select([done], [], [], max(0.0, end_s - time.monotonic()))
            if not ready:
                return False
            self._running -= os.eventfd_read(done)
        return True

    def close(self) -> None:
        self._closing = True
        for event in self._events[:2]:
            os.eventfd_write(event, 1)
        for thread in self._threads:
            thread.join(1.0)
        self._opened.close()
