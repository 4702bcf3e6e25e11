"""A VPP as the lab's router: what is started, where, and what is said where there is none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from configs import ROOT, errors_of, shipped

from trexbench.config.model import vpp_socket
from trexbench.config.schema import read_dut
from trexbench.core.errors import LabError
from trexbench.lab import LabSpec, Placement, vpp

CONFIG = read_dut(ROOT / "dut_configs/lab-vpp.yaml")
SPEC = LabSpec.from_config(CONFIG)
VM, OWN = "guest: vpp", "interfaces: "


def test_the_interfaces_are_linuxs_and_the_socket_is_the_labs() -> None:
    assert SPEC.dut_interfaces == ("d0", "d1")
    assert CONFIG.vpp.socket == vpp_socket("tbv") == "/run/trexbench-vpp/tbv/cli.sock"
    assert CONFIG.with_lab_prefix("other").vpp.socket == "/run/trexbench-vpp/other/cli.sock"


@pytest.mark.parametrize(
    ("placement", "cpus", "lines"),
    [
        (Placement(0, (1,), 0), [0, 1], ["main-core 0", "corelist-workers 1"]),
        (Placement(0, (2, 3), 1), [0, 1, 2, 3], ["main-core 1", "corelist-workers 2,3"]),
        # the harness is not pinned: the main thread still is, off the workers' cores
        (Placement(None, (0,), None), [0, 1], ["main-core 1", "corelist-workers 0"]),
        # one core for everything: the main thread forwards
        (Placement(0, (0,), 0), [0], ["main-core 0"]),
        (Placement(0, (), None), [0, 1], []),
    ],
)
def test_who_runs_where(placement: Placement, cpus: list[int], lines: list[str]) -> None:
    text = vpp.startup_conf(SPEC, placement, cpus)
    cpu = text.partition("cpu {\n")[2].partition("}")[0]
    assert [line.strip() for line in cpu.splitlines()] == lines


def test_nothing_of_it_is_shared_with_another_vpp() -> None:
    """Socket, shared memory, runtime directory; and the host's huge pages are left alone."""
    one = vpp.startup_conf(SPEC, Placement(0, (1,), 0), [0, 1])
    other = vpp.startup_conf(replace(SPEC, prefix="tbw"), Placement(0, (1,), 0), [0, 1])
    assert other == one.replace("tbv", "tbw")
    for line in ("runtime-dir /run/trexbench-vpp/tbv", "cli-listen /run/trexbench-vpp/tbv/cli.sock", "prefix tbv-vpp"):
        assert f"  {line}\n" in one
    assert one.count("page-size 4k") == 2
    assert "plugin default { disable }" in one


def test_no_vpp_on_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LabError) as error:
        vpp.check(SPEC)
    assert str(error.value) == (
        "lab tbv uses VPP as its router, but vpp and vppctl cannot be found in PATH: "
        "install the packages vpp and vpp-plugin-core (https://fd.io), or use the kernel: --dut lab-linux"
    )
    for name in ("vpp", "vppctl"):
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(0o755)
    vpp.check(SPEC)
    with pytest.raises(LabError, match="is too long for a socket"):
        vpp.check(replace(SPEC, prefix="x" * 100))


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("lab-vpp", "  router: vpp\n", "", "lab.router: kernel with driver: vpp: write lab.router: vpp"),
        ("lab-linux", "\nlab:\n", "\nlab:\n  router: vpp\n", "vpp with driver: linux: write lab.router: kernel"),
        ("lab-vpp", "interfaces: af_packet ", "interfaces: dpdk ", "are veth pairs: write vpp.interfaces: af_pa"),
        ("lab-vpp", "  interfaces: af", "  workers: 2\n  interfaces: af", "vpp.workers: the lab itself sets this"),
        ("lab-vpp", "  interfaces: af", "  socket: /x\n  interfaces: af", "vpp.socket: the lab itself sets this"),
        ("lab-vpp", "router: vpp", "router: bsd", "'bsd'"),
        ("lab-vm-vpp", VM, f"{VM}\n    nic: vmxnet3", "virtio only: write nic: virtio, or name kernel and initrd"),
        ("lab-vm-vpp", VM, f"{VM}\n    nic: e1000e", "drives virtio only: write nic: virtio"),
        ("lab-vm-vpp", f"{OWN}native", f"{OWN}dpdk", "drives its NICs itself: write vpp.interfaces: native"),
        ("lab-vm-vpp", f"vpp:\n  {OWN}native", "", "drives its NICs itself: write vpp.interfaces: native"),
    ],
)
def test_a_config_that_contradicts_itself(name: str, old: str, new: str, said: str) -> None:
    assert said in errors_of(shipped(name), old, new)[0]
