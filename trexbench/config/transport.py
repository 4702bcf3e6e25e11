"""Ways to reach a host: a DUT, or an endpoint of TCP tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from . import readers as r
from .commands import pattern


@dataclass(frozen=True)
class TransportConfig:
    """Way to reach a host. type: ``netns`` (namespace), ``local`` or ``ssh`` (host, user, port); ``cli``, a prompt
    behind ssh; or UNREACHED.

    host may be a name of the user's ssh config, which also decides user and port where they are None. platform, keys,
    password and refusal: see transport.cli.CliLogin.
    """

    type: Annotated[str, r.choice("netns", "local", "ssh", "cli")]
    namespace: Annotated[str | None, r.namespace] = None
    host: Annotated[str | None, r.host] = None
    user: Annotated[str | None, r.user] = None
    port: Annotated[int | None, r.integer(1, 65535)] = None
    platform: Annotated[str | None, r.platform] = None
    password_env: Annotated[str | None, r.variable] = None
    password_file: Annotated[str | None, r.path] = None
    key_file: Annotated[str | None, r.path] = None
    refusal: Annotated[str | None, pattern()] = None
