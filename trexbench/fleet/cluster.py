"""A fleet's testers as workers of Dask: on this machine, each a process of its own, which runs dask_setup first."""

from __future__ import annotations

import contextlib
import logging
import signal
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import ConfigError, FleetError

if TYPE_CHECKING:
    from distributed import Client, Scheduler

TESTER = "tester"
"""Resource of which every tester has one: it measures one cell at a time."""
LOOPBACK = "127.0.0.1"
LOST_AFTER = 1.0
"""A tester that is silent for this many lengths of a lease is lost; its cell goes to another."""
RESUME = "the same command with --resume goes on"
LOGS = "distributed.admin.log-length", "distributed.admin.low-level-log-length"
"""Lines that Dask keeps in memory, which would grow with every cell."""


def resources_of(duts: Sequence[str]) -> dict[str, float]:
    """Return the resources of a tester that reaches these DUTs, and those that a cell of one of them takes."""
    return {TESTER: 1, **{f"wired to {dut}": 1 for dut in duts}}


def require_dask() -> None:
    """Raise ConfigError if the packages for a fleet are not installed."""
    try:
        import cryptography  # noqa: F401
        import distributed  # noqa: F401
    except ImportError as error:
        raise ConfigError(f"a fleet needs {error.name}", "pip install 'trexbench[fleet]'") from None


@contextlib.contextmanager
def on_this_machine(reach: Mapping[str, Sequence[str]], lease_s: float, scratch: Path) -> Iterator[Client]:
    """Run a scheduler in this process, and testers as processes of this machine; loopback only.

    Connecting takes the certificate of this night, which is only in the memory of these processes.
    reach: tester -> DUTs that it can measure. scratch: for files of Dask.
    """
    require_dask()
    quiet()
    import dask
    from distributed import Client, Nanny, Scheduler, Security, SpecCluster

    with dask.config.set(settings(lease_s)), contextlib.ExitStack() as stack:
        with as_one_line("try again with fewer testers"):
            security = Security.temporary()
            here = {"host": LOOPBACK, "protocol": "tls://", "security": security}
            here |= {"dashboard": False, "dashboard_address": f"{LOOPBACK}:0"}
            common = {**here, "nthreads": 1, "memory_limit": None, "local_directory": str(scratch)}
            common |= {"death_timeout": 60, "silence_logs": logging.CRITICAL, "preload": [__name__]}
            workers = {
                name: {"cls": Nanny, "options": {**common, "name": name, "resources": resources_of(duts)}}
                for name, duts in reach.items()
            }
            scheduler = {"cls": Scheduler, "options": {**here, "port": 0}}
            with _ctrl_c_is_ours():
                cluster = SpecCluster(workers=workers, scheduler=scheduler, security=security)
                stack.enter_context(cluster)
            client = stack.enter_context(Client(cluster, set_as_default=False))
        yield client


def testers_there(dask_scheduler: Scheduler) -> dict[str, tuple[str, list[Any]]]:
    """Map testers that are there to their address and the keys of the cells they measure. Runs in the scheduler."""
    workers = dask_scheduler.workers.values()
    return {str(worker.name): (worker.address, [task.key for task in worker.processing]) for worker in workers}


@contextlib.contextmanager
def _ctrl_c_is_ours() -> Iterator[None]:
    """Delay Ctrl-C to the end of the block, so that it does not interrupt the start; testers ignore it themselves."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def settings(lease_s: float) -> dict[str, Any]:
    """Return Dask's settings: when a tester is lost, and nothing that costs time beside a measurement."""
    return {
        "distributed.scheduler.worker-ttl": f"{LOST_AFTER * lease_s:g}s",
        "distributed.scheduler.allowed-failures": 0,  # see night.py
        "distributed.deploy.lost-worker-timeout": "1000h",  # else one that starts slowly is never started again
        "distributed.comm.timeouts.connect": "10s",
        "distributed.comm.timeouts.tcp": f"{max(15.0, LOST_AFTER * lease_s):g}s",
        "distributed.comm.retry.count": 2,
        "distributed.admin.tick.limit": "1h",
        **dict.fromkeys(LOGS, 10),
        "distributed.admin.system-monitor.interval": "10s",
        "distributed.admin.system-monitor.gil.enabled": False,
        "distributed.worker.profile.enabled": False,
        "distributed.worker.use-file-locking": False,
        "distributed.diagnostics.nvml": False,
        "distributed.scheduler.http.routes": [],
        "distributed.worker.http.routes": [],
    }


@contextlib.contextmanager
def as_one_line(remedy: str = RESUME) -> Iterator[None]:
    """Turn Dask's own failures into a FleetError."""
    try:
        yield
    except (OSError, TimeoutError, RuntimeError) as error:
        said, cause = str(error), error.__cause__
        while cause is not None:  # the first one's text names no object of Dask
            said, cause = str(cause) or said, cause.__cause__
        raise FleetError(f"the fleet's scheduler: {said}", remedy) from error


def quiet() -> None:
    """Keep Dask's own log lines off the terminal: a night reports the same events in its own words."""
    import distributed  # noqa: F401  # which sets its levels when it is imported

    for name in ("distributed", "tornado", "tornado.application"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def dask_setup(_worker: Any) -> None:
    """Leave Ctrl-C, which a terminal sends to all processes, to the night: it ends its testers."""
    quiet()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
