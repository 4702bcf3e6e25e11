"""Levels of a history by jumpavg, FD.io CSIT's change-point library: the grouping of minimum description length."""

from __future__ import annotations

from collections.abc import Sequence

import jumpavg

UNIT = 3.0
"""Resolution of a night in units of its spread: what jumpavg pays for a new level shrinks with finer histories."""


def levels(values: Sequence[float]) -> list[int]:
    """A Segmenter: where jumpavg begins its second and later groups."""
    borders, at = [], 0
    for group in jumpavg.classify(list(values), unit=UNIT):
        borders.append(at)
        at += len(group)
    return borders[1:]
