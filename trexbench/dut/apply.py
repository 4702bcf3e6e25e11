"""Change a DUT and take it back: every change is written down before it is made."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..core.errors import DutError
from ..transport import Transport
from ..transport.words import shown
from .journal import Entry, Journal
from .model import Command, Dut, Step

RETRY_EVERY_S = 0.25
ROUNDS = 3
"""How often is planned again at most after a step that reveals others."""


def _silent(_: Step) -> None:
    """Nobody is told."""


class CommandFailed(DutError):
    """The DUT was reached, ran the command, and said no."""


@dataclass(frozen=True)
class Reverted:
    """taken_back: what was undone. gone: what the DUT had forgotten by itself, having been started anew since."""

    taken_back: tuple[Step, ...]
    gone: tuple[Step, ...]


def apply(dut: Dut, transport: Transport, journal: Journal, said: Callable[[Step], None] = _silent) -> tuple[Step, ...]:
    """Make the DUT what its config says; what was changed, nothing where nothing had to be.

    said: is told of each step before it is taken. DutError names the step that failed; the journal has it, and all
    before it.
    """
    taken: tuple[Step, ...] = ()
    for _ in range(ROUNDS):
        steps = tuple(dut.plan())
        taken += _take(steps, dut, transport, journal, said)
        if not any(step.reveals for step in steps):
            break
    return taken


def _take(
    steps: tuple[Step, ...], dut: Dut, transport: Transport, journal: Journal, said: Callable[[Step], None]
) -> tuple[Step, ...]:
    if not steps:
        return ()
    identity = dut.identity()
    for step in steps:
        said(step)
        journal.add(Entry(identity, transport.place, step))
        try:
            for command in step.do:
                run(transport, command)
        except DutError as error:
            raise DutError(f"{step.what}: {error}", "'trexbench dut revert' takes back what was changed") from None
        if step.lasts:  # it may have started the DUT, or its daemon, anew
            identity = dut.identity()
    return steps


def revert(dut: Dut, transport: Transport, journal: Journal, said: Callable[[Step], None] = _silent) -> Reverted:
    """Take back what the journal says was changed, the last change first; what was done is struck out at once.

    DutError at the end names what could not be taken back, which the journal keeps; a connection that fails ends it
    at once.
    """
    identity = dut.identity()
    back: list[Step] = []
    gone: list[Step] = []
    failed: list[str] = []
    for entry in reversed(journal.entries()):
        if entry.place != transport.place:
            raise DutError(
                f"{entry.step.what} was changed on {entry.place}, this is {transport.place}",
                f"revert it there, or remove {journal.name}",
            )
        if entry.identity != identity and not entry.step.lasts:
            gone.append(entry.step)
            journal.strike(entry)
            continue
        said(entry.step)
        try:
            for command in entry.step.undo:
                run(transport, command)
        except CommandFailed as error:
            failed.append(f"{entry.step.what}: {error}")
            continue
        back.append(entry.step)
        journal.strike(entry)
    if failed:
        raise DutError(f"not everything could be taken back: {'; '.join(failed)}", f"it stays in {journal.name}")
    return Reverted(tuple(back), tuple(gone))


def run(transport: Transport, command: Command) -> None:
    """Run it; DutError with what it says where it fails, and not because there was nothing left to do."""
    deadline = time.monotonic() + command.retry_s
    while True:
        done = transport.run(command.argv, command.timeout_s, command.input)
        said = done.stderr + done.stdout
        good = done.returncode == 0 and command.says in (None, said.strip())
        if good or any(words in said for words in command.fine_if):
            return
        if time.monotonic() >= deadline:
            raise CommandFailed(f"{shown(command.argv)} failed on {transport.place}", done.complaint)
        time.sleep(RETRY_EVERY_S)


def changes(steps: Sequence[Step]) -> str:
    """``nothing to change``, or how many."""
    return f"{len(steps)} change{'' if len(steps) == 1 else 's'}" if steps else "nothing to change"
