"""Readings of a host from what the genuine iperf3 prints with -J, joined with what its agent read meanwhile. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from ..core.tcp.iperf3 import Iperf3Output, Told, told_in
from ..core.tcp.model import HostReading


def told_by(output: Mapping[str, Any]) -> Told:
    """output: as the agent sends it (stdout, stderr, code); an error where it is nothing that iperf3 prints."""
    text = str(output.get("stdout", ""))
    try:
        return told_in(msgspec.json.decode(text, type=Iperf3Output))
    except (ValueError, RecursionError):
        said = " ".join(str(output.get("stderr") or text or f"exit code {output.get('code')}").split())[:200]
        return Told([], 0.0, {}, f"no result, but: {said}")


def with_streams(told: Told, read: Sequence[HostReading], ended_s: float) -> tuple[HostReading, ...]:
    """iperf3's intervals as readings, each with the CPUs and threads that the agent read next to it.

    Their time begins with the first interval. ended_s: by the agent's clock when iperf3 had ended.
    """
    if not told.totals or not read:
        return tuple(read)
    began_s = max(0.0, ended_s - told.length_s)
    nothing = tuple(replace(one, payload_bytes=0, info={}) for one in told.totals[-1][1])
    # Its own last reading is of after its end: its threads are gone.
    whole = read[:-1] or read
    found = []
    for after_s, streams in ((0.0, nothing), *told.totals):
        at_s = began_s + after_s
        near = min(whole, key=lambda one: abs(one.at_s - at_s))
        found.append(HostReading(after_s, streams, near.cpus, near.threads))
    return tuple(found)
