"""Variants: what a config may say, the rules they become, and how a run in one is told from others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from bench import MACS, Bench
from box_linux import LinuxBox
from configs import errors_of
from configs import shipped as shipped_config
from routed import plain_lab

from trexbench.config.firewall import read_rules, shipped
from trexbench.config.model import DutConfig
from trexbench.config.schema import dut_of
from trexbench.core.errors import ConfigError
from trexbench.dut import Change, Command, Wanted
from trexbench.dut.apply import of_others
from trexbench.dut.journal import Entry, FileJournal
from trexbench.dut.linux.firewall import RuleLoad, firewall_changes, load_of
from trexbench.dut.tcp_hosts import router_wanted
from trexbench.session.options import Case, Setup
from trexbench.session.request import PlanDefaults, request_of

ROOT = Path(__file__).parents[2]


def config_of(folder: Path, variants: str, base: Path | None = None) -> DutConfig:
    """Return a config with these variants: that of lab-linux, where no other is named."""
    path = folder / "box.yaml"
    path.write_text(f"{base.read_text() if base else plain_lab()}\nvariants:\n{variants}")
    return dut_of(path, path.read_text())


LAB = plain_lab()
STATEFUL_TWIN = LAB.replace("  noise: 1%\n", "  noise: 1%\n  variants: {stateful: {cycles_per_packet: 3400}}\n")


@pytest.mark.parametrize(
    ("text", "variant", "said"),
    [
        (LAB, "none: {nat: true}", "variants.none: not the name of a variant: write it as stateful; none is"),
        (LAB, "a: {firewall: statefull}", "'statefull' is not known: write one of none, stateless, stateful, rasp"),
        (LAB, "a: {firewall: gone.nft}", "gone.nft: No such file"),
        (LAB, "a: {sysctls: {net.ipv4.ip_forward: 0}}", "is set by the driver itself"),
        (STATEFUL_TWIN, "nat: {nat: true}", "twin.variants.stateful: is not under variants"),
        (shipped_config("netgate-vpp"), "a: {nat: true}", "driver vpp cannot set variants: remove it, or use driver"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(text: str, variant: str, said: str) -> None:
    assert any(said in one for one in errors_of(f"{text}\nvariants:\n  {variant}\n"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("table ip filter {\n}\n", ":1: 'table ip filter' is not the one table"),
        ("table inet trexbench {\n}\ntable inet trexbench {\n}\n", "is not the one table"),
        ("table inet trexbench {\n}\nflush ruleset\n", ":3: 'flush ruleset' does not belong here"),
        ('table inet trexbench {\n include "/etc/passwd"\n}\n', ":2: 'include \"/etc/passwd\"' does not belong"),
        ('table inet trexbench {\n chain a {\n include "x"\n }\n}\n', ":3: 'include \"x\"' does not belong here"),
        ("table inet trexbench {\n}\n}\n", ":3: a closing brace too many"),
        ("", "the table is incomplete"),
        ("*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n", "no longer supported: translate them with iptables-r"),
    ],
)
def test_rules_that_reach_beyond_their_own_table_are_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "rules"
    path.write_text(text)
    with pytest.raises(ConfigError) as wrong:
        read_rules(path)
    assert said in str(wrong.value)


def test_rules_are_counted_by_chain_as_the_kernel_will_list_them(tmp_path: Path) -> None:
    path = tmp_path / "office.nft"
    path.write_text(
        "table inet trexbench { # a comment }\n set hosts { type ipv4_addr; elements = { 10.0.0.1,\n 10.0.0.2 } }\n"
        ' chain a { type filter hook forward priority 0; policy drop; counter accept; log prefix "} #" ; }\n'
        " chain b {\n  tcp dport { 22,\n   80 } accept\n  drop\n }\n}\n"
    )
    found = read_rules(path)
    assert found.rules == {"a": 2, "b": 2}
    assert "comment" not in found.body


def load_for(wanted: Wanted) -> RuleLoad:
    load = load_of(wanted)
    assert load is not None
    return load


def test_the_documents_rule_set_is_there(tmp_path: Path) -> None:
    assert shipped() == ("raspberry-pi-2015",)
    config = config_of(tmp_path, "  pi: {firewall: raspberry-pi-2015}\n").with_variant("pi")
    assert load_for(Wanted(config)).rules["inet forward"] == 6


def test_flows_are_offloaded_between_the_duts_interfaces(tmp_path: Path) -> None:
    config = config_of(tmp_path, "  fast: {flow_offload: true, nat: true}\n").with_variant("fast")
    load = load_for(Wanted(config, MACS))
    assert 'hook ingress priority 0; devices = { "d0", "d1" };' in load.text
    assert "meta l4proto { tcp, udp } flow add @trexbench_flows" in load.text
    assert load.rules["inet trexbench_offload"] == load.rules["inet trexbench_nat"] == 1
    assert "inet forward" not in load.rules


def test_what_is_there_is_left_and_what_is_no_longer_wanted_goes(tmp_path: Path) -> None:
    config = config_of(tmp_path, "  stateful: {firewall: stateful}\n")
    wanted = Wanted(config.with_variant("stateful"), MACS)
    load = load_for(wanted)
    assert firewall_changes(wanted, {"own_rules": {"nft": load.rules}}) == []
    (less,) = firewall_changes(wanted, {"own_rules": {"nft": {**load.rules, "inet forward": 1}}})
    assert [command.argv for command in less.do] == [("nft", "-f", "-")]
    (gone,) = firewall_changes(Wanted(config, MACS), {"own_rules": {"nft": load.rules}})
    assert [command.argv for command in gone.do] == [("nft", "delete", "table", "inet", "trexbench")]
    assert firewall_changes(Wanted(config, MACS), {}) == []


def test_a_variants_settings_replace_those_of_the_same_name_and_are_marked(tmp_path: Path) -> None:
    variants = "  t: {sysctls: {net.ipv4.tcp_rmem: 4096  131072 1048576}, offloads: {generic-receive-offload: off}}\n"
    config = config_of(tmp_path, variants, ROOT / "dut_configs/netgate-linux.yaml").with_variant("t")
    box = LinuxBox()
    box.files["/proc/sys/net/ipv4/tcp_rmem"] = "1 2 3"
    marked = [change for change in Bench(tmp_path, box, config).dut.plan() if change.variant == "t"]
    offloads = [f"generic-receive-offload of {name}" for name in box.nics]
    assert [change.what for change in marked] == [*offloads, "net.ipv4.tcp_rmem"]
    assert marked[-1].do[0].input == "4096 131072 1048576\n"
    assert config.with_variant("none").variant == "t"
    with pytest.raises(ConfigError, match="box has no variant 'x': its config has t"):
        config.with_variant("x")


def test_only_what_other_variants_have_set_is_undone_first(tmp_path: Path) -> None:
    journal = FileJournal("box", tmp_path)
    one = Change("a", "0", "1", (Command(("true",), ""),), (Command(("true",), ""),))
    for variant in (None, "stateful", "nat"):
        journal.add(Entry("boot", "here", replace(one, variant=variant)))
    assert [change.variant for change in of_others(journal, "nat")] == ["stateful"]
    assert [change.variant for change in of_others(journal, None)] == ["nat", "stateful"]


def test_a_twin_answers_only_for_variants_that_it_describes(tmp_path: Path) -> None:
    base = tmp_path / "base.yaml"
    base.write_text(STATEFUL_TWIN)
    variants = "  plain: {}\n  stateful: {firewall: stateful}\n  nat: {nat: true}\n"
    config = config_of(tmp_path, variants, base)
    assert config.with_variant("stateful").chosen_twin.packet_cycles == 3400
    assert config.with_variant("plain").chosen_twin == config.twin
    case = Case("box", "var2-64b", variant="nat")
    with pytest.raises(ConfigError, match=r"the twin of box does not describe variant nat: state twin.variants.nat in"):
        request_of(config, "ramp", case, PlanDefaults(), Setup(sim=True))


def test_a_dut_that_dials_in_masquerades_clamps_segments_and_takes_no_packets_of_the_tester(
    tmp_path: Path,
) -> None:
    config = config_of(tmp_path, "  ppp: {pppoe: true, firewall: stateful}\n").with_variant("ppp")
    load = load_for(router_wanted(config))
    assert 'oifname "tbppp0" tcp flags syn counter tcp option maxseg size set rt mtu' in load.text
    assert 'oifname "tbppp0" counter masquerade' in load.text and 'iifname "tbppp0" ct state new' in load.text
    assert load.rules["inet trexbench_mss"] == load.rules["inet trexbench_nat"] == 1
    case = Case("box", "64b", variant="ppp")
    with pytest.raises(ConfigError, match=r"variant ppp of box dials in to the server of TCP tests"):
        request_of(config_of(tmp_path, "  ppp: {pppoe: true}\n"), "ramp", case, PlanDefaults(), Setup())
