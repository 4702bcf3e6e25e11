"""Calibrations of testers, kept in the state directory of this machine."""

from __future__ import annotations

import re
from pathlib import Path

from ..config.model import DutConfig, GeneratorConfig
from ..core.calibration import Calibration
from ..core.errors import StoreError
from ..dut.journal import state_dir
from ..files import replace_file
from .options import TesterChoice


def name_of_tester(config: DutConfig | None, asked: TesterChoice) -> str:
    """Name for a tester's lock and calibration: its server's address, or its lab's prefix."""
    if config is not None and config.lab is not None and asked.server is None:
        return f"lab-{config.lab.prefix}"
    generator = config.generator if config is not None else GeneratorConfig()
    return f"{asked.server or generator.server}-{asked.rpc_port or generator.rpc_port}"


def _path(tester: str) -> Path:
    return state_dir() / "testers" / f"{re.sub(r'[^A-Za-z0-9_.-]', '_', tester)}.json"


def save(calibration: Calibration) -> Path:
    path = _path(calibration.tester)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, calibration.to_json())
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}", "name another directory with TREXBENCH_STATE_DIR") from error
    return path


def load(tester: str) -> Calibration | None:
    """Load a tester's calibration; None if there is none or it cannot be read: a run does not depend on it."""
    try:
        return Calibration.from_json(_path(tester).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
