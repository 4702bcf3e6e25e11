"""A tunnel's end that single commands make: which they are, what the journal knows of it, and that all goes again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from trexbench.core.errors import DutError
from trexbench.dut import Change
from trexbench.dut.journal import FileJournal
from trexbench.session.dut import ConnectedDut
from trexbench.session.tcp.tunnels import CommandedEnd
from trexbench.transport import Completed

pytestmark = pytest.mark.portable

OPTIONS = {
    "name": "tbvpn1",
    "mtu": 1440,
    "own": "10.2.0.1",
    "peer": "10.2.0.2",
    "local": "100.66.1.1",
    "remote": "100.66.1.2",
    "port": 51941,
    "masquerade": "eth3",
    "keys": {"key": "PRIVATE", "peer": "PUBLIC"},
}


@dataclass
class Guest:
    """A transport that takes every command but those that begin with this word."""

    refuses: str = ""
    typed: list[str] = field(default_factory=list)
    fed: list[str] = field(default_factory=list)
    place: str = "console of tbm-dut"

    def run(self, argv: Sequence[str], timeout_s: float = 1.0, stdin: str | None = None) -> Completed:
        self.typed.append(" ".join(argv))
        self.fed.append(stdin or "")
        failed = bool(self.refuses) and self.typed[-1].startswith(self.refuses)
        return Completed(tuple(argv), int(failed), "", "no" if failed else "")

    def identity(self) -> str:
        return "boot-1"

    def plan(self) -> list[Change]:
        return []


def connected(guest: Any, folder: Path) -> ConnectedDut:
    return ConnectedDut(guest, guest, FileJournal("guest", folder), guest)


def test_an_end_is_made_and_gone_and_its_keys_are_in_no_file(tmp_path: Path) -> None:
    guest = Guest()
    there = connected(guest, tmp_path)
    with CommandedEnd(there, OPTIONS) as end:
        assert end.wait_up(0.0)["by"] == "the kernel" and not end.error
        end.require_up()
        made = [*guest.typed]
        assert len(there.journal.entries()) == 2
        assert not [path for path in tmp_path.rglob("*") if path.is_file() and "PRIVATE" in path.read_text()]
    assert made == [
        "ip link add name tbvpn1 type wireguard",
        "wg setconf tbvpn1 /proc/self/fd/0",
        "ip link set dev tbvpn1 mtu 1440 up",
        "ip address add 10.2.0.1 peer 10.2.0.2 dev tbvpn1",
        "nft -f -",
    ]
    assert "PrivateKey = PRIVATE" in guest.fed[1] and 'ip saddr 10.2.0.2 oifname "eth3"' in guest.fed[4]
    assert guest.typed[5:] == ["nft delete table ip trexbench_tunnel", "ip link del dev tbvpn1"]
    assert not there.journal.entries()


@pytest.mark.parametrize("refuses", ["ip link add", "wg", "nft -f"])
def test_a_guest_that_refuses_a_command_keeps_nothing(tmp_path: Path, refuses: str) -> None:
    guest = Guest(refuses)
    there = connected(guest, tmp_path)
    with pytest.raises(DutError, match=f"{refuses}.* failed on console of tbm-dut"):
        CommandedEnd(there, OPTIONS)
    assert guest.typed[-1] == "ip link del dev tbvpn1" and not there.journal.entries()


def test_an_end_that_cannot_be_taken_away_hides_no_error_of_the_run(tmp_path: Path) -> None:
    guest = Guest("nft delete")
    with pytest.raises(DutError, match="the leg broke off"), CommandedEnd(connected(guest, tmp_path), OPTIONS):
        raise DutError("the leg broke off")
    with pytest.raises(DutError, match="nft delete"), CommandedEnd(connected(guest, tmp_path), OPTIONS):
        pass
