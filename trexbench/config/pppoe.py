"""PPPoE between the router and the server, which plays the provider; who dials in, and as whom."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from ..core.errors import ConfigError
from . import readers as r
from .yamltree import Value

PPP_INTERFACE = "tbppp0"
"""Name of the session's interface, on the server and on a DUT that trexbench dials from."""
_WORD = r"[A-Za-z0-9][A-Za-z0-9@._-]*"


@dataclass(frozen=True)
class PppoeConfig:
    """Credentials of a router that dials in by itself. secret_env: the environment variable with its secret.

    service: the one it may ask for; empty: any.
    """

    user: Annotated[str, r.pattern(_WORD, "a user's name", "router@provider")]
    secret_env: Annotated[str, r.variable]
    service: Annotated[str, r.pattern(_WORD, "a service's name", "internet")] = ""

    def secret(self) -> str:
        """ConfigError where the environment has none."""
        found = os.environ.get(self.secret_env, "")
        if not found:
            what = f"the environment has no {self.secret_env}, the secret that the router dials in with"
            raise ConfigError(what, f"export {self.secret_env}=...")
        return found


def check_pppoe(value: Value, versions: Sequence[Collection[int]]) -> Iterator[ConfigError]:
    """versions: of IP, that server and router have addresses of there; the session gives them out."""
    for whose, there in zip(("the server", "the router"), versions, strict=True):
        if 4 not in there:
            yield value.wrong(f"PPPoE gives {whose} an IPv4 address, and there is none", "write one for both ends")
