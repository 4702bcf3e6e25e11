"""The rooms of docs/architecture.md: who may import whom. Every import statement of the package is looked at."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "trexbench"


@dataclass(frozen=True)
class Room:
    """What a room may import besides itself: modules of trexbench (and what is in them), and other people's."""

    ours: tuple[str, ...] = ()
    theirs: tuple[str, ...] = ()
    never: tuple[str, ...] = ()


STL_CLIENT = ("lbr_trex_client", "trex", "trex_stl_lib", "scapy")

TABLE = {
    "core": Room(theirs=("numpy",)),
    "transport": Room(("core.errors",)),
    "dut": Room(("core", "transport", "config"), never=("transport.netns", "transport.local")),
    "generator": Room(("core",), STL_CLIENT),
    "report": Room(("core",), ("matplotlib", "rich", "jinja2", "markupsafe")),
    "config": Room(("core",), ("yaml",)),
    "store": Room(("core",)),
    "index": Room(("core", "store")),
    "judge": Room(("core", "store"), ("jumpavg",)),
    "loadtest": Room(("core",)),
    "prune": Room(("core", "index", "nights")),
    "nights": Room(("core", "store")),
    "notify": Room(("core", "store")),
    "lock": Room(("core.errors",)),
    "lab": Room(("core", "config", "transport", "lock"), ("pyroute2",)),
    "runner": Room(("core",)),
    "watchdog": Room(theirs=("zmq",)),
    "stlserver": Room(theirs=("zmq", "numpy")),
    "twin": Room(("core", "config", "stlserver.engine", "stlserver.traffic"), ("numpy",)),
    "cli": Room(("",), ("click",)),
}

_ORDER = """
    errors units names fieldengine profile plan sample windows verdict blame knee caveats analysis ramp efficiency
    telemetry rss spread flowspread spreadcheck losses cycles latency result damage history night detect series known
    regression compare compare_sets ports
"""
CORE_ORDER = tuple(_ORDER.split())

_IMPURE = """
    os io sys pathlib shutil tempfile glob socket select selectors ssl subprocess multiprocessing threading asyncio
    concurrent time datetime secrets signal logging sqlite3 urllib http ctypes fcntl atexit
"""
IMPURE = frozenset(_IMPURE.split())
"""Parts of the standard library that touch files, sockets, clocks or processes."""

ALONE = {
    "jumpavg": ("judge/jumps.py",),
    "matplotlib": ("report/picture.py", "report/picture_costs.py", "report/picture_report.py"),
    "jinja2": ("report/html.py",),
    "rich": ("report/terminal.py",),
    "pyroute2": ("lab/net.py",),
}
"""What only these files of its room may draw in, so that everything else starts fast and runs without it."""


@dataclass(frozen=True)
class Import:
    """``module`` is the whole name, as in trexbench.core.plan, of what one statement of ``file`` imports."""

    file: str
    line: int
    module: str

    @property
    def room(self) -> str:
        return self.file.removesuffix(".py").split("/")[0]


def imports_of(file: str, source: str) -> Iterator[Import]:
    """Every import of a file, wherever it stands in it; ``file`` is relative to the package."""
    package = ["trexbench", *file.split("/")[:-1]]
    for node in ast.walk(ast.parse(source, file)):
        if isinstance(node, ast.Import):
            yield from (Import(file, node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            name = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = PACKAGE.parent / Path(*name.split("."), alias.name)
                is_module = name.startswith("trexbench") and (inner.is_dir() or inner.with_suffix(".py").exists())
                yield Import(file, node.lineno, f"{name}.{alias.name}" if is_module else name)


def inside(name: str, of: str) -> bool:
    return not of or name == of or name.startswith(f"{of}.")


def forbidden(one: Import) -> str | None:
    """Why this import is not allowed; None when it is."""
    where, room = f"trexbench/{one.file}:{one.line}", TABLE.get(one.room)
    if one.file == "__init__.py":
        return None if one.module == "__future__" else f"{where}: the package itself imports nothing"
    if room is None:
        return f"{where}: {one.room} is no room of docs/architecture.md"
    top = one.module.split(".")[0]
    if top == "trexbench":
        name = one.module.removeprefix("trexbench").lstrip(".")
        if inside(name, one.room):
            return _within_core(where, one, name) if one.room == "core" else None
        if any(inside(name, n) for n in room.never) or not any(inside(name, ours) for ours in room.ours):
            return f"{where}: {one.room} may not import {name}"
        return None
    if top in sys.stdlib_module_names:
        return f"{where}: core is pure, {top} is not" if one.room == "core" and top in IMPURE else None
    if top not in room.theirs:
        return f"{where}: {one.room} may not import {top}"
    if top in ALONE and one.file not in ALONE[top]:
        return f"{where}: {top} belongs into {' and '.join(ALONE[top])} alone"
    return None


def _within_core(where: str, one: Import, name: str) -> str | None:
    importer, imported = one.file.split("/")[1].removesuffix(".py"), name.split(".")[-1]
    if importer == "__init__" or importer not in CORE_ORDER or imported not in CORE_ORDER:
        return f"{where}: {importer} or {imported} has no place in the order of core's modules"
    late = CORE_ORDER.index(imported) >= CORE_ORDER.index(importer)
    return f"{where}: {imported} comes after {importer} in core" if late else None


def every_import() -> list[Import]:
    files = sorted(PACKAGE.rglob("*.py"))
    return [one for f in files for one in imports_of(f.relative_to(PACKAGE).as_posix(), f.read_text(encoding="utf-8"))]


def test_no_import_crosses_a_wall() -> None:
    found = every_import()
    assert len(found) > 300
    problems = [problem for one in found if (problem := forbidden(one)) is not None]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize(
    ("file", "source", "words"),
    [
        ("core/plan.py", "from .analysis import analyse", "analysis comes after plan"),
        ("core/plan.py", "from . import windows", "windows comes after plan"),
        ("core/plan.py", "import trexbench.core.ramp", "ramp comes after plan"),
        ("core/units.py", "def f():\n    from ..runner import run", "core may not import runner"),
        ("core/units.py", "import time", "core is pure, time is not"),
        ("core/units.py", "from os import path", "core is pure, os is not"),
        ("core/new.py", "from .errors import BenchError", "no place in the order"),
        ("runner.py", "from .generator.trex import TrexGenerator", "runner may not import generator.trex"),
        ("runner.py", "from . import store", "runner may not import store"),
        ("store.py", "import trexbench.report.text", "store may not import report.text"),
        ("transport/netns.py", "from ..core.units import parse_rate", "transport may not import core.units"),
        ("dut/linux.py", "from ..transport.netns import Netns", "dut may not import transport.netns"),
        ("dut/linux.py", "from ..transport import local", "dut may not import transport.local"),
        ("generator/trex.py", "from ..lab import Lab", "generator may not import lab"),
        ("report/text.py", "if True:\n    import matplotlib.pyplot", "belongs into report/picture.py"),
        ("report/text.py", "from rich.table import Table", "belongs into report/terminal.py"),
        ("report/text.py", "from ..store import load_run", "report may not import store"),
        ("watchdog.py", "from .core.errors import BenchError", "watchdog may not import core.errors"),
        ("watchdog.py", "import numpy", "watchdog may not import numpy"),
        ("stlserver/server.py", "from trexbench.core import units", "stlserver may not import core.units"),
        ("stlserver/server.py", "import scapy.all", "stlserver may not import scapy"),
        ("attic/old.py", "import os", "attic is no room"),
        ("__init__.py", "from .cli import main", "the package itself imports nothing"),
    ],
)
def test_forbidden_arrows_are_caught(file: str, source: str, words: str) -> None:
    problems = [problem for one in imports_of(file, source) if (problem := forbidden(one)) is not None]
    assert len(problems) == 1 and words in problems[0] and problems[0].startswith(f"trexbench/{file}:")


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("core/ramp.py", "from .plan import Plan\nimport math\nimport numpy as np"),
        ("dut/linux.py", "from ..transport import Transport\nfrom ..config import DutConfig"),
        ("cli/run.py", "import click\nfrom ..store import RunWriter"),
        ("stlserver/server.py", "import zmq\nfrom . import wire\nfrom .state import Server"),
    ],
)
def test_allowed_arrows_pass(file: str, source: str) -> None:
    assert [forbidden(one) for one in imports_of(file, source)].count(None) == len(list(imports_of(file, source)))


def test_the_document_names_the_same_rooms_and_the_same_order() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([a-z, ]+) \| .* \|$", text, re.MULTILINE)
    assert sorted(name for row in rows for name in row.split(", ")) == sorted(TABLE)
    assert " ".join(CORE_ORDER) in text


def test_every_module_of_core_has_its_place() -> None:
    assert sorted(f.stem for f in (PACKAGE / "core").glob("*.py") if f.stem != "__init__") == sorted(CORE_ORDER)


def test_core_neither_prints_nor_opens() -> None:
    calls = [
        f"{file.name}:{node.lineno}: {node.func.id}()"
        for file in (PACKAGE / "core").glob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if node.func.id in ("print", "open", "input", "exit", "exec", "eval", "__import__")
    ]
    assert not calls
