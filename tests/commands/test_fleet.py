"""Nights by a simulated fleet: as this machine alone would measure them, and after the loss of testers."""

from __future__ import annotations

import json
import signal
import socket
import ssl
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from effort import by_day
from tools import trexbench

from suites import FOUR
from trexbench.fleet.leases import LeaseFolder, leased
from trexbench.results.nights import load_nights
from trexbench.results.remote import mirror_of
from trexbench.results.store import load_run

pytest.importorskip("distributed")

SUITE = "suite", "run", "four.yaml", "--sim", "--speedup", "10000", "--date", "2026-11-21", "-q"


def totals(results: Path) -> dict[str, float]:
    (night,) = load_nights(results, pytest.fail)
    assert not night.left and not night.failed and night.finished and night.error is None
    return {str(cell): load_run(results / (cell.path or "")).analysis.total_pps for cell in night.cells}


@pytest.mark.nightly
def test_a_fleet_measures_what_one_machine_does(tmp_path: Path) -> None:
    (tmp_path / "four.yaml").write_text(FOUR.replace("uni, bidir", "bidir"))
    assert trexbench(tmp_path, *SUITE, "--results", "alone").returncode == 0
    done = trexbench(tmp_path, *SUITE, "--results", "many", "--fleet", "local:2", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert totals(tmp_path / "many") == totals(tmp_path / "alone")
    cells = json.loads(done.stdout)["cells"]
    testers = {load_run(tmp_path / "many" / cell["attempts"][-1]["path"]).command["tester"] for cell in cells}
    assert testers == {"t1", "t2"}
    refused = trexbench(tmp_path, *SUITE, "--results", "many", "--fleet", "local:2", "--resume")
    assert refused.returncode == 2 and "is unfinished" in refused.stderr


@pytest.mark.nightly
def test_testers_that_are_killed_and_stopped_lose_nothing(tmp_path: Path) -> None:
    """One is killed while it drives a DUT, then the other stopped, for good as far as it knows: its guard ends it."""
    import lost_testers

    place, faults = lost_testers.make_place(tmp_path / "place", duts=2), [signal.SIGKILL, signal.SIGSTOP]
    # a busy machine may not let a thread run in time for a lease of 2 s, whose guard ends a tester after 1.3 s
    night, hurt = lost_testers.start_night(place, testers=2, lease_s=6.0), set[int]()
    try:
        while night.poll() is None:
            fresh = [pid for pid in lost_testers.driving(place, night.pid) if pid not in hurt]
            if faults and fresh and lost_testers.send(fresh[0], faults[0]):
                hurt.add(fresh[0])
                del faults[0]
            time.sleep(0.02)
    finally:
        night.kill()
    after = lost_testers.aftermath(place)
    assert night.returncode == 0 and not faults, (place / "night.log").read_text()
    assert after.is_clean and after.done == 4 and not after.failed, after


def test_testers_leave_ctrl_c_to_the_night_and_talk_to_who_has_its_certificate(tmp_path: Path) -> None:
    from trexbench.fleet.cluster import on_this_machine, testers_there

    with on_this_machine({"t1": ["r1"]}, 10.0, tmp_path) as client:
        assert client.submit(signal.getsignal, signal.SIGINT).result() == signal.SIG_IGN
        assert list(client.run_on_scheduler(testers_there)) == ["t1"]
        address = client.scheduler.address
        assert address.startswith("tls://127.0.0.1:")
        with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), timeout=30) as bare:
            stranger = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            stranger.check_hostname, stranger.verify_mode = False, ssl.CERT_NONE
            with pytest.raises(ssl.SSLError), stranger.wrap_socket(bare) as shut:
                shut.recv(1)


@pytest.mark.parametrize(
    "is_stored", by_day(1, [True, False]), ids=lambda yes: "in a store" if yes else "in a directory"
)
def test_a_person_reverts_what_a_testers_journal_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_stored: bool
) -> None:
    results, revert = tmp_path / "results", ("dut", "revert", "box")
    if is_stored:  # the tester is another machine, with a mirror of its own
        pytest.importorskip("fsspec")
        revert = (*revert, "--results", address := f"file://{tmp_path}/store")
        monkeypatch.setenv("TREXBENCH_STATE_DIR", str(tmp_path / "tester"))
        results = mirror_of(address)
    flag = tmp_path / "flag"
    step = f"{{what: flag, run: [touch, {flag}], check: [ls, {tmp_path}], matches: flag, undo: [rm, {flag}]}}"
    (tmp_path / "dut_configs").mkdir()
    (tmp_path / "dut_configs" / "box.yaml").write_text(
        f"driver: commands\ntransport: {{type: local}}\nports: [{{tester: 0}}, {{tester: 1}}]\n"
        f"commands: {{apply: [{step}]}}\n"
    )
    with monkeypatch.context() as of_tester:
        of_tester.setenv("TREXBENCH_JOURNAL_DIR", str(tmp_path / "results" / ".fleet"))
        assert trexbench(tmp_path, "dut", "apply", "box").returncode == 0 and flag.exists()
    if is_stored:
        (tmp_path / "store").mkdir()
        (tmp_path / "results" / ".fleet").rename(tmp_path / "store" / ".fleet")
    leases = LeaseFolder(results / ".fleet" / "leases", "box")
    with leased(leases, "t1-a", 5.0, SimpleNamespace(kill_at=lambda *_: None)):
        refused = trexbench(tmp_path, *revert)
        assert refused.returncode and "box is leased by t1-a until 2" in refused.stderr and flag.exists()
        assert refused.stdout == "", "nothing was tried before"
    done = trexbench(tmp_path, *revert)
    assert "1 reverted" in done.stdout and not flag.exists(), done.stderr
    assert "nothing to revert" in trexbench(tmp_path, *revert).stdout
