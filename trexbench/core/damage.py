"""Damage in a run that was read back: values that a document can hold and a run cannot produce."""

from __future__ import annotations

from collections.abc import Iterator

from .names import is_name, shown
from .run import Run

_NAMES = ("mode", "suite", "night", "label", "variant")


def find_damage(run: Run) -> str | None:
    """The first value that no run can have produced, in a few words; None when every report can be made of it."""
    first = next(_odd_values(run), None)
    if first is not None:
        return first
    try:
        run.without_readings()  # proves that the readings fit together
    except (ArithmeticError, LookupError) as error:
        return f"the readings cannot be analysed ({type(error).__name__})"
    return None


def _odd_values(run: Run) -> Iterator[str]:
    for what in ("reason", "finished"):
        if not isinstance(getattr(run, what), str | None):
            yield f"{what} is not text"
    # Names go into paths, tables and pages.
    names = {"dut.name": run.dut.get("name")} | {f"command.{key}": run.command.get(key) for key in _NAMES}
    for key, name in names.items():
        if name is not None and not is_name(name):
            yield f"{key} is not a valid name: {shown(name)}"
    yield from run.odd_values()
