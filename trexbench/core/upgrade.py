"""Upgrade of documents of older versions to the present form. Counters stay as they were read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import to_builtins

from .errors import ConfigError
from .strategy.kinds import STRATEGIES
from .tcp.plan import TcpMode
from .tcp.wan import parse_wan

_OFFER = ("line_rate_bps", "mean_frame_bytes", "line_rate_pps", "target_pps", "warmup_pps")
"""Fields that version 1 has once for all directions."""


def upgrade(document: Mapping[str, Any], version: int) -> dict[str, Any]:
    """Upgrade a run document of this version; KeyError, TypeError or ValueError for a damaged one."""
    values = dict(document)
    command = values.get("command")
    if version < 3 and isinstance(command, Mapping) and isinstance(line := command.get("wan"), str):
        values["over"] = _path_of_words(line)
    if version < 2:
        plan = values["plan"]
        names = [f"{int(tx)}->{int(rx)}" for tx, rx in plan["directions"]]
        offer = {name: plan[name] for name in _OFFER}
        fields = STRATEGIES[plan["kind"]].__dataclass_fields__
        kept = {name: value for name, value in plan.items() if name in fields or name == "kind"}
        values["plan"] = {**kept, "offers": [{"direction": name, **offer} for name in names]}
        values["profiles"] = dict.fromkeys(names[:1], values.pop("profile"))
        if telemetry := values.get("telemetry"):
            values["telemetry"] = {"mode": telemetry["mode"], "readings": telemetry["sightings"]}
        values["samples"] = [_sample_of_1(sample, names) for sample in values["samples"]]
    return values


def upgrade_night(values: Any) -> Any:
    """Upgrade a suite's night of an earlier version; damage stays for the reader to refuse."""
    records = values.get("cells") if isinstance(values, Mapping) else None
    return {**values, "cells": [*map(_with_cell, records)]} if isinstance(records, list) else values


def _with_cell(record: Any) -> Any:
    """Add the cell to a record of earlier versions, which had its parts alone, and a name for the mode of TCP."""
    if not isinstance(record, Mapping) or "cell" in record:
        return record
    mode = record.get("mode")
    parsed = TcpMode.parse(mode) if record.get("kind") == "tcp" and isinstance(mode, str) else None
    return {**record, "cell": {**record, "mode": to_builtins(parsed) if parsed else mode}}


def _path_of_words(words: str) -> dict[str, Any]:
    """Read a WAN as it was stored once, ``20.0 ms, 1.000 Gbit/s by netem``; other text is kept as it is."""
    line, _, by = words.partition(" by ")
    # ``jitter 50.0 us`` is ``jitter=0.05ms`` to parse_wan.
    named = (re.sub("^(queue|loss|jitter) ", r"\1=", part) for part in line.split(", "))
    parts = (re.sub(r"([\d.]+) us$", lambda time: f"{float(time[1]) / 1e3:g}ms", part) for part in named)
    try:
        return {"wan": to_builtins(parse_wan(",".join(parts))), "wan_by": by}
    except ConfigError:
        return {"wan_by": words}


def _sample_of_1(sample: Mapping[str, Any], names: list[str]) -> dict[str, Any]:
    """Upgrade a sample of version 1, which had one asked rate for all directions and one CPU figure for all ports."""
    asked = float(sample["asked_pps"])
    cpu = {"cpu_percent": sample["cpu_percent"]}
    return {
        **{name: value for name, value in sample.items() if name != "cpu_percent"},
        "asked_pps": dict.fromkeys(names, asked) if asked else {},
        "ports": {port: {**counters, **cpu} for port, counters in sample["ports"].items()},
    }
