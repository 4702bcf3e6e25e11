"""Parts that the page draws with: colours and looks that no one mistakes for one another, and the plotting library."""

from __future__ import annotations

import math
import re
from itertools import combinations
from pathlib import Path

import pytest

from trexbench.report.page.templates import LIBRARY, read_static
from trexbench.report.palette import DARK, GREY, LIGHT, RED, STRIDE, find_look

GROUNDS = re.findall(r"--ground: (#\w{6})", read_static("page.css"))
# Machado, Oliveira and Fernandes (2009): what is left of a colour without one kind of cone.
VISIONS = {
    "any": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.3039)),
}
CONES = (
    (0.4122214708, 0.5363325363, 0.0514459929),
    (0.2119034982, 0.6806995451, 0.1073969566),
    (0.0883024619, 0.2817188376, 0.6299787005),
)
OF_CONES = (
    (0.2104542553, 0.7936177850, -0.0040720468),
    (1.9779984951, -2.4285922050, 0.4505937099),
    (0.0259040371, 0.7827717662, -0.8086757660),
)
APART = 0.08
"""In Oklab; Okabe and Ito's own eight come as near as 0.04."""


def linear(colour: str) -> list[float]:
    values = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in values]


def contrast(one: str, other: str) -> float:
    """Return the contrast as WCAG defines it."""
    dark, light = sorted(
        sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear(x), strict=True)) for x in (one, other)
    )
    return (light + 0.05) / (dark + 0.05)


def times(matrix: tuple[tuple[float, ...], ...], values: list[float]) -> list[float]:
    return [sum(a * b for a, b in zip(row, values, strict=True)) for row in matrix]


def oklab(colour: str, vision: str) -> list[float]:
    seen = [max(0.0, min(1.0, one)) for one in times(VISIONS[vision], linear(colour))]
    return times(OF_CONES, [one ** (1 / 3) for one in times(CONES, seen)])


@pytest.mark.parametrize(("colours", "ground"), [((*LIGHT, GREY, RED), GROUNDS[0]), (DARK, GROUNDS[1])])
def test_every_colour_can_be_seen_on_its_ground(colours: tuple[str, ...], ground: str) -> None:
    assert {one: round(contrast(one, ground), 2) for one in colours if contrast(one, ground) < 3} == {}


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("colours", [LIGHT, DARK])
def test_no_two_colours_are_alike_to_anyone(colours: tuple[str, ...], vision: str) -> None:
    near = {(a, b): math.dist(oklab(a, vision), oklab(b, vision)) for a, b in combinations(colours, 2)}
    assert {pair: round(apart, 3) for pair, apart in near.items() if apart < APART} == {}


def test_no_two_lines_look_alike() -> None:
    places = [(column, place) for column in range(2 * len(LIGHT)) for place in range(STRIDE)]
    looks = {(look.colour, look.marker, look.dash) for look in (find_look(*one) for one in places)}
    assert len(looks) == len(places) == 272
    assert {find_look(*one).size for one in places} == {8, 10, 12, 14}, "none too small to be told apart"


ROOT = Path(__file__).resolve().parents[2]


def test_the_library_has_its_licence_beside_it_and_the_version_that_the_documents_name() -> None:
    head = read_static(LIBRARY)[:400]
    version = re.search(r"plotly\.js \(basic - minified\) v(\d+\.\d+\.\d+)\n", head)
    assert version and "MIT license" in head
    assert f"plotly.js basic {version[1]}" in (ROOT / "docs" / "reports.md").read_text(encoding="utf-8")
    licence = read_static("plotly-basic.LICENSE")
    assert "MIT License" in licence and "Plotly" in licence and "without warranty of any kind" in licence.lower()
