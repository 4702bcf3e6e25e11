"""A new DUT's config: whatever is known or not, it can be read, and has what was told."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trexbench.config.draft import UNKNOWN, Draft
from trexbench.config.model import DRIVERS
from trexbench.core.errors import BenchError, ConfigError
from trexbench.dut import driver_of
from trexbench.dut.settings import ListedInterface, Listing
from trexbench.session.draft import filled

FILE = Path("mine.yaml")
FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("ports", [(0, 1), (2, 3)])
def test_a_draft_of_nothing_can_be_read(driver: str, ports: tuple[int, ...]) -> None:
    config = Draft(driver, tester_ports=ports).read(FILE)
    assert (config.driver, config.tester_ports, config.name) == (driver, ports, "mine")
    assert (UNKNOWN in Draft(driver).text()) == bool(DRIVERS[driver].transports)


def test_what_was_told_is_in_it() -> None:
    draft = Draft(
        "linux",
        "router.example.net",
        "root",
        interfaces=("enp3s0f0", "enp3s0f1"),
        there=("eno1", "enp3s0f0", "enp3s0f1"),
        macs={0: "b2:01:a9:25:52:63"},
        speed="25gbit",
        queues=4,
        server="trex1.lab",
    )
    config = draft.read(FILE)
    assert (config.transport.host, config.transport.user) == ("router.example.net", "root")
    assert [port.interface for port in config.ports] == ["enp3s0f0", "enp3s0f1"]
    assert [port.neighbour.mac for port in config.ports] == ["b2:01:a9:25:52:63", None]
    assert (config.speed_bps, config.rx_queues, config.generator.server) == (25e9, (1, 2), "trex1.lab")
    assert "# the DUT has: eno1, enp3s0f0, enp3s0f1" in draft.text()
    assert [str(route.to) for route in config.routes] == ["16.0.0.0/16", "48.0.0.0/16"]


@pytest.mark.parametrize("ports", [(0, 1), (2, 3), (0, 1, 2, 3)])
def test_each_port_has_a_route_to_where_its_frames_come_from(ports: tuple[int, ...]) -> None:
    config = Draft("linux", "r1", tester_ports=ports).read(FILE)
    assert [route.to.network_address.packed[:2] for route in config.routes] == [
        bytes([48 if port % 2 else 16, port // 2]) for port in ports
    ]
    both = Draft("linux", "r1", tester_ports=ports, ipv6=True).read(FILE)
    assert both.versions == (4, 6) and len(both.routes) == 2 * len(ports)
    nets = {f"2001:2:{port // 2}:{48 if port % 2 else 16}::/64" for port in ports}
    assert {str(route.to) for route in both.routes} >= nets


def test_an_interface_with_an_address_is_not_taken_for_the_test() -> None:
    draft = Draft("linux", "r1", there=("eno1", "enp3s0f0", "enp3s0f1"), free=("enp3s0f0", "enp3s0f1"))
    assert [port.interface for port in draft.read(FILE).ports] == ["enp3s0f0", "enp3s0f1"]
    assert "# the DUT has: eno1, enp3s0f0, enp3s0f1; with an address: eno1" in draft.text()


@given(st.text(max_size=20), st.text(max_size=20))
def test_text_of_any_kind_is_a_value_or_is_refused(host: str, interface: str) -> None:
    draft = Draft("linux", host, interfaces=(interface, "eth1"))
    try:
        config = draft.read(FILE)
    except ConfigError:
        return
    assert config.transport.host == host.strip() and config.ports[0].interface == interface.strip()


def test_a_dut_that_does_not_answer_leaves_the_draft_and_says_why() -> None:
    def fails(draft: Draft) -> Draft:
        raise BenchError("no way there", "look")

    said: list[str] = []
    assert filled(Draft("vpp"), fails, said.append) == Draft("vpp") and said == ["not filled in: no way there: look"]


def listing_of(driver: str) -> Listing:
    listing = driver_of(driver).listing
    assert listing is not None
    return listing


def test_linux_interfaces_are_those_of_hardware() -> None:
    listed = """[{"ifname": "lo", "address": "00:00:00:00:00:00"}, {"ifname": "eno1", "address": "02:00:00:00:00:01",
    "addr_info": [{"family": "inet", "local": "192.0.2.7", "prefixlen": 24}]}, {"ifname": "eno2", "address":
    "02:00:00:00:00:03"}, {"ifname": "br0", "address": "02:00:00:00:00:02", "linkinfo": {"info_kind": "bridge"}}]"""
    assert listing_of("linux").read(listed) == [ListedInterface("eno1", in_use=True), ListedInterface("eno2")]


def test_vpp_tells_how_many_queues_a_device_can_have() -> None:
    text = (FIXTURES / "vpp-dpdk" / "hardware.txt").read_text()
    assert {one.queues for one in listing_of("vpp").read(text)} == {64}
