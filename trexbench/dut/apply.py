"""Change a DUT and take it back: every change is written down before it is made."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..core.errors import DutError
from ..transport import Transport
from ..transport.words import shown
from .journal import Entry, Journal
from .model import Change, Command, Dut

RETRY_EVERY_S = 0.25
ROUNDS = 3
"""How often is planned again at most after a change that reveals others."""


class CommandFailed(DutError):
    """The DUT was reached, ran the command, and said no."""


@dataclass(frozen=True)
class Reverted:
    """taken_back: what was undone. gone: what the DUT had forgotten by itself, having been started anew since."""

    taken_back: tuple[Change, ...]
    gone: tuple[Change, ...]


def apply(
    dut: Dut, transport: Transport, journal: Journal, said: Callable[[Change], None] = lambda _: None
) -> tuple[Change, ...]:
    """Make the DUT what its config says; what was changed, nothing where nothing had to be.

    said: is told of each change before it is made. DutError names the change that failed; the journal has it, and all
    before it.
    """
    made: list[Change] = []
    for _ in range(ROUNDS):
        planned = tuple(dut.plan())
        identity = dut.identity() if planned else ""
        for change in planned:
            said(change)
            journal.add(Entry(identity, transport.place, change))
            try:
                for command in change.do:
                    run(transport, command)
            except DutError as error:  # its own class: a suite tries again after a connection that was lost
                remedy = "'trexbench dut revert' takes back what was changed"
                raise type(error)(f"{change.what}: {error}", remedy) from None
            if change.lasts:  # it may have started the DUT, or its daemon, anew
                identity = dut.identity()
        made += planned
        if not any(change.reveals for change in planned):
            break
    return tuple(made)


def revert(
    dut: Dut, transport: Transport, journal: Journal, said: Callable[[Change], None] = lambda _: None
) -> Reverted:
    """Take back what the journal says was changed, the last change first; what was done is struck out at once.

    DutError at the end names what could not be taken back, which the journal keeps; a connection that fails ends it
    at once.
    """
    identity = dut.identity()
    back: list[Change] = []
    gone: list[Change] = []
    failed: list[str] = []
    for entry in reversed(journal.entries()):
        if entry.place != transport.place:
            raise DutError(
                f"{entry.change.what} was changed on {entry.place}, this is {transport.place}",
                f"revert it there, or remove {journal.name}",
            )
        if entry.identity != identity and not entry.change.lasts:
            gone.append(entry.change)
            journal.strike(entry)
            continue
        said(entry.change)
        try:
            for command in entry.change.undo:
                run(transport, command)
        except CommandFailed as error:
            failed.append(f"{entry.change.what}: {error}")
            if entry.change.lasts:
                break  # its undo, run again, restores what the older entries changed
            continue
        if entry.change.lasts:
            identity = entry.identity  # its undo has restored what was set when it was made
        back.append(entry.change)
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


def changes(made: Sequence[Change]) -> str:
    """``nothing to change``, or how many."""
    return f"{len(made)} change{'' if len(made) == 1 else 's'}" if made else "nothing to change"
