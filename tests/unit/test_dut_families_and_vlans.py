"""IPv6 beside IPv4 or alone, and VLANs, by every driver on its box: applied, read back, applied again, taken back."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from box_pfsense import PfsenseBox
from box_vpp import VppBox
from boxes import BoxTransport, of_family

from trexbench.config.lookup import load_dut
from trexbench.config.model import DutConfig
from trexbench.config.settings import VppSettings
from trexbench.core.errors import DutError
from trexbench.dut import Wanted
from trexbench.dut.apply import apply, revert
from trexbench.dut.drivers import plan_from_nothing
from trexbench.dut.freebsd.driver import PfsenseDut
from trexbench.dut.journal import FileJournal
from trexbench.dut.vpp.driver import VppDut

CONFIGS = Path(__file__).parents[2] / "dut_configs"
LAB = load_dut(str(CONFIGS / "lab-linux.yaml"))
MACS = {0: "f2:1f:ed:c6:5d:f9", 1: "3a:b2:9c:72:7d:32"}
NICS = ("TenGigabitEthernet3/0/0", "TenGigabitEthernet3/0/1")
VLANS = {"untagged": ((), ()), "VLAN": ((100,), (200,)), "two tags": ((100, 10), (100, 20))}


def config_of(driver: str, vlans: tuple[tuple[int, ...], ...]) -> DutConfig:
    """The shipped config of this driver's Netgate with the lab's two families, behind VLANs."""
    config = load_dut(str(CONFIGS / f"netgate-{driver}.yaml"))
    ports = tuple(
        replace(port, addresses=lab.addresses, neighbour=lab.neighbour, vlan=vlan)
        for port, lab, vlan in zip(config.ports, LAB.ports, vlans, strict=True)
    )
    return replace(config, cables=ports, routes=LAB.routes, vpp=VppSettings(), rss=None)


def pfsense(config: DutConfig) -> tuple[Any, Any, Callable[[], object]]:
    box = PfsenseBox(release=14)
    transport = BoxTransport(box)
    return PfsenseDut(Wanted(config, MACS), transport, link_wait_s=0), transport, box.settings


def vpp(config: DutConfig) -> tuple[Any, Any, Callable[[], object]]:
    box = VppBox(nics=NICS)
    transport = BoxTransport(box)

    def state() -> object:
        cards = {name: card.up for name, card in box.cards.items()}
        addresses = {name: found for name, found in box.addresses.items() if found}
        return cards, addresses, dict(box.neighbours), copy.deepcopy(box.routes)

    return VppDut(Wanted(config, MACS), transport, link_wait_s=0), transport, state


@pytest.mark.parametrize("versions", [(4, 6), (6,)], ids=["dual stack", "IPv6 alone"])
@pytest.mark.parametrize("vlans", VLANS.values(), ids=VLANS)
@pytest.mark.parametrize(("driver", "made"), [("pfsense", pfsense), ("vpp", vpp)], ids=["pfsense", "vpp"])
def test_applied_once_it_is_as_wanted_and_goes_again(
    tmp_path: Path, driver: str, made: Callable[..., Any], vlans: Any, versions: tuple[int, ...]
) -> None:
    config = config_of(driver, vlans)
    config = config if len(versions) == 2 else of_family(config, 6)
    dut, transport, state = made(config)
    before = copy.deepcopy(state())
    journal = FileJournal(config.name, tmp_path)
    assert apply(dut, transport, journal)
    assert [str(one) for one in dut.verify().mismatches] == []
    assert not apply(dut, transport, journal), "applied twice, nothing changes"
    shown = str(state())
    assert "2001:2:0:1::1/64" in shown and ("100.65.1.1/24" in shown) == (4 in versions)
    revert(dut, transport, journal)
    assert state() == before


@pytest.mark.parametrize("vlans", VLANS.values(), ids=VLANS)
def test_ipv6_is_switched_on_where_freebsd_drops_it(tmp_path: Path, vlans: Any) -> None:
    """sys/netinet6/ip6_input.c: with ND6_IFF_IFDISABLED all of it goes, and addresses and routes look right."""
    config = config_of("pfsense", vlans)
    dut, transport, state = pfsense(config)
    orderly, new = transport.box.run, []

    def run(argv: Any, input: str) -> Any:
        said = orderly(argv, input)
        if argv[2:3] == ("create",):  # devd has rc do it for any that is new
            new.append(argv[1])
            transport.box.nics[argv[1]].ipv6_off = True
        return said

    transport.box.run = run
    for name in ("ix0", "ix1"):
        transport.box.nics[name].ipv6_off = True
    before = copy.deepcopy(state())
    journal = FileJournal(config.name, tmp_path)
    apply(dut, transport, journal)
    routed = [dut._wanted.routed(port) for port in config.ports]
    assert not any(transport.box.nics[name].ipv6_off for name in routed) and dut.verify().mismatches == ()
    assert bool(new) == any(vlans) and not apply(dut, transport, journal)
    transport.box.nics[routed[0]].ipv6_off = True
    assert [str(one) for one in dut.verify().mismatches] == [f"IPv6 of {routed[0]}: wanted on, found off"]
    transport.box.nics[routed[0]].ipv6_off = False
    revert(dut, transport, journal)
    assert state() == before


def test_an_address_that_somebody_else_has_is_none(tmp_path: Path) -> None:
    config = config_of("pfsense", ((), ()))
    dut, transport, _ = pfsense(config)
    apply(dut, transport, FileJournal(config.name, tmp_path))
    transport.box.nics["ix0"].duplicated = "2001:2:0:1::1"
    wanted = "address of ix0: wanted 2001:2:0:1::1/64, found 2001:2:0:1::1/64 duplicated"
    assert [str(one) for one in dut.verify().mismatches] == [wanted]


def test_a_published_neighbour_of_ipv6_is_published_again(tmp_path: Path) -> None:
    """usr.sbin/ndp/ndp.c: the word is proxy, and others are skipped; its flags are ``Rp``."""
    config = config_of("pfsense", ((), ()))
    dut, transport, _ = pfsense(config)
    other = str(next(one for one in config.ports[0].neighbour.addresses if one.version == 6))
    transport.box.nics["ix0"].addresses = [str(one) for one in config.ports[0].addresses]
    transport.box.nics["ix0"].up = True
    transport.box.arp_table[other] = ("02:00:00:00:00:01", "ix0", True, True)
    journal = FileJournal(config.name, tmp_path)
    apply(dut, transport, journal)
    assert transport.box.arp_table[other][3] is False
    revert(dut, transport, journal)
    assert transport.box.arp_table[other] == ("02:00:00:00:00:01", "ix0", True, True)


def test_another_vlan_of_that_name_is_in_the_way(tmp_path: Path) -> None:
    config = config_of("pfsense", ((100,), (200,)))
    dut, transport, _ = pfsense(config)
    transport.run(("ifconfig", "vlan4100", "create", "vlan", "7", "vlandev", "ix0", "up"), 1)
    with pytest.raises(DutError, match=r"vlan4100 is there, but not as VLAN 100 \(802.1Q\) of ix0: remove it by hand"):
        dut.plan()


def test_linux_makes_one_interface_for_each_tag() -> None:
    plan = plan_from_nothing(Wanted(config_of("linux", ((100,), (100, 200))), MACS))
    made = [" ".join(command.argv) for change in plan for command in change.do if "vlan" in command.argv]
    assert made == [
        "ip link add link enp3s0f0 name tb0.100 type vlan protocol 802.1Q id 100",
        "ip link add link enp3s0f1 name tb1.100 type vlan protocol 802.1ad id 100",
        "ip link add link tb1.100 name tb1.100.200 type vlan protocol 802.1Q id 200",
    ]
    assert all(len(word) <= 15 for line in made for word in line.split() if word.startswith("tb"))
    undone = [" ".join(command.argv) for change in plan for command in change.undo if "del" in command.argv[2:3]]
    assert "ip link del tb1.100.200" in undone
