"""A new DUT's config: whatever is known or not, it can be read, and has what was told."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trexbench.config.draft import UNKNOWN, Draft
from trexbench.config.model import DRIVERS
from trexbench.core.errors import BenchError, ConfigError
from trexbench.dut.listing import LISTINGS
from trexbench.session.draft import filled

FILE = Path("mine.yaml")


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
    assert (config.speed_bps, config.rx_queues, config.generator.server) == (25e9, (1, 4), "trex1.lab")
    assert "# the DUT has: eno1, enp3s0f0, enp3s0f1" in draft.text()
    assert [str(route.to) for route in config.routes] == ["16.0.0.0/8", "48.0.0.0/8"]


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


def test_linux_interfaces_are_those_of_hardware() -> None:
    listed = """[{"ifname": "lo", "address": "00:00:00:00:00:00"}, {"ifname": "eno1", "address": "02:00:00:00:00:01"},
    {"ifname": "br0", "address": "02:00:00:00:00:02", "linkinfo": {"info_kind": "bridge"}}]"""
    assert LISTINGS["linux"][1](listed) == ["eno1"]
