"""What a PDF has on its sheets: where its words stand, and how dark they are on which ground."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pypdfium2

SCALE = 1.5
"""Pixels for each point."""
DARK = 150
"""Of 255: every printed word has ink at least as dark."""
SLACK = 2.5
"""Points that the boxes of two words may share."""


class Words(NamedTuple):
    """Words of one line and one look on a sheet, their box in points from its upper left corner."""

    sheet: int
    text: str
    left: float
    top: float
    right: float
    bottom: float


def read_words(pdf: Path) -> list[Words]:
    found = []
    for number, sheet in enumerate(pypdfium2.PdfDocument(pdf), start=1):
        text, height = sheet.get_textpage(), sheet.get_height()
        for at in range(text.count_rects()):
            left, bottom, right, top = text.get_rect(at)
            written = text.get_text_bounded(left, bottom, right, top).strip()
            if written:
                found.append(Words(number, written, left, height - top, right, height - bottom))
    return found


def overprinted(words: Sequence[Words]) -> list[str]:
    found, ordered = [], sorted(words, key=lambda one: (one.sheet, one.top))
    for at, one in enumerate(ordered):
        for other in ordered[at + 1 :]:
            if other.sheet != one.sheet or other.top > one.bottom - SLACK:
                break
            wide = min(one.right, other.right) - max(one.left, other.left)
            if wide > SLACK < min(one.bottom, other.bottom) - other.top:
                found.append(f"on sheet {one.sheet} {one.text!r} and {other.text!r} are printed over each other")
    return found


def pale(pdf: Path, words: Sequence[Words]) -> list[str]:
    """Words without dark ink, and sheets whose ground is not white."""
    found = []
    for number, sheet in enumerate(pypdfium2.PdfDocument(pdf), start=1):
        grey = sheet.render(scale=SCALE).to_pil().convert("L")
        if sum(grey.histogram()[250:]) < 0.6 * grey.width * grey.height:
            found.append(f"the ground of sheet {number} is not white")
        for one in words:
            if one.sheet == number and re.search(r"\w", one.text):
                box = (one.left * SCALE, one.top * SCALE, one.right * SCALE + 1, one.bottom * SCALE + 1)
                darkest = grey.crop(tuple(map(int, box))).getextrema()[0]
                if darkest > DARK:
                    found.append(f"on sheet {number} {one.text!r} is printed pale ({darkest} of 255)")
    return found
