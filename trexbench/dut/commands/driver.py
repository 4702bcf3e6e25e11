"""A DUT that is known by commands only: its config says what to run, and what to look for in what is printed.

``driver: none``, a DUT that is configured by hand, is one without any.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from ...config.commands import TESTER_MAC, CommandsSettings, Probe, Step
from ...core.dut.rss import Spreading
from ...core.dut.telemetry import CpuTime, DropCount, Gathering, Missing, Observation, PortCount
from ...core.errors import ConfigError, DutError
from ...core.patterns import LONGEST_TEXT, find, find_all
from ...transport import TIMEOUT_S, Transport
from ...transport.words import shown
from ..model import Attestation, Change, Command, DutDriver, Mismatch, Wanted, attest, not_attested, unmet

_NOT_RUN = (126, 127)
Checked = tuple[Step, str, str | None]
"""A step, what its check printed, and what its pattern found there; None: nothing."""


class CommandsDut:
    """Each reading runs its command once; ``{mac 0}`` stands for the MAC of the tester's port 0."""

    def __init__(self, wanted: Wanted, transport: Transport) -> None:
        self._wanted, self._transport = wanted, transport
        self._settings = wanted.config.commands

    def identity(self) -> str:
        """Read the identity as the config says; where it does not, the DUT is taken never to forget anything."""
        probe = self._settings.identity
        if probe is None:
            return ""
        said, found = self._read(probe)
        if found is None:
            what = f"{shown(probe.run)} prints {_line(said)!r}, and no /{probe.matches}/"
            raise DutError(f"{self._wanted.config.name}: {what}", "correct commands.identity")
        return found

    def plan(self) -> Sequence[Change]:
        return plan(self._wanted, self._checked())

    def verify(self) -> Attestation:
        """Every check, and every reading: a fact is what its pattern found, so that it is the same twice in a row."""
        if not self._settings.apply and not self._settings.verify:
            why = "the DUT is configured by hand, its config names nothing to read back"
            return not_attested(self._wanted.config, f"driver: {self._wanted.config.driver}: {why}")
        checked = list(self._checked())
        facts = {step.what: found for step, _, found in checked}
        wrong = unmet(plan(self._wanted, checked))
        for probe in self._settings.verify:
            said, found = self._read(probe)
            facts[probe.what] = found
            if found is None:
                wrong.append(Mismatch(probe.what, f"/{probe.matches}/", _line(said)))
        return attest(self._wanted, facts, wrong, Spreading())

    def observe(self, clear: bool = False) -> Observation:
        """clear has no effect: what is read are totals."""
        if not self._settings.counters:
            why = f"driver: {self._wanted.config.driver}: its config names none"
            return Observation(missing=(Missing("the DUT's counters", why),))
        gathering = Gathering()
        printed: list[str | None] = [
            gathering.part(shown(one.run), partial(self._output, one.run, must_succeed=True), None)
            for one in self._settings.counters
        ]
        gathering.require_any()
        found = observation(self._settings, printed)
        return replace(found, missing=(*gathering.missing, *found.missing))

    def _checked(self) -> Iterable[Checked]:
        for step in self._settings.apply:
            said = self._output(step.check)
            yield step, said, find(filled(step.matches, self._wanted.tester_macs), said)

    def _read(self, probe: Probe) -> tuple[str, str | None]:
        said = self._output(probe.run)
        return said, find(filled(probe.matches, self._wanted.tester_macs), said)

    def _output(self, argv: Sequence[str], must_succeed: bool = False) -> str:
        """Return what it prints. A check may exit with an error, as grep does that finds nothing, but must have run."""
        done = self._transport.run(_words(argv, self._wanted), TIMEOUT_S)
        if done.returncode and (must_succeed or done.returncode in _NOT_RUN):
            raise DutError(f"{shown(argv)} failed on {self._transport.place}", done.complaint)
        return done.stdout[:LONGEST_TEXT]


def plan(wanted: Wanted, checked: Iterable[Checked]) -> list[Change]:
    """The changes that make those steps whose check did not find what it looks for."""

    def commands(argvs: Iterable[Sequence[str]], why: str, step: Step, *fine: str) -> tuple[Command, ...]:
        return tuple(Command(_words(argv, wanted), why, fine_if=fine, timeout_s=step.timeout_s) for argv in argvs)

    return [
        Change(
            what=step.what,
            was=_line(said),
            wanted=f"/{filled(step.matches, wanted.tester_macs)}/",
            do=commands(step.run, step.what, step),
            undo=commands(step.undo, f"undo: {step.what}", step, *filter(None, [step.undone_if])),
            lasts=step.lasts,
        )
        for step, said, found in checked
        if found is None
    ]


def filled(text: str, macs: Mapping[int, str]) -> str:
    """The text with MACs of the tester's ports in place of ``{mac N}``; ConfigError where one is not known."""

    def mac(found: re.Match[str]) -> str:
        if int(found[1]) not in macs:
            raise ConfigError(f"{found[0]}: the generator did not name the MAC of its port {found[1]}", "write the MAC")
        return macs[int(found[1])].lower()

    return TESTER_MAC.sub(mac, text)


def _words(argv: Sequence[str], wanted: Wanted) -> tuple[str, ...]:
    return tuple(filled(word, wanted.tester_macs) for word in argv)


def _line(said: str) -> str:
    """Describe what was printed, for messages: the one line, or how many there are."""
    lines = [" ".join(line.split()) for line in said.splitlines() if line.strip()]
    line = lines[0] if len(lines) == 1 else f"{len(lines)} other lines" if lines else "nothing"
    return line if len(line) <= 80 else f"{line[:77]}..."


_GROUPED = re.compile(r"(?<=\d)[ ,'_](?=\d)")
"""Separator between the digits of a large number, as in RouterOS's ``14 256 002``."""


def observation(settings: CommandsSettings, printed: Sequence[str | None]) -> Observation:
    """One reading. printed: by each of the settings' commands, None where it failed; what is not found is missing."""
    gathering = Gathering()
    packets: dict[int, dict[str, int | None]] = {}
    drops: list[DropCount] = []
    cpus: list[CpuTime] = []
    at_s: float | None = None
    for one, text in zip(settings.counters, printed, strict=True):
        if text is None:
            continue
        for port in one.packets:
            for end, pattern in (("rx", port.rx), ("tx", port.tx)):
                if pattern is not None:
                    reader = partial(_total, pattern, text)
                    found = gathering.part(f"packets of port {port.port}, {end}", reader, None)
                    packets.setdefault(port.port, {})[end] = found
        for drop in one.drops:
            count = gathering.part(drop.name, partial(_total, drop.matches, text), None)
            if count is not None:
                drops.append(DropCount(drop.name, count, drop.port))
        if one.cpus is not None:
            cpus += gathering.part("CPU time", partial(_cpus, one.cpus, text, settings), list[CpuTime]())
        if one.time is not None:
            at_s = gathering.part("the DUT's clock", partial(_found, one.time, text), None)
    return Observation(
        at_s=at_s,
        cpus=tuple(cpus),
        ports=tuple(PortCount(port, ends.get("rx"), ends.get("tx")) for port, ends in sorted(packets.items())),
        drops=tuple(drops),
        missing=tuple(gathering.missing),
    )


def _found(pattern: str, text: str) -> float:
    """DutError where the pattern finds nothing, or no number."""
    found = find(pattern, text)
    if found is None:
        raise DutError(f"/{pattern}/ found nothing")
    try:
        return _number(found)
    except ValueError:
        raise DutError(f"/{pattern}/ found {found[:40]!r}, no number") from None


def _total(pattern: str, text: str) -> int:
    return int(_found(pattern, text))


def _cpus(pattern: str, text: str, settings: CommandsSettings) -> list[CpuTime]:
    try:
        found = [_cpu(at, groups, settings) for at, groups in enumerate(find_all(pattern, text))]
    except ValueError as error:
        raise DutError(str(error)) from None
    if not found:
        raise DutError(f"/{pattern}/ found nothing")
    return found


def _number(text: str) -> float:
    """ValueError for what is none, infinity included."""
    found = float(_GROUPED.sub("", text.strip()))
    if not 0 <= found < 1 << 64:
        raise ValueError(f"{text[:40]!r} is no count")
    return found


def _cpu(at: int, groups: Mapping[str, str], settings: CommandsSettings) -> CpuTime:
    """at: its number where the DUT does not say."""

    def seconds(*kinds: str) -> float:
        named = [value for name, value in groups.items() if name.startswith(kinds)]
        return sum(_number(value or "0") for value in named) * settings.tick_s

    busy, has_packet = seconds("busy", "packet"), any(name.startswith("packet") for name in groups)
    packet = seconds("packet") if has_packet else None
    return CpuTime(int(groups.get("cpu") or at), busy + seconds("idle"), busy, packet, settings.clock_hz)


DRIVER = DutDriver(CommandsDut)
