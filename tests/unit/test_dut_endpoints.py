"""The three hosts of TCP tests against boxes that keep their state: planned, applied, read back, reverted."""

from __future__ import annotations

import copy
import re
from pathlib import Path

import pytest
from bench import Bench
from box_linux import CONF, CONF6, FORWARD, LinuxBox

from trexbench.config.lookup import load_dut
from trexbench.config.model import DutConfig
from trexbench.config.schema import dut_of
from trexbench.core.errors import ConfigError, DutError
from trexbench.dut import Wanted
from trexbench.dut.tcp_hosts import endpoint_wanted, router_wanted

ROOT = Path(__file__).parents[2]
PI = """driver: linux
transport: {type: ssh, host: pi}
endpoints:
  client:
    transport: {type: ssh, host: left}
    interface: enp3s0f0
    address: [10.1.0.2/24, "2001:2:0:1::2/64"]
    dut: {interface: enp3s0f0, address: [10.1.0.1/24, "2001:2:0:1::1/64"]}
    bypass: {interface: enp3s0f1, address: 10.3.0.1/24}
  server:
    transport: {type: ssh, host: right}
    interface: enp3s0f0
    address: [10.2.0.2/24, "2001:2:0:2::2/64"]
    dut: {interface: enp3s0f0, address: [10.2.0.1/24, "2001:2:0:2::1/64"]}
    bypass: {interface: enp3s0f1, address: 10.3.0.2/24}
"""
CONFIG = dut_of(Path("pi.yaml"), PI)


def bench_of(folder: Path, wanted: Wanted) -> Bench:
    box = LinuxBox()
    for name in ("enp3s0f0", "enp3s0f1"):
        box.files |= {f"{CONF}/{name}/{one}_redirects": "1" for one in ("accept", "send")}
        box.files |= {f"{CONF6}/{name}/accept_redirects": "1"}
    box.files[f"{CONF}/all/send_redirects"] = "1"
    bench = Bench(folder, box, wanted.config)
    bench.use(wanted)
    return bench


def test_a_one_armed_router(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, router_wanted(CONFIG))
    before = copy.deepcopy(bench.box)
    bench.apply()
    nic = bench.box.nics["enp3s0f0"]
    assert nic.addresses == ["10.1.0.1/24", "2001:2:0:1::1/64", "10.2.0.1/24", "2001:2:0:2::1/64"] and nic.up
    assert bench.box.files[FORWARD] == "1" and sum("link of" in one.what for one in bench.steps) == 1
    for path in (f"{CONF}/all/", f"{CONF}/enp3s0f0/"):
        assert [bench.box.files[f"{path}{one}_redirects"] for one in ("accept", "send")] == ["0", "0"]
    assert bench.box.files[f"{CONF6}/enp3s0f0/accept_redirects"] == "0"
    assert bench.apply() == [] and not bench.wrong()
    bench.box.files[f"{CONF}/enp3s0f0/send_redirects"] = "1"
    assert bench.wrong() == ["send_redirects of enp3s0f0 (ipv4): wanted 0, found 1"]
    bench.revert()
    assert bench.box.files == before.files and nic == before.nics["enp3s0f0"]


@pytest.mark.parametrize(("role", "own", "other"), [("client", 1, 2), ("server", 2, 1)])
def test_an_endpoint_has_routes_and_does_not_forward(tmp_path: Path, role: str, own: int, other: int) -> None:
    bench = bench_of(tmp_path, endpoint_wanted(CONFIG, role))
    before = copy.deepcopy(bench.box)
    bench.apply()
    assert bench.box.files[FORWARD] == "0" and not bench.box.neighbours
    assert bench.box.nics["enp3s0f0"].addresses == [f"10.{own}.0.2/24", f"2001:2:0:{own}::2/64"]
    assert bench.box.nics["enp3s0f1"].addresses == [f"10.3.0.{own}/24"]
    assert [" ".join(words) for words in bench.box.routes] == [
        f"10.{other}.0.0/24 via 10.{own}.0.1 dev enp3s0f0",
        f"2001:2:0:{other}::/64 via 2001:2:0:{own}::1 dev enp3s0f0",
    ]
    assert bench.apply() == [] and not bench.wrong()
    bench.revert()
    assert bench.box.files == before.files and bench.box.nics == before.nics and bench.box.routes == []


def test_an_endpoint_whose_packets_take_another_way_is_a_mismatch(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, endpoint_wanted(CONFIG, "client"))
    bench.apply()
    bench.box.routes.insert(0, ["10.2.0.0/25", "via", "10.1.0.9", "dev", "enp3s0f0"])
    found = "; ".join(bench.wrong())
    assert "routes inside 10.2.0.0/24: wanted none, found 10.2.0.0/25 via 10.1.0.9" in found
    assert "path of 10.1.0.2 to 10.2.0.1: wanted via 10.1.0.1 dev enp3s0f0, found via 10.1.0.9" in found


def test_a_router_without_sides_is_left_as_it_is(tmp_path: Path) -> None:
    text = re.sub(
        r'dut: \{interface: \w+, address: \[10\.(\d)\.0\.1/24, "([^"]+)/64"]}', r'gateway: [10.\1.0.1, "\2"]', PI
    )
    bench = bench_of(tmp_path, router_wanted(dut_of(Path("pi.yaml"), text)))
    assert bench.apply() == [] and not bench.wrong()
    assert not [one for one in bench.transport.ran if one.startswith("grep -rsH ") and " /" not in one], "all files"


def test_ramps_want_nothing_of_the_endpoints() -> None:
    lab: DutConfig = load_dut(str(ROOT / "dut_configs/lab-linux.yaml"))
    assert Wanted(lab).interfaces == ("d0", "d1") and router_wanted(lab).interfaces == ("e0", "e1")


def test_no_endpoints_no_test() -> None:
    with pytest.raises(ConfigError, match=r"netgate-linux\.yaml names no endpoints for TCP tests: add endpoints:"):
        router_wanted(load_dut(str(ROOT / "dut_configs/netgate-linux.yaml")))


def test_ipv6_goes_through_a_tunnel(tmp_path: Path) -> None:
    """After a run without it: its addresses move to the device, applied twice changes nothing, and all is undone."""
    inner = {"router": "2001:2:0:2::1/64", "server": "2001:2:0:2::2/64"}
    for name, wanted in (
        ("router", lambda tunnelled: router_wanted(CONFIG, tunnelled=tunnelled)),
        ("server", lambda tunnelled: endpoint_wanted(CONFIG, "server", tunnelled=tunnelled)),
    ):
        bench = bench_of(tmp_path / name, wanted(False))
        before = copy.deepcopy(bench.box)
        bench.apply()
        native = copy.deepcopy(bench.box)
        bench.use(wanted(True))
        bench.apply()
        outer, tunnel = bench.box.nics["enp3s0f0"], bench.box.nics["tb6in4"]
        ends = ("10.2.0.1", "10.2.0.2") if name == "router" else ("10.2.0.2", "10.2.0.1")
        told = f"tb6in4: 6in4 from {ends[0]} to {ends[1]}, TTL 255, MTU 1480 (was none)"
        assert told in map(str, bench.steps) and tunnel.tunnel == {"local": ends[0], "remote": ends[1], "ttl": "255"}
        assert tunnel.up and tunnel.mtu == 1480 and tunnel.addresses == [inner[name]]
        assert inner[name] not in outer.addresses and len(outer.addresses) == len(native.nics["enp3s0f0"].addresses) - 1
        if name == "server":
            (route,) = [one for one in bench.box.routes if one[0] == "2001:2:0:1::/64"]
            assert route == ["2001:2:0:1::/64", "via", "2001:2:0:2::1", "dev", "tb6in4"]
        assert bench.apply() == [] and not bench.wrong()
        tunnel.mtu = 1400
        assert [one.what for one in bench.dut.verify().mismatches] == ["tb6in4"]
        tunnel.mtu = 1480
        bench.use(wanted(False))
        bench.apply()
        assert bench.box.nics == native.nics and bench.box.routes == native.routes
        bench.use(wanted(True))
        bench.apply()
        bench.revert()
        assert bench.box.files == before.files and bench.box.routes == [] and "tb6in4" not in bench.box.nics
        assert bench.box.nics["enp3s0f0"] == before.nics["enp3s0f0"]


def test_a_kernel_without_the_device_is_named(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, router_wanted(CONFIG, tunnelled=True))
    bench.box.sit = False
    with pytest.raises(DutError, match=r"tb6in4: .*Unknown device type.*modprobe sit, or install"):
        bench.apply()


@pytest.mark.parametrize(
    ("wrong", "written", "said"),
    [
        ("6in4", "6in5", "endpoints.tunnel: '6in5' is not known: write one of none, 6in4"),
        (r', "2001[^"]*"', "", "server and DUT need addresses of both families there: add them"),
        ("driver: linux", "driver: none", "driver none cannot set one: remove it, or use driver linux"),
        (
            r"dut: (.interface: enp3s0f0, address: )(\[10.2.*\])\}",
            r'gateway: [10.2.0.1, "2001:2:0:2::1"]',
            "the router's side of the server's cable is not known: name it as endpoints.server.dut",
        ),
    ],
)
def test_a_tunnel_that_cannot_be_is_refused(wrong: str, written: str, said: str) -> None:
    text = re.sub(wrong, written, PI.replace("endpoints:", "endpoints:\n  tunnel: 6in4"))
    with pytest.raises(ConfigError) as raised:
        dut_of(Path("pi.yaml"), text)
    assert said in "\n".join(map(str, raised.value.each))


def test_a_variant_and_the_command_choose_the_tunnel() -> None:
    config = dut_of(Path("pi.yaml"), PI + "variants:\n  in: {tunnel: 6in4}\n  fast: {firewall: stateful}\n")
    assert config.endpoints is not None and config.endpoints.tunnel == "none"
    chosen = config.with_variant("in")
    assert chosen.endpoints is not None and chosen.endpoints.tunnel == "6in4"
    assert config.with_variant("fast").endpoints == config.endpoints
    assert chosen.with_tunnel("none").endpoints == config.endpoints
    wanted = router_wanted(config.with_variant("fast").with_tunnel("6in4"), tunnelled=True)
    assert wanted.variant == "fast in 6in4" and router_wanted(config).variant is None


def test_with_pppoe_only_the_session_has_addresses_between_dut_and_server() -> None:
    """Traffic from the client to the server finds no other way than through the session."""
    config = dut_of(Path("pi.yaml"), PI + "variants: {ppp: {pppoe: true}}\n").with_variant("ppp")
    (port,) = router_wanted(config).config.ports
    assert [str(one) for one in port.addresses] == ["10.1.0.1/24", "2001:2:0:1::1/64"]
    server = endpoint_wanted(config, "server").config
    assert (
        server.ports[0].addresses == () and server.routes == () and str(server.ports[1].addresses[0]) == "10.3.0.2/24"
    )
    client = endpoint_wanted(config, "client").config
    assert [str(one.to) for one in client.routes] == ["10.2.0.0/24", "2001:2:0:2::/64"]


@pytest.mark.parametrize("bypass", [True, False])
def test_hosts_of_a_session_are_applied_and_reverted(tmp_path: Path, bypass: bool) -> None:
    text = PI if bypass else re.sub(r"    bypass: .*\n", "", PI)
    config = dut_of(Path("pi.yaml"), text + "variants: {ppp: {pppoe: true}}\n").with_variant("ppp")
    bench = bench_of(tmp_path, endpoint_wanted(config, "server"))
    before = copy.deepcopy(bench.box)
    bench.apply()
    assert bench.wrong() == [] and not bench.apply()
    bench.revert()
    assert bench.box.files == before.files
