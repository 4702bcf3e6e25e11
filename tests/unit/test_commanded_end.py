"""A tunnel's end that single commands make: which they are, what the journal knows of it, and that all goes again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from boxes import BoxTransport, Said

from trexbench.core.errors import DutError
from trexbench.dut.journal import FileJournal
from trexbench.session.dut import ConnectedDut
from trexbench.session.tcp.tunnels import CommandedEnd

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


class Guest:
    """It takes every command."""

    programs = ("ip", "wg", "nft")

    def __init__(self) -> None:
        self.fed: list[str] = []

    def run(self, argv: Sequence[str], input: str) -> Said:
        self.fed.append(input)
        return Said()


def connected(folder: Path, refuses: str = "") -> tuple[ConnectedDut, BoxTransport]:
    transport = BoxTransport(Guest(), "console of tbm-dut", {refuses: Said("", "no", 1)} if refuses else {})
    dut: Any = SimpleNamespace(identity=lambda: "boot-1")
    return ConnectedDut(dut, transport, FileJournal("guest", folder), dut), transport


def test_an_end_is_made_and_gone_and_its_keys_are_in_no_file(tmp_path: Path) -> None:
    there, transport = connected(tmp_path)
    with CommandedEnd(there, OPTIONS) as end:
        assert end.wait_up(0.0)["by"] == "the kernel" and not end.error
        end.require_up()
        made = [*transport.ran]
        assert len(there.journal.entries()) == 2
        assert not [path for path in tmp_path.rglob("*") if path.is_file() and "PRIVATE" in path.read_text()]
    assert made == [
        "ip link add name tbvpn1 type wireguard",
        "wg setconf tbvpn1 /proc/self/fd/0",
        "ip link set dev tbvpn1 mtu 1440 up",
        "ip address add 10.2.0.1 peer 10.2.0.2 dev tbvpn1",
        "nft -f -",
    ]
    fed = transport.box.fed  # type: ignore[attr-defined]
    assert "PrivateKey = PRIVATE" in fed[1] and 'ip saddr 10.2.0.2 oifname "eth3"' in fed[4]
    assert transport.ran[5:] == ["nft delete table ip trexbench_tunnel", "ip link del dev tbvpn1"]
    assert not there.journal.entries()


@pytest.mark.parametrize("refuses", ["ip link add", "wg", "nft -f"])
def test_a_guest_that_refuses_a_command_keeps_nothing(tmp_path: Path, refuses: str) -> None:
    there, transport = connected(tmp_path, refuses)
    with pytest.raises(DutError, match=f"{refuses}.* failed on console of tbm-dut"):
        CommandedEnd(there, OPTIONS)
    assert transport.ran[-1] == "ip link del dev tbvpn1" and not there.journal.entries()


def test_an_end_that_cannot_be_taken_away_hides_no_error_of_the_run(tmp_path: Path) -> None:
    there, _ = connected(tmp_path, "nft delete")
    with pytest.raises(DutError, match="the leg broke off"), CommandedEnd(there, OPTIONS):
        raise DutError("the leg broke off")
    with pytest.raises(DutError, match="nft delete"), CommandedEnd(there, OPTIONS):
        pass
