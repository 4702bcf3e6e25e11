"""fleet.yaml: what it says, what is wrong with it in words that help, and who would measure what."""

from __future__ import annotations

from pathlib import Path

import pytest

from trexbench.config.fleet import Fleet, find_fleet, read_fleet
from trexbench.core.errors import ConfigError
from trexbench.core.fleet.roster import assign_testers, make_roster

ROOT = Path(__file__).resolve().parents[2]
GOOD = """\
testers:
  - {name: t1, ports: [0, 1, 2, 3], speed: 10gbit}
  - {name: t2, ports: [0, 1]}
duts: [netgate-vpp, netgate-linux]
lease: 20s
links:
  - [t1:0, netgate-vpp:TenGigabitEthernet3/0/0]
  - [netgate-vpp:TenGigabitEthernet3/0/1, t1:1]
  - [t2:0, netgate-linux:enp3s0f0]
  - [t2:1, netgate-linux:enp3s0f1]
"""

SWITCHED = """\
testers:
  - {name: t1, ports: [0, 1]}
  - {name: t2, ports: [0, 1], speed: 10gbit}
duts: [netgate-vpp, netgate-linux]
switches:
  - name: sw1
    transport: {type: local}
    set: [vlan-set, '{port}', '{vlan}']
    unset: [vlan-unset, '{port}']
links:
  - [t1:0, sw1:p1]
  - [t1:1, sw1:p2]
  - [t2:0, sw1:p3]
  - [sw1:p4, t2:1]
  - [netgate-vpp:TenGigabitEthernet3/0/0, sw1:p5, 101]
  - [netgate-vpp:TenGigabitEthernet3/0/1, sw1:p6, 102]
  - [sw1:p7, netgate-linux:enp3s0f0, 103]
  - [netgate-linux:enp3s0f1, sw1:p8, 104]
"""


def fleet_in(tmp_path: Path, text: str) -> Fleet:
    path = tmp_path / "fleet.yaml"
    path.write_text(text)
    return read_fleet(path, ROOT / "dut_configs")


def test_everything_a_fleet_may_say(tmp_path: Path) -> None:
    fleet = fleet_in(tmp_path, GOOD)
    assert fleet.lease_s == 20.0 and [one.speed_bps for one in fleet.testers] == [1e10, None]
    assert fleet.paths == {("t1", "netgate-vpp"): (), ("t2", "netgate-linux"): ()}
    assert fleet.reach(["x", "netgate-linux"]) == {"t1": [], "t2": ["netgate-linux"]}


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("t1:0,", "t1:7,", ("fleet.yaml:7: links[0][0]", "t1 has no port 7", "0, 1, 2, 3")),
        ("enp3s0f1", "eth9", ("fleet.yaml:10:", "no port eth9", "enp3s0f0")),
        ("[t2:0, n", "[t9:0, n", ("fleet.yaml:9:", "nothing is called t9", "t1, t2")),
        ("[t2:1, n", "[t2:0, n", ("fleet.yaml:10:", "t2:0 has a link on line 9", "remove one")),
        ("speed: 10gbit", "speed: 25gbit", ("fleet.yaml:7:", "25.00 Gbit/s of t1", "10.00 Gbit/s of netgate-vpp")),
        ("t2:1, netgate-linux:enp3s0f1", "t2:1, t2:0", ("fleet.yaml:10:", "a loop: both ends are at t2")),
        ("t2:1, netgate-linux:enp3s0f1", "t2:1, t1:2", ("fleet.yaml:10:", "joins two testers")),
        (
            "  - [t2:1, netgate-linux:enp3s0f1]\n", "",
            ("fleet.yaml:4: duts[1]", "nobody reaches netgate-linux", "enp3s0f0, enp3s0f1"),
        ),
        ("netgate-linux]", "netgate-linux, gl-ar150]", ("fleet.yaml:4: duts[2]", "gl-ar150", "no ports")),
        ("name: t2", "name: netgate-vpp", ("fleet.yaml:7:", "a tester and a DUT", "rename")),
        ("lease: 20s", "lease: 1s", ("fleet.yaml:5: lease", "2s to 10min")),
        ("[t2:0, n", "[t2, n", ("fleet.yaml:9:", "not an end of a link", "t1:0")),
        ("p5, 101]", "p5, 4095]", ("fleet.yaml:15: links[4][2]", "from 1 to 4094")),
        ("p6, 102]", "p6, 101]", ("fleet.yaml:16:", "VLAN 101 of sw1 is used on line 15", "a VLAN of its own")),
        ("p5, 101]", "p5]", ("fleet.yaml:15:", "no VLAN", "sw1:p5, 101]")),
        ("[t1:0, sw1:p1]", "[t1:0, sw1:p1, 7]", ("fleet.yaml:11:", "VLAN 7", "remove it")),
        ("type: local", "type: console", ("fleet.yaml:7:", "a switch is reached by netns, local, ssh, cli")),
        ("'{vlan}'", "'7'", ("fleet.yaml:8:", "no command has {vlan}")),
        ("[vlan-unset, '{port}']", "'vlan-unset {port}'", ("fleet.yaml:9:", "a line, which transport local")),
        ("set: [", "check: [show, '{port}']\n    set: [", ("fleet.yaml:6:", "sw1 has one of check and matches")),
        ("set: [", "check: [show]\n    matches: '{vlan}'\n    set: [", ("fleet.yaml:8:", "no command has {port}")),
        ("set: [", "check: [show, '{port}']\n    matches: up\n    set: [", ("fleet.yaml:9:", "it has no {vlan}")),
        ("name: sw1", "name: t1", ("fleet.yaml:11:", "t1 is a tester and a switch", "rename the tester")),
        ("[t1:0, sw1:p1]", "[t1:0, sw1:p1, 7, 8]", ("fleet.yaml:11:", "4 ends")),
    ],
)  # fmt: skip
def test_what_is_wrong_names_file_line_and_remedy(
    tmp_path: Path, before: str, after: str, words: tuple[str, ...]
) -> None:
    text = GOOD if before in GOOD else SWITCHED
    assert before in text
    with pytest.raises(ConfigError) as raised:
        fleet_in(tmp_path, text.replace(before, after, 1))
    line = str(raised.value)
    assert line.count("\n") == 0 and all(word in line for word in words), line


def test_the_longest_duts_are_given_first_and_each_to_one_tester() -> None:
    cells = [("a", 10.0), ("b", 30.0), ("a", 10.0), ("c", 5.0), ("x", 1.0)]
    roster = make_roster(cells, assign_testers(cells, {"t1": ["a", "b", "c"], "t2": ["a", "c"]}))
    assert [turn.tester for turn in roster.turns] == ["t2", "t1", "t2", "t2", None]
    assert [turn.end_s for turn in roster.turns] == [10.0, 30.0, 20.0, 25.0, 0.0] and roster.length_s == 30.0
    assert roster.turns[4].reason == "no tester has links to all ports of x"


@pytest.mark.parametrize("text", ["", " ", "local", "local:" + "9" * 5000, "nosuch.yaml"])
def test_what_is_no_fleet_names_a_form_that_exists(text: str) -> None:
    with pytest.raises(ConfigError, match=r"local:3") as raised:
        find_fleet(text, None, sim=True)
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 120


def test_an_address_is_named_in_a_fleets_file() -> None:
    with pytest.raises(ConfigError, match=r"'tls://h:8786' is an address: name it as scheduler: in a fleet\.yaml"):
        find_fleet("tls://h:8786", None, sim=False)


@pytest.mark.parametrize(
    "wrong",
    ["ws://127.0.0.1:1", "tls://h", "tcp://h:99999", "tcp://h:0", "tcp://a..b:99", f"tcp://{'a' * 64}:1", "tcp://:1"],
)
def test_what_is_no_schedulers_address_is_refused(wrong: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not a scheduler's address"):
        fleet_in(tmp_path, f"{GOOD}scheduler: {wrong}\n")
    assert fleet_in(tmp_path, f"{GOOD}scheduler: tcp://[::1]:65535\n").scheduler == "tcp://[::1]:65535"


def test_a_link_to_another_port_than_the_config_names_is_refused(tmp_path: Path) -> None:
    text = GOOD.replace("t2:0,", "t2:x,").replace("t2:1,", "t2:0,").replace("t2:x,", "t2:1,")
    with pytest.raises(ConfigError, match=r"port 1 of t2, where .*netgate-linux\.yaml has tester: 0 for enp3s0f0"):
        fleet_in(tmp_path, text)


def test_a_switch_joins_all_testers_on_it_to_all_duts_on_it(tmp_path: Path) -> None:
    fleet = fleet_in(tmp_path, SWITCHED)
    both = ["netgate-vpp", "netgate-linux"]
    assert fleet.reach(both) == {"t1": both, "t2": both}
    assert list(map(str, fleet.joins("t2", "netgate-linux"))) == [
        "t2:0 - p3, VLAN 103, p7 - netgate-linux:enp3s0f0",
        "t2:1 - p4, VLAN 104, p8 - netgate-linux:enp3s0f1",
    ]
    apart = fleet_in(tmp_path, SWITCHED.replace("speed: 10gbit", "speed: 25gbit"))
    assert apart.reach(both) == {"t1": both, "t2": []}


def test_a_dut_may_be_wired_to_a_tester_and_to_a_switch(tmp_path: Path) -> None:
    text = SWITCHED.replace("t1:1, sw1:p2", "t1:1, netgate-vpp:TenGigabitEthernet3/0/1")
    fleet = fleet_in(tmp_path, text.replace("  - [netgate-vpp:TenGigabitEthernet3/0/1, sw1:p6, 102]\n", ""))
    assert fleet.reach(["netgate-vpp"]) == {"t1": ["netgate-vpp"], "t2": []}
    assert [one.vlan for one in fleet.joins("t1", "netgate-vpp")] == [101]


def test_a_trunk_between_switches_is_refused(tmp_path: Path) -> None:
    """The second switch is as the first."""
    first, rest = SWITCHED.split("links:\n")
    second = first.partition("switches:\n")[2].replace("sw1", "sw2")
    with pytest.raises(ConfigError, match=r"fleet.yaml:19: links\[4\]: joins two switches: trunks are not supported"):
        fleet_in(tmp_path, f"{first}{second}links:\n{rest.replace('netgate-vpp:TenGigabitEthernet3/0/0', 'sw2:p1')}")


def test_a_switch_cannot_join_ports_of_two_speeds(tmp_path: Path) -> None:
    text = SWITCHED.replace("speed: 10gbit", "speed: 25gbit").replace("t1, ports: [0, 1]", "t1, ports: [2, 3]")
    text = text.replace("t1:0", "t1:2").replace("t1:1", "t1:3")
    with pytest.raises(ConfigError, match=r"nobody reaches netgate-vpp: speeds differ: 25\.00 Gbit/s of t2"):
        fleet_in(tmp_path, text)
