"""Proof by the warm-up that frames pass the DUT and come back on the right port."""

from __future__ import annotations

from collections.abc import Sequence

from ..load.plan import Direction, Plan
from ..load.sample import Phase, Sample
from ..load.windows import Window, build_window
from ..units import format_share

WARMUP_RETURN_SHARE = 0.5
"""If less than this share comes back in the warm-up, the path is broken; a slow router does not lose so much."""
TAGS_BYTES = 8
"""NICs may count a frame longer or shorter by two VLAN tags. An ICMP error is at least 10 bytes longer than a short
frame, and shorter than a long one."""


def check_warmup(plan: Plan, samples: Sequence[Sample]) -> str | None:
    """Explain in one line why the warm-up does not prove a working path; None when it does.

    Only its second half counts, so that the DUT may resolve neighbours and leave power saving first.
    """
    warm = [i for i, s in enumerate(samples) if s.phase is Phase.WARMUP]
    if not warm:
        return None
    half = samples[warm[0] - 1 + len(warm) // 2 : warm[-1] + 1]
    for direction in plan.directions:
        window = build_window(direction, half)
        if window.sent == 0:
            return (
                f"nothing was sent on port {direction.tx} in the warm-up: the generator took the streams and "
                "sends no frames; look at its own log and the port's link"
            )
        if window.received < WARMUP_RETURN_SHARE * window.sent:
            return _why_missing(plan, half, direction, window)
    return None


def _why_missing(plan: Plan, half: Sequence[Sample], direction: Direction, window: Window) -> str:
    share = "nothing" if window.received <= 0 else f"only {format_share(window.received / window.sent)} of the frames"
    then, now = half[0].reading.ports, half[-1].reading.ports
    tx, expected = direction.tx, {d.rx for d in plan.directions}
    others = (port for port in now if port not in expected)
    rx = next((port for port in others if now[port].ipackets - then[port].ipackets > window.sent / 2), None)
    if rx is None:
        return (
            f"{share} came back on port {direction.rx} of what port {tx} sent: likely causes are a missing route or "
            "neighbour on the DUT, forwarding or a firewall there, a wrong destination MAC, or a link that is down"
        )
    sent_bytes = (now[tx].obytes - then[tx].obytes) / max(1, now[tx].opackets - then[tx].opackets)
    came_bytes = (now[rx].ibytes - then[rx].ibytes) / max(1, now[rx].ipackets - then[rx].ipackets)
    if came_bytes and abs(came_bytes - sent_bytes) > TAGS_BYTES:
        return (
            f"{share} came back on port {direction.rx}; port {rx} got frames of {came_bytes:.0f} B where "
            f"{sent_bytes:.0f} B were sent, as a router's ICMP errors are: give the DUT a route to where port {tx}'s "
            "frames go, and see that its next hop is known"
        )
    elsewhere = f"the frames arrived on port {rx}: swap the cables or the DUT's routes"
    return f"{share} came back on port {direction.rx}, but {elsewhere}"
