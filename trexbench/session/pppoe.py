"""PPPoE between the router and the server of a TCP test, up for as long as the test runs."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from ..config.endpoints import PPP_INTERFACE
from ..config.model import DutConfig
from ..dut.endpoints import endpoints_of
from ..endpoint import PppEnd, lost_of
from ..transport import Transport

_BEGIN_S, _UP_S = 15.0, 15.0
_DIALS_S = 180.0
"""For a router that dials by itself: it tries again after a minute or more."""


@dataclass(frozen=True)
class Pppoe:
    """A session that is up. told: what the server says of it. by_itself: the router's own client has dialled."""

    server: PppEnd
    client: PppEnd | None
    told: Mapping[str, Any]

    @property
    def by_itself(self) -> bool:
        return self.client is None

    @property
    def mtu(self) -> int:
        return int(self.told["mtu"])

    @property
    def versions(self) -> tuple[int, ...]:
        """IP versions that the session carries."""
        return (4, 6) if self.told.get("ipv6") else (4,)

    @property
    def lost(self) -> str:
        """Reason why the session has gone down; empty while it is up."""
        return lost_of(filter(None, (self.server, self.client)))


@contextmanager
def dialled(
    config: DutConfig,
    server: Transport,
    dut: Transport,
    cpus: Mapping[str, tuple[int, ...]],
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[Pppoe | None]:
    """The session that the config asks for, until the end of the block, which leaves nothing of it; None: it asks for
    none. cpus: of ``server`` and ``dut``, on which their programs run. DutError where no session comes up.
    """
    if not config.dials_in:
        yield None
        return
    ends, own = endpoints_of(config), endpoints_of(config).pppoe
    user = own.user if own is not None else "trexbench"
    shared: dict[str, Any] = {
        "user": user,
        "secret": own.secret() if own is not None else secrets.token_hex(16),
        "tun": PPP_INTERFACE,
    }
    ours = {one.version: str(one.ip) for one in ends.server.addresses}
    theirs = {one.version: str(one) for one in ends.server.hops}
    six = own is None and 6 in ours and 6 in theirs
    told = {
        **shared,
        "interface": ends.server.interface,
        "own": ours[4],
        "peer": theirs[4],
        "service": own.service if own is not None else "",
        "cpus": cpus["server"][:1],
        "routes": [str(one.network) for one in ends.client.addresses],
        **({"ipv6": [ours[6], theirs[6]]} if six else {}),
    }
    with ExitStack() as stack:
        serving = stack.enter_context(PppEnd("server", server, "server", told))
        serving.wait_listening(_BEGIN_S)
        client = None
        if own is None:
            assert ends.server.dut is not None  # check_endpoints
            dials = {**shared, "interface": ends.server.dut.interface, "cpus": cpus["dut"][:1]}
            dials |= {"ipv6": [theirs[6], ours[6]]} if six else {}
            client = stack.enter_context(PppEnd("the DUT", dut, "client", dials))
            client.wait_up(_UP_S)
        else:
            say(f"waiting for {config.name} to dial in as {user}")
        up = serving.wait_up(_UP_S if own is None else _DIALS_S)
        say(f"PPPoE: {up['user']} at {up['peer']}, {up['auth']}, MTU {up['mtu']}")
        yield Pppoe(serving, client, up)
