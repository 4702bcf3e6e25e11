"""A tester's process, ``python -m trexbench.fleet.worker``, and the command that starts it again when it ends.

The process reads its settings from a line of standard input, and ends when its input does: nothing that drives a DUT
outlives the command that a person or systemd started. Its own guard may end it as well: see guard.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from ..child import child_argv, child_environment
from ..config.fleet import Cluster
from ..core.errors import BenchError, FleetError, StoreError
from ..dut.journal import JOURNAL_DIR_ENV
from ..results.nights import TESTERS
from ..results.store import make_directory
from . import task
from .cluster import LOOPBACK, as_one_line, quiet, resources_of, settings
from .join import CONNECT_S, require_listening, security_of
from .stored import put_unsent, remove_staging
from .task import OwnSettings

if TYPE_CHECKING:
    from distributed import Worker

AGAIN_AFTER_S = 3.0
END_S = 10.0
"""Time in which the process has to end after its input."""
REMOVED_S = 2.0
"""Time by which removing its files may delay that."""
FAILED = 3
"""Exit code of a process that could not join."""


def keep_working(own: OwnSettings, cluster: Cluster, lease_s: float, say: Callable[[str], None]) -> None:
    """Run a process that works as this tester, and another whenever it ends, until interrupted."""
    folder = cluster.certificates and str(cluster.certificates)
    asked = {"own": asdict(own), "address": cluster.address, "folder": folder, "is_insecure": cluster.is_insecure}
    argv = child_argv("trexbench.fleet.worker")
    with TemporaryDirectory(prefix="trexbench-tester-") as scratch:
        line = json.dumps({**asked, "lease_s": lease_s, "scratch": scratch}).encode() + b"\n"
        while True:
            process = subprocess.Popen(
                argv, stdin=subprocess.PIPE, bufsize=0, start_new_session=True, env=child_environment()
            )
            assert process.stdin is not None
            try:
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.write(line)
                code = process.wait()
            finally:
                process.stdin.close()
                try:
                    process.wait(END_S)
                except subprocess.TimeoutExpired:  # it is stopped, or hangs
                    process.kill()
                    process.wait()
            if code != FAILED:
                how = "its guard or somebody else killed it" if code < 0 else "it lost the scheduler"
                say(f"tester {own.name} has ended ({how}): it is started again")
            time.sleep(AGAIN_AFTER_S)


def main() -> int:
    asked = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_input, args=(asked["scratch"],), daemon=True).start()
    own = task.OWN = OwnSettings(**asked["own"])
    folder = asked["folder"]
    cluster = Cluster(asked["address"], Path(folder) if folder else None, asked["is_insecure"])
    try:
        os.environ[JOURNAL_DIR_ENV] = str(make_directory(Path(own.results) / TESTERS).resolve())
        remove_staging(Path(own.results), own.name)
        with contextlib.suppress(StoreError):  # the next try is before its next cell
            put_unsent(Path(own.results), asked["lease_s"])
        import dask

        quiet()
        with dask.config.set(settings(asked["lease_s"])), as_one_line("it is tried again"):
            asyncio.run(_work(own, cluster, asked["scratch"]))
    except BenchError as error:
        print(
            f"tester {own.name} cannot join {cluster.address}: {reason_of(error, cluster)}", file=sys.stderr, flush=True
        )
        return FAILED
    return 0


def reason_of(error: BenchError, cluster: Cluster) -> BenchError:
    """Return why the scheduler was not joined: Dask may say only that it took too long."""
    try:
        if isinstance(error, FleetError):
            require_listening(cluster)
    except FleetError as known:
        return known
    return error


def make_worker(own: OwnSettings, cluster: Cluster, scratch: str) -> Worker:
    """Make the worker, not started; other machines reach it only with certificates, or --insecure."""
    from distributed import Worker

    here: dict[str, Any] = {"dashboard": False, "dashboard_address": f"{LOOPBACK}:0", "security": security_of(cluster)}
    if cluster.is_loopback or not (cluster.certificates or cluster.is_insecure):
        host = LOOPBACK if cluster.host == "localhost" else cluster.host
    else:
        host = own_address(cluster)
    here["host"] = f"[{host}]" if ":" in host else host
    here |= {"protocol": f"{cluster.address.partition('://')[0]}://", "local_directory": scratch}
    return Worker(
        cluster.address, name=own.name, nthreads=1, memory_limit=None, death_timeout=CONNECT_S,
        resources=resources_of(own.duts), **here,
    )  # fmt: skip


def own_address(cluster: Cluster) -> str:
    """Return this machine's address on the route to the scheduler; Dask would take the route to the Internet."""
    kind, port = socket.SOCK_DGRAM, int(cluster.address.rpartition(":")[2])
    family, _, _, _, where = socket.getaddrinfo(cluster.host, port, type=kind)[0]
    with socket.socket(family, kind) as probe:
        probe.connect(where)  # sends nothing
        return str(probe.getsockname()[0])


async def join(own: OwnSettings, cluster: Cluster, scratch: str) -> Worker:
    """Join the scheduler; FleetError where another worker is this tester."""
    try:
        return await make_worker(own, cluster, scratch)
    except RuntimeError as error:
        if "name taken" in str(error.__cause__):
            raise FleetError("another worker is this tester", "stop it, or name another with --tester") from error
        raise


async def _work(own: OwnSettings, cluster: Cluster, scratch: str) -> None:
    worker = await join(own, cluster, scratch)
    print(f"tester {own.name} has joined {cluster.address}", file=sys.stderr, flush=True)
    await worker.finished()
    os._exit(0)  # abandons the cell that it measures, which the scheduler has given to another tester


def _end_with_input(scratch: str) -> None:
    while os.read(0, 4096):
        pass
    removal = threading.Thread(target=shutil.rmtree, args=(scratch, True), daemon=True)
    removal.start()  # the command that started this may have been killed, and removes nothing
    removal.join(REMOVED_S)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
