"""Changing a DUT and taking it back: the order, the journal, and what ends it; test_dut_laws has the drivers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bench import NICS, Bench
from box_linux import LinuxBox
from box_vpp import VppBox
from boxes import BoxTransport, Said

from trexbench.core.errors import DutError, StoreError
from trexbench.dut.apply import apply, revert, summary
from trexbench.dut.journal import Entry, FileJournal, NoJournal, state_dir
from trexbench.dut.settings import Change, Command


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, LinuxBox())


def test_changes_are_announced_counted_and_taken_back_the_last_one_first(bench: Bench) -> None:
    told: list[str] = []
    done = apply(bench.dut, bench.transport, bench.journal, lambda step: told.append(str(step)))
    assert told[:2] == ["ip_forward: 1 (was 0)", "link of enp3s0f0: up (was down)"]
    assert len(told) == len(done) and summary(done) == f"{len(done)} changes"
    assert bench.apply() == [] and summary(()) == "nothing to change"
    back = revert(bench.dut, bench.transport, bench.journal)
    assert back.reverted == done[::-1] and not back.forgotten
    assert not Path(bench.journal.name).exists() and bench.revert() == 0


def test_a_failed_change_names_the_way_back_where_there_is_one(bench: Bench) -> None:
    """A lab that ends with its run takes its router's changes with it."""
    bench.transport.fail["ip link set"] = Said(stderr="busy", returncode=1)
    with pytest.raises(DutError, match=r"busy$"):
        apply(bench.dut, bench.transport, NoJournal())
    with pytest.raises(DutError, match="busy: 'trexbench dut revert' undoes what was changed"):
        bench.apply()


def test_two_applies_are_taken_back_to_the_first_state(bench: Bench) -> None:
    before = bench.box.settings()
    bench.apply()
    bench.box.neighbours["100.65.1.2%enp3s0f0"] = ("02:00:00:00:00:09", "permanent")
    assert len(bench.apply()) == 1 and bench.revert()
    assert bench.box.settings() == before


def test_what_the_undo_of_a_restart_restores_is_reverted_too(tmp_path: Path) -> None:
    bench = Bench(tmp_path, VppBox(nics=NICS))
    before = bench.box.settings()
    bench.apply()
    bench.want(2)
    bench.apply()
    bench.transport.fail["tee /etc/vpp/startup.conf"] = Said(stderr="busy", returncode=1)
    with pytest.raises(DutError, match="busy"):
        bench.revert()
    bench.transport.fail.clear()
    bench.revert()
    assert bench.box.settings() == before and bench.journal.entries() == ()


def test_a_lost_connection_ends_the_taking_back_at_once(bench: Bench) -> None:
    bench.apply()
    every = bench.journal.entries()
    bench.transport.lost_after = len(bench.transport.ran) + 4
    with pytest.raises(DutError, match="was lost"):
        bench.revert()
    left = bench.journal.entries()
    assert 0 < len(left) < len(every) and left == every[: len(left)]


def test_another_boxs_changes_are_not_taken_back_here(bench: Bench) -> None:
    bench.apply()
    with pytest.raises(DutError, match="was changed on the box, this is another box"):
        revert(bench.dut, BoxTransport(bench.box, place="another box"), bench.journal)


def test_nothing_is_changed_that_cannot_be_written_down(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "changes").write_text("a file where the directory should be")
    with pytest.raises(StoreError, match=r"cannot be (read|written)"):
        bench.apply()
    assert bench.changing() == []


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "[" * 100_000, '{"schema": "trexbench/changes", "version": 2, "entries": []}', "\0"]
)
def test_what_is_no_journal_is_refused_by_name(tmp_path: Path, text: str) -> None:
    found = FileJournal("box", tmp_path)
    Path(found.name).parent.mkdir()
    Path(found.name).write_text(text)
    with pytest.raises(StoreError, match="is not a journal of changes"):
        found.entries()


def test_a_journal_keeps_every_field_of_a_step(tmp_path: Path) -> None:
    journal = FileJournal("box", tmp_path)
    command = Command(("a", "b c"), "why", "fed\n", ("fine",), None, 3.0, 2.0)
    step = Change("what", "was", "wanted", (command,), (command, command), lasts=True)
    entry = Entry("boot 1", "somewhere", step)
    journal.add(entry)
    assert journal.entries() == (entry,)
    assert json.loads(Path(journal.name).read_text())["dut"] == "box"
    for _ in range(2):  # the second time, another has removed it
        journal.remove(entry)
        assert journal.entries() == ()


def test_each_dut_has_its_own_journal_and_finds_that_of_an_earlier_version(tmp_path: Path) -> None:
    entries = [Entry(name, "there", Change("what", "was", "wanted", (), ())) for name in "abc"]
    first, second = FileJournal("vpp-\u00fc", tmp_path), FileJournal("vpp-\u00e4", tmp_path)
    first.add(entries[0])
    assert not second.entries()
    former = Path(first.name).rename(tmp_path / "changes" / "vpp-_.json")
    assert (first.entries(), second.entries()) == ((entries[0],), ())
    with pytest.raises(StoreError, match="changes of the DUT vpp-\u00fc: revert"):
        FileJournal("vpp-_", tmp_path).add(entries[1])
    second.add(entries[1])
    first.add(entries[2])
    assert first.entries() == (entries[0], entries[2]) and not former.exists()
    former = Path(first.name).rename(former)
    for entry in first.entries():
        first.remove(entry)
    assert not first.entries() and not former.exists() and second.entries() == (entries[1],)


def test_journals_outlive_this_machines_boot(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TREXBENCH_STATE_DIR", str(tmp_path))
    assert state_dir() == tmp_path
    monkeypatch.delenv("TREXBENCH_STATE_DIR")
    assert not str(state_dir()).startswith(("/run", "/tmp"))
