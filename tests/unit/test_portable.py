"""Every module imported and every file that runs outside this process compiled, by each Python that runs the tests."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import trexbench
from trexbench.endpoint import agent, pppoe, relay

pytestmark = pytest.mark.portable

ROOT = Path(trexbench.__file__).parents[1]
ROOMS = sorted(f"trexbench.{module.name}" for module in pkgutil.iter_modules(trexbench.__path__))
EXTRAS = {"MLRsearch", "netmiko", "paramiko", "pyarrow"}
"""Packages that only the extras of setup.cfg install."""


def modules_of(room: str) -> Iterator[str]:
    """Import the packages of a room and yield the names of all its modules."""
    yield room
    for module in pkgutil.walk_packages(getattr(importlib.import_module(room), "__path__", ()), f"{room}."):
        yield module.name


@pytest.mark.parametrize("room", ROOMS)
def test_every_module_of_a_room_is_imported(room: str) -> None:
    without = []
    for name in modules_of(room):
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name not in EXTRAS:
                raise
            without.append(f"{name} needs {error.name}")
    if without:
        pytest.skip(", ".join(without))


@pytest.mark.parametrize("file", [agent.__file__, pppoe.__file__, relay.__file__], ids=lambda file: Path(file).name)
def test_a_program_for_other_hosts_stands_alone(file: str) -> None:
    """It arrives there as source, where no package is for it to import from."""
    exec(compile(Path(file).read_text(encoding="utf-8"), file, "exec"), {"__name__": "elsewhere"})


@pytest.mark.parametrize(
    "file", sorted([*ROOT.glob("stl_profiles/*.py"), *ROOT.glob("benchmarks/*.py")]), ids=lambda file: file.name
)
def test_a_file_beside_the_package_is_compiled(file: Path) -> None:
    compile(file.read_text(encoding="utf-8"), str(file), "exec")
