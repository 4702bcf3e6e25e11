"""Settings for a part of a test are undone at its end, and by the next run where this one was killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from bench import Bench
from box_linux import LinuxBox
from boxes import Said

from trexbench.core.errors import DutError
from trexbench.dut import Change, Command
from trexbench.dut.apply import apply
from trexbench.session.dut import ConnectedDut
from trexbench.session.temporary import BUFFER_SYSCTLS, NAME, Buffers, Temporary

pytestmark = pytest.mark.portable

FOUND = "4096 131072 33554432"


def path(name: str) -> str:
    return f"/proc/sys/{name.replace('.', '/')}"


def host(name: str, folder: Path) -> ConnectedDut:
    box = LinuxBox()
    box.files |= dict.fromkeys(map(path, BUFFER_SYSCTLS), FOUND.replace(" ", "\t"))
    bench = Bench(folder / name, box)
    bench.transport.place = name
    return ConnectedDut(bench.dut, bench.transport, bench.journal, bench.dut)


def files(there: Any) -> dict[str, str]:
    found: dict[str, str] = there.transport.box.files
    return found


def sizes(there: ConnectedDut) -> set[str]:
    return {" ".join(files(there)[path(name)].split()) for name in BUFFER_SYSCTLS}


def test_buffers_are_set_on_both_hosts_for_a_leg_and_restored(tmp_path: Path) -> None:
    hosts = [host("client", tmp_path), host("server", tmp_path)]
    with Buffers(hosts) as buffers:
        buffers.set(None)
        assert not list(tmp_path.iterdir()), "nothing to be restored"
        buffers.set(52_428_800)
        assert [sizes(one) for one in hosts] == [{"4096 131072 52428800"}] * 2
        buffers.set(65_536)
        assert sizes(hosts[0]) == {"4096 65536 65536"}, "no first size above the largest"
        buffers.set(None)
        assert sizes(hosts[1]) == {FOUND}
        buffers.set(1_000_000)
    for one in hosts:
        assert sizes(one) == {FOUND} and not one.journal.entries()


@pytest.mark.parametrize("said", [Said("deaf"), Said("", "Permission denied", 1)])
def test_a_host_that_does_not_take_them_is_named_and_all_others_are_restored(tmp_path: Path, said: Said) -> None:
    hosts = [host("client", tmp_path), host("server", tmp_path)]
    hosts[1].transport.fail[f"tee {path(BUFFER_SYSCTLS[1])}"] = said  # type: ignore[attr-defined]
    with pytest.raises(DutError, match=r"tcp_wmem.* on server"), Buffers(hosts) as buffers:
        buffers.set(1_000_000)
    assert sizes(hosts[0]) | sizes(hosts[1]) == {FOUND}


def test_what_a_killed_run_has_left_is_undone_before_the_next_one(tmp_path: Path) -> None:
    there = host("client", tmp_path)
    Buffers([there]).set(1_000_000)  # and then it is killed
    assert sizes(there) != {FOUND}
    apply(there.dut, there.transport, there.journal)
    assert sizes(there) == {FOUND} and not [one for one in there.journal.entries() if one.change.variant]


def test_changes_are_undone_the_last_one_first_and_one_that_fails_stays_in_the_journal(tmp_path: Path) -> None:
    there = host("client", tmp_path)
    files(there).update(a="0", b="0")

    def change(was: str, wanted: str, file: str = "a") -> Change:
        do, undo = ((Command(("tee", file), "to try", value),) for value in (wanted, was))
        return Change(f"{file} to {wanted}", was, wanted, do, undo, variant=NAME)

    with pytest.raises(DutError, match="b to 1: tee b failed"), Temporary(there) as made:
        made.make(change("0", "1"))
        made.make(change("0", "1", "b"))
        made.make(change("1", "2"))
        there.transport.fail["tee b"] = Said("", "busy", 1)  # type: ignore[attr-defined]
    assert files(there)["a"] == "0" and [one.change.what for one in there.journal.entries()] == ["b to 1"]
