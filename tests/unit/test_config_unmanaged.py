"""Configs of DUTs that no driver of ours knows, and everything that is wrong told at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from configs import BARE, BOX, ROOT, errors_of, example

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
