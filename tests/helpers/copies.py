"""Other nights of a stored run, without measuring them: the same document under another date, its figures shifted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from nights import changed

from trexbench.core.history.rows import RunRow
from trexbench.results.document import read_sealed, seal
from trexbench.results.store import load_rows


def copy_run(results: Path, row: RunRow, night: str, level: float = 1.0, **changes: Any) -> RunRow:
    """The row of the copy. level: its rates beside those of the row, whose samples are the copy's as they are."""
    assert row.night is not None
    measured = row.started[:10]

    def dated(text: str) -> str:
        return text.replace(row.night or "", night).replace(measured, night)

    data, name = dated((results / row.path).read_text(encoding="utf-8")).encode(), dated(row.path)
    (old,) = load_rows(results / row.path, row.path)
    cost, rate = old.get("cycles_per_packet"), old.get("total_pps")
    assert rate is not None
    cycles = {} if cost is None else {"cycles_per_packet": cost / level}
    rates = {"total_pps": rate * level, "line_share": old.line_share * level}
    dates = {"started": dated(old.started), "night": night}
    new = changed(old, **dates | rates | cycles | changes)
    path = results / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(seal(data[: data.rindex(b',\n "derived"')], [replace(new, path="")]))
    assert read_sealed(path.read_bytes()) is not None
    return replace(new, path=name)
