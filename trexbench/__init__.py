"""Measure how fast a router is; load what was measured, compare and judge it. docs/python.md shows how.

Nothing is loaded before it is used.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself would be the slowest part of this
    from typing import Any

_PLACES = {
    "api": (
        *("ramp", "search", "saturate", "efficiency", "run_suite", "compare", "judge"),
        *("load_run", "load_results", "load_rows", "row", "Progress", "DirectionRates"),
    ),
    "api_tcp": ("tcp", "bdp", "load_tcp"),
    "core.result": ("RunResult",),
    "core.tcp.result": ("TcpResult",),
    "core.errors": (
        *("BenchError", "ConfigError", "GeneratorError", "GeneratorLost", "PortOwned", "PortBusy"),
        *("DutError", "DutLost", "LabError", "TesterBusy", "StoreError"),
    ),
}
"""Module of this package -> the names that it provides."""
_MODULE_OF = {name: module for module, names in _PLACES.items() for name in names}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_MODULE_OF[name]}", __name__), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
