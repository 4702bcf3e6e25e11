"""Line styles of a DUT on the page and in pictures: its colour, and the marker and dash of each of its lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Hues near Okabe and Ito's. With any kind of colour vision they are further apart than those are, and each has at
# least 3:1 on its ground, which two of those have not on white.
BLUE, VERMILION, GREEN, PURPLE = "#2253AD", "#AF5114", "#548179", "#61465B"
OCHRE, SKY, BLACK, OLIVE = "#B38C21", "#2B89E0", "#222222", "#324400"
GREY, RED = "#666666", "#C0143C"
"""Colours of references and verdicts, which belong to no DUT."""
LIGHT = (BLUE, VERMILION, GREEN, SKY, OCHRE, BLACK, PURPLE, OLIVE)
DARK = ("#629EDA", "#C33D0A", "#05D1AE", "#035FE8", "#FCCD28", "#EEEEEE", "#8C5188", "#ACA118")
"""Hues of LIGHT for a dark ground."""
MARKERS: Mapping[str, str] = {
    "circle": "o",
    "square": "s",
    "diamond": "D",
    "triangle-up": "^",
    "pentagon": "p",
    "star": "*",
    "hexagon": "h",
    "cross": "P",
}
"""Marker names on the page -> markers in pictures."""
DASHES = ("solid", "dot", "dash", "dashdot", "longdash", "longdashdot")
STRIDE = 17
"""Once all colours are used they repeat, with markers this many places further on."""
SMALLEST = 8
"""Width of the smallest marker, in pixels: smaller ones cannot be told apart."""


@dataclass(frozen=True)
class LineStyle:
    """Look of a line; its marker and dash are of MARKERS and DASHES."""

    colour: str
    """On a light ground."""
    marker: str
    dash: str
    size: int
    """Width of markers, in pixels."""
    hue: int
    """Index of the colour in LIGHT and DARK."""
    older: str
    """Dash of the same line of an older night."""

    @property
    def style(self) -> dict[str, Any]:
        """Keyword arguments for matplotlib."""
        return {"color": self.colour, "marker": MARKERS[self.marker]}


def find_look(column: int, place: int = 0, stride: int = STRIDE) -> LineStyle:
    """Find the look of a DUT's line. column: index of the DUT among the columns; place: of the line among the DUT's.

    No two of the first ``stride`` lines of the first 16 DUTs look alike. Where lines coincide, the later one's markers
    lie within the earlier one's.
    """
    hue, number = column % len(LIGHT), place + stride * (column // len(LIGHT))
    marker = [*MARKERS][(hue + number) % len(MARKERS)]
    dash = DASHES[(hue + number % len(MARKERS) + number // len(MARKERS)) % len(DASHES)]
    older = f"{4 + 2 * (number % 6)}px {3 + 2 * (number // 6)}px"
    return LineStyle(LIGHT[hue], marker, dash, SMALLEST + 2 * (3 - (place + column) % 4), hue, older)
