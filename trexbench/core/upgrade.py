"""Run documents of older versions -> the present form. Counters stay as they were read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .strategy.table import STRATEGIES

_LINE_PART = re.compile(r"(?:(queue|loss|jitter) )?(\d+(?:\.\d+)?) ([A-Za-z\u00b5%]+)(?:/s)?")
_OFFER = ("line_rate_bps", "mean_frame_bytes", "line_rate_pps", "target_pps", "warmup_pps")
"""Fields that version 1 has once for all directions."""


def upgrade(document: Mapping[str, Any], version: int) -> dict[str, Any]:
    """A run document of this version in the present form; KeyError, TypeError or ValueError for a damaged one."""
    values = dict(document)
    command = values.get("command")
    if isinstance(command, Mapping) and isinstance(wan := command.get("wan"), str):
        values["command"] = {**command, "wan": _wan_as_asked(wan)}
    if version < 2:
        names = [f"{int(tx)}->{int(rx)}" for tx, rx in values["plan"]["directions"]]
        values["plan"] = _plan_of_1(values["plan"], names)
        values["profiles"] = dict.fromkeys(names[:1], values.pop("profile"))
        if telemetry := values.get("telemetry"):
            values["telemetry"] = {"mode": telemetry["mode"], "readings": telemetry["sightings"]}
        values["samples"] = [_sample_of_1(one, names) for one in values["samples"]]
    return values


def _wan_as_asked(words: str) -> str:
    """``20.0 ms, 1.000 Gbit/s by netem``, as it was stored, as ``20ms,1gbit by netem``."""
    line, by, rest = words.partition(" by ")
    return f"{','.join(map(_as_asked, line.split(', ')))}{by}{rest}"


def _as_asked(part: str) -> str:
    words = _LINE_PART.fullmatch(part)
    if words is None:
        return part
    key, number, unit = words.groups()
    return f"{f'{key}=' if key else ''}{float(number):g}{unit.lower().replace(chr(181), 'u')}"


def _plan_of_1(plan: Mapping[str, Any], names: list[str]) -> dict[str, Any]:
    """Version 1 had one rate, one frame size and one line rate for all directions."""
    offer = {name: plan[name] for name in _OFFER}
    fields = STRATEGIES[plan["kind"]].__dataclass_fields__
    kept = {name: value for name, value in plan.items() if name in fields or name == "kind"}
    return {**kept, "offers": [{"direction": name, **offer} for name in names]}


def _sample_of_1(sample: Mapping[str, Any], names: list[str]) -> dict[str, Any]:
    """Version 1 had one asked rate for all directions, and one CPU figure for all ports."""
    asked = float(sample["asked_pps"])
    cpu = {"cpu_percent": sample["cpu_percent"]}
    return {
        **{name: value for name, value in sample.items() if name != "cpu_percent"},
        "asked_pps": dict.fromkeys(names, asked) if asked else {},
        "ports": {port: {**counters, **cpu} for port, counters in sample["ports"].items()},
    }
