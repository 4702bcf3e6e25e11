"""What a command family offers: a table from method names to handlers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from trexbench.stlserver.context import Context
from trexbench.stlserver.params import Params
from trexbench.stlserver.wire import Json

Handler = Callable[[Context, Params], Json]


@dataclass(frozen=True)
class Method:
    """One method. needs_api: carries ``api_h``. needs_owner: carries the port's ``handler``."""

    handler: Handler
    needs_api: bool = True
    needs_owner: bool = False


Table = Mapping[str, Method]


def owned(handler: Handler) -> Method:
    """A method that only the port's owner may call."""
    return Method(handler, needs_owner=True)
