"""Configs of endpoints, and of DUTs that no driver of ours knows: what is read, and all that is wrong at once."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path

import pytest
from configs import BARE, BOX, ROOT, errors_of, example, shipped

from trexbench.config.lookup import load_dut
from trexbench.config.model import PlanDefaults
from trexbench.config.schema import dut_of, read_dut
from trexbench.core.errors import ConfigError
from trexbench.core.units import Rate
from trexbench.dut import Wanted, open_dut
from trexbench.session.options import Case, Setup
from trexbench.session.request import choose_queues, make_request
from trexbench.session.series import rate_requests
from trexbench.transport import open_transport

FILE = Path("pi.yaml")
GOOD = """driver: linux
transport: {type: ssh, host: pi}
endpoints:
  client:
    transport: {type: ssh, host: left}
    interface: eth1
    address: 10.1.0.2/24
    dut: {interface: eth0, address: 10.1.0.1/24}
    bypass: {interface: eth2, address: 10.3.0.1/24}
    cpus: [1, 2]
  server:
    transport: {type: local}
    interface: eth1
    address: 10.2.0.2/24
    dut: {interface: eth0, address: 10.2.0.1/24}
    bypass: {interface: eth2, address: 10.3.0.2/24}
"""


def test_a_one_armed_router_without_ports_towards_a_tester() -> None:
    config = dut_of(FILE, GOOD)
    found = config.endpoints
    assert found is not None and config.cables == () and found.versions == (4,)
    assert (found.client.transport.host, found.server.transport.type, found.client.cpus) == ("left", "local", (1, 2))
    assert found.client.hops == (IPv4Address("10.1.0.1"),)
    (side,) = found.sides
    assert (side.interface, side.addresses) == ("eth0", (IPv4Interface("10.1.0.1/24"), IPv4Interface("10.2.0.1/24")))


AS_IT_IS = re.sub(
    r"dut: {interface: eth0, address: (10.\d.0.1)/24}",
    r"gateway: \1",
    GOOD.replace("linux\ntransport: {type: ssh, host: pi}", "none"),
)


def test_a_lab_names_the_namespaces() -> None:
    found = load_dut(str(ROOT / "dut_configs/lab-linux.yaml")).with_lab_prefix("x").endpoints
    assert found is not None and found.versions == (4, 6)
    assert [one.transport.namespace for _, one, _ in found.roles] == ["x-client", "x-server"]


DIALS = "  pppoe: {user: debian, secret_env: HOME_PPP}\n"
SERVER_DUT = "    dut: {interface: eth0, address: 10.2.0.1/24}\n"
WRONG = [
    ("no server", GOOD[GOOD.index("  server") :], "", 3, "'server' is missing"),
    ("a prompt", "ssh, host: left", "cli, host: left, platform: vyos", 5, "reached by netns, local, ssh"),
    ("the DUT itself", "{type: ssh, host: left}", "{type: ssh, host: pi}", 5, "the same host as the DUT"),
    ("one host", "{type: local}", "{type: ssh, host: left}", 12, "the same host as the client"),
    ("one network", "10.2.0.2/24", "10.1.0.3/16", 14, "10.1.0.0/16 overlaps 10.1.0.0/24 of the client"),
    ("families", "10.2.0.2/24", '[10.2.0.2/24, "2001:2::2/64"]', 7, "no IPv6 address, but the other endpoint"),
    ("two of a family", "10.2.0.2/24", "[10.2.0.2/24, 10.5.0.2/24]", 14, "two addresses of one family"),
    ("no way", SERVER_DUT, "", 11, "neither dut nor gateway"),
    ("two ways", SERVER_DUT, SERVER_DUT + "    gateway: 10.2.0.1\n", 11, "both dut and gateway"),
    ("hop elsewhere", "10.2.0.1/24", "10.9.0.1/24", 15, "10.9.0.1 is not in 10.2.0.0/24"),
    ("own hop", "10.2.0.1/24", "10.2.0.2/24", 15, "10.2.0.2 is the endpoint's own address"),
    ("half a bypass", "    bypass: {interface: eth2, address: 10.3.0.2/24}\n", "", 9, "only one end of a cable"),
    ("bypass apart", "10.3.0.2/24", "10.4.0.2/24", 16, "10.4.0.2 is not in 10.3.0.0/24"),
    ("bypass of two widths", "10.3.0.2/24", "10.3.0.2/30", 16, "10.3.0.0/30 is not 10.3.0.0/24, the client's network"),
    ("bypass on the cable", "eth2, address: 10.3.0.2", "eth1, address: 10.3.0.2", 16, "eth1 is the interface towards"),
]


@pytest.mark.parametrize(("old", "new", "line", "words"), [one[1:] for one in WRONG], ids=[one[0] for one in WRONG])
def test_what_is_wrong_is_told_with_its_line(old: str, new: str, line: int, words: str) -> None:
    told = errors_of(GOOD, old, new, FILE)
    assert any(one.startswith(f"{FILE}:{line}: ") and words in one for one in told), told


LAB = shipped("lab-linux")
WRONG_IN_A_LAB = [
    ("netns}\n    interface: c0", "local}\n    interface: c0", "an endpoint of a lab is reached by netns"),
    ("netns}\n    interface: c0", "netns, namespace: a}\n    interface: c0", "a lab names its own"),
    ("interface: e0", "interface: d0", "d0 is cabled to port 0 already"),
    ("interface: e1", "interface: e0", "e0 is cabled to the client already"),
    ("offloads: full ", "line: 1gbit\n    offloads: full", "a line carries no frames of 64 KB"),
    (
        'dut: {interface: e0, address: [100.66.1.1/24, "fd2b:656a:6fdb:a3a8::1/64"]}',
        "gateway: 100.66.1.1",
        "has no effect on",
    ),
    ("100.66.2.1/24", "100.65.1.9/16", "overlaps 100.65.1.0/24 of port 0"),
]


VM = shipped("lab-vm-linux")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("driver: linux", "driver: pfsense", "driver pfsense cannot configure interfaces to endpoints in a virtual"),
        ("  20ms: {wan", "  ppp: {pppoe: true}\n  20ms: {wan", "pppd would have to run on a virtual machine, whose"),
        ("20ms: {wan: 20ms}", "20ms: {tunnel: {kind: openvpn, between: client-dut}}", "use wireguard, or a tunnel"),
    ],
)
def test_what_a_console_cannot_hold_open(old: str, new: str, words: str) -> None:
    told = errors_of(VM, old, new)
    assert any(words in one for one in told), told
    by_ssh = VM.replace("type: console ", "type: ssh ").replace(old, new)
    assert "driver" in new or dut_of(FILE, by_ssh).in_vm


def test_a_router_that_dials_in_by_itself() -> None:
    found = dut_of(FILE, AS_IT_IS + DIALS).endpoints
    assert found is not None and found.pppoe is not None and (found.pppoe.user, found.versions) == ("debian", (4,))
    assert found.sides == () and found.server.hops == (IPv4Address("10.2.0.1"),)
    six = AS_IT_IS
    for at in (1, 2):
        six = six.replace(f"address: 10.{at}.0.2/24", f'address: "fd00:{at}::2/64"')
        six = six.replace(f"gateway: 10.{at}.0.1", f'gateway: "fd00:{at}::1"')
    assert "endpoints.pppoe: PPPoE gives the server an IPv4 address" in errors_of(six + DIALS)[0]


PPP = "variants: {ppp: {pppoe: true}}\n"
WITHOUT = LAB[: LAB.index("endpoints:\n  client")] + LAB[LAB.index("# Queues of a veth") :]
NOT_TOGETHER = [
    *((LAB.replace(old, new, 1), words) for old, new, words in WRONG_IN_A_LAB),
    (
        GOOD.replace("10.3.0.", "10.1.0.1").replace("10.1.0.11", "10.1.0.7"),
        "overlaps 10.1.0.0/24 of the client's cable to the DUT",
    ),
    (re.sub(".*tunnel:.*\n", "", WITHOUT), "lab.endpoints: has no effect on a lab without endpoints"),
    (
        GOOD.replace("dut: {interface: eth0, address: 10.2.0.1/24}", "gateway: 10.2.0.1") + PPP,
        "variants.ppp.pppoe: the router's side of the server's cable is not known",
    ),
    (GOOD + DIALS + PPP, "variants.ppp.pppoe: the router dials in by itself (endpoints.pppoe)"),
]


@pytest.mark.parametrize(("text", "words"), NOT_TOGETHER)
def test_what_does_not_fit_together(text: str, words: str) -> None:
    told = errors_of(text)
    assert any(words in one for one in told), told


def written(folder: Path, text: str, name: str = "box.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_two_ports_are_all_that_an_unmanaged_dut_needs(tmp_path: Path) -> None:
    dut = read_dut(written(tmp_path, BARE))
    assert dut.tester_ports == (0, 1) and dut.ports == () and not dut.is_reached and not dut.is_observed
    transport = open_transport(dut.transport)
    assert transport.place == "box"
    box = open_dut(Wanted(dut), transport)
    assert list(box.plan()) == []
    attested = box.verify()
    assert not attested.attested and "configured by hand" in attested.reason and attested.to_document()["applied"] == []
    assert [one.what for one in box.observe().missing] == ["the DUT's counters"]


ADDRESSED = "{tester: 0, interface: a, address: 10.0.0.1/24, neighbour: {address: 10.0.0.2}}"
MISSING = "'interface' and 'address' and 'neighbour' are missing"
MANY = """\
driver: linux
transport: {type: ssh}
ports:
  - {tester: 0, interface: d0, address: 10.0.1.1/24, neighbour: {address: 10.0.9.2}}
  - {tester: 0, interface: d1, address: 10.0.1.2/24, neighbour: {address: 10.0.1.2}}
routes: [{to: 0.0.0.0/0, via: 10.0.3.3}]
vpp: {}
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"{BARE}transport: {{type: local}}\n", [":3: transport: has no effect on driver none"]),
        (f"{BARE}routes: [{{to: 16.0.0.0/8, via: 10.0.0.1}}]\n", [":3: routes: has no effect on driver none"]),
        (f"{BARE}power: {{type: rapl}}\n", [":3: power.type: rapl runs a program on the DUT, which transport none"]),
        (BARE.replace("{tester: 0}", ADDRESSED), [f":2: ports[0].{key}: has no" for key in ("address", "neighbour")]),
        (BARE.replace("none", "linux\ntransport: {type: local}"), [MISSING] * 2),
        (MANY, [""] * 8),
    ],
)
def test_what_has_no_effect_is_missing_or_does_not_fit_is_told_at_once(text: str, words: list[str]) -> None:
    found = errors_of(text)
    assert len(found) == len(words) and all(word in one for word, one in zip(words, found, strict=True)), found


def test_efficiency_is_refused_with_its_reason(tmp_path: Path) -> None:
    path = written(tmp_path, BARE)
    for setup in (Setup(), Setup(apply=False), Setup(sim=True)):
        with pytest.raises(ConfigError, match="efficiency: box has driver: none, which reads no counters"):
            rate_requests(Case(str(path)), [Rate(1.0, "percent")], 1.0, setup)
    metered = written(tmp_path, BARE + "power: {type: constant, watts: 7}\n", "metered.yaml")
    ((_, request),) = rate_requests(Case(str(metered)), [Rate(1.0, "percent")], 1.0, Setup())
    assert request.telemetry_mode == "hold"


def test_telemetry_is_off_and_queues_are_nobodys(tmp_path: Path) -> None:
    path = written(tmp_path, BARE)
    request = make_request("ramp", Case(str(path), "1flow-64b"), PlanDefaults(), Setup())
    assert request.telemetry_mode == "off" and request.queues is None
    with pytest.raises(ConfigError, match="--telemetry hold: box has driver: none"):
        make_request("ramp", Case(str(path), "1flow-64b", telemetry="hold"), PlanDefaults(), Setup())
    with pytest.raises(ConfigError, match="--rx-queues 1: driver: none of box sets no queues"):
        choose_queues(load_dut(str(path)), 1)


def test_the_shipped_examples_are_complete() -> None:
    found = {path.stem: read_dut(path) for path in (ROOT / "dut_configs" / "examples").iterdir()}
    machines = [found.pop(name) for name in sorted(found) if name.startswith("vm-")]
    assert all(dut.in_vm and dut.lab and dut.lab.vm.image and "# " in dut.text for dut in machines)
    assert all(dut.description.startswith("Not tried by us: ") for dut in machines)
    assert all(". Not tried by us. " in dut.text for dut in machines)
    assert len({dut.lab.prefix for dut in machines if dut.lab}) == len(machines) == 6
    reached = {name: dut.transport.type for name, dut in found.items()}
    assert reached == {"edgeos": "cli", "mikrotik": "cli", "openwrt": "ssh"}
    assert all(dut.driver == "commands" and dut.twin and "Never tried" in dut.description for dut in found.values())


def test_the_documents_examples_are_complete() -> None:
    router, by_hand, commands = (
        dut_of(BOX, example(*where)) for where in (("configs.md", 0), ("configs.md", 1), ("duts.md", 0))
    )
    assert router.transport.host == "router.example.net" and len(router.ports) == 2
    assert by_hand.driver == "none" and by_hand.tester_ports == (0, 1)
    assert len(commands.commands.apply) == 1 and len(commands.commands.counters) == 1 and commands.asks_for_macs
