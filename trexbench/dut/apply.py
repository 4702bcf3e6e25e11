"""Apply changes to a DUT and revert them: every change is in the journal before it is made."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..core.errors import DutError
from ..transport import Transport
from ..transport.words import shown
from .journal import Entry, Journal
from .settings import Attestation, Change, Command, Dut, Identified, LinkDown, counted

RETRY_EVERY_S = 0.25
LINK_WAIT_S = 10.0
"""Time for which a port that was just set up may negotiate."""
ROUNDS = 3
"""Maximum number of plans: a change may reveal others."""


class CommandFailed(DutError):
    """The DUT ran the command, and it failed."""


@dataclass(frozen=True)
class Reverted:
    """Outcome of a revert."""

    reverted: tuple[Change, ...]
    forgotten: tuple[Change, ...]
    """Changes that the DUT had lost by itself, since it was restarted meanwhile."""


def apply(
    dut: Dut,
    transport: Transport,
    journal: Journal,
    announce: Callable[[Change], None] = lambda _: None,
    variant: str | None = None,
) -> tuple[Change, ...]:
    """Configure the DUT as its config says; return the changes that were necessary.

    variant: of the DUT; changes of its other variants are undone first. announce: called with each change before it is
    made. DutError names the change that failed; the journal has it, and all before it.
    """
    others = of_others(journal, variant)
    revert(dut, transport, journal, only=lambda change: change in others)
    made: list[Change] = []
    for _ in range(ROUNDS):
        planned = tuple(dut.plan())
        identity = dut.identity() if planned else ""
        for change in planned:
            announce(change)
            journal.add(Entry(identity, transport.place, change))
            try:
                for command in change.do:
                    run(transport, command)
            except DutError as error:  # the class is kept: a suite tries again after a lost connection
                remedy = "'trexbench dut revert' undoes what was changed" if journal.entries() else ""
                raise type(error)(f"{change.what}: {error}", remedy) from None
            if change.lasts:  # it may have restarted the DUT or its daemon
                identity = dut.identity()
        made += planned
        if not any(change.reveals for change in planned):
            break
    return tuple(made)


def apply_and_verify(
    dut: Dut,
    transport: Transport,
    journal: Journal,
    announce: Callable[[Change], None] = lambda _: None,
    variant: str | None = None,
    unsteady: bool = False,
) -> Attestation:
    """Apply, then read the DUT back. unsteady: apply once more what the DUT has undone by itself meanwhile."""
    changed = apply(dut, transport, journal, announce, variant)
    attestation = read_back(dut)
    if unsteady and changed and attestation.mismatches:
        changed += apply(dut, transport, journal, announce, variant)
        attestation = read_back(dut)
    return replace(attestation, changed=changed)


def read_back(dut: Dut) -> Attestation:
    """Read the DUT back, again and again while a link is down that may be negotiating."""
    deadline = time.monotonic() + LINK_WAIT_S
    while True:
        attestation = dut.verify()
        down = any(isinstance(mismatch, LinkDown) for mismatch in attestation.mismatches)
        if not down or time.monotonic() >= deadline:
            return attestation
        time.sleep(RETRY_EVERY_S)


def of_others(journal: Journal, variant: str | None) -> list[Change]:
    """List changes that other variants of the DUT left behind, the last one first."""
    changes = (entry.change for entry in reversed(journal.entries()))
    return [change for change in changes if change.variant not in (None, variant)]


def revert(
    dut: Identified,
    transport: Transport,
    journal: Journal,
    announce: Callable[[Change], None] = lambda _: None,
    only: Callable[[Change], bool] = lambda _: True,
) -> Reverted:
    """Undo the changes in the journal, the last one first; each is removed from the journal as soon as it is undone.

    only: selects the changes. DutError at the end names what could not be undone, which the journal keeps; a lost
    connection ends the revert at once.
    """
    identity = ""  # read only when needed: a daemon that a lasting change keeps from starting has none
    reverted, forgotten, failed = list[Change](), list[Change](), list[str]()
    for entry in reversed([entry for entry in journal.entries() if only(entry.change)]):
        if entry.place != transport.place:
            raise DutError(
                f"{entry.change.what} was changed on {entry.place}, this is {transport.place}",
                f"revert it there, or remove {journal.name}",
            )
        identity = identity or ("" if entry.change.lasts else dut.identity())
        if entry.identity != identity and not entry.change.lasts:
            forgotten.append(entry.change)
            journal.remove(entry)
            continue
        announce(entry.change)
        try:
            for command in entry.change.undo:
                run(transport, command)
        except CommandFailed as error:
            failed.append(f"{entry.change.what}: {error}")
            if entry.change.lasts:
                break  # running its undo again restores what the older entries changed
            continue
        if entry.change.lasts:
            identity = entry.identity  # its undo has restored the state in which it was made
        reverted.append(entry.change)
        journal.remove(entry)
    if failed:
        raise DutError(f"not everything could be reverted: {'; '.join(failed)}", f"it stays in {journal.name}")
    return Reverted(tuple(reverted), tuple(forgotten))


def run(transport: Transport, command: Command) -> None:
    """Run one command; CommandFailed where it fails, unless its output has words of ``fine_if``."""
    deadline = time.monotonic() + command.retry_s
    failed = f"{shown(command.argv)} failed on {transport.place}"
    while True:
        done = transport.run(command.argv, command.timeout_s, command.input)
        output = done.stderr + done.stdout
        succeeded = done.returncode == 0 and command.says in (None, output.strip())
        if succeeded or any(words in output for words in command.fine_if):
            return
        if command.remedy is not None and command.remedy[0] in output:
            raise CommandFailed(f"{failed}: {done.complaint}", command.remedy[1])
        if time.monotonic() >= deadline:
            raise CommandFailed(failed, done.complaint)
        time.sleep(RETRY_EVERY_S)


def summary(made: Sequence[Change]) -> str:
    """Say how many changes were made."""
    return counted(len(made), "change") if made else "nothing to change"
