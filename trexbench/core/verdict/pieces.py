"""Received over offered rates past the knee, taken for straight in pieces: where the first piece says the knee is.

The slope of a piece has a standard deviation of 1: a router in overload levels off, or forwards less. A bend is
expected in a stretch as long as the first bad rate, as where another queue fills.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SCATTERS = np.geomspace(1e-4, 0.05, 8)
"""Possible scatters of the received rate from window to window, as shares of the rate; all equally likely."""
ROUND = 0.2
"""Distance by which a line may miss the knee, as the curve bends there; a share of the step from good to bad.
Without it 84 of 100 intervals hold the knee of a steady router (benchmarks/truth.py).
"""
CLOSING = 1e-3
"""Lines that close in on what must arrive by less than this are as good as parallel to it."""
EARLY = 0.5
"""A varying router loses frames while its mean rate is still enough: so many scatters before the line says, give or
take one. Without it only 41 of 100 figures are below the truth, not 47 (benchmarks/truth.py).
"""


@dataclass(frozen=True)
class _Pieces:
    """All pieces that begin at one window, by last window and scatter; weights: logarithms."""

    weights: Array
    offered: Array
    received: Array
    slope: Array
    level_var: Array
    slope_var: Array


def knee_density(offered: Array, received: Array, rates: Array, good: float, kept: float) -> Array:
    """Return the likelihood of the knee at each rate, for each of SCATTERS, which are weighed against one another.

    All rates as shares of the first bad one. offered, received: of the windows from the first bad one on. rates: evenly
    spaced. good: the last one that was carried; kept: the share that must arrive. The knee is where the line of the
    first piece, of two windows at least, meets that share.
    """
    count = len(offered)
    bends = np.clip(np.diff(offered, prepend=offered[0]), 1e-3, 0.5)
    after = np.zeros((count + 1, len(SCATTERS)))
    for begin in range(count - 1, -1, -1):
        pieces = _pieces_from(offered[begin:], received[begin:])
        straight = np.concatenate([[0.0], np.cumsum(np.log(1 - bends[begin + 1 :]))])
        ends = np.append(np.log(bends[begin + 1 :]), 0.0)
        weights = pieces.weights + (straight + ends)[:, None] + after[begin + 1 :]
        after[begin] = np.logaddexp.reduce(weights, axis=0)
    first = slice(min(1, count - 1), None)
    closing = np.maximum(CLOSING, kept - pieces.slope[first])
    knee = pieces.offered[first] - (kept * pieces.offered[first] - pieces.received[first]) / closing
    lies_var = pieces.level_var[first] + pieces.slope_var[first] * (knee - pieces.offered[first]) ** 2 + SCATTERS**2
    error = np.sqrt(lies_var / closing**2 + (0.6 * (rates[1] - rates[0])) ** 2 + (ROUND * (1 - good)) ** 2)
    apart = (rates - (knee - EARLY * (SCATTERS - SCATTERS[0]))[..., None]) / error[..., None]
    likely = np.exp(weights[first] - weights[first].max()) / error
    density: Array = np.einsum("ps,psr->sr", likely, np.exp(-0.5 * apart**2))
    return density


def _pieces_from(offered: Array, received: Array) -> _Pieces:
    """Straight pieces from the first of these windows to each, with the likelihood of their windows."""
    x, y = offered - offered[0], received - received[0]
    m = np.arange(1, len(x) + 1)[:, None]
    xm, ym = np.cumsum(x)[:, None] / m, np.cumsum(y)[:, None] / m
    sxx, sxy, syy = (np.cumsum(a * b)[:, None] for a, b in ((x, x), (x, y), (y, y)))
    sxx, sxy, syy = np.maximum(0, sxx - m * xm**2), sxy - m * xm * ym, np.maximum(0, syy - m * ym**2)
    var = SCATTERS**2
    posterior = 1 / (sxx / var + 1)
    slope = posterior * sxy / var
    misfit = syy / var - slope**2 / posterior
    weights = (np.log(posterior / m) - (m - 1) * np.log(2 * np.pi * var) - misfit) / 2
    return _Pieces(weights, xm + offered[0], ym + received[0], slope, var / m, posterior)
