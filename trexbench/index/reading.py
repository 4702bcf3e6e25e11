"""A run's file -> its line, at a fraction of what reading all its samples takes.

The writer puts the samples last, a line each, after everything that it derived from them. So only what stands before
them is parsed; of the samples it is checked that they are whole and of the right kinds. A file that is in any way not
as the writer writes it is read as a whole, as ``trexbench show`` does: what is refused here is refused there.
"""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path

from ..core.damage import find_sample_damage
from ..core.errors import StoreError
from ..core.history import RunRow, row_from_head, row_of
from ..core.plan import Plan
from ..core.result import plan_from_dict, sample_from_dict
from ..store import MAX_BYTES, load_run

_SAMPLES = b'\n "samples": [\n'
_END = b"\n ]\n}\n"
_DIGITS = b"0123456789"
_NO_NUMBER = re.compile(rb":(?:[,}]|0[0-9])")
_KNOWN_LIMIT = 4096


class RowReader:
    """Reads one file after the other; shapes of samples that proved right once are known again."""

    def __init__(self) -> None:
        self._known: set[tuple[bytes, tuple[int, ...]]] = set()

    def row(self, file: Path, path: str) -> RunRow:
        """The line of this file, which the index calls ``path``; StoreError says what is wrong with it, in one line."""
        row = self._quick(_read(file), path)
        if row is not None:
            return row
        try:
            return row_of(load_run(file), path)
        except StoreError as error:
            raise StoreError(str(error).removeprefix(f"{file}: ")) from None

    def _quick(self, data: bytes, path: str) -> RunRow | None:
        """None where the file is not quite as the writer writes it."""
        begin = data.find(_SAMPLES)
        if begin < 0 or not data.endswith(_END) or b"\0" in data:
            return None
        try:
            document = json.loads(data[:begin].rstrip(b",") + b"}", parse_constant=_refuse)
            row = row_from_head(document, path)
            return row if self._sound(data, begin, plan_from_dict(document["plan"])) else None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, StoreError):
            return None

    def _sound(self, data: bytes, begin: int, plan: Plan) -> bool:
        """Every sample is whole and of the right kinds, as far as that can be told from all but its digits.

        ValueError, TypeError or KeyError where one is not.
        """
        first, last = begin + len(_SAMPLES), len(data) - len(_END)
        if first >= last:
            return first == last  # not one sample yet
        if _NO_NUMBER.search(data, first, last):
            return False
        bare = data.translate(None, _DIGITS)  # as a whole: a copy of the samples costs more than their head does
        shapes = bare[bare.index(_SAMPLES) + len(_SAMPLES) : -len(_END)].split(b",\n")
        new = {shape for shape in set(shapes) if (shape, plan.ports) not in self._known}
        if new:
            lines = dict(zip(shapes, data[first:last].split(b",\n"), strict=True))
            samples = [sample_from_dict(json.loads(lines[shape], parse_constant=_refuse)) for shape in new]
            if any(find_sample_damage(sample, plan) for sample in samples):
                return False
            self._known |= {(shape, plan.ports) for shape in new}
        if len(self._known) > _KNOWN_LIMIT:
            self._known.clear()
        return True


def _read(file: Path) -> bytes:
    try:
        with open(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as opened:
            about = os.fstat(opened.fileno())
            if not stat.S_ISREG(about.st_mode):
                raise StoreError("not a file", "name a run document")
            if about.st_size > MAX_BYTES:
                raise StoreError(f"{about.st_size} bytes, more than any run has", "name a run document")
            return opened.read(about.st_size + 1)
    except OSError as error:
        raise StoreError(str(error.strerror), "it cannot be read") from None


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no number")
