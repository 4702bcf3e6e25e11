"""A fleet's cluster: who may join, what a tester takes from a task, how testers are compared, what status says."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
import threading
import time
from dataclasses import asdict, replace
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from drives import Noted

from trexbench.config.fleet import CERTIFICATE_FILES, CERTIFICATES_ENV, Cluster, fleet_of, make_cluster
from trexbench.config.lookup import load_dut
from trexbench.config.suite import AS_IT_IS
from trexbench.core import errors
from trexbench.core.fleet.lease import LeaseRecord
from trexbench.dut.journal import JOURNAL_DIR_ENV
from trexbench.fleet import cluster as clusters
from trexbench.fleet import reverting, status
from trexbench.fleet.cluster import as_one_line, settings
from trexbench.fleet.compared import ComparedTesters
from trexbench.fleet.join import require_listening
from trexbench.fleet.leases import LeaseFolder, leased
from trexbench.fleet.schedule import LEASED_S
from trexbench.fleet.status import read_status
from trexbench.fleet.task import CellOrder, OwnSettings, versions
from trexbench.fleet.worker import FAILED, join, make_worker, own_address, reason_of
from trexbench.session.options import Setup

OWN = OwnSettings("t1", "/mine", {"configs_dir": "/own", "server": "10.0.0.1"}, ("r1",), "f" * 64)
ORDER = CellOrder("lab", "lab", Setup(configs_dir=Path("/theirs"), force=True), AS_IT_IS, "r1", 0, "", "n-lab",
                  "/theirs", "2026-11-21/r1/x.json", "d", 9.0)  # fmt: skip


@pytest.fixture
def certificates(tmp_path: Path) -> Path:
    for name in CERTIFICATE_FILES:
        (tmp_path / name).write_text("")
    return tmp_path


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:8786", "tcp://localhost:1", "tcp://[::1]:1"])
def test_loopback_needs_no_certificates(address: str) -> None:
    cluster = make_cluster(address, None, insecure=False)
    assert cluster.certificates is None and not cluster.is_insecure


@pytest.mark.parametrize("address", ["tcp://10.0.0.1:1", "tcp://fleet.example.net:1", "tcp://127.0.0.1.example.net:1"])
def test_other_machines_are_reached_by_tls_unless_the_user_wants_it_insecure(address: str) -> None:
    with pytest.raises(errors.ConfigError, match="--insecure"):
        make_cluster(address, "/certificates", insecure=False)
    assert make_cluster(address, None, insecure=True).is_insecure


def test_certificates_are_looked_for_before_anything_is_opened(
    certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(CERTIFICATES_ENV, raising=False)
    with pytest.raises(errors.ConfigError, match="needs certificates"):
        make_cluster("tls://h:1", None, insecure=True)
    monkeypatch.setenv(CERTIFICATES_ENV, str(certificates))
    assert make_cluster("tls://h:1", None, insecure=True) == make_cluster("tls://h:1", str(certificates), False)
    (certificates / "key.pem").unlink()
    with pytest.raises(errors.ConfigError, match=r"key\.pem cannot be read"):
        make_cluster("tls://h:1", None, insecure=False)


def test_the_first_cause_that_has_words_is_named() -> None:
    nobody = ConnectionRefusedError(111, "Connection refused")
    nobody.__cause__ = TimeoutError()
    said = r"^the fleet's scheduler: \[Errno 111\] Connection refused: is it\?$"
    with pytest.raises(errors.FleetError, match=said), as_one_line("is it?"):
        raise OSError("in <distributed.comm.tcp.TCPConnector object at 0x7f6da1c10f50>") from nobody


def test_where_no_scheduler_listens_status_does_not_wait_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as bound:  # it does not listen
        bound.bind(("127.0.0.1", 0))
        cluster = Cluster(f"tcp://127.0.0.1:{bound.getsockname()[1]}", None, False)
        with pytest.raises(
            errors.FleetError, match=f"^no scheduler runs at {cluster.address}: start it: trexbench"
        ) as no:
            require_listening(cluster)
        assert no.value.exit_code == 10
        bound.listen(0)
        require_listening(cluster)
        monkeypatch.setattr("trexbench.fleet.join.LISTEN_S", 0.05)
        with pytest.raises(errors.FleetError, match="does not answer"):
            require_listening(cluster)  # the connection before fills its queue: further SYNs are dropped


@pytest.mark.parametrize(
    ("authority", "reason"), [("ours", "self-signed certificate"), ("theirs", "TLSV1_ALERT_UNKNOWN_CA")]
)
def test_which_side_refuses_a_certificate_and_why_is_known(authority: str, reason: str, tmp_path: Path) -> None:
    """A tester's own error says only that joining took too long."""
    security = pytest.importorskip("distributed").Security
    ours, theirs = security.temporary(), security.temporary()
    known = ours.tls_ca_file if authority == "ours" else theirs.tls_ca_file
    for name, text in zip(CERTIFICATE_FILES, (known, ours.tls_client_cert, ours.tls_client_key), strict=True):
        (tmp_path / name).write_text(text)
    listener = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        with contextlib.suppress(OSError), listener, listener.accept()[0] as plain:
            theirs.get_listen_args("scheduler")["ssl_context"].wrap_socket(plain, server_side=True).close()

    threading.Thread(target=answer, daemon=True).start()
    cluster = Cluster(f"tls://127.0.0.1:{listener.getsockname()[1]}", tmp_path, False)
    known_reason = reason_of(errors.FleetError("Worker start timed out"), cluster)
    assert str(known_reason).startswith(f"no TLS with {cluster.address}: {reason}"), known_reason


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
def test_a_tester_names_the_address_that_leads_to_its_scheduler(host: str) -> None:
    assert own_address(Cluster(f"tls://{host}:8786", Path("certificates"), False)) == host.strip("[]")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "[::1]", "localhost"])
def test_without_certificates_a_tester_listens_on_loopback_only(host: str, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")

    async def listen() -> str:
        here = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
        async with distributed.Scheduler(host=f"tcp://{host}:0", **here) as scheduler:
            cluster = Cluster(f"tcp://{host}:{scheduler.address.rpartition(':')[2]}", None, False)
            async with make_worker(OWN, cluster, str(tmp_path)) as worker:
                with pytest.raises(errors.FleetError, match="another worker is this tester: stop it"):
                    await join(OWN, cluster, str(tmp_path))
                return str(worker.listener.listen_address)

    assert asyncio.run(listen()).rpartition(":")[0] == f"tcp://{host.replace('localhost', '127.0.0.1')}"


def test_a_tester_that_starts_slowly_is_still_waited_for() -> None:
    """Dask ends the keeper of a lost worker's process for good after a time of its own."""
    pytest.importorskip("distributed")
    from dask import config, utils

    name = "distributed.deploy.lost-worker-timeout"
    assert utils.parse_timedelta(config.get(name)) < 60 < LEASED_S < utils.parse_timedelta(settings(2.0)[name])


def test_results_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    (tmp_path / "results").touch()
    own = replace(OWN, results=str(tmp_path / "results"))
    asked = {"own": asdict(own), "address": "tcp://127.0.0.1:1", "folder": None, "is_insecure": False, "scratch": ""}
    argv, pipe = [sys.executable, "-m", "trexbench.fleet.worker"], subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stderr=pipe, text=True, bufsize=1) as process:
        assert process.stdin is not None and process.stderr is not None
        process.stdin.write(json.dumps(asked) + "\n")
        said = process.stderr.read()
    assert process.returncode == FAILED and said.count("\n") == 1 and "Not a directory" in said


LOGGED = """
from trexbench.fleet.cluster import dask_setup
dask_setup(None)
import logging
for name in ("distributed.worker", "tornado.general", "tornado.application"):
    logging.getLogger(name).error("Exception in callback")
import sys
from trexbench.fleet.worker import _end_with_input
_end_with_input(sys.argv[1])
"""


def test_a_tester_whose_command_was_killed_leaves_no_files(tmp_path: Path) -> None:
    """The end of its input is all that it gets."""
    pytest.importorskip("distributed")
    (tmp_path / "scratch" / "dask").mkdir(parents=True)
    argv = [sys.executable, "-c", LOGGED, str(tmp_path / "scratch")]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", ""), "nor a word of Dask's own"
    assert not any(tmp_path.iterdir())


def test_a_tester_keeps_its_own_directories_and_generator() -> None:
    order = OWN.own_order(ORDER)
    assert order.results == "/mine" and order.setup == Setup(configs_dir=Path("/own"), force=True, server="10.0.0.1")


@pytest.mark.parametrize(
    "wrong",
    [{"suite": "/tmp/lab.yaml"}, {"suite": "../lab"}, {"place": "../x.json"}, {"place": "/x.json"}, {"night": "a/b"}],
    ids=str,
)
def test_a_task_names_no_place_of_a_tester(wrong: dict[str, str]) -> None:
    with pytest.raises(errors.ConfigError, match="takes suites by name"):
        OWN.own_order(replace(ORDER, **wrong))  # type: ignore[arg-type]


def test_a_dut_of_another_tester_is_refused() -> None:
    OWN.require_wired("r1")
    with pytest.raises(errors.ConfigError, match="r2 is not wired to tester t1"):
        OWN.require_wired("r2")


class Told:
    """A client of Dask whose testers answer so; text: the version of an older one, which can read no order."""

    def __init__(self, ahead_s: float = 0.0, **answers: Any) -> None:
        self.answers, self.asked, self.ahead_s = answers, list[list[str]](), ahead_s

    def run_on_scheduler(self, _function: object) -> dict[str, tuple[str, list[Any]]]:
        return {name: (f"tls://{name}", []) for name in self.answers}

    def run(self, function: object, *_: object, workers: list[str], on_error: str, callback_timeout: float) -> Any:
        if workers == ["tls://stopped"]:
            raise TimeoutError(f"{callback_timeout} s, {on_error}")
        if function is time.time:
            return dict.fromkeys(workers, time.time() + self.ahead_s)
        if function is metadata.version:
            told = {address: self.answers[address.removeprefix("tls://")] for address in workers}
            return {address: one if isinstance(one, str) else versions()["trexbench"] for address, one in told.items()}
        self.asked.append(workers)
        return {address: self.answers[address.removeprefix("tls://")] for address in workers}


CLUSTER = replace(ORDER, fleet="w")


def test_a_tester_that_differs_is_refused_before_the_night_and_left_out_later() -> None:
    notes, client = list[str](), Told(t1=("tester t1 has another fleet.yaml", ""), t2="0.9")
    version = f"tester t2 has trexbench 0.9, and needs the night's {versions()['trexbench']}"
    with pytest.raises(errors.ConfigError, match=f"t1 has another fleet.yaml; {version}: make them alike"):
        ComparedTesters(notes.append).there(client, CLUSTER, strict=True)  # type: ignore[arg-type]
    testers = ComparedTesters(notes.append)
    assert testers.there(client, CLUSTER) == testers.there(client, CLUSTER) == {}  # type: ignore[arg-type]
    assert notes == [f"{said}: it takes no part" for said in ("tester t1 has another fleet.yaml", version)]


def test_testers_that_are_alike_are_asked_once() -> None:
    testers, client = ComparedTesters(pytest.fail), Told(t1=(None, "3"))
    for _ in range(2):
        assert testers.there(client, CLUSTER, strict=True) == {"t1": []}  # type: ignore[arg-type]
    client.answers["t2"] = None, "4"
    assert testers.there(client, CLUSTER) == {"t1": [], "t2": []}  # type: ignore[arg-type]
    assert client.asked == [["tls://t1"], ["tls://t2"]] and len(testers.trex) == 2


@pytest.mark.parametrize(("ahead_s", "words"), [(600, "600 s ahead of"), (-86400, "86400 s behind"), (4, None)])
def test_a_tester_with_another_clock_takes_part_with_a_warning(ahead_s: float, words: str | None) -> None:
    notes = list[str]()
    testers, client = ComparedTesters(notes.append), Told(ahead_s, t1=(None, "3"))
    assert testers.there(client, CLUSTER, strict=True) == {"t1": []}  # type: ignore[arg-type]
    said = f"the clock of tester t1 is {words} this machine's, and with it the times of its runs: set it"
    assert notes == ([] if words is None else [said])


def test_a_tester_that_does_not_answer_is_left_out() -> None:
    notes = list[str]()
    testers, client = ComparedTesters(notes.append), Told(t1=(None, "3"), stopped=None)
    for _ in range(2):
        assert testers.there(client, CLUSTER, strict=True) == {"t1": []}  # type: ignore[arg-type]
    assert notes == ["a tester does not answer (in time): it takes no part"]


def test_a_lease_that_was_never_given_back_is_noticed(tmp_path: Path) -> None:
    folder = LeaseFolder(tmp_path, "r1")
    with leased(folder, "t1-a", 60.0, Noted()) as lease:
        assert not lease.abandoned
    assert folder.append(LeaseRecord(3, "t9-dead", 0.01, cell="n c"))
    with leased(folder, "t1-b", 0.5, Noted()) as lease:
        assert lease.abandoned  # and not reverted
    with leased(folder, "t1-c", 60.0, Noted()) as lease:
        assert lease.abandoned
        lease.abandoned = False
    with leased(folder, "t1-d", 60.0, Noted()) as lease:
        assert not lease.abandoned


def test_other_hosts_are_reverted_though_the_dut_has_no_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configs, reverted = Path(__file__).parents[2] / "dut_configs", list[str]()
    monkeypatch.setenv(JOURNAL_DIR_ENV, str(tmp_path))
    monkeypatch.setattr(reverting, "revert_endpoints", lambda config: reverted.append(config.name) or ())
    request = {"configs_dir": configs, "prefix": None, "sim": False, "apply": True}
    reverting.revert_changes(SimpleNamespace(dut=load_dut("netgate-linux", configs), **request))
    assert reverted == ["netgate-linux"]


def test_a_lease_of_a_clock_that_is_behind_holds_while_its_cell_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / ".fleet" / "leases"
    for dut, cell in (("r1", "n-lab r1 64b uni"), ("r2", "n-lab r2 64b uni")):
        assert LeaseFolder(folder, dut).append(LeaseRecord(1, "t1-a", 30.0, "2020-01-01T00:00:00Z", cell))
    there = {"t1": ("tls://t1", ["lab/n-lab/r1 64b uni/3"]), "t2": ("tls://t2", [])}
    client = SimpleNamespace(run_on_scheduler=lambda asked: there if asked is clusters.testers_there else {})
    monkeypatch.setattr(status, "require_listening", lambda _: None)
    monkeypatch.setattr(status, "joined", lambda *_: contextlib.nullcontext(client))
    now = read_status(fleet_of(2, 5.0), Cluster("tls://h:1", None, False), tmp_path, pytest.fail)
    assert [(one.tester, one.state, one.cell) for one in now.testers] == [
        ("t1", "measuring", "n-lab r1 64b uni"), ("t2", "idle", None),
    ]  # fmt: skip
    assert [(one.dut, one.is_over) for one in now.leases] == [("r1", False), ("r2", True)]


def test_status_without_a_scheduler_is_what_the_leases_say(tmp_path: Path) -> None:
    folder = tmp_path / ".fleet" / "leases"
    for dut, record in (
        ("r1", LeaseRecord(1, "t1-a", 30.0, "2100-01-01T00:00:00Z", "n-lab r1 64b")),
        ("r2", LeaseRecord(1, "t2-b", 30.0, "2020-01-01T00:00:00Z", "n-lab r2 64b")),
        ("r3", LeaseRecord(1, "t3-c", 0.0)),
        ("r4", LeaseRecord(1, "t1-d", 30.0, "2020-01-01T00:00:00Z", "n-lab r4 64b")),
    ):
        assert LeaseFolder(folder, dut).append(record)
    (folder / "r5").mkdir()
    (folder / "r5" / "1").write_text("{")
    (folder / "r6").write_text("")
    said = list[str]()
    now = read_status(fleet_of(2, 5.0), None, tmp_path, said.append)
    assert [line.partition(":")[0] for line in said] == [f"the lease of {dut} is not shown" for dut in ("r5", "r6")]
    assert [(one.tester, one.state, one.cell) for one in now.testers] == [
        ("t1", "measuring", "n-lab r1 64b"), ("t2", "absent", None),
    ]  # fmt: skip
    assert [(one.dut, one.is_over) for one in now.leases] == [("r1", False), ("r2", True), ("r4", True)]
    assert not now.nights
