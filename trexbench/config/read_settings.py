"""The keys of a DUT's ``linux:``, ``vpp:``, ``pfsense:`` and ``power:`` sections."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..core.errors import ConfigError
from . import readers as r
from .model import Port
from .read_twin import number
from .settings import KEEP, POWER_READERS, LinuxSettings, PfsenseSettings, PowerConfig, VppSettings
from .yamltree import Value

_HTTP = ("shelly", "shelly-gen1", "tasmota")
_PATH = r.pattern(r"/[A-Za-z0-9_./+-]*", "an absolute path", "/run/vpp/cli.sock", 200)
_WORD = r.pattern(r"[A-Za-z0-9_./:=@%+-]+", "a word of a command", "[systemctl, restart, vpp]", 200)
_GOVERNOR = r.pattern(r"[a-z_]+", "a governor", "performance", 32)
_FEATURE = re.compile(r"[a-z][a-z0-9-]{0,63}")
_URL = r.pattern(r"https?://[A-Za-z0-9.:\[\]_-]+(?:/[A-Za-z0-9._~/-]*)?", "an HTTP address", "http://192.0.2.7", 200)
_PLACE = re.compile(r"(\d{1,3}):(\d{1,3}):(\d{1,3})")


def read_linux(value: Value) -> LinuxSettings:
    t, base = value.table("a Linux DUT", ("cpus", "irqbalance", "irqs", "rps", "governor", "offloads")), LinuxSettings()
    return LinuxSettings(
        cpus=t.get("cpus", r.integers(0, 4095), base.cpus),
        irqbalance=t.get("irqbalance", r.choice("off", KEEP), base.irqbalance),
        irqs=t.get("irqs", r.choice("spread", KEEP), base.irqs),
        rps=t.get("rps", r.choice("off", "cpus", KEEP), base.rps),
        governor=t.get("governor", _GOVERNOR, base.governor),
        offloads=t.get("offloads", _offloads, base.offloads),
    )


def read_vpp(value: Value, ports: Sequence[Port]) -> VppSettings:
    known = ("interfaces", "socket", "startup_conf", "restart", "workers", "rx_placement")
    t, base = value.table("a VPP", known), VppSettings()
    found = VppSettings(
        interfaces=t.get("interfaces", r.choice("dpdk", "af_packet"), base.interfaces),
        socket=t.get("socket", _PATH, base.socket),
        startup_conf=t.get("startup_conf", _PATH, base.startup_conf),
        restart=t.get("restart", _words, base.restart),
        workers=t.get("workers", r.integer(0, 256), base.workers),
        rx_placement=t.get("rx_placement", _placements, base.rx_placement),
    )
    for port, _, _ in found.rx_placement:
        if port not in [one.tester for one in ports]:
            raise t.at("rx_placement").wrong(f"port {port} is no port of the tester's", "name one of ports[].tester")
    return found


def read_pfsense(value: Value) -> PfsenseSettings:
    t = value.table("a pfSense", ("firewall",))
    return PfsenseSettings(t.get("firewall", r.choice("off", KEEP), PfsenseSettings.firewall))


def read_power(value: Value) -> PowerConfig:
    t = value.table("a power meter", ("type", "url", "channel", "watts"))
    kind = t.get("type", r.choice(*POWER_READERS))
    allowed = {"constant": ("watts",), **dict.fromkeys(_HTTP, ("url", "channel"))}.get(kind, ())
    for key in ("url", "channel", "watts"):
        if t.has(key) and key not in allowed:
            raise t.at(key).wrong(f"means nothing to a meter of type {kind}", "take it out, or change the type")
    return PowerConfig(
        kind,
        url=t.get("url", _URL) if "url" in allowed else None,
        channel=t.get("channel", r.integer(0, 63), 0),
        watts=t.get("watts", number(0.001, 1e6)) if "watts" in allowed else None,
    )


def _words(value: Value) -> tuple[str, ...]:
    words = tuple(item.read(_WORD) for item in value.items("word"))
    if not words:
        raise ConfigError("no command", "write its words as [systemctl, restart, vpp]")
    return words


def _offloads(value: Value) -> tuple[tuple[str, bool], ...]:
    names = tuple(value.raw) if isinstance(value.raw, dict) else ()
    table = value.table("offloads", names)
    for name in names:
        if not _FEATURE.fullmatch(name):
            raise table.at(name).wrong("not a feature of ethtool -k", "write it as generic-receive-offload: off")
    return tuple((name, table.get(name, r.boolean)) for name in names)


def _placements(value: Value) -> tuple[tuple[int, int, int], ...]:
    found = []
    for item in value.items("placement"):
        match = _PLACE.fullmatch(r.text(item))
        if not match:
            raise item.wrong(f"{r.text(item)[:40]!r} is no placement", "write PORT:QUEUE:WORKER, as in '0:1:2'")
        found.append((int(match[1]), int(match[2]), int(match[3])))
    if len({(port, queue) for port, queue, _ in found}) != len(found):
        raise ConfigError("a queue is placed twice", "name each PORT:QUEUE once")
    return tuple(found)
