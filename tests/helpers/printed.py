"""Read a PDF's sheets: where the words stand, and how dark they are on which ground."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pypdfium2
from pypdfium2 import raw

SLACK = 2.5
"""Points that the boxes of two words may share."""
CONTRAST = 4.5


class Words(NamedTuple):
    """Words of one look on a sheet: their box in points from its lower left corner, their contrast with white."""

    sheet: int
    text: str
    left: float
    bottom: float
    right: float
    top: float
    contrast: float


def read_words(pdf: Path) -> list[Words]:
    """All that stand level or upright: a tilted word is a watermark."""
    return [one for at, sheet in enumerate(pypdfium2.PdfDocument(pdf), start=1) for one in _words_of(at, sheet)]


def _words_of(number: int, sheet: pypdfium2.PdfPage) -> Iterator[Words]:
    textpage = sheet.get_textpage()
    for one in sheet.get_objects(filter=[raw.FPDF_PAGEOBJ_TEXT]):
        parts = [ctypes.c_uint() for _ in range(4)]
        raw.FPDFPageObj_GetFillColor(one, *parts)
        matrix, colour = one.get_matrix(), [part.value for part in parts[:3]]
        tilted = min(abs(matrix.a), abs(matrix.b)) > 0.1 * max(abs(matrix.a), abs(matrix.b))
        length = raw.FPDFTextObj_GetText(one, textpage, None, 0)
        buffer = ctypes.create_string_buffer(length)
        raw.FPDFTextObj_GetText(one, textpage, ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)), length)
        text = buffer.raw.decode("utf-16-le").rstrip("\0")
        if text.strip() and not tilted:
            yield Words(number, text, *one.get_bounds(), _contrast(*colour))


def _contrast(*colour: int) -> float:
    """Return the contrast with white, as WCAG defines it."""
    parts = [value / 255 / 12.92 if value <= 10 else ((value / 255 + 0.055) / 1.055) ** 2.4 for value in colour]
    return 1.05 / (0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2] + 0.05)


def stranded(words: Sequence[Words], headings: Sequence[str]) -> list[str]:
    """Name each heading that ends a sheet and has what it is about on the next."""
    found = []
    for sheet in range(1, max((one.sheet for one in words), default=1)):
        here = sorted((one for one in words if one.sheet == sheet), key=lambda one: (-round(one.bottom), one.left))
        text = re.sub(r"\W", "", "".join(one.text for one in here))
        last = (one for one in headings if text.endswith(re.sub(r"\W", "", one) or " "))
        found += [f"sheet {sheet} ends with {one!r}" for one in last]
    return found


def overprinted(words: Sequence[Words]) -> list[str]:
    found, ordered = [], sorted(words, key=lambda one: (one.sheet, one.bottom))
    for at, one in enumerate(ordered):
        for other in ordered[at + 1 :]:
            if other.sheet != one.sheet or other.bottom > one.top - SLACK:
                break
            wide = min(one.right, other.right) - max(one.left, other.left)
            if wide > SLACK < min(one.top, other.top) - other.bottom:
                found.append(f"on sheet {one.sheet} {one.text!r} and {other.text!r} are printed over each other")
    return found


def pale(words: Sequence[Words]) -> list[str]:
    lettered = [one for one in words if re.search(r"\w", one.text) and one.contrast < CONTRAST]
    return [f"on sheet {one.sheet} {one.text!r} is printed pale, {one.contrast:.1f} : 1" for one in lettered]


def dark_sheets(pdf: Path) -> list[str]:
    """Report the sheets whose ground is not white."""
    grey = [sheet.render(scale=0.5).to_pil().convert("L") for sheet in pypdfium2.PdfDocument(pdf)]
    light = [sum(one.histogram()[250:]) / (one.width * one.height) for one in grey]
    return [f"the ground of sheet {at} is not white" for at, share in enumerate(light, start=1) if share < 0.6]
