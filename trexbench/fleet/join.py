"""A cluster's scheduler, and a night's connection to it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ..config.fleet import CERTIFICATE_FILES, Cluster
from ..core.errors import FleetError
from .cluster import as_one_line, quiet, require_dask, settings

if TYPE_CHECKING:
    from distributed import Client, Scheduler, Security

LOST = "lost_testers"
"""Attribute of the scheduler: tester -> Unix time at which it was lost."""
CONNECT_S = 15
LISTEN_S = 5.0
"""Time in which three SYNs go out, after 0, 1 and 3 s: where all are dropped, nobody waits for Dask's own attempts."""


def security_of(cluster: Cluster) -> Security:
    """Return certificates of both sides, for every role; none without TLS."""
    from distributed import Security

    if cluster.certificates is None:
        return Security()
    ca, cert, key = (str(cluster.certificates / name) for name in CERTIFICATE_FILES)
    roles = {f"tls_{role}_{what}": file for role in ("scheduler", "worker", "client")
             for what, file in (("cert", cert), ("key", key))}  # fmt: skip
    return Security(require_encryption=True, tls_ca_file=ca, **roles)


def require_listening(cluster: Cluster) -> None:
    """FleetError where no scheduler is there, or none answers within LISTEN_S, or a side refuses certificates."""
    where = cluster.host, int(cluster.address.rpartition(":")[2])
    try:
        with socket.create_connection(where, LISTEN_S) as plain:
            if cluster.certificates is not None:
                context: ssl.SSLContext = security_of(cluster).get_connection_args("client")["ssl_context"]
                with context.wrap_socket(plain) as secured:
                    secured.recv(1)  # since TLS 1.3 it refuses ours only now
    except ssl.SSLError as error:
        reason = getattr(error, "verify_message", "") or error.reason or str(error)
        remedy = "compare ca.pem, cert.pem and the clocks of both machines"
        raise FleetError(f"no TLS with {cluster.address}: {reason}", remedy) from None
    except ConnectionRefusedError:
        raise FleetError(f"no scheduler runs at {cluster.address}", "start it: trexbench fleet scheduler") from None
    except TimeoutError:
        raise FleetError(f"{cluster.address} does not answer", "see whether it is up, and its firewall") from None
    except OSError:  # Dask says more
        pass


@contextlib.contextmanager
def joined(cluster: Cluster, lease_s: float) -> Iterator[Client]:
    """Connect to the scheduler for the block; FleetError if it cannot be reached."""
    require_dask()
    import dask
    from distributed import Client

    quiet()
    with dask.config.set(settings(lease_s)), contextlib.ExitStack() as stack:
        with as_one_line(f"is it there, at {cluster.address}, and are these its certificates?"):
            client = Client(cluster.address, security=security_of(cluster), timeout=CONNECT_S, set_as_default=False)
            stack.enter_context(client)
            client.run_on_scheduler(prepare)
        yield client


def prepare(dask_scheduler: Scheduler) -> None:
    """Keep the scheduler from giving a cell to a second tester by itself. Runs in it."""
    dask_scheduler.allowed_failures = 0


def lost_testers(dask_scheduler: Scheduler) -> dict[str, float]:
    """Map absent testers to when they were lost (Unix time). Runs in the scheduler; empty in one of Dask's own."""
    there = {str(worker.name) for worker in dask_scheduler.workers.values()}
    return {name: lost_s for name, lost_s in getattr(dask_scheduler, LOST, {}).items() if name not in there}


def serve_scheduler(cluster: Cluster, lease_s: float, say: Callable[[str], None]) -> None:
    """Run the scheduler until it is interrupted."""
    require_dask()
    import dask
    from distributed import Scheduler
    from distributed.diagnostics.plugin import SchedulerPlugin

    class Departures(SchedulerPlugin):  # type: ignore[misc]
        """Notes when testers are lost."""

        def __init__(self) -> None:
            self.names: dict[str, str] = {}

        def add_worker(self, scheduler: Any, worker: str) -> None:
            self.names[worker] = str(scheduler.workers[worker].name)

        def remove_worker(self, scheduler: Any, worker: str, **_: Any) -> None:
            getattr(scheduler, LOST)[self.names.pop(worker, worker)] = time.time()

    async def serve() -> None:
        here = {"dashboard": False, "dashboard_address": "127.0.0.1:0", "security": security_of(cluster)}
        async with Scheduler(host=cluster.address, plugins=[Departures()], **here) as scheduler:
            setattr(scheduler, LOST, {})
            say(f"scheduler {scheduler.address}")
            await scheduler.finished()

    quiet()
    with dask.config.set(settings(lease_s)), as_one_line(f"can this machine be {cluster.address}?"):
        asyncio.run(serve())
