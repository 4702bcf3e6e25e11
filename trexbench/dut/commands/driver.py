"""DUTs that are known by commands only: the config says what to run, and what to look for in the output.

``driver: none``, a DUT that is configured by hand, is one without any commands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from ...config.commands import TESTER_MAC, CommandsSettings, Step
from ...core.dut.rss import Spreading
from ...core.dut.telemetry import CpuTime, DropCount, Gathering, Missing, Observation, PortCount
from ...core.errors import ConfigError, DutError
from ...core.patterns import LONGEST_TEXT, find, find_all
from ...transport import TIMEOUT_S, Transport
from ...transport.words import shown
from ..settings import Attestation, Change, Command, DutDriver, Mismatch, Wanted, attest, not_attested, unmet

_NOT_RUN = (126, 127)
Checked = tuple[Step, str, str | None]
"""Step, output of its check, and what its pattern found there (None: nothing)."""


class CommandsDut:
    """DUT whose readings run a command each; ``{mac 0}`` stands for the MAC of the tester's port 0."""

    def __init__(self, wanted: Wanted, transport: Transport) -> None:
        self._wanted, self._transport = wanted, transport
        self._settings = wanted.config.commands

    def identity(self) -> str:
        """Read the identity as the config says; without it the DUT is assumed to forget nothing."""
        probe = self._settings.identity
        if probe is None:
            return ""
        output, identity = self._read(probe.run, probe.matches)
        if identity is None:
            what = f"{shown(probe.run)} prints {_summarised(output)!r}, and no /{probe.matches}/"
            raise DutError(f"{self._wanted.config.name}: {what}", "correct commands.identity")
        return identity

    def plan(self) -> Sequence[Change]:
        return plan(self._wanted, self._checked())

    def verify(self) -> Attestation:
        """Run every check and reading; a fact is what the pattern matched, so that it stays the same."""
        if not self._settings.apply and not self._settings.verify:
            why = "the DUT is configured by hand, its config names nothing to read back"
            return not_attested(self._wanted.config, f"driver: {self._wanted.config.driver}: {why}")
        checked = self._checked()
        facts = {step.what: matched for step, _, matched in checked}
        wrong = unmet(plan(self._wanted, checked))
        for probe in self._settings.verify:
            output, facts[probe.what] = self._read(probe.run, probe.matches)
            if facts[probe.what] is None:
                wrong.append(Mismatch(probe.what, f"/{probe.matches}/", _summarised(output)))
        return attest(self._wanted, facts, wrong, Spreading())

    def observe(self, clear: bool = False) -> Observation:
        """Read all counters. clear has no effect: they are totals."""
        if not self._settings.counters:
            why = f"driver: {self._wanted.config.driver}: its config names no counters"
            return Observation(missing=(Missing("the DUT's counters", why),))
        gathering = Gathering()
        outputs: list[str | None] = [
            gathering.part(shown(reading.run), partial(self._output, reading.run, must_succeed=True), None)
            for reading in self._settings.counters
        ]
        gathering.require_any()
        observed = observation(self._settings, outputs)
        return replace(observed, missing=(*gathering.missing, *observed.missing))

    def _checked(self) -> list[Checked]:
        return [(step, *self._read(step.check, step.matches)) for step in self._settings.apply]

    def _read(self, argv: Sequence[str], pattern: str) -> tuple[str, str | None]:
        output = self._output(argv)
        return output, find(filled(pattern, self._wanted.tester_macs), output)

    def _output(self, argv: Sequence[str], must_succeed: bool = False) -> str:
        """Run a command. A check must run, but may exit with an error, as grep does that finds nothing."""
        done = self._transport.run(_words(argv, self._wanted), TIMEOUT_S)
        if done.returncode and (must_succeed or done.returncode in _NOT_RUN):
            raise DutError(f"{shown(argv)} failed on {self._transport.place}", done.complaint)
        return done.stdout[:LONGEST_TEXT]


def plan(wanted: Wanted, checked: Iterable[Checked]) -> list[Change]:
    """Plan the steps whose check did not find its pattern."""

    def commands(argvs: Iterable[Sequence[str]], why: str, step: Step, *fine: str) -> tuple[Command, ...]:
        return tuple(Command(_words(argv, wanted), why, fine_if=fine, timeout_s=step.timeout_s) for argv in argvs)

    return [
        Change(
            what=step.what,
            was=_summarised(output),
            wanted=f"/{filled(step.matches, wanted.tester_macs)}/",
            do=commands(step.run, step.what, step),
            undo=commands(step.undo, f"undo: {step.what}", step, *filter(None, [step.undone_if])),
            lasts=step.lasts,
        )
        for step, output, matched in checked
        if matched is None
    ]


def filled(text: str, macs: Mapping[int, str]) -> str:
    """Replace ``{mac N}`` by the MAC of the tester's port N; ConfigError where it is not known."""

    def mac(match: re.Match[str]) -> str:
        if int(match[1]) not in macs:
            raise ConfigError(f"{match[0]}: the generator did not name the MAC of its port {match[1]}", "write the MAC")
        return macs[int(match[1])].lower()

    return TESTER_MAC.sub(mac, text)


def _words(argv: Sequence[str], wanted: Wanted) -> tuple[str, ...]:
    return tuple(filled(word, wanted.tester_macs) for word in argv)


def _summarised(output: str) -> str:
    """Summarise an output for messages: its one line, or their number."""
    lines = [" ".join(line.split()) for line in output.splitlines() if line.strip()]
    line = lines[0] if len(lines) == 1 else f"{len(lines)} other lines" if lines else "nothing"
    return line if len(line) <= 80 else f"{line[:77]}..."


_GROUPED = re.compile(r"(?<=\d)[ ,'_](?=\d)")
"""Separator between the digits of a large number, as in RouterOS's ``14 256 002``."""


def observation(settings: CommandsSettings, outputs: Sequence[str | None]) -> Observation:
    """Parse the outputs of the settings' commands (None: it failed); what no pattern finds is missing."""
    gathering = Gathering()
    packets: dict[int, dict[str, int | None]] = {}
    drops: list[DropCount] = []
    cpus: list[CpuTime] = []
    at_s: float | None = None
    for reading, text in zip(settings.counters, outputs, strict=True):
        if text is None:
            continue
        for port in reading.packets:
            for end, pattern in (("rx", port.rx), ("tx", port.tx)):
                if pattern is not None:
                    what = f"packets of port {port.port}, {end}"
                    packets.setdefault(port.port, {})[end] = gathering.part(what, partial(_total, pattern, text), None)
        for drop in reading.drops:
            count = gathering.part(drop.name, partial(_total, drop.matches, text), None)
            if count is not None:
                drops.append(DropCount(drop.name, count, drop.port))
        if reading.cpus is not None:
            cpus += gathering.part("CPU time", partial(_cpus, reading.cpus, text, settings), list[CpuTime]())
        if reading.time is not None:
            at_s = gathering.part("the DUT's clock", partial(_quantity, reading.time, text), None)
    return Observation(
        at_s=at_s,
        cpus=tuple(cpus),
        ports=tuple(PortCount(port, ends.get("rx"), ends.get("tx")) for port, ends in sorted(packets.items())),
        drops=tuple(drops),
        missing=tuple(gathering.missing),
    )


def _quantity(pattern: str, text: str) -> float:
    """Read the number that the pattern finds; DutError where it finds none."""
    matched = find(pattern, text)
    if matched is None:
        raise DutError(f"/{pattern}/ found nothing")
    try:
        return _number(matched)
    except ValueError:
        raise DutError(f"/{pattern}/ found {matched[:40]!r}, no number") from None


def _total(pattern: str, text: str) -> int:
    return int(_quantity(pattern, text))


def _cpus(pattern: str, text: str, settings: CommandsSettings) -> list[CpuTime]:
    try:
        cpus = [_cpu(index, groups, settings) for index, groups in enumerate(find_all(pattern, text))]
    except ValueError as error:
        raise DutError(str(error)) from None
    if not cpus:
        raise DutError(f"/{pattern}/ found nothing")
    return cpus


def _number(text: str) -> float:
    """Read a number from 0 on; ValueError for anything else, infinity included."""
    value = float(_GROUPED.sub("", text.strip()))
    if not 0 <= value < 1 << 64:
        raise ValueError(f"{text[:40]!r} is not a count")
    return value


def _cpu(index: int, groups: Mapping[str, str], settings: CommandsSettings) -> CpuTime:

    def seconds(*kinds: str) -> float:
        named = [value for name, value in groups.items() if name.startswith(kinds)]
        return sum(_number(value or "0") for value in named) * settings.tick_s

    busy = seconds("busy", "packet")
    packet = seconds("packet") if any(name.startswith("packet") for name in groups) else None
    return CpuTime(int(groups.get("cpu") or index), busy + seconds("idle"), busy, packet, settings.clock_hz)


DRIVER = DutDriver(CommandsDut)
