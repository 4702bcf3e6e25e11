"""Settings for a part of a test are undone at its end, and by the next run where this one was killed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from trexbench.core.errors import DutError
from trexbench.dut import Change, Command
from trexbench.dut.apply import apply
from trexbench.dut.journal import FileJournal
from trexbench.session.dut import ConnectedDut
from trexbench.session.temporary import BUFFER_SYSCTLS, NAME, Buffers, Temporary
from trexbench.transport import Completed

pytestmark = pytest.mark.portable

FOUND = "4096\t131072\t33554432"


@dataclass
class Host:
    """A transport to a host whose files are these; deaf: it takes no value for these."""

    place: str
    files: dict[str, str] = field(default_factory=lambda: dict.fromkeys(map(path, BUFFER_SYSCTLS), FOUND))
    deaf: tuple[str, ...] = ()
    refuses: tuple[str, ...] = ()

    def run(self, argv: Sequence[str], timeout_s: float = 1.0, stdin: str | None = None) -> Completed:
        program, name = argv
        if name in self.refuses and program == "tee":
            return Completed(tuple(argv), 1, "", f"tee: {name}: Permission denied")
        if program == "tee" and name not in self.deaf:
            self.files[name] = "\t".join((stdin or "").split())
        return Completed(tuple(argv), 0, self.files[name] if program == "cat" else stdin or "", "")

    def identity(self) -> str:
        return "boot-1"

    def plan(self) -> list[Change]:
        return []


def path(name: str) -> str:
    return f"/proc/sys/{name.replace('.', '/')}"


def connected(host: Any, tmp_path: Path) -> ConnectedDut:
    return ConnectedDut(host, host, FileJournal(host.place, tmp_path), host)


def test_buffers_are_set_on_both_hosts_for_a_leg_and_restored(tmp_path: Path) -> None:
    hosts = [Host("client"), Host("server")]
    with Buffers([connected(one, tmp_path) for one in hosts]) as buffers:
        buffers.set(None)
        assert not list(tmp_path.iterdir()), "nothing to be restored"
        buffers.set(52_428_800)
        for host in hosts:
            assert set(host.files.values()) == {"4096\t131072\t52428800"}
        buffers.set(65_536)
        assert set(hosts[0].files.values()) == {"4096\t65536\t65536"}, "no first size above the largest"
        buffers.set(None)
        assert set(hosts[1].files.values()) == {FOUND}
        buffers.set(1_000_000)
    for host in hosts:
        assert set(host.files.values()) == {FOUND} and not FileJournal(host.place, tmp_path).entries()


def test_a_host_that_does_not_take_them_is_named_and_all_others_are_restored(tmp_path: Path) -> None:
    for server in (Host("server", deaf=(path(BUFFER_SYSCTLS[1]),)), Host("server", refuses=(path(BUFFER_SYSCTLS[1]),))):
        client = Host("client")
        there = [connected(one, tmp_path) for one in (client, server)]
        with pytest.raises(DutError, match=r"tcp_wmem.* on server"), Buffers(there) as buffers:
            buffers.set(1_000_000)
        assert set(client.files.values()) | set(server.files.values()) == {FOUND}


def test_what_a_killed_run_has_left_is_undone_before_the_next_one(tmp_path: Path) -> None:
    host = Host("client")
    there = connected(host, tmp_path)
    Buffers([there]).set(1_000_000)  # and then it is killed
    assert set(host.files.values()) != {FOUND}
    apply(there.dut, there.transport, there.journal)
    assert set(host.files.values()) == {FOUND} and not there.journal.entries()


def test_changes_are_undone_the_last_one_first_and_one_that_fails_stays_in_the_journal(tmp_path: Path) -> None:
    host = Host("client", files={"a": "0"})
    there = connected(host, tmp_path)

    def change(was: str, wanted: str, file: str = "a") -> Change:
        do, undo = ((Command(("tee", file), "to try", value),) for value in (wanted, was))
        return Change(f"{file} to {wanted}", was, wanted, do, undo, variant=NAME)

    with pytest.raises(DutError, match="b to 1: tee b failed"), Temporary(there) as made:
        made.make(change("0", "1"))
        made.make(change("0", "1", "b"))
        made.make(change("1", "2"))
        host.refuses = ("b",)
    assert host.files["a"] == "0" and [one.change.what for one in there.journal.entries()] == ["b to 1"]
