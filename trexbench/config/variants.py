"""``variants:`` of a DUT: the same router with a firewall, with NAT, with other settings of its kernel or its NICs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Annotated

from ..core.errors import ConfigError
from ..core.tcp.wan import Wan
from . import readers as r
from .endpoints import tunnel, wan
from .firewall import NONE, Firewall, firewall
from .settings import OFFLOADS, sysctls
from .yamltree import Value

NO_VARIANT = "none"
"""Name for the DUT without a variant, as the rest of its config describes it."""
VARIANT_NAME = r"[a-z0-9][a-z0-9_-]{0,31}"
_OTHER_NAME = rf"(?!{NO_VARIANT}$){VARIANT_NAME}"
_OF_THE_DRIVER = re.compile(r"(?:forwarding|ip_forward|disable_ipv6)$")


def _setting(value: Value) -> str:
    text = value.text()
    if _OF_THE_DRIVER.search(value.key):
        raise ConfigError("is set by the driver itself", "remove it")
    if not text.isprintable() or not text:
        raise ConfigError(f"{text[:40]!r} is no value", "write what sysctl prints")
    return " ".join(text.split())


@dataclass(frozen=True)
class Variant:
    """Differences from the DUT without a variant."""

    firewall: Annotated[Firewall, firewall] = field(default_factory=Firewall)
    """Rules of nft to load: a word, or a file beside the config; ``none``, the default: those that exist stay."""
    nat: Annotated[bool, r.boolean] = False
    """Masquerade: give packets that leave by the last port the DUT's address as their source."""
    sysctls: Annotated[tuple[tuple[str, str], ...], sysctls(_setting)] = ()
    """Kernel settings, in the namespace of the DUT's interfaces."""
    offloads: Annotated[tuple[tuple[str, bool], ...], OFFLOADS] = ()
    """Features by ethtool's names, on or off; they replace those of the same name under ``linux:``."""
    tunnel: Annotated[str | None, tunnel] = None
    """Tunnel in place of that under ``endpoints:``; None: as there."""
    flow_offload: Annotated[bool, r.boolean] = False
    """Send packets of known connections through nft's flowtable, past most of the kernel's forwarding."""
    pppoe: Annotated[bool, r.boolean] = False
    """Dial in to the server of TCP tests by PPPoE, and masquerade."""
    wan: Annotated[Wan | None, wan] = None
    """WAN in place of the DUT's; None: the DUT's."""

    @property
    def filters(self) -> bool:
        """True if it needs rules of a packet filter."""
        return self.nat or self.pppoe or self.flow_offload or self.firewall.name != NONE


variants = r.pairs("variant", _OTHER_NAME, "stateful; none is the DUT without any", r.section(Variant, "a variant"))
