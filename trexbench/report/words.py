"""Wording that all outputs share: names, bounds, figures with their units, columns of text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..core.history.cell import Cell, cell_of
from ..core.history.rows import Metric, RunRow
from ..core.result import RunResult, Status
from ..core.run import Run
from ..core.units import format_pps, format_scaled, format_share, format_time, round_bound
from .clean import clean

NONE = "-"
SIMULATED = "SIMULATED: no real packet was sent; the numbers are a model's"
EMULATED = "EMULATED: the DUT's processor was emulated (QEMU's TCG); compare its figures only with such"
COUNTED = (
    "VPP's cycles are those of its nodes without polling, over the packets that its workers fetched; a kernel's are "
    "all busy time of its CPUs, over the packets forwarded"
)
"""Sentence beside figures of both."""
_BANNERS = {"simulated": SIMULATED, "emulated": EMULATED}


def mark_banners(marked: Iterable[Run | Cell]) -> list[str]:
    """Banners of the marks that any of these runs or cells has."""
    marks = {one.mark for one in marked}
    return [banner for mark, banner in _BANNERS.items() if mark in marks]


def banners_of(run: Run) -> list[str]:
    """Banners above a run's figures: it is simulated or emulated, or did not come to its end."""
    banners = mark_banners([run])
    if run.status is Status.INCOMPLETE:
        banners.append(f"INCOMPLETE: {clean(run.reason or 'ended early')}; what follows was measured until then")
    if run.status is Status.RUNNING:
        banners.append("UNFINISHED: this run is still being measured, or its writer was killed")
    return banners


def starred(banners: Iterable[str]) -> list[str]:
    """Banners as lines of text."""
    return [f"*** {banner} ***" for banner in banners]


def state_words(run: Run) -> str:
    """Status and mark of a run: ``complete``, or ``incomplete, simulated``."""
    status = "" if run.status is Status.COMPLETE else run.status.value
    return ", ".join(filter(None, (status, run.mark))) or Status.COMPLETE.value


def name_of(result: RunResult, kind: str | None = None) -> str:
    """Cell of a run without its queues: ``lab-linux var2-64b bidir``. kind: replaces the run's own."""
    dut, mode = text_of(result.dut, "name", "?"), text_of(result.command, "mode", "?")
    variant = text_of(result.command, "variant", "") or None
    cell = replace(cell_of(result), dut=dut, mode=mode, rx_queues=None, variant=variant, over=result.over)
    return str(cell if kind is None else replace(cell, kind=kind, held_pps=None))


def status_words(row: RunRow) -> str:
    """Status of an incomplete run; a document alone does not distinguish a running run from a killed one."""
    return "still running, or was killed" if row.status == Status.RUNNING.value else row.status


def text_of(values: Mapping[str, Any], key: str, otherwise: str) -> str:
    """A fact as text on one line: documents may hold anything."""
    value = values.get(key)
    return " ".join(str(value).split()) if value not in (None, "") else otherwise


def format_bound(rate: float, at_least: bool, unit: str = "pps") -> str:
    """A rate, with ``>=`` where it is only a lower bound."""
    return f"{'>= ' if at_least else ''}{format_scaled(rate, unit)}"


def or_dash(value: float | None, form: Callable[[float], str]) -> str:
    """The value in this form; a dash for None."""
    return NONE if value is None else form(value)


def format_figure(value: float | None, metric: Metric) -> str:
    """A metric's value with its unit, unless the metric's name contains it."""
    forms: dict[str, Callable[[float], str]] = {
        "pps": format_pps,
        "share": format_loss,
        "us": lambda microseconds: format_time(microseconds / 1e6),
        "cycles": format_cycles,
    }
    return or_dash(value, forms.get(metric.unit, lambda number: format_scaled(number, metric.unit)))


def format_whole(value: float | None, metric: Metric) -> str:
    """A metric's value, always with its unit."""
    unit = f" {metric.name}" if metric.unit == "cycles" and value is not None else ""
    return f"{format_figure(value, metric)}{unit}"


def format_loss(share: float | None) -> str:
    """A measured loss; ``0 %`` if nothing was lost."""
    return NONE if share is None else format_share(share) if share else "0 %"


def format_limit(share: float) -> str:
    """A share that the user chose, with all its digits: ``0.1 %``, ``0.0001 %``."""
    return f"{100 * share:g} %"


def format_cycles(value: float) -> str:
    """``58.3``, ``358``, ``4 943``, ``1 514 943``."""
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}".replace(",", " ")


def format_plain(value: float) -> str:
    """A value whose unit stands elsewhere, without an exponent if it is large: ``0.643``, ``58.3``, ``1158``."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def format_change(share: float, bound: str = "") -> str:
    """``-8.1 %``, ``+0.4 %``, ``+-0.0 %``, ``+5031 %``; ``>= +8.1 %``. bound: its sign."""
    places = 1 if abs(share) < 10 else 0
    percent = round_bound(100 * share, places, bound)
    digits = f"{abs(percent):.{places}f}"
    return f"{bound} {'+-' if digits == '0.0' else '+' if share > 0 else '-'}{digits} %".lstrip()


def format_count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def typeset(text: str) -> str:
    """Text with typographic signs (arrow, micro, plus-minus), for outputs that can show every character."""
    text = text.replace(">= ", "\u2265 ").replace("<= ", "\u2264 ").replace("->", "\u2192").replace("+-", "\u00b1")
    return re.sub(r"(?<=\d )us\b|(?<=\d )uJ\b", lambda unit: f"\u00b5{unit[0][1:]}", text)
