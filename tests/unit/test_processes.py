"""A run whose process is gone is interrupted; one of whose process nothing is known goes on."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from runs import World, make_plan, make_result
from tcp_runs import make_tcp_result

from trexbench.core.load.sample import Phase
from trexbench.core.strategy.base import LoadStep
from trexbench.core.typed import Status
from trexbench.processes import Process, Writer, this_writer
from trexbench.results.index import open_index
from trexbench.results.store import INTERRUPTED, RunWriter, load_document

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of processes as read here")

HERE = this_writer() or Writer(Process(1, 1), "boot", 1, "")
OURS = replace(HERE, host="id name", pids=0xEFFFFFFC)
REUSED = replace(HERE.process, start=HERE.process.start + 1)


@pytest.mark.parametrize(
    ("writer", "gone"),
    [
        pytest.param(HERE, False, id="this process"),
        pytest.param(replace(HERE, process=REUSED), True, id="a pid that another process has now"),
        pytest.param(replace(HERE, process=Process(2**40, 5)), True, id="no such pid"),
        pytest.param(replace(HERE, process=Process(10**30, 5)), True, id="a pid of a damaged document"),
        pytest.param(replace(HERE, process=REUSED, pids=HERE.pids + 1), False, id="another container"),
        pytest.param(replace(HERE, process=REUSED, boot="other", host="other host"), False, id="another machine"),
        pytest.param(replace(HERE, process=REUSED, boot="other", host=""), False, id="a machine without an id"),
    ],
)
def test_a_writer_is_gone_only_with_evidence(writer: Writer, gone: bool) -> None:
    assert writer.gone is gone


def test_a_reboot_ends_a_run_of_this_machine_but_not_of_a_container() -> None:
    before = replace(OURS, boot="the boot before", process=Process(1, 1))
    assert before.gone_seen_from(OURS)
    assert not before.gone_seen_from(replace(OURS, pids=7))
    assert not before.gone_seen_from(replace(OURS, host="id another"))


def begin_packets(results: Path) -> Path:
    run = make_result(make_plan(), World(capacity_pps=660e3))
    writer = RunWriter(results, pytest.fail).begin(replace(run, samples=(), status=Status.RUNNING, finished=None))
    writer.sampled(run.samples, LoadStep(Phase.RAMP, {}, 1.0))
    assert writer._journal is not None and writer.path is not None
    writer._journal.close()
    return writer.path


def begin_tcp(results: Path) -> Path:
    begun = replace(make_tcp_result(), status=Status.RUNNING, finished=None)
    path = RunWriter(results, pytest.fail).begin(begun).path
    assert path is not None
    return path


@pytest.mark.parametrize("begin", [begin_packets, begin_tcp])
def test_a_run_goes_on_until_its_process_is_gone(tmp_path: Path, begin: Callable[[Path], Path]) -> None:
    path = begin(tmp_path)
    assert load_document(path).status is Status.RUNNING
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        theirs = msgspec.to_builtins(replace(HERE, process=Process.of(child.pid)))
        path.write_text(json.dumps(json.loads(path.read_text()) | {"writer": theirs}))
        index = open_index(tmp_path, pytest.fail)
        assert {row.status for row in index.rows()} == {"running"}
    finally:
        child.kill()
        child.wait()
    result = load_document(path)
    assert (result.status, result.reason) == (Status.INCOMPLETE, INTERRUPTED)
    index = open_index(tmp_path, pytest.fail)
    assert {row.status for row in index.rows()} == {"incomplete"}, "though the document has not changed"
