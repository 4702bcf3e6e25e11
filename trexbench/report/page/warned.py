"""The warnings of all runs, each text once with the cells that have it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..words import format_count
from .report import Report

_FIGURE = re.compile(r"\d[\d.,]*(?:e[+-]?\d+)?(?: [kMG](?=pps|bit))?")
"""A number with the prefix of its unit: texts that differ only in these say the same."""


@dataclass(frozen=True)
class Warned:
    """A warning, and the runs that have it."""

    runs: tuple[tuple[str, str, int], ...]
    """Name of each run, the text as this run has it, and the number of its details on the page."""

    @property
    def text(self) -> str:
        """The warning's text, with the figures of the first run."""
        return self.runs[0][1]

    @property
    def count(self) -> str:
        """``8 runs, with other figures``."""
        names = format_count(len(dict.fromkeys(name for name, _, _ in self.runs)), "run")
        return f"{names}, with other figures" if self.differ else names

    @property
    def differ(self) -> bool:
        return any(text != self.text for _, text, _ in self.runs)


def group_warnings(report: Report) -> tuple[Warned, ...]:
    """All warnings, those of most runs first. A run's details are numbered as on the page: runs, then those of TCP."""
    every: list[tuple[str, str, int]] = []
    for number, (cell, _) in enumerate(report.runs.items()):
        every += [(report.named(cell), text, number) for text in report.summaries[cell].warnings]
    for number, (run, warnings) in enumerate(report.tcp_runs, len(report.runs)):
        cell = next(cell for cell, one in report.tcp.items() if one is run)
        every += [(report.said(f"{cell.dut_words}, TCP"), text, number) for text in warnings]
    alike: dict[str, list[tuple[str, str, int]]] = {}
    for one in every:
        alike.setdefault(_FIGURE.sub("#", one[1]), []).append(one)
    return tuple(Warned(tuple(some)) for some in sorted(alike.values(), key=lambda some: -len(some)))


def numbers_of(warned: Sequence[Warned], run: int) -> list[int]:
    """Numbers of the warnings that a run has, from 1."""
    return [at for at, one in enumerate(warned, 1) if any(number == run for _, _, number in one.runs)]
