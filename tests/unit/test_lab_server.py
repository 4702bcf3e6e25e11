"""Processes of a lab's server are found by the lab's mark, wherever on their way they are."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from sshd import eventually

from trexbench.config.lookup import load_dut
from trexbench.lab import LabSpec, build, keeper, net, server, state
from trexbench.lab.state import Process
from trexbench.lock import RUN_DIR_ENV

LAB, OTHER = f"tlm{os.getpid()}", f"tlo{os.getpid()}"


@pytest.fixture
def started() -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """A process with each lab's mark, in the namespace of the tests."""
    argv = ["sleep", "60"]
    processes = {name: subprocess.Popen(argv, env={**os.environ, state.MARK: name}) for name in (LAB, OTHER)}
    yield processes
    for process in processes.values():
        process.kill()
        process.wait(30)


def test_a_server_that_has_not_entered_its_namespace_yet_is_stopped_too(
    started: dict[str, subprocess.Popen[bytes]],
) -> None:
    """Stop ``ip netns exec`` before it enters: it would start the server in a namespace that is removed meanwhile."""
    no_namespace = 0
    eventually(lambda: bool(state.server_processes(LAB, no_namespace)), "its environment can be read", 30)
    assert [process.pid for process in state.server_processes(LAB, no_namespace)] == [started[LAB].pid]
    server.stop(LAB, no_namespace)
    assert started[LAB].wait(30) != 0 and started[OTHER].poll() is None


def test_a_server_whose_environment_tells_nothing_yet_is_known(started: dict[str, subprocess.Popen[bytes]]) -> None:
    server.stop(f"{LAB}x", 0, [Process.of(started[LAB].pid)])
    assert started[LAB].wait(30) != 0 and started[OTHER].poll() is None


def test_a_signal_leaves_no_lab_half_taken_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is heeded, once the lab is gone."""
    monkeypatch.setenv(RUN_DIR_ENV, str(tmp_path))
    monkeypatch.setattr(state, "NETNS_DIR", tmp_path)

    def remove(name: str) -> None:
        signal.raise_signal(signal.SIGTERM)
        (tmp_path / name).unlink()

    monkeypatch.setattr(net, "remove_namespace", remove)
    spec = LabSpec.from_config(load_dut("lab-linux").with_lab_prefix(LAB))
    for name in spec.namespaces:
        (tmp_path / name).touch()
    lab = state.update(state.new_state(spec, "ephemeral"), namespaces=dict.fromkeys(spec.namespaces))
    before = signal.signal(signal.SIGTERM, keeper._on_sigterm)
    try:
        with pytest.raises(SystemExit):
            build.take_down(lab)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert not list(tmp_path.iterdir())
