"""Adapt the recording's answers to ports with other addresses.

The recorded TRex knew its neighbours by IP address and had the MACs of its own wires; a lab's knows theirs by MAC.
Nothing else in the conversation depends on either, and its own calls set both: from then on only the port's MAC is
the server's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calls import Call

Layers = dict[str, Any]

# a port's layer_cfg when the recorded conversation began
RECORDED: Layers = {
    "ether": {"dst": "02:00:00:00:01:01", "src": "02:00:00:00:01:02", "state": "configured"},
    "ipv4": {"dst": "100.65.1.1", "src": "100.65.1.2", "state": "resolved"},
    "ipv6": {"enabled": False},
}
SETTERS = {"set_l2", "set_l3"}


def configured_layers(source: str, target: str) -> Layers:
    """The layer_cfg of a port whose neighbour the configuration names by its MAC."""
    return {
        "ether": {"dst": target, "src": source, "state": "configured"},
        "ipv4": {"state": "none"},
        "ipv6": {"enabled": False},
    }


def with_layers(replies: Mapping[str, Any], conversation: Sequence[Call], layers: Layers) -> dict[str, Any]:
    """The recorded replies as they are on a server whose port 0 begins with these layers."""
    told = dict(replies)
    begun_with = True
    for call in conversation:
        reply = replies[call.about]
        if call.method in SETTERS and "result" in reply:
            begun_with = False
        if call.method == "get_port_status" and "result" in reply:
            told[call.about] = _status(reply, layers, begun_with)
    return told


def _status(reply: dict[str, Any], layers: Layers, begun_with: bool) -> dict[str, Any]:
    attr = reply["result"]["attr"]
    set_since = {**attr["layer_cfg"], "ether": {**attr["layer_cfg"]["ether"], "src": layers["ether"]["src"]}}
    attr = {**attr, "layer_cfg": layers if begun_with else set_since}
    return {**reply, "result": {**reply["result"], "attr": attr}}
