"""IPv6 and VLANs where a driver needs more than for IPv4: FreeBSD's interfaces, and those that Linux makes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from bench import LINUX, PFSENSE, VLANS, Bench, dual_stack
from box_linux import LinuxBox
from box_pfsense import PfsenseBox

from trexbench.core.errors import DutError


def pfsense(folder: Path, vlans: Any = ((), ())) -> Bench:
    return Bench(folder, PfsenseBox(release=14), dual_stack(PFSENSE, vlans))


@pytest.mark.parametrize("vlans", VLANS.values(), ids=VLANS)
def test_ipv6_is_switched_on_where_freebsd_drops_it(tmp_path: Path, vlans: Any) -> None:
    """sys/netinet6/ip6_input.c: with ND6_IFF_IFDISABLED all of it goes, and addresses and routes look right."""
    bench = pfsense(tmp_path, vlans)
    box, orderly, new = bench.box, bench.box.run, []

    def run(argv: Any, input: str) -> Any:
        said = orderly(argv, input)
        if argv[2:3] == ("create",):  # devd has rc do it for any that is new
            new.append(argv[1])
            box.nics[argv[1]].ipv6_off = True
        return said

    box.run = run  # type: ignore[method-assign]
    for name in ("ix0", "ix1"):
        box.nics[name].ipv6_off = True
    before = box.settings()
    bench.apply()
    routed = [bench.dut._wanted.routed(port) for port in bench.config.ports]
    assert not any(box.nics[name].ipv6_off for name in routed) and bench.wrong() == []
    assert bool(new) == any(vlans) and not bench.apply()
    box.nics[routed[0]].ipv6_off = True
    assert bench.wrong() == [f"IPv6 of {routed[0]}: wanted on, found off"]
    box.nics[routed[0]].ipv6_off = False
    bench.revert()
    assert box.settings() == before


def test_an_address_that_somebody_else_has_is_none(tmp_path: Path) -> None:
    bench = pfsense(tmp_path)
    bench.apply()
    bench.box.nics["ix0"].duplicated = "2001:2:0:1::1"
    assert bench.wrong() == ["address of ix0: wanted 2001:2:0:1::1/64, found 2001:2:0:1::1/64 duplicated"]


def test_a_published_neighbour_of_ipv6_is_published_again(tmp_path: Path) -> None:
    """usr.sbin/ndp/ndp.c: the word is proxy, and others are skipped; its flags are ``Rp``."""
    bench = pfsense(tmp_path)
    port, box = bench.config.ports[0], bench.box
    other = str(next(one for one in port.neighbour.addresses if one.version == 6))
    box.nics["ix0"].addresses = [str(one) for one in port.addresses]
    box.nics["ix0"].up = True
    box.arp_table[other] = ("02:00:00:00:00:01", "ix0", True, True)
    bench.apply()
    assert box.arp_table[other][3] is False
    bench.revert()
    assert box.arp_table[other] == ("02:00:00:00:00:01", "ix0", True, True)


def test_another_vlan_of_that_name_is_in_the_way(tmp_path: Path) -> None:
    bench = pfsense(tmp_path, VLANS["VLAN"])
    bench.transport.run(("ifconfig", "vlan4100", "create", "vlan", "7", "vlandev", "ix0", "up"), 1)
    with pytest.raises(DutError, match=r"vlan4100 exists, but not as VLAN 100 \(802.1Q\) of ix0: remove it by hand"):
        bench.dut.plan()


def test_linux_makes_one_interface_for_each_tag(tmp_path: Path) -> None:
    plan = Bench(tmp_path, LinuxBox(), dual_stack(LINUX, ((100,), (100, 200)))).dut.plan()
    made = [" ".join(command.argv) for change in plan for command in change.do if "vlan" in command.argv]
    assert made == [
        "ip link add link enp3s0f0 name tb0.100 type vlan protocol 802.1Q id 100",
        "ip link add link enp3s0f1 name tb1.100 type vlan protocol 802.1ad id 100",
        "ip link add link tb1.100 name tb1.100.200 type vlan protocol 802.1Q id 200",
    ]
    assert all(len(word) <= 15 for line in made for word in line.split() if word.startswith("tb"))
    undone = [" ".join(command.argv) for change in plan for command in change.undo if "del" in command.argv[2:3]]
    assert "ip link del tb1.100.200" in undone
