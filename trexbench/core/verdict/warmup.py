"""Does the warm-up prove that frames pass the DUT and come back on the right port?"""

from __future__ import annotations

from collections.abc import Sequence

from ..load.plan import Direction, Plan
from ..load.sample import Phase, Sample
from ..load.windows import Window, build_window
from ..units import format_share

WARMUP_RETURN_SHARE = 0.5
"""If less than this share comes back in the warm-up, the path is broken; a slow router does not lose so much."""
TAGS_BYTES = 8
"""Difference by which a NIC may count a frame longer or shorter: two VLAN tags. An ICMP error is longer than a short
frame by 10 bytes at least, and shorter than a long one."""


def check_warmup(plan: Plan, samples: Sequence[Sample]) -> str | None:
    """Why the warm-up does not prove a working path, in one line; None when it does.

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
            return _nothing_back(plan, half, direction, window)
    return None


def _nothing_back(plan: Plan, half: Sequence[Sample], direction: Direction, window: Window) -> str:
    share = "nothing" if window.received <= 0 else f"only {format_share(window.received / window.sent)} of the frames"
    elsewhere = []
    expected = {d.rx for d in plan.directions}
    for port, last in half[-1].reading.ports.items():
        arrived = last.ipackets - half[0].reading.ports[port].ipackets
        if port != direction.rx and port not in expected and arrived > window.sent / 2:
            elsewhere.append(port)
    if elsewhere:
        sent_bytes, came_bytes = _mean_sizes(half, direction.tx, elsewhere[0])
        if came_bytes and abs(came_bytes - sent_bytes) > TAGS_BYTES:
            return (
                f"{share} came back on port {direction.rx}; port {elsewhere[0]} got frames of {came_bytes:.0f} B where "
                f"{sent_bytes:.0f} B were sent, as a router's ICMP errors are: give the DUT a route to where port "
                f"{direction.tx}'s frames go, and see that its next hop is known"
            )
        return (
            f"{share} came back on port {direction.rx}, but the frames arrived on port {elsewhere[0]}: "
            "swap the cables or the DUT's routes"
        )
    return (
        f"{share} came back on port {direction.rx} of what port {direction.tx} sent: likely causes are a missing "
        "route or neighbour on the DUT, forwarding or a firewall there, a wrong destination MAC, or a link that is down"
    )


def _mean_sizes(half: Sequence[Sample], tx: int, rx: int) -> tuple[float, float]:
    """Bytes of a frame that one port has sent and another received; 0 where the port counted none."""
    then, now = (sample.reading.ports for sample in (half[0], half[-1]))
    sent = (now[tx].obytes - then[tx].obytes) / max(1, now[tx].opackets - then[tx].opackets)
    return sent, (now[rx].ibytes - then[rx].ibytes) / max(1, now[rx].ipackets - then[rx].ipackets)
