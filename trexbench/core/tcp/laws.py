"""Laws of kernels and papers: the share of a buffer that is payload in flight, and TCP's rate at a given loss. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import sqrt

from .window import RECEIVE_USABLE

RATIO_SINCE = (6, 6)
"""Linux from this version on measures how much of a buffer is payload; before, tcp_adv_win_scale set it."""
USUAL_SCALE = 1
"""Default tcp_adv_win_scale of Linux before RATIO_SINCE: half of a buffer is window."""
SENDABLE = 0.7
"""Largest share of a send buffer, which includes the kernel's overhead, that is payload in flight."""
MATHIS = sqrt(1.5)
"""C of rate = MSS / round trip * C / sqrt(p), for an ACK of every packet."""
LAWFUL = ("reno", "cubic")
"""Congestion controls whose rate follows from the loss."""
_CUBIC_C, _CUBIC_BETA = 0.4, 0.7
_CUBIC = (_CUBIC_C * (3 + _CUBIC_BETA) / (4 * (1 - _CUBIC_BETA))) ** 0.25


def window_rule(told: Mapping[str, str]) -> tuple[float, str]:
    """Return the share of a receive buffer that is offered as window, and the reason in words.

    told: facts reported by the receiving host (``kernel``, ``tcp_adv_win_scale``).
    """
    kernel, scale = told.get("kernel", ""), last_integer(told.get("tcp_adv_win_scale", ""))
    version = re.match(r"([0-9]{1,4})\.([0-9]{1,4})", kernel)
    if version is not None and (int(version[1]), int(version[2])) >= RATIO_SINCE:
        why = f"Linux {version[0]} measures how much of a buffer is payload: about {RECEIVE_USABLE:g}"
        return RECEIVE_USABLE, why
    share = share_of_scale(USUAL_SCALE if scale is None else scale)
    if scale is None:
        return share, f"half of a buffer is window, as in Linux before {'.'.join(map(str, RATIO_SINCE))}"
    return share, f"tcp_adv_win_scale is {scale}: {share:g} of a buffer is window"


def share_of_scale(scale: int) -> float:
    """Return the share of a buffer that Linux before RATIO_SINCE offers, by its tcp_adv_win_scale of -31 to 31."""
    return 2.0**scale if scale <= 0 else 1 - 2.0**-scale


def loss_bound(congestion: str, mss: float, round_trip_s: float, loss: float) -> tuple[float, str] | None:
    """Return one connection's payload in bit/s at this probability of losing a packet, and the law that says so.

    None if the congestion control has no law: bbr does not slow down for single losses. mss: in bytes.
    """
    if congestion not in LAWFUL or not 0 < loss < 1 or round_trip_s <= 0:
        return None
    packets, law = MATHIS / sqrt(loss), "Mathis"
    if congestion == "cubic" and (own := _CUBIC * (round_trip_s / loss) ** 0.75) > packets:
        packets, law = own, "cubic (RFC 9438)"  # cubic grows as reno does where that is faster
    return 8 * mss * packets / round_trip_s, law


def last_integer(text: str) -> int | None:
    """Parse the last of these numbers; None if it is none."""
    last = text.split()[-1:]
    return int(last[0]) if last and re.fullmatch(r"-?[0-9]{1,12}", last[0]) else None
