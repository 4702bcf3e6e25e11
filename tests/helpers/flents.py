"""Data files as flent 2.3 writes them (doc/data-format.rst), of made-up tests: no netperf is needed, and none of its
own data is copied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

T0 = 1795422242.5
"""2026-11-23T08:24:02.5Z."""
DELAY_S, STEP_S = 5.0, 0.2
"""Pings begin so long before TCP, and end so long after it."""


def netperf(mbps: float, length_s: float, dur_s: float = 0.2, begin_s: float = DELAY_S) -> list[dict[str, Any]]:
    """Return netperf's figures for one connection: a mean over ``dur`` until ``t``; every second one a tenth higher."""
    count = round(length_s / dur_s)
    return [
        {"t": T0 + begin_s + (at + 1) * dur_s, "dur": dur_s, "val": mbps * (1.05 if at % 2 else 0.95)}
        for at in range(count)
    ]


def pings(idle_ms: float, loaded_ms: float, length_s: float, lost: Sequence[int] = ()) -> list[dict[str, Any]]:
    count = round((length_s + 2 * DELAY_S) / STEP_S)
    found = []
    for at in range(count):
        busy = DELAY_S <= at * STEP_S <= DELAY_S + length_s
        if at not in lost:
            found.append({"seq": float(at + 1), "t": T0 + at * STEP_S, "val": loaded_ms if busy else idle_ms})
    return found


def data_file(raw: Mapping[str, list[dict[str, Any]]], length_s: float = 10.0, **about: Any) -> dict[str, Any]:
    """raw: by series. The grid has, as flent's, the last raw value before, and none where nothing was printed."""
    x_values = [round(at * STEP_S, 6) for at in range(round((length_s + 2 * DELAY_S) / STEP_S))]
    return {
        "metadata": {
            "NAME": "rrul",
            "TITLE": "made up",
            "TIME": "2026-11-23T08:23:50.000000Z",
            "T0": "2026-11-23T08:24:02.500000Z",
            "HOST": "server.example.net",
            "LOCAL_HOST": "client",
            "LENGTH": int(length_s),
            "TOTAL_LENGTH": int(length_s + 2 * DELAY_S),
            "STEP_SIZE": STEP_S,
            "FLENT_VERSION": "2.3.0",
            "IP_VERSION": 4,
            "KERNEL_RELEASE": "6.1.0",
            "SERIES_META": {name: {"UNITS": "Mbits/s"} for name in raw},
            **about,
        },
        "version": 4,
        "x_values": x_values,
        "results": {name: [_at(values, x) for x in x_values] for name, values in raw.items()},
        "raw_values": {name: list(values) for name, values in raw.items()},
    }


def _at(values: Sequence[Mapping[str, Any]], x: float) -> float | None:
    near = [one["val"] for one in values if "val" in one and -STEP_S / 2 <= one["t"] - T0 - x < STEP_S / 2]
    return near[-1] if near else None


def rrul(length_s: float = 10.0) -> dict[str, Any]:
    """Four connections each way, two of them with sockets' statistics, sums, and pings of two kinds."""
    raw: dict[str, list[dict[str, Any]]] = {}
    for number, mark in enumerate(("BE", "BK", "CS5", "EF"), start=1):
        raw[f"TCP upload {mark}"] = netperf(2.0 * number, length_s)
        raw[f"TCP download {mark}"] = netperf(10.0 * number, length_s)
    for at in range(round(length_s)):
        told = {"t": T0 + DELAY_S + at + 0.1, "tcp_cwnd": 40, "tcp_rtt": 30.0 + at, "tcp_rtt_var": 1.0}
        raw["TCP upload BE"].append(told)
    raw |= {f"TCP {way} {kind}": [] for way in ("upload", "download") for kind in ("avg", "sum")}
    raw |= {"TCP totals": [], "Ping (ms) avg": [], "Ping (ms) UDP BE": netperf(100.0, length_s)}
    raw["TCP upload BE::tcp_rtt"] = []
    raw["Ping (ms) ICMP"] = pings(20.0, 45.0, length_s, lost=(40, 41))
    return data_file(raw, length_s)
