"""``results/.fleet/testers.json``: by how much the testers of a fleet differ, replaced as a whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..core.errors import StoreError
from ..core.history.testers import FigureRatio, ratios_from_dict, ratios_to_dict
from ..files import changed_alone
from .document import naming, read_object
from .nights import MAX_BYTES, TESTERS
from .store import encode_json, make_directory, replace_file


def ratios_file(results: Path) -> Path:
    return results / TESTERS / "testers.json"


def load_ratios(results: Path) -> list[FigureRatio]:
    """Read by how much testers differ; nothing if none was calibrated. StoreError names a file that cannot be read."""
    path = ratios_file(results)
    if not path.exists():
        return []
    with naming(path):
        return ratios_from_dict(read_object(path, MAX_BYTES))


def keep_ratios(results: Path, new: Sequence[FigureRatio]) -> Path:
    """Store ratios in the place of former ones of the same traffic, DUT and testers."""
    path, kinds = ratios_file(results), {_kind(one) for one in new}
    make_directory(path.parent)
    try:
        with changed_alone(path):
            kept = [one for one in load_ratios(results) if _kind(one) not in kinds]
            replace_file(path, encode_json(ratios_to_dict([*kept, *new])))
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}", "make it writable, on a file system with locks") from None
    return path


def _kind(one: FigureRatio) -> tuple[object, ...]:
    return one.load, one.metric, one.dut, one.simulated, one.tester, one.reference
