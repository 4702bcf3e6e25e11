"""Variants on a real kernel: rules are loaded, take the traffic, and leave nothing behind."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from labs import document, lab_up, write_lab
from tools import succeed, trexbench

from trexbench.config.lookup import load_dut
from trexbench.config.model import DutConfig
from trexbench.config.schema import dut_of
from trexbench.core.errors import DutError
from trexbench.dut import Wanted
from trexbench.dut.apply import apply, revert
from trexbench.dut.journal import FileJournal
from trexbench.dut.linux.driver import LinuxDut
from trexbench.lab import Lab, LabSpec, RunningLab
from trexbench.transport import open_transport

PREFIX = f"tbva{os.getpid()}"
VARIANTS = """
variants:
  stateful: {firewall: stateful}
  both: {firewall: stateful, nat: true}
  document: {firewall: raspberry-pi-2015}
  tuned:
    sysctls: {net.ipv4.tcp_rmem: 4096 131072 1048576}
    offloads: {generic-receive-offload: off}
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The directory of a lab that stays; what runs here finds that lab, too."""
    folder = tmp_path_factory.mktemp("variants")
    write_lab(folder, PREFIX, more=VARIANTS)
    with pytest.MonkeyPatch.context() as patched, lab_up(folder):
        patched.setenv("TREXBENCH_RUN_DIR", str(folder / "run"))
        yield folder


@pytest.fixture
def config(place: Path) -> DutConfig:
    """lab-linux with variants, under names of its own."""
    return load_dut(str(place / "own.yaml"))


def in_dut(*argv: str) -> str:
    done = subprocess.run(["ip", "netns", "exec", f"{PREFIX}-dut", *argv], capture_output=True, text=True)
    return done.stdout


def state() -> str:
    """Rules, without what only time changes, kernel settings and offloads."""
    seen = in_dut("nft", "list", "ruleset") + in_dut("cat", "/proc/sys/net/ipv4/tcp_rmem")
    return seen + in_dut("ethtool", "-k", "d0")


def dut_in(config: DutConfig, lab: RunningLab, variant: str | None) -> LinuxDut:
    transport = open_transport(config.transport)
    return LinuxDut(Wanted(config.with_variant(variant), lab.spec.tester_macs, None, lab.host_facts), transport)


def test_variants_are_set_read_back_exchanged_and_taken_away(config: DutConfig, tmp_path: Path) -> None:
    """Each after the other: what the former has set is gone, applying twice changes nothing."""
    journal = FileJournal(PREFIX, tmp_path)
    transport = open_transport(config.transport)
    with Lab(LabSpec.from_config(config)).running() as lab:
        in_dut(
            "nft", "add table ip theirs { chain forward { type filter hook forward priority 0; tcp dport 9 drop; }; }"
        )
        apply(dut_in(config, lab, None), transport, journal)
        before = state()
        assert "tcp dport 9 drop" in before, "the user's own rules stay where they are"
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
    fast = dut_of(config.file, config.text + "  fast: {flow_offload: true}\n")
    journal = FileJournal(PREFIX, tmp_path)
    transport = open_transport(fast.transport)
    with Lab(LabSpec.from_config(fast)).running() as lab:
        apply(dut_in(fast, lab, None), transport, journal)
        before, dut = state(), dut_in(fast, lab, "fast")
        try:
            apply(dut, transport, journal, variant="fast")
        except DutError as error:
            assert "variant fast: its rules cannot be loaded (nft: " in str(error)
            assert "flowtable" in str(error) and "remove flow_offload" in str(error)
        else:
            assert apply(dut, transport, journal, variant="fast") == ()
            dut.verify().require_match()
            assert "flowtable trexbench_flows" in in_dut("nft", "list", "ruleset")
        revert(dut, transport, journal, only=lambda change: change.variant == "fast")
        assert state() == before


def test_packets_of_a_run_pass_its_rules(place: Path) -> None:
    """In a lab that stays, so that the rules can be looked at; a revert takes them away."""
    ramp = ("ramp", "--dut", "./own.yaml", "--variant", "both", "--mode", "var2-64b", "--sample", "200ms")
    steps = ("--warmup", "1kpps:1s", "--ramp-to", "10kpps", "--ramp-duration", "4s", "--hold", "1s", "--confirm", "0")
    done = trexbench(place, *ramp, *steps, "--no-picture")
    assert done.returncode in (0, 1), done.stderr
    entries = json.loads(in_dut("nft", "-j", "list", "table", "inet", "trexbench"))["nftables"]
    counted = [
        (one["rule"]["chain"], expr["counter"]["packets"])
        for one in entries
        if "rule" in one
        for expr in one["rule"]["expr"]
        if "counter" in expr
    ]
    run = document(place)
    assert run["command"]["variant"] == "both"
    first, last = (run["samples"][at]["ports"]["1"]["ipackets"] for at in (0, -1))
    assert sum(packets for chain, packets in counted if chain == "forward") >= last - first > 1_000
    assert dict(counted)["trexbench_nat"] > 0, "of a flow the first packet only"
    succeed(place, "dut", "revert", "./own.yaml")
    assert "trexbench" not in in_dut("nft", "list", "ruleset")
