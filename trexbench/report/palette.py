"""How a DUT looks, on the page, in PNG and in SVG alike: its colour, and the marker and dash of each of its lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Hues near Okabe and Ito's. With any kind of colour vision they are further apart than those are, and each has at
# least 3:1 on its ground, which two of those have not on white.
BLUE, RED, GREEN, PURPLE = "#2253AD", "#AF5114", "#548179", "#61465B"
OCHRE, SKY, BLACK, OLIVE = "#B38C21", "#2B89E0", "#222222", "#324400"
GREY = "#666666"
LIGHT = (BLUE, RED, GREEN, SKY, OCHRE, BLACK, PURPLE, OLIVE)
DARK = ("#629EDA", "#C33D0A", "#05D1AE", "#035FE8", "#FCCD28", "#EEEEEE", "#8C5188", "#ACA118")
"""The same hues for a dark ground."""
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
"""As the page names them, and as pictures do."""
DASHES: Mapping[str, Any] = {
    "solid": "-",
    "dot": (0, (1.2, 1.6)),
    "dash": (0, (5, 3)),
    "dashdot": (0, (5, 2, 1.2, 2)),
    "longdash": (0, (10, 3)),
    "longdashdot": (0, (10, 2, 1.2, 2)),
}
"""As the page names them, and as pictures do."""


@dataclass(frozen=True)
class Look:
    """Of a line. colour: on a light ground. marker, dash: keys of MARKERS and DASHES."""

    colour: str
    marker: str
    dash: str


def find_look(column: int, slot: int = 0, slots: int = 1) -> Look:
    """The look of a line that no other has: of the DUT with this place among the columns, which has so many lines.

    page.js has the same rule; up to 48 lines of a colour differ.
    """
    hue, number = column % len(LIGHT), slot + slots * (column // len(LIGHT))
    marker = [*MARKERS][(hue + number) % len(MARKERS)]
    return Look(LIGHT[hue], marker, [*DASHES][(hue + number + number // len(MARKERS)) % len(DASHES)])


def page_palette() -> dict[str, list[str]]:
    """What page.js needs of it."""
    return {"light": [*LIGHT], "dark": [*DARK], "markers": [*MARKERS], "dashes": [*DASHES]}
