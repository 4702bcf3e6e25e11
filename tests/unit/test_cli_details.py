"""Small promises of the command line that no other file is about."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path

import pytest

from trexbench.cli import main

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def in_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TREXBENCH_RUN_DIR", str(tmp_path / "run"))
    for name in ("TREXBENCH_DUT_CONFIGS", "TREXBENCH_STL_PROFILES", "TREXBENCH_TREX_DIR"):
        monkeypatch.delenv(name, raising=False)


def run(arguments: Sequence[str], capfd: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """The exit code, standard output and standard error of a command."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    out, err = capfd.readouterr()
    assert isinstance(ended.value.code, int) and "Traceback" not in err
    return ended.value.code, out, err


def test_dut_verbs_ask_the_tester_at_both_of_its_ports(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "dut_configs" / "netgate-vpp.yaml").read_text()
    (tmp_path / "r.yaml").write_text(text.replace('"68:05:ca:32:45:94"', "tester"))
    with socket.create_server(("127.0.0.1", 0)) as answers, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        rpc, events = answers.getsockname()[1], closed.getsockname()[1]
        ports = ("--rpc-port", str(rpc), "--pub-port", str(events))
        code, _, err = run(("dut", "plan", "./r.yaml", "--server", "127.0.0.1", *ports), capfd)
    assert code == 5 and f"no TRex server's events at 127.0.0.1:{events}" in err
