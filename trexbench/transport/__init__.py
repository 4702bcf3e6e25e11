"""Ways to a DUT: run a command there, get back what it said. No shell anywhere."""

from __future__ import annotations

from ..core.errors import DutError
from .command import Completed, Transport
from .local import LocalTransport
from .netns import NetnsTransport

__all__ = ["Completed", "LocalTransport", "NetnsTransport", "Transport", "open_transport"]


def open_transport(kind: str, namespace: str | None = None) -> Transport:
    """The transport of a DUT config's ``transport.type``; DutError for one that this version has not."""
    if kind == "netns" and namespace:
        return NetnsTransport(namespace)
    if kind == "local":
        return LocalTransport()
    raise DutError(
        f"transport {kind} is not in this version: netns and local are",
        "use --no-apply to measure a DUT you configured by hand",
    )
