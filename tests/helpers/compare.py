"""Rules for comparing two servers' answers: what must be equal, what need only be alike, what differs on purpose."""

from __future__ import annotations

from typing import Any

from trexbench.generator.trex.client import NO_COUNTER, meaning_of

# Answers whose values depend on the moment or the machine: compared by keys and types alone.
VOLATILE = {
    "acquire",
    "api_sync_v2",
    "get_global_stats",
    "get_port_stats",
    "get_port_xstats_values",
    "get_system_info",
    "get_utilization",
    "get_version",
    "ping",
}
# Answers whose order means nothing.
UNORDERED = {"get_supported_cmds", "get_profile_list"}
UNCALLED = ["api_sync", "cancel_async_task", "get_async_results", "get_owner", "get_stream", "get_stream_list"]
"""Methods of TRex that its client never calls, or not unless it was given a ticket."""


def shape(value: Any) -> Any:
    """Keys and types; of a list the first element's, and an empty list fits any."""
    if isinstance(value, dict):
        return {key: shape(one) for key, one in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__


def essence(method: str, reply: dict[str, Any]) -> dict[str, Any]:
    """The part of a reply that every server must give alike."""
    if "error" in reply:
        return {"error": reply["error"]}
    result = _without_differences(method, reply["result"])
    if method in VOLATILE:
        return {"shape": shape(result)}
    if method in UNORDERED and isinstance(result, list):
        return {"result": sorted(result)}
    return {"result": result}


def _without_differences(method: str, result: Any) -> Any:
    """The result without what the embedded server answers differently on purpose, each with its reason."""
    if method == "get_system_info":
        # it counts no packet groups, and says so in the receive capabilities; it alone sends by XDP
        ports = [_drop(port, "rx", "xdp_mode") for port in sorted(result["ports"], key=lambda p: p["index"])]
        return {**result, "ports": ports}
    if method == "get_supported_cmds":
        return [name for name in result if name not in UNCALLED]
    if method == "get_port_status":
        # it has no network stack, hence sends no gratuitous ARP
        return {**result, "rx_info": _drop(result["rx_info"], "stack", "grat_arp")}
    if method == "get_port_xstats_names":
        # which extended counters there are is the driver's affair: those it has are named as TRex's are
        names = result["xstats_names"]
        return {"xstats_names": [name for name in names if name in COMMON_XSTATS]}
    if method == "get_port_stats":
        # it tells by port what it could not send, of which TRex tells the sum of all ports only, and why
        return _drop(result, "queue_full", "waited_ns", "preempted", "stolen_ns")
    if method == "get_utilization":
        # it has no packet buffer pools
        return _drop(result, "mbuf_stats")
    if method == "get_async_events":
        return {"data": [{**event, "data": _drop(event["data"], "session_id")} for event in result["data"]]}
    if method == "start_traffic":
        return _drop(result, "ts")
    if method == "validate":
        # events of one moment come in no order
        events = sorted(result["graph"]["events"], key=lambda e: (e["time_usec"], e["diff_pps"], e["stream_id"]))
        return {**result, "graph": {**result["graph"], "events": events}}
    return result


COMMON_XSTATS = (
    "rx_good_packets",
    "tx_good_packets",
    "rx_good_bytes",
    "tx_good_bytes",
    "rx_errors",
    "tx_errors",
)


def _drop(value: dict[str, Any], *names: str) -> dict[str, Any]:
    return {key: one for key, one in value.items() if key not in names}


REFUSED = (-32602, -32000)
"""Codes for a wrong parameter and for what cannot be done: clients make no difference."""


def _acted_on(error: dict[str, Any]) -> tuple[Any, ...]:
    """The part of an error that clients act on: its code, and what trexbench makes of its text."""
    code, text = error["code"], error.get("specific_err", error["message"])
    return "refused" if code in REFUSED else code, meaning_of(text), NO_COUNTER in text


def differences(expected: Any, found: Any, where: str = "") -> list[str]:
    """Differences of two essences, a line each; floats may differ in the last digits, errors in their words."""
    if isinstance(expected, dict) and isinstance(found, dict):
        if {"code", "message"} <= expected.keys() & found.keys():
            return [] if _acted_on(expected) == _acted_on(found) else [f"{where}: {found}, TRex says {expected}"]
        lines = [f"{where}.{key}: missing" for key in expected.keys() - found.keys()]
        lines += [f"{where}.{key}: not expected" for key in found.keys() - expected.keys()]
        for key in expected.keys() & found.keys():
            lines += differences(expected[key], found[key], f"{where}.{key}")
        return lines
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        pairs = enumerate(zip(expected, found, strict=True))
        return [line for i, (a, b) in pairs for line in differences(a, b, f"{where}[{i}]")]
    if isinstance(expected, float) and isinstance(found, float):
        if abs(expected - found) <= 1e-9 * max(abs(expected), abs(found)):
            return []
    elif type(expected) is type(found) and expected == found:
        return []
    return [f"{where}: {found!r}, TRex says {expected!r}"]
