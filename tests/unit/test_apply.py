"""Changing a DUT and taking it back, whatever fails in between: on a box that knows three settings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from boxes import BoxTransport, Said

from trexbench.core.dut.telemetry import Observation
from trexbench.core.errors import DutError, StoreError
from trexbench.dut.apply import apply, revert, summary
from trexbench.dut.journal import Entry, FileJournal, state_dir
from trexbench.dut.settings import Attestation, Change, Command

WANTED = {"address": "100.65.1.1", "route": "16.0.0.0/8", "firewall": "off"}


class KeyBox:
    """``set KEY VALUE``, ``unset KEY``, ``reboot``; what is on its ``disk`` outlives a reboot."""

    programs = ("set", "unset", "reboot")

    def __init__(self, **settings: str) -> None:
        self.settings = dict(settings)
        self.boots = 1

    def run(self, argv: Sequence[str], input: str) -> Said:
        if argv[0] == "reboot":
            self.boots += 1
            self.settings.clear()
        elif argv[0] == "set":
            self.settings[argv[1]] = argv[2] if len(argv) > 2 else input
        elif self.settings.pop(argv[1], None) is None:
            return Said(stderr="no such key", returncode=1)
        return Said()


class KeyDut:
    def __init__(self, transport: BoxTransport) -> None:
        assert isinstance(transport.box, KeyBox)
        self._box = transport.box

    def identity(self) -> str:
        return f"boot {self._box.boots}"

    def plan(self) -> Sequence[Change]:
        return [self._step(key, value) for key, value in WANTED.items() if self._box.settings.get(key) != value]

    def verify(self) -> Attestation:
        return Attestation("box", "key", True, dict(self._box.settings))

    def observe(self, clear: bool = False) -> Observation:
        return Observation()

    def _step(self, key: str, value: str) -> Change:
        was = self._box.settings.get(key)
        back = ("set", key, was) if was is not None else ("unset", key)
        undo = Command(back, "as it was", fine_if=("no such key",))
        return Change(key, was, value, (Command(("set", key, value), "wanted"),), (undo,))


@pytest.fixture
def journal(tmp_path: Path) -> FileJournal:
    return FileJournal("box", tmp_path)


def test_applied_once_twice_and_taken_back(journal: FileJournal) -> None:
    transport = BoxTransport(KeyBox(firewall="on"))
    dut = KeyDut(transport)
    told: list[str] = []
    done = apply(dut, transport, journal, lambda step: told.append(str(step)))
    assert told == ["address: 100.65.1.1", "route: 16.0.0.0/8", "firewall: off (was on)"]
    assert transport.box.settings == WANTED and summary(done) == "3 changes"
    ran = list(transport.ran)
    assert apply(dut, transport, journal) == () and transport.ran == ran and summary(()) == "nothing to change"
    back = revert(dut, transport, journal)
    assert [step.what for step in back.reverted] == ["firewall", "route", "address"] and not back.forgotten
    assert transport.box.settings == {"firewall": "on"}
    assert not Path(journal.name).exists()
    assert revert(dut, transport, journal).reverted == ()


def test_an_entry_that_another_has_removed_is_no_fault(journal: FileJournal) -> None:
    steps = [Entry("box", "here", Change(what, None, "on", (), ())) for what in ("flag", "other")]
    for step in steps:
        journal.add(step)
    for _ in range(2):
        journal.remove(steps[0])
        assert list(journal.entries()) == [steps[1]]


def test_two_applies_are_taken_back_to_the_first_state(journal: FileJournal) -> None:
    transport = BoxTransport(KeyBox(firewall="on"))
    apply(KeyDut(transport), transport, journal)
    transport.box.settings["firewall"] = "strict"
    apply(KeyDut(transport), transport, journal)
    revert(KeyDut(transport), transport, journal)
    assert transport.box.settings == {"firewall": "on"}


def test_what_cannot_be_taken_back_stays_written_down(journal: FileJournal) -> None:
    transport = BoxTransport(KeyBox())
    apply(KeyDut(transport), transport, journal)
    transport.fail["unset route"] = Said(stderr="busy", returncode=1)
    with pytest.raises(DutError, match=r"not everything .* route: unset route failed on the box: busy"):
        revert(KeyDut(transport), transport, journal)
    assert [entry.change.what for entry in journal.entries()] == ["route"]
    transport.fail.clear()
    assert [step.what for step in revert(KeyDut(transport), transport, journal).reverted] == ["route"]
    assert transport.box.settings == {}


class RestartDut(KeyDut):
    """Its first setting takes a restart, whose undo restores what was set when it was planned."""

    def _step(self, key: str, value: str) -> Change:
        step = super()._step(key, value)
        if key != "firewall":
            return step
        kept = [Command(("set", *one), "as it was") for one in self._box.settings.items() if one[0] != key]
        reboot = Command(("reboot",), "it takes effect then")
        return replace(step, do=(reboot, *step.do), undo=(reboot, *step.undo, *kept), lasts=True)


@pytest.mark.parametrize("undo", ["works", "fails once"])
def test_what_the_undo_of_a_restart_restores_is_reverted_too(journal: FileJournal, undo: str) -> None:
    transport = BoxTransport(KeyBox(firewall="on"))
    dut = RestartDut(transport)
    transport.box.settings["firewall"] = "off"
    apply(dut, transport, journal)
    transport.box.settings["firewall"] = "on"
    apply(dut, transport, journal)
    assert [entry.change.what for entry in journal.entries()] == ["address", "route", "firewall"]
    if undo == "fails once":
        transport.fail["set firewall on"] = Said(stderr="busy", returncode=1)
        with pytest.raises(DutError, match="busy"):
            revert(dut, transport, journal)
        assert [entry.change.what for entry in journal.entries()] == ["address", "route", "firewall"]
        transport.fail.clear()
    assert len(revert(dut, transport, journal).reverted) == 3
    assert transport.box.settings == {"firewall": "on"} and journal.entries() == ()


def test_a_lost_connection_ends_the_taking_back_at_once(journal: FileJournal) -> None:
    transport = BoxTransport(KeyBox())
    apply(KeyDut(transport), transport, journal)
    transport.lost_after = len(transport.ran) + 1
    with pytest.raises(DutError, match="was lost"):
        revert(KeyDut(transport), transport, journal)
    assert [entry.change.what for entry in journal.entries()] == ["address", "route"]


def test_another_boxs_changes_are_not_taken_back_here(journal: FileJournal) -> None:
    transport = BoxTransport(KeyBox())
    apply(KeyDut(transport), transport, journal)
    other = BoxTransport(transport.box, place="another box")
    with pytest.raises(DutError, match="was changed on the box, this is another box"):
        revert(KeyDut(other), other, journal)


def test_nothing_is_changed_that_cannot_be_written_down(tmp_path: Path) -> None:
    (tmp_path / "changes").write_text("a file where the directory should be")
    transport = BoxTransport(KeyBox())
    with pytest.raises(StoreError, match=r"cannot be (read|written)"):
        apply(KeyDut(transport), transport, FileJournal("box", tmp_path))
    assert transport.ran == []


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "[" * 100_000, '{"schema": "trexbench/changes", "version": 2, "entries": []}', "\0"]
)
def test_what_is_no_journal_is_refused_by_name(tmp_path: Path, text: str) -> None:
    found = FileJournal("box", tmp_path)
    Path(found.name).parent.mkdir()
    Path(found.name).write_text(text)
    with pytest.raises(StoreError, match="is not a journal of changes"):
        found.entries()


def test_a_command_is_tried_again_for_as_long_as_it_says(journal: FileJournal) -> None:
    class Slow(KeyBox):
        answers = 0

        def run(self, argv: Sequence[str], input: str) -> Said:
            self.answers += 1
            return Said(stderr="not yet", returncode=1) if self.answers < 3 else super().run(argv, input)

    step = Change("slow", None, "up", (Command(("set", "slow", "up"), "", retry_s=5.0),), ())

    class SlowDut(KeyDut):
        def plan(self) -> Sequence[Change]:
            return [step]

    transport = BoxTransport(Slow())
    apply(SlowDut(transport), transport, journal)
    assert transport.box.settings == {"slow": "up"} and len(transport.ran) == 3


def test_a_journal_keeps_every_field_of_a_step(journal: FileJournal) -> None:
    command = Command(("a", "b c"), "why", "fed\n", ("fine",), None, 3.0, 2.0)
    step = Change("what", "was", "wanted", (command,), (command, command), lasts=True)
    entry = Entry("boot 1", "somewhere", step)
    journal.add(entry)
    assert journal.entries() == (entry,)
    assert json.loads(Path(journal.name).read_text())["dut"] == "box"


def test_journals_outlive_this_machines_boot(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TREXBENCH_STATE_DIR", str(tmp_path))
    assert state_dir() == tmp_path
    monkeypatch.delenv("TREXBENCH_STATE_DIR")
    assert not str(state_dir()).startswith(("/run", "/tmp"))
