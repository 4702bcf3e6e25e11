"""Received over offered rates past the knee, taken for straight in pieces: where the first piece says the knee is."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log, pi

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SCATTERS = np.geomspace(1e-4, 0.05, 8)
"""Possible scatters of the received rate from window to window, as shares of the rate; all equally likely."""
SLOPES = np.array([0.03, 0.5])
"""Standard deviations of a piece's slope: a router in overload levels off, one with more queues gradually."""
BENDS = 1.0
"""Expected bends in a stretch as long as the first bad rate, as where another queue fills."""
ROUND = 0.15
"""Distance by which a line may miss the knee, as the curve bends there; a share of the step from good to bad."""
CLOSING = 0.001
"""Lines that close in on what must arrive by less than this are as good as parallel to it."""
STRAY = 0.1
"""Probability that the first bad window lies on no piece: lossy by chance, or the DUT had not slowed down yet."""
EARLY, EARLY_SD = 0.5, 1.0
"""A varying router loses frames while its mean rate is still enough: so many scatters before the line says."""


@dataclass(frozen=True)
class _Pieces:
    """All pieces that begin at one window, by last window, scatter and slope; weights: logarithms."""

    weights: Array
    offered: Array
    received: Array
    slope: Array
    level_var: Array
    slope_var: Array


def knee_density(offered: Array, received: Array, rates: Array, good: float, kept: float) -> Array:
    """Return the likelihood of the knee at each rate, for each of SCATTERS, which are weighed against one another.

    All rates as shares of the first bad one. offered, received: of the windows from the first bad one on. rates: evenly
    spaced. good: the last one that was carried; kept: the share that must arrive. The knee is where the first piece's
    line meets that share, or, since a bend may hide before the first window, anywhere between there and ``good``: the
    likelier, the more gently loss sets in. Where only the first window lies on the first piece, that is steeper than
    the way to the next.
    """
    count = len(offered)
    bends = np.clip(BENDS * np.diff(offered, prepend=offered[0]), 1e-3, 0.5)
    after = np.zeros((count + 1, len(SCATTERS)))
    firsts = []
    for begin in range(count - 1, -1, -1):
        found = _pieces_from(offered[begin:], received[begin:])
        straight = np.concatenate([[0.0], np.cumsum(np.log(1 - bends[begin + 1 :]))])
        ends = np.append(np.log(bends[begin + 1 :]), 0.0)
        found.weights[:] += ((straight + ends)[:, None] + after[begin + 1 :])[:, :, None]
        after[begin] = np.logaddexp.reduce(found.weights, axis=(0, 2))
        if begin <= 1:
            firsts.append((begin, found))
    scale = after[:2].max()
    density = np.zeros((len(SCATTERS), len(rates)))
    for begin, found in firsts:
        likely = np.exp(found.weights - scale) * (STRAY if begin else 1 - STRAY)
        density += _meeting(found, likely, offered[begin], rates, good, kept, skip=begin == 0 and count > 1)
        if begin == 0 and count > 1:
            density += _before_a_bend(offered, received, likely[0].sum(axis=1), rates, good, kept)
    return density


def _pieces_from(offered: Array, received: Array) -> _Pieces:
    """Straight pieces from the first of these windows to each, with the likelihood of their windows."""
    x, y = offered - offered[0], received - received[0]
    m = np.arange(1, len(x) + 1)[:, None, None]
    xm, ym = np.cumsum(x)[:, None, None] / m, np.cumsum(y)[:, None, None] / m
    sxx, sxy, syy = (np.cumsum(a * b)[:, None, None] for a, b in ((x, x), (x, y), (y, y)))
    sxx, sxy, syy = np.maximum(0, sxx - m * xm**2), sxy - m * xm * ym, np.maximum(0, syy - m * ym**2)
    var, slope_var = SCATTERS[None, :, None] ** 2, SLOPES[None, None, :] ** 2
    posterior = 1 / (sxx / var + 1 / slope_var)
    slope = posterior * sxy / var
    misfit = syy / var - slope**2 / posterior
    weights = -0.5 * (m * np.log(2 * pi * var) + misfit - np.log(2 * pi * var / m) - np.log(posterior / slope_var))
    weights -= log(len(SLOPES))
    return _Pieces(weights, xm + offered[0], ym + received[0], slope, var / m, posterior)


def _meeting(found: _Pieces, likely: Array, first: float, rates: Array, good: float, kept: float, skip: bool) -> Array:
    """Where the lines of pieces meet the share that must arrive. skip: the piece of the first window alone."""
    at, scatter, spacing = slice(1 if skip else 0, None), SCATTERS[None, :, None], rates[1] - rates[0]
    closing = np.maximum(CLOSING, kept - found.slope[at])
    knee = found.offered[at] - (kept * found.offered[at] - found.received[at]) / closing
    lies_var = found.level_var[at] + found.slope_var[at] * (knee - found.offered[at]) ** 2 + (EARLY_SD * scatter) ** 2
    error = np.sqrt(lies_var / closing**2 + (0.6 * spacing) ** 2 + (ROUND * (1 - good)) ** 2)
    hidden = np.where(knee > good, 1 - np.exp(-BENDS * np.maximum(0, first - knee) / closing), 0.0)
    apart = (rates - (knee - EARLY * (scatter - SCATTERS[0]))[..., None]) / error[..., None]
    near = likely[at] * (1 - hidden) / error / (2 * pi) ** 0.5
    level = likely[at] * hidden / np.maximum(knee - good, spacing)
    between = (rates >= good) & (rates <= knee[..., None])
    density: Array = np.einsum("psk,pskr->sr", near, np.exp(-0.5 * apart**2))
    density += np.einsum("psk,pskr->sr", level, between)
    return density


def _before_a_bend(offered: Array, received: Array, likely: Array, rates: Array, good: float, kept: float) -> Array:
    """A piece of the first window alone: it is at least as steep as the way to the next window, and less than one."""
    steep = (received[1] - received[0]) / max(1e-9, offered[1] - offered[0])
    top = offered[0] - (kept * offered[0] - received[0]) / max(CLOSING, kept - steep)
    blur = np.hypot(SCATTERS, rates[1] - rates[0])[:, None]
    if top <= good:
        return np.zeros((len(SCATTERS), len(rates)))
    prior = 2 * exp(-0.5 * (steep / SLOPES[-1]) ** 2)
    inside = _rise((rates - good) / blur) * _rise((top - EARLY * (SCATTERS - SCATTERS[0])[:, None] - rates) / blur)
    density: Array = prior * likely[:, None] * inside / np.maximum(top - good, blur)
    return density


def _rise(deviations: Array) -> Array:
    """From 0 to 1 about as a normal distribution does."""
    risen: Array = 1 / (1 + np.exp(-np.clip(1.7 * deviations, -30, 30)))
    return risen
