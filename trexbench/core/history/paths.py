"""The WAN and the tunnel that a run went through, as its traffic tells them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

WAN = "WAN of "
MARKS = ("zerocopy", "pinned", "PPPoE")
"""Words for the way in which TCP is sent; the WAN and the tunnel come after them."""
_PART = re.compile(r"(?:(queue|loss|jitter) )?(\d+(?:\.\d+)?) ([A-Za-z\u00b5%]+)(?:/s)?")


def split_traffic(traffic: str | None) -> tuple[str, str]:
    """Split into the traffic and the path in words, ``WAN 20ms,1gbit by netem``; empty: no WAN and no tunnel."""
    sent, mark, path = (traffic or "").partition(f", {WAN}")
    if not sent.startswith("TCP by "):
        return sent, short_path(f"{mark[2:]}{path}")
    parts = (traffic or "").split(", ")
    at = 2  # behind the engine and the congestion control
    while at < len(parts) and parts[at] in MARKS:
        at += 1
    return ", ".join(parts[:at]), short_path(", ".join(parts[at:]))


def unlike_traffic(before: str | None, after: str | None) -> Iterator[tuple[str, ...]]:
    """Yield how the traffic of two runs differs: nothing in words where other frames were sent, and both paths.

    ``()``, ``("over WAN 20ms,1gbit by netem", "over no WAN")``.
    """
    (sent, path), (other_sent, other_path) = split_traffic(before), split_traffic(after)
    if sent != other_sent:
        yield ()
    if path != other_path:
        none = "no WAN" if WAN.split()[0] in f"{path}{other_path}" else "no tunnel"
        yield f"over {path or none}", f"over {other_path or none}"


def short_path(path: str) -> str:
    """A WAN as ``--wan`` has it: ``WAN of 20.0 ms, 1.000 Gbit/s by netem`` becomes ``WAN 20ms,1gbit by netem``."""
    if not path.startswith(WAN):
        return path
    line, by, rest = path.removeprefix(WAN).partition(" by ")
    return f"WAN {','.join(map(_short_part, line.split(', ')))}{by}{rest}"


def _short_part(part: str) -> str:
    found = _PART.fullmatch(part)
    if found is None:
        return part
    key, number, unit = found.groups()
    return f"{f'{key}=' if key else ''}{float(number):g}{unit.lower()}"
