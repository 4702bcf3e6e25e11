"""``--sim``, as a user without root and without a network runs it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from effort import NIGHTLY
from tools import ROOT, TREXBENCH, begin, document, environment, succeed, trexbench

FIRST = ("ramp", "--dut", "netgate-vpp", "--mode", "var2-64b", "--bidir", "--sim")
QUICK = ("--ramp-duration", "60", "--hold", "5", "--confirm", "2")
SHORT = (*QUICK, "--no-picture")


def without_times(document: dict[str, Any]) -> dict[str, Any]:
    assert document["derived"].pop("digest") and document.pop("finished")
    for key in ("id", "started"):
        assert document["derived"]["rows"][0].pop(key) and document.pop(key)
    document["generator"]["server"].pop("address")
    document["generator"]["host"].pop("uptime")
    return document


def test_the_first_command_of_the_readme(tmp_path: Path) -> None:
    """In a tenth of its simulated time; at night test_documented_commands.py runs it as it is."""
    assert f".venv/bin/trexbench {' '.join(FIRST)}\n" in (ROOT / "README.md").read_text(encoding="utf-8")
    done = succeed(tmp_path, *FIRST, *QUICK, "--speedup", "10000")
    assert done.stdout.startswith("*** SIMULATED")
    assert "netgate-vpp var2-64b bidir simulated:" in done.stdout and "the DUT saturated" in done.stdout
    assert "received, Mpps" in done.stdout
    found = document(tmp_path)
    assert found["simulated"] is True and found["status"] == "complete"
    assert len([s for s in found["samples"] if s["phase"] == "ramp"]) == 60
    assert found["dut"]["attested"] is False and found["dut"]["applied"] == []
    assert "--sim" in found["dut"]["facts"]["not attested"]
    (picture,) = tmp_path.glob("results/*/*/*.png")
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.nightly
def test_the_same_seed_measures_the_same_at_any_speed_and_if_stopped_for_a_while(tmp_path: Path) -> None:
    """While it connects, while it measures: longer than any client waits for a real server."""
    moments = (None, 1.2, *((0.6, 0.9, 1.6, 2.0) if NIGHTLY else ()))
    folders = [tmp_path / f"stopped-{moment}" for moment in moments]
    for folder in folders:
        folder.mkdir()
    options = (*FIRST, *SHORT, "--latency", "2s", "--seed", "5", "-q", "--speedup")
    begun_s = time.monotonic()
    runs = [begin(folder, *options, "2000" if folder is folders[0] else "100") for folder in folders]
    for moment, run in sorted(zip(moments[1:], runs[1:], strict=True), key=lambda pair: float(pair[0] or 0)):
        time.sleep(max(0.0, begun_s + float(moment or 0) - time.monotonic()))
        run.send_signal(signal.SIGSTOP)
    time.sleep(4.0)
    for run in runs[1:]:
        run.send_signal(signal.SIGCONT)
    said = [run.communicate(timeout=90)[1] for run in runs]
    assert [run.returncode for run in runs] == [0] * len(runs), said
    assert all(without_times(document(folder)) == without_times(document(folders[0])) for folder in folders)


def test_a_name_that_no_result_could_have_is_refused_at_once(tmp_path: Path) -> None:
    shutil.copy(ROOT / "dut_configs" / "netgate-vpp.yaml", tmp_path / "a<b>.yaml")
    done = trexbench(tmp_path, "ramp", "--dut", "a<b>.yaml", "--mode", "64b", "--sim")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert "'a<b>' cannot be the name of a DUT: rename it" in done.stderr and not (tmp_path / "results").exists()


def test_a_search_without_an_answer_says_so_and_exits_with_4(tmp_path: Path) -> None:
    config = (ROOT / "dut_configs/netgate-linux.yaml").read_text()
    assert config.count("  noise: 0.3%\n") == 1
    (tmp_path / "dut_configs").mkdir()
    (tmp_path / "dut_configs" / "restless.yaml").write_text(config.replace("  noise: 0.3%\n", "  noise: 20%\n"))
    asked = ("--dut", "restless", "--sim", "--speedup", "10000", "--no-picture", "-q")
    done = trexbench(tmp_path, "search", "--mode", "64b", "--width", "0.1%", *asked)
    assert done.returncode == 4, done.stdout + done.stderr
    assert "NO ANSWER: 0->1: 36 looks did not find" in done.stdout
    assert done.stderr.splitlines()[-1].startswith("trexbench: no answer: 0->1: 36 looks did not find")
    assert "no answer" in trexbench(tmp_path, "results", "list").stdout


def test_serve_puts_a_twin_behind_a_port_for_any_client(tmp_path: Path) -> None:
    served = begin(
        tmp_path, "lab", "serve", "--sim", "netgate-vpp", *["--rx-queues", "2", "--rpc-port", "0", "--pub-port", "0"]
    )
    try:
        assert served.stdout is not None
        rpc, pub = re.findall(r":(\d+)", served.stdout.readline())
        where = ("--server", "127.0.0.1", "--rpc-port", rpc, "--pub-port", pub, "--no-apply")
        plan = ("--warmup", "10kpps:1s", "--ramp-duration", "4", "--hold", "1", "--sample", "500ms", "--no-picture")
        done = trexbench(tmp_path, "ramp", "--dut", "netgate-vpp", "--mode", "imix", "-q", *plan, *where)
    finally:
        served.terminate()
        served.communicate(timeout=60)
    assert done.returncode == 0, done.stderr
    assert "SIMULATED" in done.stdout and served.returncode == 0


def unshared(folder: Path, *namespaces: str) -> subprocess.CompletedProcess[str]:
    """The first command, shortened, in new namespaces; skips where this user may make none."""
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not installed")
    if subprocess.run(["unshare", *namespaces, "true"], capture_output=True, timeout=10).returncode:
        pytest.skip(f"this user may not unshare {' '.join(namespaces)}")
    return subprocess.run(
        ["unshare", *namespaces, *TREXBENCH, *FIRST, *SHORT, "--speedup", "10000", "-q"],
        cwd=folder,
        env=environment(folder / "run"),
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_no_network_at_all_changes_nothing(tmp_path: Path) -> None:
    done = unshared(tmp_path, "--net", *(() if os.geteuid() == 0 else ("--user", "--map-root-user")))
    assert done.returncode == 0, done.stderr
    assert "the DUT saturated" in done.stdout


def test_where_loopback_is_down_and_stays_so_the_way_without_root_is_named(tmp_path: Path) -> None:
    """In user and network namespaces without a map a process may not bring it up; with a map, as above, it may."""
    done = unshared(tmp_path, "--user", "--net")
    assert done.returncode == 2 and "loopback interface is down: start trexbench with 'unshare -rn'" in done.stderr


def test_it_takes_no_root(tmp_path: Path) -> None:
    """In a user namespace without a map a process is nobody, and has no capability at all."""
    done = unshared(tmp_path, "--user")
    assert done.returncode == 0, done.stderr
    assert "the DUT saturated" in done.stdout and document(tmp_path)["simulated"] is True
