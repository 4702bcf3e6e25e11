"""Tunnels that programs hold open: their words, what they cost of a packet, their keys, and what is told of them."""

from __future__ import annotations

import hashlib
import json
import os
import ssl
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from configs import shipped
from documents import to_document
from tcp_runs import Path as Flow
from tcp_runs import make_tcp_result

from trexbench.config.lookup import read_suite
from trexbench.config.model import PlanDefaults
from trexbench.config.schema import read_dut
from trexbench.config.suite import Instead
from trexbench.core.errors import ConfigError, DutError
from trexbench.core.history.rows import rows_of_tcp
from trexbench.core.load.profile import MODES
from trexbench.core.strategy.kinds import STRATEGIES
from trexbench.core.tcp.limit import TcpLimit
from trexbench.core.tcp.plan import Leg, TcpEnvironment, TcpPlan, Way
from trexbench.core.tcp.result import from_document
from trexbench.core.tcp.tunnel import KINDS, Tunnel, parse_tunnel
from trexbench.core.units import tcp_payload_bps
from trexbench.endpoint.held import TunnelEnd
from trexbench.endpoint.programs import relay
from trexbench.report.tcp.text import format_tcp, headline
from trexbench.session.options import Case
from trexbench.session.options import Setup as PacketSetup
from trexbench.session.request import make_request
from trexbench.session.tcp.keys import make_keys
from trexbench.session.tcp.options import TcpSetup, TcpWish
from trexbench.session.tcp.request import TcpRequest, make_tcp_request
from trexbench.session.tcp.simulate import SimulatedBench
from trexbench.session.tcp.tunnels import CLIENT, FAR, _places
from trexbench.suite.jobs import make_jobs
from trexbench.transport import LocalTransport

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = ROOT / "dut_configs"
LAB = shipped("lab-linux")
RELAYED = TcpEnvironment(
    line_bps=1e9, tunnel="relay", tunnel_by="trexbench's relay", tunnel_between="client-server", tunnel_mtu=1464
)


@pytest.mark.parametrize(("text", "found"), [
    ("none", Tunnel()),
    ("relay", Tunnel("relay", "client-server")),
    ("relay, client-dut", Tunnel("relay", "client-dut")),
    ("wireguard,mtu=1400", Tunnel("wireguard", "client-server", 1400)),
    ("openvpn", Tunnel("openvpn", "client-server", None, "AES-256-GCM")),
    ("openvpn,cipher=CHACHA20-POLY1305,between=client-dut",
     Tunnel("openvpn", "client-dut", None, "CHACHA20-POLY1305")),
    ("6in4", Tunnel("6in4", "dut-server")),
])  # fmt: skip
def test_a_tunnel_is_read_as_it_is_written(text: str, found: Tunnel) -> None:
    assert parse_tunnel(text) == found == parse_tunnel(str(found))


@pytest.mark.parametrize(("text", "said"), [
    ("relay2", "'relay2' is not known: write one of none, 6in4, relay"),
    ("relay,client-client", "relay: between 'client-client' is not possible: write one of client-server, client-dut"),
    ("relay,mtu=400", "'400' is not an MTU: write 576 to 9000"),
    ("relay,mtu=1400,mtu=1300", "'mtu=1300' of tunnel relay not understood"),
    ("6in4,mtu=1400", "6in4: its MTU follows from the line's"),
    ("openvpn,cipher=BF-CBC", "openvpn: cipher 'BF-CBC' is not possible: write one of AES-256-GCM"),
    ("relay,speed=1", "'speed=1' of tunnel relay not understood"),
])  # fmt: skip
def test_what_is_no_tunnel_is_refused(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_tunnel(text)
    assert said in str(raised.value)


@pytest.mark.parametrize(("kind", "mtu"), [
    ("relay", 1464), ("openvpn", 1448), ("wireguard", 1440), ("gre", 1476), ("vxlan", 1450), ("ipsec", 1446),
])  # fmt: skip
def test_a_line_of_1500_bytes_leaves_so_much(kind: str, mtu: int) -> None:
    assert parse_tunnel(kind).inner_mtu(1500) == mtu
    assert [TcpEnvironment(tunnel=kind).header_bytes(version) for version in (4, 6)] == [1500 - mtu, 0]
    assert parse_tunnel(f"{kind},mtu=1000").inner_mtu(1500) == 1000
    with pytest.raises(ConfigError, match=f"MTU of {mtu + 1}: a line of 1500 leaves {mtu}: write mtu={mtu}, or less"):
        parse_tunnel(f"{kind},mtu={mtu + 1}").inner_mtu(1500)


def test_what_esp_encrypts_ends_at_a_multiple_of_four() -> None:
    for line in range(1490, 1510):
        inner = parse_tunnel("ipsec").inner_mtu(line)
        assert (inner + 2) % 4 == 0 and inner + 54 <= line < inner + 58


OTHER = """driver: none
endpoints:
  client: {transport: {type: ssh, host: c}, interface: c0, address: 192.0.2.2/25, gateway: 192.0.2.1}
  server: {transport: {type: ssh, host: s}, interface: s0, address: 192.0.2.130/25, gateway: 192.0.2.129}
"""


def box(tmp_path: Path, text: str) -> Path:
    (tmp_path / "box.yaml").write_text(text)
    return tmp_path / "box.yaml"


def test_a_variant_and_the_endpoints_ask_for_one(tmp_path: Path) -> None:
    text = LAB.replace("\nendpoints:\n", "\nendpoints:\n  tunnel: {kind: relay, mtu: 1400}\n", 1)
    text = text.replace("\nvariants:\n", "\nvariants:\n  vpn: {tunnel: {kind: openvpn, between: client-dut}}\n")
    dut = read_dut(box(tmp_path, text))
    assert dut.endpoints is not None and dut.endpoints.through == Tunnel("relay", "client-server", 1400)
    chosen = dut.with_variant("vpn").endpoints
    assert chosen is not None and (chosen.through.kind, chosen.through.between) == ("openvpn", "client-dut")
    assert chosen.versions == (4,) and dut.with_tunnel("none").endpoints.versions == (4, 6)  # type: ignore[union-attr]


def test_a_suite_asks_for_one(tmp_path: Path) -> None:
    text = "method: tcp\nduts: [lab-linux]\nmodes: [forward-ipv4]\n"
    (tmp_path / "vpn.yaml").write_text(f"{text}tcp: {{tunnel: {{kind: wireguard, between: client-dut}}}}\n")
    (job,) = make_jobs(read_suite(tmp_path / "vpn.yaml", CONFIGS, Instead()), PacketSetup(configs_dir=CONFIGS))
    assert job.request.dut.endpoints is not None
    assert job.request.dut.endpoints.through == Tunnel("wireguard", "client-dut")


def test_what_cannot_be_is_refused_before_anything_is_opened(tmp_path: Path) -> None:
    def refused(dut: str, ip: str | None = None, **setup: object) -> str:
        with pytest.raises(ConfigError) as raised:
            make_tcp_request(TcpWish(dut, ip=ip), TcpSetup(configs_dir=CONFIGS, **setup))  # type: ignore[arg-type]
        return str(raised.value)

    for tunnel in ("6in4", "relay,client-dut"):
        said = refused("edgerouter-edgeos", tunnel=tunnel)
        assert said.startswith(f"--tunnel {tunnel} for ") and "edgeos.yaml: driver none cannot set one" in said
    other = box(tmp_path, OTHER)
    assert make_tcp_request(TcpWish(str(other)), TcpSetup(tunnel="relay")).dut.endpoints is not None
    assert "a tunnel (relay), which --no-apply does not open" in refused("lab-linux", tunnel="relay", apply=False)
    assert "PPPoE and a tunnel" in refused("lab-linux", tunnel="relay", variant="pppoe")
    assert "tunnel relay carries IPv4 only" in refused("lab-linux", ip="6", tunnel="relay")


def test_a_twin_has_the_headers_of_any_tunnel() -> None:
    for tunnel, mtu, payload in (("relay", 1464, 1412), ("wireguard,mtu=600", 600, 548), ("none", None, 1448)):
        wished = TcpSetup(configs_dir=CONFIGS, sim=True, tunnel=tunnel)
        bench = SimulatedBench(make_tcp_request(TcpWish("lab-linux"), wished))
        assert bench.setup.tunnel == tunnel.partition(",")[0] and bool(bench.setup.tunnel_by) == (mtu is not None)
        assert (bench.setup.tunnel_mtu, bench._model.mss(4)) == (mtu, payload)


def test_the_document_says_what_it_went_through() -> None:
    result = make_tcp_result(legs=(Leg(Way.FORWARD, 4),), setup=RELAYED)
    assert from_document(to_document(result)).setup == RELAYED
    told = "tunnel  relay between client and server, by trexbench's relay, MTU 1464"
    assert told in format_tcp(result)
    assert "(relay client-server)" in headline(result)
    other = replace(result, setup=replace(RELAYED, tunnel_between="client-dut"))
    assert "relay between client and DUT" in format_tcp(other)
    shorter = replace(result, setup=replace(RELAYED, tunnel_mtu=1400))
    runs = (result, other, shorter, replace(result, setup=TcpEnvironment()))
    assert len({rows_of_tcp(one, "x.json")[0].through for one in runs}) == 4, "other tunnels, other histories"


def test_the_ends_know_each_other() -> None:
    dut = read_dut(CONFIGS / "lab-linux.yaml").with_tunnel("relay")
    far, ends = _places(dut, parse_tunnel("relay"))
    assert far == "server"
    assert (ends["client"]["local"], ends["client"]["remote"]) == ("100.66.1.2", "100.66.2.2")
    assert (ends["server"]["local"], ends["server"]["remote"]) == ("100.66.2.2", "100.66.1.2")
    assert (ends["client"]["own"], ends["client"]["peer"]) == (CLIENT, FAR) == ("10.2.0.2", "10.2.0.1")
    assert "routes" not in ends["client"] and "masquerade" not in ends["server"]
    far, ends = _places(dut, parse_tunnel("relay,client-dut"))
    assert far == "dut"
    assert (ends["dut"]["parent"], ends["dut"]["local"], ends["dut"]["masquerade"]) == ("e0", "100.66.1.1", "e1")
    assert ends["client"]["routes"] == ["100.66.2.2/32"] and ends["client"]["remote"] == "100.66.1.1"


def test_hosts_that_use_the_inner_network_are_refused(tmp_path: Path) -> None:
    text = LAB.replace("100.66.1.2/24", "10.2.0.7/24").replace("100.66.1.1/24", "10.2.0.6/24")
    dut = read_dut(box(tmp_path, text)).with_tunnel("relay")
    with pytest.raises(ConfigError, match=r"10.2.0.0/24 is that of the tunnel's inside"):
        _places(dut, parse_tunnel("relay"))


def test_keys_fit_together_and_are_made_anew() -> None:
    one, other = make_keys(parse_tunnel("openvpn"))
    for own, theirs in ((one, other), (other, one)):
        digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(theirs["certificate"])).hexdigest()
        assert own["peer"].replace(":", "") == digest and "PRIVATE KEY" in own["key"]
    out, back = make_keys(parse_tunnel("ipsec"))
    assert out["out"] == back["in"] != out["in"] == back["out"]
    assert len(out["out"]["key"]) == 2 * 36
    assert len(make_keys(parse_tunnel("ipsec,cipher=AES-128-GCM"))[0]["out"]["key"]) == 2 * 20
    assert make_keys(parse_tunnel("gre")) == ({}, {})
    for kind in ("relay", "openvpn", "wireguard", "ipsec"):
        assert make_keys(parse_tunnel(kind)) != make_keys(parse_tunnel(kind))


def test_without_openssl_it_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DutError, match="openssl makes no keys here"):
        make_keys(parse_tunnel("wireguard"))


RECORDS = """#!/bin/sh
input=
case "$*" in *-batch*|*setconf*|"-f -") input=$(cat);; esac
printf '%s\\n' "{name} $* | $input" | tr '\\n' ' ' >> {log}
echo >> {log}
{also}
"""


def end_of(kind: str, keys: object, **more: object) -> TunnelEnd:
    """The client's end of a tunnel, here."""
    options = {"kind": kind, "name": "tbvpntest", "mtu": 1400, "port": 51941, "first": False, "keys": keys}
    ends = {"parent": "e7", "own": CLIENT, "peer": FAR, "local": "192.0.2.1", "remote": "192.0.2.2"}
    return TunnelEnd("client", LocalTransport(), {**options, **ends, **more})


def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, also: str = "") -> Path:
    """Programs on PATH that stand for a kernel with every device, and write down what they are asked."""
    log = tmp_path / "asked"
    for name in ("ip", "wg", "nft"):
        (tmp_path / name).write_text(RECORDS.format(name=name, log=log, also=also))
        (tmp_path / name).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return log


@pytest.mark.parametrize("kind", ["vxlan", "ipsec", "wireguard"])
def test_the_kernels_devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    log, wished = kernel(tmp_path, monkeypatch), parse_tunnel(kind)
    keys = make_keys(wished)[0]
    with end_of(kind, keys, routes=["198.51.100.2/32"]) as end:
        up = end.wait_up(20)
    assert (up["by"], up["pid"], up["mtu"]) == ("the kernel", None, 1400)
    lines = log.read_text().splitlines()
    argv, told = ([one.partition(" | ")[part] for one in lines] for part in (0, 2))
    made = next(one for one in argv if one.startswith("ip link add"))
    assert made.startswith(f"ip link add name tbvpntest type {'xfrm dev e7' if kind == 'ipsec' else kind}")
    assert "ip link set dev tbvpntest mtu 1400 qlen 1000 up" in argv
    assert f"ip addr add {CLIENT} peer {FAR} dev tbvpntest" in argv
    assert "ip route replace 198.51.100.2/32 dev tbvpntest" in argv
    assert argv[-1] == "ip link del dev tbvpntest"
    parts = [keys["out"]["key"], keys["in"]["key"]] if kind == "ipsec" else [keys["key"]] if kind == "wireguard" else []
    for secret in parts:
        assert not any(secret in one for one in argv), "no key is an argument"
        assert any(secret in one for one in told)
    if kind == "ipsec":
        (batch,) = (one for one in told if "xfrm" in one)
        assert (batch.count("state add"), batch.count("policy update")) == (2, 3)
        undone = [[one for one in argv if word in one] for word in ("xfrm state deleteall", "xfrm policy delete")]
        assert [len(one) for one in undone] == [4, 6], "what a killed program has left is taken away first"


@pytest.mark.parametrize("kind", ["gre", "ipsec"])
def test_a_kernel_without_the_device_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    kernel(tmp_path, monkeypatch, 'case "$*" in *"link add"*) echo "Error: Unknown device type."; exit 2;; esac')
    with end_of(kind, make_keys(parse_tunnel(kind))[0]) as end, pytest.raises(DutError) as raised:
        end.wait_up(20)
    device = {"ipsec": "xfrm"}.get(kind, kind)
    assert f"tunnel: the kernel has no device of type {device} (Unknown device type.)" in str(raised.value)
    assert f"modprobe rtnl-link-{device}," in str(raised.value) and "key" not in json.dumps(str(raised.value))


def test_every_kind_is_one_that_can_be_made() -> None:
    assert {name for name in KINDS if parse_tunnel(name).is_opened} == {*relay.KINDS}


# 6in4, which the hosts' configuration has

IN_SIX = TcpEnvironment(line_bps=1e9, tunnel="6in4", tunnel_by="sit")
BOTH = (Leg(Way.FORWARD, 4), Leg(Way.FORWARD, 6))


def test_a_line_carries_the_outer_header_as_well() -> None:
    assert tcp_payload_bps(1e9, version=6, tunnel=20) == pytest.approx(1e9 * 1408 / 1538)
    result = make_tcp_result(Flow(bps=1e9 * 1408 / 1538), BOTH, setup=IN_SIX)
    four, six = result.flows
    assert (four.verdict.limit, six.verdict.limit) == (TcpLimit.UNKNOWN, TcpLimit.LINK)
    assert six.verdict.link_bps == pytest.approx(1e9 * 1408 / 1538)
    assert "carries at MTU 1500 in 6in4" in six.verdict.reasons[0]


def test_only_ipv6_is_other_traffic_by_another_way() -> None:
    def told(**setup: str) -> list[object]:
        return [row.through for row in rows_of_tcp(make_tcp_result(legs=BOTH, setup=TcpEnvironment(**setup)), "x.json")]

    plain, sit, programs = told(), told(tunnel="6in4", tunnel_by="sit"), told(tunnel="6in4", tunnel_by="tc-bpf")
    assert plain[0] == sit[0] == programs[0] and len({plain[1], sit[1], programs[1]}) == 3


def test_the_document_says_what_ipv6_went_through() -> None:
    result = make_tcp_result(legs=BOTH, setup=IN_SIX)
    assert from_document(to_document(result)).setup == IN_SIX
    assert "tunnel  6in4 between DUT and server, by sit: all of IPv6" in format_tcp(result)
    lacking = TcpEnvironment(without_tunnel="the server has no device for 6in4")
    native = make_tcp_result(legs=BOTH, setup=lacking)
    (doubt,) = (one for one in native.analysis_warnings if one.code == "no-tunnel")
    assert doubt.text == "IPv6 went without the tunnel: the server has no device for 6in4"
    assert doubt.text in format_tcp(native)
    assert "no-tunnel" not in {one.code for one in make_tcp_result(setup=lacking).analysis_warnings}


@pytest.mark.parametrize(("name", "wished", "through"), [
    ("lab-linux", None, "none"),
    ("lab-linux", "6in4", "6in4"),
    ("raspberry-pi", None, "6in4"),
    ("raspberry-pi", "none", "none"),
    ("lab-linux", "wireguard", "wireguard"),
])  # fmt: skip
def test_a_twin_has_the_tunnel_that_is_asked_for(name: str, wished: str | None, through: str) -> None:
    dut = read_dut(CONFIGS / f"{name}.yaml").with_tunnel(wished)
    plan = TcpPlan((Leg(Way.FORWARD, 6),), time_s=5)
    bench = SimulatedBench(TcpRequest(dut=dut, plan=plan, sim=True, speedup=1e9, tunnel=wished))
    header = {"none": 0, "6in4": 20, "wireguard": 60}[through]
    assert (bench.setup.tunnel, bench.setup.header_bytes(6)) == (through, header * (through == "6in4"))
    assert bench._model.mss(6) == 1428 - header
    assert [one.code for one in bench.warnings] == ["tunnel-cpu"] * (through == "wireguard")


def test_packets_do_not_go_through_it(tmp_path: Path) -> None:
    text = (CONFIGS / "lab-linux.yaml").read_text().replace("\nvariants:\n", "\nvariants:\n  in: {tunnel: 6in4}\n")
    (tmp_path / "box.yaml").write_text(text)
    case = Case(str(tmp_path / "box.yaml"), MODES[0].name, variant="in")
    with pytest.raises(ConfigError, match="variant in of box puts a tunnel between DUT and server"):
        make_request(next(iter(STRATEGIES)), case, PlanDefaults(), PacketSetup())
