"""The Linux driver on recorded answers: what it sets, what it finds, what it refuses."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from trexbench.config import DutConfig, load_dut
from trexbench.core.errors import ConfigError, DutError
from trexbench.dut import DRIVERS, not_attested, open_dut
from trexbench.dut.linux import LinuxDut, plan, probes
from trexbench.transport import Completed, Transport

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests/fixtures/linux-6.18"
MACS = {0: "02:7b:78:00:00:00", 1: "02:7b:78:00:00:01"}


class Recorded:
    """A transport that answers as a recording did, and keeps what it was asked."""

    place = "a recording"

    def __init__(self, name: str = "", without: Sequence[str] = ()) -> None:
        entries = json.loads((FIXTURES / f"{name}.json").read_text()) if name else []
        self._answers = {tuple(entry["argv"]): entry for entry in entries}
        self._without = without
        self.asked: list[tuple[tuple[str, ...], str | None]] = []

    def run(self, argv: Sequence[str], timeout_s: float, input: str | None = None) -> Completed:
        assert timeout_s > 0
        self.asked.append((tuple(argv), input))
        if argv[0] in self._without:
            raise DutError(f"{argv[0]} is not installed on {self.place}")
        entry = self._answers.get(tuple(argv), {"returncode": 0, "stdout": "", "stderr": ""})
        return Completed(tuple(argv), entry["returncode"], entry["stdout"], entry["stderr"], 0.001)


@pytest.fixture
def config() -> DutConfig:
    return load_dut(str(ROOT / "dut_configs/lab-linux.yaml"))


def test_plan_is_the_articles_notes(config: DutConfig) -> None:
    assert [" ".join(command.argv) for command in plan(config, MACS)] == [
        "tee /proc/sys/net/ipv4/ip_forward",
        "ip link set dev d0 up",
        "ip address replace 100.65.1.1/24 dev d0",
        "ip neigh replace 100.65.1.2 lladdr 02:7b:78:00:00:00 nud permanent dev d0",
        "ip link set dev d1 up",
        "ip address replace 100.65.2.1/24 dev d1",
        "ip neigh replace 100.65.2.2 lladdr 02:7b:78:00:00:01 nud permanent dev d1",
        "ip route replace 16.0.0.0/8 via 100.65.1.2 dev d0",
        "ip route replace 48.0.0.0/8 via 100.65.2.2 dev d1",
    ]
    assert all(command.why for command in plan(config, MACS))


def test_plan_pins_the_macs_of_the_config() -> None:
    netgate = load_dut(str(ROOT / "dut_configs/netgate-linux.yaml"))
    commands = [" ".join(command.argv) for command in plan(netgate, {})]
    assert "ip neigh replace 100.65.2.2 lladdr 68:05:ca:32:45:95 nud permanent dev enp3s0f1" in commands


def test_plan_needs_the_testers_macs(config: DutConfig) -> None:
    with pytest.raises(ConfigError, match="did not name the MAC of its port 1"):
        plan(config, {0: MACS[0]})


def test_probes_arrive_at_the_other_port(config: DutConfig) -> None:
    assert [(str(destination), str(source), arrival) for _, destination, source, arrival in probes(config)] == [
        ("16.0.0.1", "48.0.0.1", "d1"),
        ("16.255.255.254", "48.0.0.1", "d1"),
        ("48.0.0.1", "16.0.0.1", "d0"),
        ("48.255.255.254", "16.0.0.1", "d0"),
    ]


def test_apply_runs_the_plan_and_reports_it(config: DutConfig) -> None:
    transport = Recorded()
    applied = LinuxDut(config, transport, MACS, {}).apply()
    commands = [(command.argv, command.input) for command in plan(config, MACS)]
    assert transport.asked == [*commands, (("ip", "-json", "-details", "link", "show"), None)]
    assert list(applied) == plan(config, MACS)


def test_apply_stops_at_the_first_failure(config: DutConfig) -> None:
    class Failing(Recorded):
        def run(self, argv: Sequence[str], timeout_s: float, input: str | None = None) -> Completed:
            super().run(argv, timeout_s, input)
            code = 2 if "address" in argv else 0
            return Completed(tuple(argv), code, "", "RTNETLINK answers: No such device\n" if code else "", 0.0)

    transport = Failing()
    with pytest.raises(DutError) as caught:
        LinuxDut(config, transport, MACS, {}).apply()
    assert str(caught.value) == (
        "lab-linux: ip address replace 100.65.1.1/24 dev d0 failed on a recording: RTNETLINK answers: No such device"
    )
    assert len(transport.asked) == 3


def test_verify_of_what_was_applied(config: DutConfig) -> None:
    attestation = LinuxDut(config, Recorded("verify-configured"), MACS, {"netdev_max_backlog": 4096}).verify()
    assert attestation.require_match() is attestation
    facts = attestation.facts
    assert facts["kernel"].startswith("6.18.")
    assert (facts["ip_forward"], facts["netdev_max_backlog"]) == (1, 4096)
    assert facts["interfaces"]["d0"]["rps_cpus"] == {"rx-0": "2"}
    assert facts["interfaces"]["d0"]["offloads"]["generic-receive-offload"] is True
    assert facts["interfaces"]["d1"]["mac"] == "02:7b:78:00:01:01"
    assert facts["interfaces"]["d1"]["threaded_napi"] == 0
    assert facts["unknown"] == ["dev_weight", "iptables", "netdev_budget", "netdev_budget_usecs"]
    document = attestation.to_document()
    assert json.loads(json.dumps(document)) == document
    assert document["facts_sha256"] == attestation.digest


def test_digest_tells_configurations_apart(config: DutConfig) -> None:
    def digest(name: str) -> str:
        return LinuxDut(config, Recorded(name), MACS, {}).verify().digest

    assert digest("verify-configured") == digest("verify-configured") != digest("verify-half-dead")


def test_verify_without_ethtool_says_unknown(config: DutConfig) -> None:
    facts = LinuxDut(config, Recorded("verify-configured", without=["ethtool"]), MACS, {}).verify().facts
    assert facts["interfaces"]["d0"]["offloads"] is None


@pytest.mark.parametrize(
    ("recording", "expected"),
    [
        (
            "verify-bare",
            [
                "ip_forward: wanted 1, found 0",
                "address of d0: wanted 100.65.1.1/24, found none",
                "forwarding of d0: wanted 1, found 0",
                "neighbour 100.65.1.2 on d0: wanted 02:7b:78:00:00:00 PERMANENT, found none",
                "route 48.0.0.0/8: wanted via 100.65.2.2 dev d1, found none",
                "path of 48.0.0.1 to 16.0.0.1 arriving at d1: wanted via 100.65.1.2 dev d0, found RTNETLINK answers:",
            ],
        ),
        (
            "verify-half-dead",
            [
                "neighbour 100.65.1.2 on d0: wanted 02:7b:78:00:00:00 PERMANENT, found 02:7b:78:00:00:77 REACHABLE",
                "route 16.0.0.0/8: wanted via 100.65.1.2 dev d0, found via 100.65.1.2 dev d0 and via 100.65.1.9 dev d0",
                "routes inside 16.0.0.0/8: wanted none, found 16.0.7.0/24 via 100.65.2.2 dev d1",
                "routes inside 16.0.0.0/8: wanted none, found 16.0.8.0/24 blackhole",
                "route 48.0.0.0/8: wanted via 100.65.2.2 dev d1, found via 100.65.2.2 dev d1 and via 100.65.2.9 dev d1",
            ],
        ),
        ("verify-cable-out", ["link of d1: wanted up, found no carrier"]),
    ],
)
def test_verify_refuses_with_wanted_and_found(config: DutConfig, recording: str, expected: list[str]) -> None:
    attestation = LinuxDut(config, Recorded(recording), MACS, {}).verify()
    with pytest.raises(DutError, match="lab-linux is not what its config says") as caught:
        attestation.require_match()
    for text in expected:
        assert text in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_interface_names_those_there(config: DutConfig) -> None:
    other = replace(config, ports=(config.ports[0], replace(config.ports[1], interface="d7")))
    mismatches = LinuxDut(other, Recorded("verify-configured"), MACS, {}).verify().mismatches
    assert "interface: wanted d7, found only d0, d1, lo" in [str(mismatch) for mismatch in mismatches]


@pytest.mark.parametrize("name", ["netgate-pfsense", "netgate-vpp"])
def test_a_driver_of_a_later_version_says_so(name: str) -> None:
    def connect() -> Transport:
        raise AssertionError("nothing may be reached for")

    config = load_dut(str(ROOT / f"dut_configs/{name}.yaml"))
    with pytest.raises(DutError) as caught:
        open_dut(config, connect, {})
    assert str(caught.value) == (
        f"{name}: driver {config.driver} is not in this version, linux is: "
        "use --no-apply to measure a DUT you configured by hand"
    )
    assert config.driver not in DRIVERS


def test_not_attested_says_so() -> None:
    config = load_dut(str(ROOT / "dut_configs/netgate-vpp.yaml"))
    document = not_attested(config).to_document()
    assert (document["attested"], document["facts_sha256"], document["applied"]) == (False, None, [])
    assert "--no-apply" in document["facts"]["not attested"]
