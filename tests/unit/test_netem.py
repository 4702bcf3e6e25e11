"""A WAN by netem and tbf: what is set, how it is read back, who is refused; and what makes the line of a config."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from box_tc import PLAIN, TcBox
from boxes import BoxTransport
from configs import BOX, errors_of, shipped
from samples import LOSSY, SAMPLES

from trexbench.config.endpoints import TransportConfig
from trexbench.config.schema import dut_of, read_dut
from trexbench.core.errors import DutError
from trexbench.core.tcp.wan import Wan, parse_wan
from trexbench.dut import Change
from trexbench.dut.apply import revert
from trexbench.dut.journal import Entry, FileJournal
from trexbench.dut.linux.wan import deviations, parse_qdiscs, parts
from trexbench.host.linux import parse_qdisc_drops
from trexbench.session.dut import ConnectedDut
from trexbench.session.wan import carrier_of, made_by, netem_line, require_wan

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = ROOT / "dut_configs"
TEXTS = ("20ms,10gbit", "20ms,1gbit,loss=1.5%,jitter=3ms,queue=1mb", "20ms", "loss=1%", "100mbit", "20ms,5mbit")


def argvs(text: str, mtu: int = 1500) -> list[str]:
    return [" ".join(one.argv("d0")) for one in parts(parse_wan(text), mtu)]


def test_the_documents_line_has_half_of_its_delay_each_way_and_room_for_all_of_it() -> None:
    netem, tbf = argvs("20ms,10gbit")
    held = (12_500_000 + 25_000_000) // 60
    assert netem == f"tc qdisc add dev d0 root handle 7b0: netem limit {held} delay 10000us rate 1tbit"
    shaper = "handle 7b1: tbf rate 10000000000bit burst 5000000 limit 25000000"
    assert tbf == f"tc qdisc add dev d0 parent 7b0:1 {shaper}", "burst as in document 002"


def test_only_the_parts_that_are_needed() -> None:
    assert [line.split()[4:8] for line in argvs("1gbit")] == [["d0", "root", "handle", "7b0:"]]
    assert " tbf " in argvs("1gbit")[0]
    (netem,) = argvs("20ms,loss=0.01%,jitter=2ms")
    assert netem.endswith("delay 10000us 2000us loss random 0.01% rate 1tbit")
    assert "delay" not in argvs("loss=1%")[0]


def test_bursts_hold_two_of_the_largest_frames_and_netem_more_than_its_default_of_a_thousand() -> None:
    assert "burst 3044 " in argvs("1mbit")[0] and "burst 18044 " in argvs("1mbit", 9000)[0]
    for text, least in (("1ms,1mbit", 1000), ("20ms", 100e9 / 8 * 0.01 / 1500), ("200ms,1gbit", 12.5e6 / 60)):
        assert int(argvs(text)[0].split("limit ")[1].split()[0]) >= least


def test_what_the_kernel_cannot_hold_is_refused() -> None:
    with pytest.raises(DutError, match="at most"):
        parts(parse_wan("2s,100gbit"), 1500)


def test_what_tc_of_debian_12_prints_is_what_was_set() -> None:
    plain, lossy, *_ = (parse_qdiscs(text) for text in SAMPLES["dut.linux.wan.parse_qdiscs"])
    assert [(one.kind, one.handle, one.root) for one in plain] == [("netem", "7b0:", True), ("tbf", "7b1:", False)]
    assert not list(deviations(parse_wan("20ms,1gbit"), 1500, plain))
    assert not list(deviations(parse_wan(LOSSY), 1500, lossy))


@pytest.mark.parametrize(("text", "said"), [
    ("40ms,1gbit", "delay 10.0 ms in place of 20.0 ms"),
    ("20ms,1gbit,jitter=1ms", "jitter"),
    ("20ms,2gbit", "rate 1.000 Gbit/s in place of 2.000 Gbit/s"),
    ("20ms,1gbit,queue=1mb", "queue 2.50 MB in place of 1.00 MB"),
    ("20ms", "netem and tbf in place of netem"),
    ("1gbit", "netem and tbf in place of tbf"),
])  # fmt: skip
def test_anything_else_is_told(text: str, said: str) -> None:
    found = parse_qdiscs(SAMPLES["dut.linux.wan.parse_qdiscs"][0])
    assert said in "; ".join(deviations(parse_wan(text), 1500, found))


def test_what_a_wan_loses_is_no_loss_of_the_dut() -> None:
    text = SAMPLES["dut.linux.wan.parse_qdiscs"][1]
    assert parse_qdisc_drops(text) == {}
    assert parse_qdisc_drops(text.replace("7b0:", "7:")) != {}


class Host:
    """A driver of a host that has nothing but its line."""

    def identity(self) -> str:
        return "a boot"


def connected(box: TcBox, folder: Path) -> ConnectedDut:
    transport, journal = BoxTransport(box), FileJournal("box", folder)
    return ConnectedDut(cast(Any, Host()), cast(Any, transport), journal, cast(Any, None))


def kinds(box: TcBox) -> list[list[str]]:
    return [[one["kind"] for one in there] for there in box.qdiscs.values()]


@pytest.fixture
def box() -> TcBox:
    return TcBox(qdiscs={name: [dict(PLAIN)] for name in ("d0", "d1")})


@pytest.mark.parametrize("text", TEXTS)
def test_it_is_there_inside_the_block_and_journalled(box: TcBox, tmp_path: Path, text: str) -> None:
    host = connected(box, tmp_path)
    with netem_line(host, ("d0", "d1"), parse_wan(text)) as line:
        assert [len(there) for there in kinds(box)] == [len(argvs(text))] * 2
        assert made_by(line) == argvs(text)[0].partition(" handle 7b0: ")[2].split()[0]
        changes = [(one.change.what, one.change.was) for one in host.journal.entries()]
        assert changes == [("WAN on d0", "noqueue"), ("WAN on d1", "noqueue")]
    assert kinds(box) == [["noqueue"]] * 2 and not host.journal.entries()


def test_a_root_of_somebody_elses_is_refused_and_stays(box: TcBox, tmp_path: Path) -> None:
    box.qdiscs["d1"] = [{"kind": "htb", "handle": "1:", "root": True, "options": {}}]
    host = connected(box, tmp_path)
    with pytest.raises(DutError, match=r"d1 on the box has a qdisc of its own \(htb 1:\).*tc qdisc del dev d1"):
        netem_line(host, ("d0", "d1"), parse_wan("20ms")).__enter__()
    assert kinds(box) == [["noqueue"], ["htb"]] and not host.journal.entries()


def test_what_the_kernel_takes_and_forgets_is_no_line(tmp_path: Path) -> None:
    box = TcBox(qdiscs={"d0": [dict(PLAIN)]}, forgets=("loss-random",))
    with pytest.raises(DutError, match=r"WAN on d0 of the box is not .*loss 0.000 % in place of 1.00 %"):
        netem_line(connected(box, tmp_path), ("d0",), parse_wan("20ms,loss=1%")).__enter__()
    assert kinds(box) == [["noqueue"]]


def test_an_interface_that_is_not_there_is_named(box: TcBox, tmp_path: Path) -> None:
    with pytest.raises(DutError, match="interface d7 is not on the box"):
        netem_line(connected(box, tmp_path), ("d7",), parse_wan("20ms")).__enter__()


def test_what_a_killed_run_has_left_is_undone_by_the_next_and_by_a_revert(box: TcBox, tmp_path: Path) -> None:
    killed = [netem_line(connected(box, tmp_path), ("d0",), parse_wan(text)) for text in ("20ms,1gbit", "20ms")]
    killed[0].__enter__()
    assert kinds(box) == [["netem", "tbf"], ["noqueue"]]
    host = connected(box, tmp_path)
    host.journal.add(Entry("a boot", "the box", Change("ip_forward", "0", "1", (), ())))
    with netem_line(host, ("d0", "d1"), parse_wan("1gbit")):
        assert kinds(box) == [["tbf"], ["tbf"]]
    assert [one.change.what for one in host.journal.entries()] == ["ip_forward"], "what is no line stays"
    killed[1].__enter__()
    revert(host.dut, host.transport, host.journal)
    assert kinds(box) == [["noqueue"], ["noqueue"]] and not host.journal.entries()


def test_who_carries_the_line() -> None:
    lab = read_dut(CONFIGS / "lab-linux.yaml")
    assert lab.endpoints is not None
    found, packets = carrier_of(lab), carrier_of(lab, packets=True)
    assert found is not None and packets is not None
    assert found.interfaces == tuple(side.interface for side in lab.endpoints.sides) and len(found.interfaces) == 2
    assert packets.interfaces == tuple(port.interface for port in lab.ports)
    one_armed = carrier_of(read_dut(CONFIGS / "raspberry-pi.yaml"))
    assert one_armed is not None and one_armed.interfaces == ("eth0",)
    assert carrier_of(replace(lab, driver="none")) is None


TOLD = f"cat > batch; echo '{SAMPLES['dut.linux.wan.parse_qdiscs'][0]}'"


def says(*lines: str) -> str:
    return "".join(["cat >/dev/null; ", *(f"echo '{line}' >&2; " for line in lines), "exit 1"])


UNKNOWN = says("Error: Specified qdisc kind is unknown.", "Command failed -:1")
CANNOT = r"the DUT \(this machine\) cannot make a WAN of .* by netem and tbf \(Error: Specified .*modprobe sch_netem"


@pytest.mark.parametrize(("lab", "unshare", "text", "said"), [
    (False, TOLD, "20ms,1gbit", ""),
    (True, TOLD, "20ms,1gbit", ""),
    (False, UNKNOWN, "20ms,1gbit", CANNOT),
    (False, says("sh: 1: tc: not found"), "20ms", "tc is not installed.*iproute2.*wan_host"),
    (False, TOLD, "40ms,1gbit", "does not read a WAN of .* back: delay 10.0 ms in place of 20.0 ms"),
])  # fmt: skip
def test_what_makes_it_is_found_by_trying(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lab: bool, unshare: str, text: str, said: str
) -> None:
    """A program on PATH stands for the kernel."""
    (tmp_path / "unshare").write_text(f"#!/bin/sh\n{unshare}\n")
    (tmp_path / "unshare").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("TREXBENCH_RUN_DIR", str(tmp_path / "run"))
    monkeypatch.chdir(tmp_path)
    config = read_dut(CONFIGS / ("lab-linux.yaml" if lab else "raspberry-pi.yaml"))
    require_wan(config)
    config = replace(config.with_wan(parse_wan(text)), transport=TransportConfig("local"))
    if said:
        with pytest.raises(DutError, match=said):
            require_wan(config)
        return
    require_wan(config)
    batch = (tmp_path / "batch").read_text().splitlines()
    assert [line.split()[:4] for line in batch] == [["qdisc", "add", "dev", "lo"]] * len(argvs(text))


BASE = """
driver: none
endpoints:
  client: {transport: {type: ssh, host: left}, interface: eth1, address: 10.1.0.2/24, gateway: 10.1.0.1}
  server: {transport: {type: ssh, host: right}, interface: eth1, address: 10.2.0.2/24, gateway: 10.2.0.1}
wan: 20ms,1gbit
"""
HOST = "wan_host: {transport: {type: ssh, host: between}, interfaces: [eth0, eth1]}\n"


def test_a_wan_host_serves_a_router_of_any_kind() -> None:
    config = dut_of(BOX, BASE + HOST)
    carrier = carrier_of(config)
    assert carrier is not None and config.wan == Wan(0.02, 1e9)
    assert (carrier.transport.host, carrier.interfaces) == ("between", ("eth0", "eth1"))


@pytest.mark.parametrize(("text", "said"), [
    (BASE, "driver none cannot set one: remove it, use driver linux, or name a wan_host:"),
    (BASE + HOST.replace("eth0, eth1", "eth0, eth0"), "name both interfaces"),
    (BASE + HOST.replace("eth0, eth1", "eth0, 'a b'"), "'a b' is not an interface name"),
    (BASE + HOST.replace("ssh, host: between", "cli, host: b, platform: x"), "reached by netns, local, ssh"),
    (shipped("lab-linux") + HOST, "a lab has no host between"),
    (shipped("raspberry-pi") + HOST.replace("between", "router.example.net, user: root"), "the same host as the DUT"),
])  # fmt: skip
def test_what_is_no_wan_host_is_refused(text: str, said: str) -> None:
    assert any(said in one for one in errors_of(text))
