"""VLAN tags of a port in its streams: bytes, field engine programs, sizes and words; and in configs."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from configs import errors_of, shipped
from effort import by_day
from test_generator_trex import BENCH, Bench

from trexbench.core.errors import ConfigError
from trexbench.core.load.headers import behind_tags, with_tags
from trexbench.core.load.profile import resolve_mode

LAB = shipped("lab-linux")
TAGS = {(100,): "81000064", (100, 200): "88a80064810000c8"}
TRIMMED = """
from trex_stl_lib.api import *

class Profile:
    def get_streams(self, direction=0, **kwargs):
        vm = STLVM()
        vm.var(name="size", min_value=64, max_value=90, size=2, op="inc")
        vm.trim(fv_name="size")
        packet = STLPktBuilder(pkt=Ether() / IP() / UDP() / ("x" * 60), vm=vm)
        return [STLStream(packet=packet, mode=STLTXCont(pps=1))]

def register():
    return Profile()
"""


@pytest.mark.parametrize(("vlans", "tags"), TAGS.items())
@pytest.mark.parametrize("mode", by_day(2, ["var2-64b", "var2-imix-v6", "1flow-64b-v6", "var2-1514b"]))
def test_every_frame_of_every_mode_is_the_same_behind_its_tags(mode: str, vlans: tuple[int, ...], tags: str) -> None:
    bench: Any = Bench()
    with bench.server, bench.connect() as generator:
        wanted = dict(resolve_mode(mode).tunables)
        plain = generator.load(BENCH, wanted, (0, 1))
        tagged = generator.load(BENCH, wanted, (0, 1), {0: vlans, 1: vlans})
        for port in (0, 1):
            for one, other in zip(plain[port].streams, tagged[port].streams, strict=True):
                assert other.frame_bytes == len(one.packet) + len(tags) // 2 + 4
                pairs = zip(islice(one.frames(), 300), islice(other.frames(), 300), strict=True)
                assert all(framed == with_tags(frame, vlans) for frame, framed in pairs)
                assert other.packet[12 : 12 + len(tags) // 2].hex() == tags
            assert tagged[port].flows == plain[port].flows and tagged[port].varied == plain[port].varied
            words = "VLAN 100" if len(vlans) == 1 else "VLAN 100 (802.1ad) and 200"
            assert tagged[port].mix.endswith(f" with {words}") and tagged[port].digest != plain[port].digest
            assert tagged[port].line_rate_pps(1e9) < plain[port].line_rate_pps(1e9)
        generator.start({0: 4800.0, 1: 4800.0}, 60)
        bench.clock.now_s += 1
        counted = generator.read().streams
        assert sum(counted[0].sent) == sum(counted[0].received[1]) == 4800, "counted by stream behind tags, too"


def test_a_profile_that_sets_its_frames_length_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trimmed.py"
    path.write_text(TRIMMED)
    bench: Any = Bench()
    told = pytest.raises(ConfigError, match=r"profile trimmed.py: .*trim_pkt_size.*VLAN tags")
    with bench.server, bench.connect() as generator, told:
        generator.load(path, {}, (0,), {0: (100,)})


def test_mac_addresses_stay_in_front_of_the_tags() -> None:
    program = [{"type": "write_flow_var", "name": "a", "pkt_offset": at} for at in (0, 11, 12, 26)]
    assert [one["pkt_offset"] for one in behind_tags(program, 2)] == [0, 11, 20, 34]


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        ("100", "[100, 200]", "2 VLAN tags, the first port has 1"),
        ("4095", "4095", "'4095' is not a whole number from 1 to 4094"),
        ("[1, 2, 3]", "[1, 2, 3]", "3 VLANs: write one, or the outer and the inner one"),
        ("[]", "[]", "0 VLANs"),
    ],
)
def test_vlans_that_cannot_be_are_refused(first: str, second: str, told: str) -> None:
    text = LAB
    for port, vlan in enumerate((first, second)):
        text = text.replace(f"  - tester: {port}\n", f"  - tester: {port}\n    vlan: {vlan}\n")
    assert any(told in one for one in errors_of(text))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('[100.65.1.1/24, "2001:2:0:1::1/64"]', "100.65.1.1/24", "2001:2:0:1::2 is not in 100.65.1.0/24"),
        ('"2001:2:0:1::1/64"]', '"2001:2:0:1::/64"]', "not a host's address"),
        ('[100.65.1.2, "2001:2:0:1::2"]', "100.65.1.2", "no address in 2001:2:0:1::/64"),
        ('via: "2001:2:0:1::2"', "via: 100.65.1.2", "an IPv6 network via an IPv4 address"),
        ('"2001:2:0:16::/64"', '"2001:2:0:16::1/64"', "write it as 2001:2:0:16::/64"),
        ('"2001:2:0:2::1/64"]', '"2001:2:0:1::9/64"]', "is not in"),
    ],
)
def test_ipv6_that_cannot_be_is_refused(old: str, new: str, told: str) -> None:
    assert any(told in one for one in errors_of(LAB, old, new))


def test_ports_of_different_families_are_refused() -> None:
    text = LAB.replace('[100.65.2.1/24, "2001:2:0:2::1/64"]', "100.65.2.1/24")
    text = text.replace('[100.65.2.2, "2001:2:0:2::2"]', "100.65.2.2").replace('  - {to: "2001:2:0:48::/64"', "#")
    assert any("no IPv6 address, but other ports have one" in one for one in errors_of(text))
