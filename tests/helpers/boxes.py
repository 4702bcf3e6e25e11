"""Boxes that are a few lines of Python, keep their state, and can be made to fail: what drivers are tested against.

A box answers one command at a time. ``BoxTransport`` puts a driver in front of it without a network; the tests of
whole commands put the same box behind a real sshd.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from trexbench.config.model import DutConfig
from trexbench.core.errors import DutError, DutLost
from trexbench.transport import Completed, Transport


@dataclass(frozen=True)
class Said:
    stdout: str = ""
    stderr: str = ""
    returncode: int = 0


class Box(Protocol):
    """A machine with a memory: everything it knows is in plain attributes (it is pickled between commands)."""

    programs: Sequence[str]
    """Names of the programs it has."""

    def run(self, argv: Sequence[str], input: str) -> Said:
        """Carry out this command and return what the box says to it."""


@dataclass
class BoxTransport(Transport):
    """The way to a box. fail: words -> what is said in place of running a command that contains them.

    lost_after: so many commands are carried; the connection is gone then. ran: every command line that arrived.
    """

    box: Box
    place: str = "the box"
    fail: dict[str, Said] = field(default_factory=dict)
    lost_after: int | None = None
    ran: list[str] = field(default_factory=list)

    def run(self, argv: Sequence[str], timeout_s: float, input: str | None = None) -> Completed:
        line = " ".join(argv)
        if self.lost_after is not None and len(self.ran) >= self.lost_after:
            raise DutLost(f"the connection to {self.place} was lost")
        self.ran.append(line)
        if argv[0] not in self.box.programs:
            raise DutError(f"{argv[0]} is not installed on {self.place}", f"install the package {argv[0]}")
        said = next((answer for words, answer in self.fail.items() if words in line), None)
        said = said or self.box.run(argv, input or "")
        return Completed(tuple(argv), said.returncode, said.stdout, said.stderr)


class Says(Transport):
    """A transport that answers each command with the next of these, and with the last one from then on."""

    place = "the box"
    timeout_s = 0.0

    def __init__(self, *answers: str | Said) -> None:
        self.answers = [Said(one) if isinstance(one, str) else one for one in answers]
        self.ran: list[str] = []

    def run(self, argv: Sequence[str], timeout_s: float, input: str | None = None) -> Completed:
        self.ran.append(" ".join(argv))
        self.timeout_s = timeout_s
        said = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return Completed(tuple(argv), said.returncode, said.stdout, said.stderr)


def of_family(config: DutConfig, version: int) -> DutConfig:
    """Return the same DUT with only the addresses, neighbours and routes of one version of IP."""

    def chosen(found: Iterable[Any]) -> tuple[Any, ...]:
        return tuple(one for one in found if one.version == version)

    ports = tuple(
        replace(
            port,
            addresses=chosen(port.addresses),
            neighbour=replace(port.neighbour, addresses=chosen(port.neighbour.addresses)),
        )
        for port in config.ports
    )
    return replace(config, cables=ports, routes=tuple(one for one in config.routes if one.to.version == version))
