"""A Linux host as tc and ip show it: its interfaces and their queueing disciplines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from boxes import Said

_UNITS = {"us": 1e-6, "%": 0.01, "tbit": 1e12 / 8, "bit": 1 / 8}


def _number(word: str) -> float:
    unit = next((one for one in _UNITS if word.endswith(one)), "")
    return float(word.removesuffix(unit)) * _UNITS.get(unit, 1)


def _netem(words: list[str]) -> dict[str, Any]:
    told: dict[str, Any] = {"limit": int(words[1])}
    rest = words[2:]
    if rest[:1] == ["delay"]:
        own = rest[1 : next(i for i, word in enumerate(rest) if word in ("loss", "rate"))]
        told["delay"] = {"delay": _number(own[0]), "jitter": _number(own[1]) if len(own) > 1 else 0}
    if "loss" in rest:
        told["loss-random"] = {"loss": _number(rest[rest.index("random") + 1]), "correlation": 0}
    if "rate" in rest:
        told["rate"] = {"rate": int(_number(rest[rest.index("rate") + 1]))}
    return told


def _tbf(words: list[str]) -> dict[str, Any]:
    """Its queue as the time that it takes, which tc prints in its place."""
    rate, burst, limit = int(_number(words[1])), int(words[3]), int(words[5])
    return {"rate": rate, "burst": burst, "lat": int(1e6 * (limit - burst) / rate)}


@dataclass
class TcBox:
    """forgets: options that it takes and does not keep."""

    qdiscs: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    forgets: tuple[str, ...] = ()
    programs: Sequence[str] = ("tc", "ip", "cat", "readlink")

    def run(self, argv: Sequence[str], input: str) -> Said:
        if argv[0] == "ip":
            links = [{"ifname": name, "mtu": 1500, "flags": ["UP"]} for name in self.qdiscs]
            return Said(json.dumps(links))
        if argv[0] != "tc":
            return Said("here\n")
        words = list(argv[1:])
        if words[0] == "-j":
            return Said(json.dumps(self.qdiscs[words[words.index("dev") + 1]]))
        return self._change(words)

    def _change(self, words: list[str]) -> Said:
        verb, name, handle = words[1], words[3], words[words.index("handle") + 1]
        there = self.qdiscs[name]
        if verb == "del":
            if not any(one["handle"] == handle for one in there):
                return Said(stderr="Error: Invalid handle.\n", returncode=2)
            self.qdiscs[name] = [{"kind": "noqueue", "handle": "0:", "root": True, "options": {}}]
            return Said()
        kind = words[words.index("handle") + 2]
        own = words[words.index(kind) + 1 :]
        options = _netem(own) if kind == "netem" else _tbf(own)
        entry = {"kind": kind, "handle": handle, "options": {k: v for k, v in options.items() if k not in self.forgets}}
        entry |= {"root": True} if "root" in words else {"parent": words[words.index("parent") + 1]}
        entry |= {"drops": 0, "packets": 0}
        kept = [one for one in there if one["handle"] not in ("0:", handle)]
        self.qdiscs[name] = sorted([*kept, entry], key=lambda one: str(one["handle"]))
        return Said()


PLAIN = {"kind": "noqueue", "handle": "0:", "root": True, "options": {}}
