"""Every module imported and every file that runs outside this process compiled, by each Python that runs the tests."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import trexbench
from trexbench.endpoint.hosts import PROGRAMS, sources_of

pytestmark = pytest.mark.portable

ROOT = Path(trexbench.__file__).parents[1]
ROOMS = sorted(f"trexbench.{module.name}" for module in pkgutil.iter_modules(trexbench.__path__))
EXTRAS = {"MLRsearch", "dask", "distributed", "duckdb", "fsspec", "netmiko", "paramiko", "pyarrow"}
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


@pytest.mark.parametrize("name", ["agent", "pppoe", "relay"])
def test_a_program_for_other_hosts_brings_what_it_imports(name: str) -> None:
    """It arrives there as source, each module after those that it imports."""
    sources, known = sources_of(name), set[str]()
    for module, text in sources.items():
        for node in ast.walk(ast.parse(text, feature_version=(3, 7))):
            if isinstance(node, ast.ImportFrom):
                brought = known | {module} if node.level else sys.stdlib_module_names
                assert str(node.module).partition(".")[0] in brought, f"{module}: {node.module}"
            elif isinstance(node, ast.Import):
                assert {one.name for one in node.names} <= sys.stdlib_module_names
        known.add(module)
        # what came later than 3.7 and is no matter of grammar
        later = ("removeprefix", "removesuffix", "get_native_id", "strict=", "cached_property")
        assert not [word for word in later if word in text]
    assert list(sources)[-1] == name


def test_every_module_is_of_a_program() -> None:
    used = {module for name in ("agent", "pppoe", "relay") for module in sources_of(name)}
    assert used == {file.stem for file in PROGRAMS.glob("*.py")} - {"__init__"}


@pytest.mark.parametrize(
    "file", sorted([*ROOT.glob("stl_profiles/*.py"), *ROOT.glob("benchmarks/*.py")]), ids=lambda file: file.name
)
def test_a_file_beside_the_package_is_compiled(file: Path) -> None:
    compile(file.read_text(encoding="utf-8"), str(file), "exec")
