"""Variants on a real kernel: rules are loaded by nft and by iptables, take the traffic, and leave nothing behind."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from routed import plain_lab
from tools import trexbench

from trexbench.config.model import DutConfig
from trexbench.config.schema import dut_of
from trexbench.core.errors import DutError
from trexbench.dut import Wanted
from trexbench.dut.apply import apply, revert
from trexbench.dut.journal import FileJournal
from trexbench.dut.linux.driver import LinuxDut
from trexbench.lab import Lab, LabSpec, RunningLab, down
from trexbench.transport import Completed, Transport, open_transport

ROOT = Path(__file__).parents[2]
PREFIX = f"tbv{os.getpid()}"
VARIANTS = """
variants:
  stateless: {firewall: stateless}
  stateful: {firewall: stateful}
  nat: {nat: true}
  both: {firewall: stateful, nat: true}
  document: {firewall: raspberry-pi-2015}
  tuned:
    sysctls: {net.ipv4.tcp_rmem: 4096 131072 1048576}
    offloads: {generic-receive-offload: off}
"""


pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it makes network namespaces"),
]


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DutConfig]:
    """lab-linux with variants, under names of its own."""
    monkeypatch.setenv("TREXBENCH_RUN_DIR", str(tmp_path / "run"))
    path = ROOT / "dut_configs/lab-linux.yaml"
    yield dut_of(path, plain_lab() + VARIANTS).with_lab_prefix(PREFIX)
    down(PREFIX, force=True)


def in_dut(*argv: str) -> str:
    done = subprocess.run(["ip", "netns", "exec", f"{PREFIX}-dut", *argv], capture_output=True, text=True)
    return done.stdout


def state() -> str:
    """Rules, without what only time changes, kernel settings and offloads."""
    seen = (
        in_dut("nft", "list", "ruleset") + in_dut("cat", "/proc/sys/net/ipv4/tcp_rmem") + in_dut("ethtool", "-k", "d0")
    )
    for program in ("iptables-save", "ip6tables-save", "iptables-legacy-save", "ip6tables-legacy-save"):
        seen += "\n".join(line for line in in_dut(program).splitlines() if "trexbench" in line)
    return seen


def dut_in(config: DutConfig, lab: RunningLab, variant: str | None) -> LinuxDut:
    transport = open_transport(config.transport.type, config.transport.namespace)
    return LinuxDut(Wanted(config.with_variant(variant), lab.spec.tester_macs, None, lab.host_facts), transport)


def test_variants_are_set_read_back_exchanged_and_taken_away(config: DutConfig, tmp_path: Path) -> None:
    """Each after the other: what the former has set is gone, applying twice changes nothing."""
    journal = FileJournal(PREFIX, tmp_path)
    transport = open_transport(config.transport.type, config.transport.namespace)
    with Lab(LabSpec.from_config(config)).running() as lab:
        apply(dut_in(config, lab, None), transport, journal)
        before = state()
        for variant in (*dict(config.variants), "stateful", None):
            dut = dut_in(config, lab, variant)
            apply(dut, transport, journal, variant=variant)
            assert apply(dut, transport, journal, variant=variant) == (), variant
            dut.verify().require_match()
            assert (state() == before) == (variant is None), variant
        apply(dut_in(config, lab, "both"), transport, journal, variant="both")
        in_dut("nft", "flush", "chain", "inet", "trexbench", "forward")
        wrong = [one.what for one in dut_in(config, lab, "both").verify().mismatches]
        assert wrong == ["rules of trexbench"]
        revert(dut_in(config, lab, None), transport, journal)
        assert state() == before
        assert journal.entries() == ()


def test_flow_offload_is_set_or_the_kernel_refused(config: DutConfig, tmp_path: Path) -> None:
    """By what this kernel has: a flowtable read back and taken away again, or its lack named and nothing changed."""
    path = ROOT / "dut_configs/lab-linux.yaml"
    fast = dut_of(path, plain_lab() + "variants:\n  fast: {flow_offload: true}\n").with_lab_prefix(PREFIX)
    journal = FileJournal(PREFIX, tmp_path)
    transport = open_transport(fast.transport.type, fast.transport.namespace)
    with Lab(LabSpec.from_config(fast)).running() as lab:
        apply(dut_in(fast, lab, None), transport, journal)
        before, dut = state(), dut_in(fast, lab, "fast")
        try:
            apply(dut, transport, journal, variant="fast")
        except DutError as error:
            assert "variant fast: its rules cannot be loaded (nft: " in str(error)
            assert "flowtable" in str(error) and "take flow_offload out" in str(error)
        else:
            assert apply(dut, transport, journal, variant="fast") == ()
            dut.verify().require_match()
            assert "flowtable trexbench_flows" in in_dut("nft", "list", "ruleset")
        revert(dut, transport, journal, only=lambda change: change.variant == "fast")
        assert state() == before


class Without:
    """A DUT on which these programs are not installed."""

    def __init__(self, inner: Transport, *programs: str) -> None:
        self.inner, self.programs, self.place = inner, programs, inner.place

    def run(self, argv: Sequence[str], timeout_s: float, input: str | None = None) -> Completed:
        if argv[0] in self.programs:
            raise DutError(f"{argv[0]} is not there")
        return self.inner.run(argv, timeout_s, input)

    def close(self) -> None: ...


@pytest.mark.parametrize("tool", ["iptables", "iptables-legacy"])
def test_iptables_takes_what_nft_cannot(config: DutConfig, tmp_path: Path, tool: str) -> None:
    """The user's own rules stay where they are."""
    journal = FileJournal(PREFIX, tmp_path)
    transport = open_transport(config.transport.type, config.transport.namespace)
    with Lab(LabSpec.from_config(config)).running() as lab:
        in_dut(tool, "-A", "FORWARD", "-p", "tcp", "--dport", "9", "-j", "DROP")
        lacking = ("nft", "iptables-restore") if tool == "iptables-legacy" else ("nft",)
        poorer = Without(transport, *lacking)
        theirs = in_dut(f"{tool}-save", "-t", "filter")
        for variant in ("stateless", "both", "document"):
            dut = LinuxDut(Wanted(config.with_variant(variant), lab.spec.tester_macs, None, lab.host_facts), poorer)
            apply(dut, transport, journal, variant=variant)
            assert apply(dut, transport, journal, variant=variant) == (), variant
            found = dut.verify().require_match().facts
            assert found["rules_by"] == tool
            assert found["own_rules"][tool]["IPv6 filter FORWARD"] == 1
        revert(dut, transport, journal)
        assert "trexbench" not in state()
        left = in_dut(f"{tool}-save", "-t", "filter")
        assert [line for line in left.splitlines() if line[:2] == "-A"] == [
            line for line in theirs.splitlines() if line[:2] == "-A"
        ]
        in_dut(tool, "-F")


def test_rules_that_the_kernel_does_not_take_stop_the_run_before_anything_is_changed(
    config: DutConfig, tmp_path: Path
) -> None:
    rules = tmp_path / "wrong.nft"
    rules.write_text("table inet trexbench {\n  chain forward {\n    nonsense accept\n  }\n}\n")
    path = ROOT / "dut_configs/lab-linux.yaml"
    wrong = dut_of(path, plain_lab() + f"variants:\n  wrong: {{firewall: {rules}}}\n").with_lab_prefix(PREFIX)
    with Lab(LabSpec.from_config(config)).running() as lab:
        before = state()
        with pytest.raises(
            DutError, match=r"lab-linux: variant wrong: its rules cannot be loaded \(nft: .*rror.*nonsense"
        ):
            dut_in(wrong, lab, "wrong").plan()
        assert state() == before


@pytest.mark.parametrize("variant", ["stateless", "both"])
def test_packets_of_a_run_pass_its_rules(tmp_path: Path, variant: str) -> None:
    """In a lab that stays, so that the rules can be looked at; another run without the variant takes them away."""
    path = tmp_path / "box.yaml"
    path.write_text((plain_lab() + VARIANTS).replace("prefix: tbx ", f"prefix: {PREFIX} "))
    run = ("--mode", "var2-64b", "--ramp-to", "50kpps", "--ramp-duration", "6s", "--hold", "2s", "--confirm", "0")
    try:
        assert trexbench(tmp_path, "lab", "up", "--dut", str(path)).returncode == 0
        done = trexbench(tmp_path, "ramp", "--dut", str(path), *run, "--warmup", "1kpps:2s", "--variant", variant)
        assert done.returncode == 0, done.stderr
        entries = json.loads(in_dut("nft", "-j", "list", "table", "inet", "trexbench"))["nftables"]
        counted = [
            (one["rule"]["chain"], expr["counter"]["packets"])
            for one in entries
            if "rule" in one
            for expr in one["rule"]["expr"]
            if "counter" in expr
        ]
        assert sum(packets for chain, packets in counted if chain == "forward") > 50_000
        if variant == "both":  # of a flow the first packet only
            assert dict(counted)["trexbench_nat"] > 0
        (document,) = (tmp_path / "results").rglob("*-var2-64b-uni*.json")
        assert json.loads(document.read_text())["command"]["variant"] == variant
        assert trexbench(tmp_path, "dut", "revert", str(path)).returncode == 0
        assert "trexbench" not in in_dut("nft", "list", "ruleset")
    finally:
        trexbench(tmp_path, "lab", "down", "--dut", str(path), "--force")
