"""``trexbench dut new`` as a whole command."""

from __future__ import annotations

from pathlib import Path

from tools import ROOT, fake_server, succeed, trexbench

from trexbench.config.model import GeneratorConfig
from trexbench.config.schema import read_dut


def test_a_new_dut_is_written_once_checked_and_found(tmp_path: Path) -> None:
    with fake_server() as server:
        done = trexbench(
            tmp_path, "dut", "new", "mine", "--driver", "linux", "--interfaces", "eth1,eth2", *server.where
        )
    assert done.returncode == 0 and done.stdout.strip() == "dut_configs/mine.yaml", done.stderr
    config = read_dut(tmp_path / "dut_configs" / "mine.yaml")
    assert [port.interface for port in config.ports] == ["eth1", "eth2"] and config.speed_bps == 1e10
    assert config.generator == GeneratorConfig("127.0.0.1", server.rpc_port, server.pub_port)
    assert all(port.neighbour.mac and port.neighbour.mac.startswith("02:00") for port in config.ports)
    config.file.write_text(config.text.replace("change-me", "router"))
    assert "nothing is wrong" in trexbench(tmp_path, "dut", "check", "mine").stdout
    again = trexbench(tmp_path, "dut", "new", "mine.yaml", "--driver", "none")
    assert again.returncode == 2 and "exists already" in again.stderr


def test_what_is_not_known_is_marked_and_nothing_is_overwritten(tmp_path: Path) -> None:
    done = succeed(tmp_path, "dut", "new", "mine", "--driver", "pfsense", "-o", "-")
    assert "change-me" in done.stdout and not list(tmp_path.glob("dut_configs/*"))
    written = trexbench(tmp_path, "dut", "new", "draft", "--driver", "linux")
    checked = trexbench(tmp_path, "dut", "check", "draft")
    told = "change-me: `dut new` could not find this out: write the value here"
    assert written.returncode == 0 and f"transport.host: {told}" in written.stderr
    lines = checked.stdout.splitlines()
    assert checked.returncode == 2 and len(lines) == 3 and f"draft.yaml:5: transport.host: {told}" in lines[0]
    assert "ports[0].interface: change-me-0: " in lines[1] and "ports[1].interface: change-me-1: " in lines[2]


def test_a_dut_that_answers_nothing_is_not_recorded(tmp_path: Path) -> None:
    config = (ROOT / "dut_configs" / "lab-linux.yaml").read_text()
    (tmp_path / "absent.yaml").write_text(config.replace("prefix: tbx", "prefix: tbn"))
    done = trexbench(tmp_path, "dut", "record", "./absent.yaml", "-o", "made.json")
    assert done.returncode == 6 and "answered nothing" in done.stderr and "Traceback" not in done.stderr, done.stderr
    assert not (tmp_path / "made.json").exists()
