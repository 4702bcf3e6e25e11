"""Nights of one tester in a store, and what another machine sees of them: a directory, S3 and SFTP on loopback."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from pwd import getpwuid

import pytest
from effort import NIGHTLY
from lasting_s3 import SECRET, bucket_here
from sshd import WHY_NOT, running_sshd
from tools import folder_with, succeed, trexbench

from suites import ONE
from trexbench.core.errors import StoreError
from trexbench.results import remote
from trexbench.results.remote import Store, mirror_of, store_of
from trexbench.session.keep import Output
from trexbench.session.options import Setup
from trexbench.suite.night import NightOptions
from trexbench.suite.nightly import Nightly

for package in ("duckdb", "fsspec", "pyarrow"):
    pytest.importorskip(package)

SUITE = """
duts: [{name: netgate-vpp, rx_queues: [1]}]
modes: [var2-64b]
directions: [uni, bidir]
plan: {ramp_duration: 10s, hold: 2s, confirm: 0s, warmup: "1kpps:2s"}
"""


@pytest.fixture
def s3(tmp_path: Path) -> Iterator[Path]:
    """The folder of an S3 server on loopback, which has the bucket ``lab``."""
    with bucket_here(tmp_path / "s3"):
        yield tmp_path / "s3"


def check_store(tmp_path: Path, address: str) -> None:
    """Measure nights by one tester, and read them as another machine does; by day two, by each verb, in a directory."""
    whole = NIGHTLY or address.startswith("file:")
    nights = ["2026-03-01", "2026-03-02"][: None if whole else 1]
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for place in (ours, theirs):
        place.mkdir()
    (ours / "small.yaml").write_text(SUITE)
    for night in nights:
        succeed(ours, "suite", "run", "small.yaml", "--sim", "-q", "--date", night, "--results", address)
    at = ("--results", address)
    listed = json.loads(succeed(theirs, "results", "list", "--json", *at).stdout)
    assert [row["night"] for row in listed["runs"]] == [night for night in reversed(nights) for _ in range(2)]
    sql = "select night, count(*) as n, count(total_pps) as p from runs group by all order by 1"
    assert json.loads(succeed(theirs, "results", "query", "--json", sql, *at).stdout) == [
        {"night": night, "n": 2, "p": 2} for night in nights
    ]
    if not whole:
        return
    assert "2 cells measured" in trexbench(theirs, "regress", "--suite", "small", *at).stdout
    compared = succeed(theirs, "results", "compare", "2026-03-01", "2026-03-02", *at).stdout
    assert compared.count("netgate-vpp var2-64b") == 2
    shown = json.loads(succeed(theirs, "show", "--json", listed["runs"][0]["path"], *at).stdout)
    assert shown["command"]["night"] == "2026-03-02"
    succeed(theirs, "report", "--suite", "small", "-o", "page.html", *at)
    assert "netgate-vpp" in (theirs / "page.html").read_text()


def test_a_directory_elsewhere(tmp_path: Path) -> None:
    check_store(tmp_path, f"file://{tmp_path}/store")
    stored = sorted(path.relative_to(tmp_path / "store").as_posix() for path in (tmp_path / "store").rglob("*.*"))
    assert [name for name in stored if not name.startswith("20")] == [
        "nights/2026-03-01-small.json",
        "nights/2026-03-02-small.json",
        "rows/small/2026-03.parquet",
    ]


@pytest.mark.nightly
def test_s3(tmp_path: Path, s3: Path) -> None:
    check_store(tmp_path, "s3://lab/results")
    listed = trexbench(tmp_path, "results", "list", "--results", "s3://none/results")
    assert listed.returncode == StoreError.exit_code and "nothing is there" in listed.stderr
    (tmp_path / "small.yaml").write_text(SUITE)
    begun = trexbench(tmp_path, "suite", "run", "small.yaml", "--sim", "-q", "--results", "s3://none/results")
    assert begun.returncode == StoreError.exit_code and "there is no bucket none" in begun.stderr
    kept = [path for path in tmp_path.rglob("*") if path.is_file() and s3 not in path.parents]
    assert kept and not [path for path in kept if SECRET.encode() in path.read_bytes()]


@pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
def test_sftp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("paramiko")
    keys = tmp_path / "home" / ".ssh"
    keys.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(keys.parent))
    monkeypatch.setenv("TREXBENCH_STATE_DIR", str(tmp_path / "state"))
    with running_sshd("Subsystem sftp internal-sftp") as server:
        shutil.copy(server.folder / "user", keys / "id_ed25519")
        shutil.copy(server.folder / "known_hosts", keys)
        address = f"sftp://{getpwuid(os.geteuid()).pw_name}@{server.address}:{server.port}{tmp_path}/store"
        check_store(tmp_path, address)
        results, name = mirror_of(address), "nights/2026-03-01-small.json"
        store = store_of(results)
        assert store is not None and store.fetch([name]) == 1
        store.create(name)
        (results / name).write_text("{}")
        with pytest.raises(StoreError, match="is there already, and another one"):
            store.create(name)
        store.replace(name)
        assert (tmp_path / "store" / name).read_text() == "{}" and not [*(tmp_path / "store").rglob("*.tmp")]
        connections = server.connections
        for _ in range(3):
            with pytest.raises(StoreError, match="cannot be reached"):
                Store(address, results).replace(f"{name}/below-a-file.json")
        assert server.connections == connections, "a request that failed costs no connection"
        server.cut()
        with pytest.raises(StoreError, match="cannot be reached"):
            Store(address, results).find("nights")
        monkeypatch.setattr(remote, "ANSWER_S", 3.0)
        assert Store(address, results).find("nights") and len(server.sessions()) == 1
        with ThreadPoolExecutor(8) as threads:
            read = [*threads.map(lambda _: Store(address, results).read(name), range(64))]
        assert read == [b"{}"] * 64, "a lease is renewed while a document is put"
        os.kill(server.sessions()[0], signal.SIGSTOP)
        with pytest.raises(StoreError, match="cannot be reached: TimeoutError"):
            Store(address, results).find("nights")
        assert Store(address, results).find("nights")


def test_trouble_with_the_store_costs_a_night_no_later_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder_with(tmp_path, tiny=ONE + "keep_nights: 1\n")
    monkeypatch.setenv("TREXBENCH_SUITES", str(tmp_path / "suites"))
    monkeypatch.setenv("TREXBENCH_STATE_DIR", str(tmp_path / "state"))
    memory = pytest.importorskip("fsspec").filesystem("memory")
    results, said, reason = mirror_of("memory://nights/results"), list[str](), "no room is left"

    def measured(date: str) -> Nightly:
        options = NightOptions(results, Setup(sim=True), Output(warn=said.append), said.append, date)
        end = Nightly("tiny", options, prometheus=tmp_path / f"{date}.prom")
        end.run()
        assert "too early to judge" in end.verdict and (results / f"report-{date}-tiny.html").is_file()
        assert "trexbench_maximum_pps{" in (tmp_path / f"{date}.prom").read_text()
        return end

    def broken(*_: object, **__: object) -> None:
        raise OSError(reason)

    end = measured("2026-03-01")
    assert (end.code, end.findings) == (0, [])
    assert json.loads(memory.cat("/nights/results/nights/2026-03-01-tiny.json"))["judged"] == end.verdict
    assert "pruned   nothing: keep_nights is only for directories" in said
    with monkeypatch.context() as patched:
        patched.setattr(type(memory), "pipe_file", broken)
        end = measured("2026-03-02")
    assert end.code == StoreError.exit_code and len(end.findings) == 1
    assert end.findings[0].startswith("rows: memory://nights/results cannot be reached: OSError: no room is left")
    assert measured("2026-03-02").code == 0, "another night, which is put with the one that could not be"
    nights = [path.rpartition("/")[2] for path in memory.find("/nights/results/nights")]
    assert nights == ["2026-03-01-tiny.json", "2026-03-02-tiny-2.json", "2026-03-02-tiny.json"]
