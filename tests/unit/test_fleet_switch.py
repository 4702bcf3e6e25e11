"""Ports of a switch that joins testers to DUTs: set for a cell, undone after, by whoever comes next after a death."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from drives import Noted
from fake_switch import section_of, vlans_of

from trexbench.config.endpoints import TransportConfig
from trexbench.config.fleet import Fleet, read_fleet
from trexbench.core.errors import DutError
from trexbench.core.fleet.lease import LeaseRecord
from trexbench.fleet.guard import LeaseGuard
from trexbench.fleet.leases import Lease, LeaseFolder, leased
from trexbench.fleet.sign import SIGN, sign_at, sign_words
from trexbench.fleet.switches import PORTS, PortTaker, _set, joined_ports
from trexbench.transport import Completed, Transport, open_transport

ROOT = Path(__file__).resolve().parents[2]
DUT = "netgate-vpp"
OF_T1 = {"p1": 101, "p5": 101, "p2": 102, "p6": 102}
OF_T2 = {"p3": 101, "p5": 101, "p4": 102, "p6": 102}
LINKS = """\
testers:
  - {name: t1, ports: [0, 1]}
  - {name: t2, ports: [0, 1]}
duts: [netgate-vpp, netgate-linux]
links:
  - [t1:0, sw1:p1]
  - [t1:1, sw1:p2]
  - [t2:0, sw1:p3]
  - [t2:1, sw1:p4]
  - [netgate-vpp:TenGigabitEthernet3/0/0, sw1:p5, 101]
  - [netgate-vpp:TenGigabitEthernet3/0/1, sw1:p6, 102]
  - [netgate-linux:enp3s0f0, sw1:p7, 103]
  - [netgate-linux:enp3s0f1, sw1:p8, 104]
"""


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    path = tmp_path / "fleet.yaml"
    path.write_text(LINKS + section_of(tmp_path / "table"))
    return read_fleet(path, ROOT / "dut_configs")


@contextmanager
def joined(fleet: Fleet, tester: str, folder: Path, dut: str = DUT) -> Iterator[Lease]:
    below, guard = folder / ".fleet", Noted()
    taker = PortTaker(tester, "word", 60.0, below, guard)
    with (
        leased(LeaseFolder(below / "leases", dut), f"{tester}-word", 60.0, guard) as held,
        joined_ports(fleet, dut, held, taker),
    ):
        yield held


def journals(folder: Path) -> list[str]:
    return sorted(path.stem for path in (folder / ".fleet" / "switches").glob("sw1/changes/*.json"))


def die(fleet: Fleet, tester: str, folder: Path) -> None:
    """Leave what a tester leaves that is killed while it measures."""
    for join in fleet.joins(tester, DUT):
        _set(join, open_transport(TransportConfig("local")), folder / ".fleet")
    assert LeaseFolder(folder / ".fleet" / PORTS, tester).append(LeaseRecord(1, f"{tester}-dead", 0.01))


def test_ports_are_joined_while_a_cell_is_measured(fleet: Fleet, tmp_path: Path) -> None:
    table = tmp_path / "table"
    for tester, ports in (("t1", OF_T1), ("t2", OF_T2)):
        with joined(fleet, tester, tmp_path):
            assert vlans_of(table) == ports and journals(tmp_path) == [DUT, tester]
            assert LeaseFolder(tmp_path / ".fleet" / PORTS, tester).latest() is not None
        assert vlans_of(table) == {} and journals(tmp_path) == []


def test_two_testers_use_a_switch_at_once(fleet: Fleet, tmp_path: Path) -> None:
    with joined(fleet, "t1", tmp_path), joined(fleet, "t2", tmp_path, "netgate-linux"):
        assert vlans_of(tmp_path / "table") == OF_T1 | {"p3": 103, "p7": 103, "p4": 104, "p8": 104}
    assert vlans_of(tmp_path / "table") == {}


@pytest.mark.parametrize(("tester", "ports"), [("t1", OF_T1), ("t2", OF_T2)])
def test_what_a_dead_tester_has_set_is_undone_by_the_next_that_leases_the_dut(
    fleet: Fleet, tmp_path: Path, tester: str, ports: dict[str, int]
) -> None:
    die(fleet, "t1", tmp_path)
    assert vlans_of(tmp_path / "table") == OF_T1 and journals(tmp_path) == [DUT, "t1"]
    with joined(fleet, tester, tmp_path):
        assert vlans_of(tmp_path / "table") == ports
    assert vlans_of(tmp_path / "table") == {} and journals(tmp_path) == []


def test_a_tester_that_came_back_undoes_its_ports_before_it_uses_them_elsewhere(fleet: Fleet, tmp_path: Path) -> None:
    die(fleet, "t1", tmp_path)
    with joined(fleet, "t1", tmp_path, "netgate-linux"):
        assert vlans_of(tmp_path / "table") == {"p5": 101, "p6": 102, "p1": 103, "p7": 103, "p2": 104, "p8": 104}


def test_a_port_that_refuses_fails_the_cell_and_the_others_are_undone(fleet: Fleet, tmp_path: Path) -> None:
    (tmp_path / "table.broken").write_text("p6")
    with pytest.raises(DutError, match="% port p6 refuses"), joined(fleet, "t1", tmp_path):
        raise AssertionError("nothing can be measured")
    assert vlans_of(tmp_path / "table") == {} and journals(tmp_path) == [DUT]
    with pytest.raises(DutError, match="not everything could be reverted: sw1 port p6"), joined(fleet, "t2", tmp_path):
        raise AssertionError("it stays marked")
    (tmp_path / "table.broken").unlink()
    with joined(fleet, "t2", tmp_path):
        assert vlans_of(tmp_path / "table") == OF_T2


def test_a_port_that_is_not_where_it_was_put_fails_the_cell(fleet: Fleet, tmp_path: Path) -> None:
    (tmp_path / "table.deaf").write_text("p6")
    what = r"sw1 port p6 is not in VLAN 102: .* show p6 prints no /\^p6 VLAN 102\$/ \(p6 VLAN 1\)"
    with pytest.raises(DutError, match=what), joined(fleet, "t1", tmp_path):
        raise AssertionError("nothing can be measured")
    assert vlans_of(tmp_path / "table") == {}


def test_what_cannot_be_undone_is_said_and_kept(
    fleet: Fleet, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with joined(fleet, "t1", tmp_path):
        (tmp_path / "table.broken").write_text("p1")
    assert "tester t1: not everything could be reverted: sw1 port p1" in capfd.readouterr().err
    assert journals(tmp_path) == ["t1"] and vlans_of(tmp_path / "table") == {"p1": 101}


def test_ports_are_left_to_whoever_has_the_dut_by_now(fleet: Fleet, tmp_path: Path) -> None:
    with joined(fleet, "t1", tmp_path) as held:
        held._lost = True
    assert vlans_of(tmp_path / "table") == OF_T1 and journals(tmp_path) == [DUT, "t1"]


def test_a_guard_of_several_leases_kills_at_the_earliest() -> None:
    class Told(LeaseGuard):
        def send_time(self, when_s: float | None) -> None:
            told.append(when_s)

    told, guard = list[float | None](), Told()
    for lease, when_s in ((1, 20.0), (2, 10.0), (1, 30.0), (2, 40.0), (1, None), (2, None)):
        guard.kill_at(when_s, lease)
    assert told == [20.0, 10.0, 10.0, 30.0, 40.0, None]


@dataclass
class Host:
    """A transport that notes commands, of which all from the ``fails``-th on cannot be run."""

    ran: list[tuple[tuple[str, ...], str | None]] = field(default_factory=list)
    fails: int = 99
    place = "r1"

    def run(self, argv: tuple[str, ...], _timeout_s: float, input: str | None = None) -> Completed:
        if len(self.ran) >= self.fails:
            raise DutError("r1 is not reached")
        self.ran.append((tuple(argv), input))
        return Completed(tuple(argv), 0, "", "")

    @contextmanager
    def reach(self, _way: TransportConfig) -> Iterator[Transport]:
        yield self  # type: ignore[misc]


def test_whoever_logs_in_at_the_dut_is_shown_who_measures_it() -> None:
    host, text = Host(), sign_words("t1", "2026-11-24-lab", "r1 64b uni", 600.0)
    assert text.startswith("trexbench measures this machine until about 2") and "tester t1, night 2026-11-24" in text
    for mine, last in ((False, (("tee", SIGN), text)), (True, (("rm", "-f", SIGN), None))):
        with sign_at(TransportConfig("ssh", host="r1"), text, lambda mine=mine: mine, host.reach):  # type: ignore[misc]
            assert host.ran[-1] == (("tee", SIGN), text)
        assert host.ran[-1] == last, "whoever lost the lease leaves the next tester's sign"


@pytest.mark.parametrize("fails", [0, 1, 2, 3])
def test_no_cell_fails_for_its_sign(fails: int) -> None:
    host, done = Host(fails=fails), list[int]()
    with sign_at(TransportConfig("ssh", host="r1"), "text", lambda: True, host.reach):
        done.append(1)
    assert done == [1] and len(host.ran) == fails


def test_a_namespace_and_a_prompt_get_no_sign() -> None:
    host = Host()
    for kind in ("netns", "cli", "none"):
        with sign_at(TransportConfig(kind), "text", lambda: True, host.reach):
            pass
    assert host.ran == []
