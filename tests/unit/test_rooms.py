"""Which room of the package may import which; every import of every file is looked at, wherever it stands in it.

A room is a folder or a file, named by its path; a module is in the room with the longest such path. What is started as
a process ("-m", "trexbench.x") counts as imported by the file that starts it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "trexbench"

CORE = """
    core/errors core/typed core/units core/names core/patterns core/means core/load core/verdict core/strategy core/dut
    core/protocols core/run core/tcp core core/history core/fleet
"""
"""Each may import those before it; ``core`` itself is the files beside its rooms: result, damage and their like."""

ROOMS: Mapping[str, str] = {
    "child": "",
    "signals": "",
    "files": "",
    "lock": "core/errors",
    "processes": "core/errors",
    "transport": "core/errors core/patterns config",
    "config": "core/*",
    "host": "core/* config transport",
    "dut": "core/* config results/shared transport host",
    "dut/commands": "core/* config transport host dut",
    "dut/linux": "core/* config transport host dut",
    "dut/freebsd": "core/* config transport host dut",
    "dut/vpp": "core/* config transport host dut",
    "endpoint": "core/* host signals transport",
    "endpoint/programs": "",
    "generator/trex": "child core/* signals generator/trex/watchdog",
    "generator/trex/watchdog": "",
    "stlserver": "core/errors core/units stlserver/*",
    "stlserver/state": "core/errors core/load stlserver",
    "stlserver/kernel": "core/errors core/load stlserver stlserver/state",
    "stlserver/rpc": "stlserver stlserver/state",
    "twin": "core/* config stlserver",
    "lab": "child core/* config files host lock processes signals transport stlserver stlserver/kernel",
    "report": "core/*",
    "report/run": "core/* report",
    "report/regress": "core/* report",
    "report/tcp": "core/* report report/run",
    "report/page": "core/* report report/run report/tcp",
    "results": "core/* files processes",
    "review": "core/* config report report/page report/regress results",
    "session/tcp": "core/* config dut endpoint endpoint/programs host lab results session signals transport twin",
    "session": "core/* config files dut dut/linux generator/trex host lab lock results "
    "signals stlserver/rpc transport twin",
    "suite": "core/* config files lock report report/regress report/run report/tcp results review session session/tcp",
    "fleet/guard": "",
    "fleet": "child core/* config dut files fleet/guard lock results session session/tcp suite transport",
    "doctor": "core/* config generator/trex host lab session",
    "api": "core/* config fleet report/run results review session suite",
    "api_tcp": "core/* api config results session/tcp",
    "__init__": "",
    "__main__": "cli",
    "cli": "core/* config report report/run report/tcp report/page report/regress results review "
    "session session/tcp suite fleet signals doctor dut files lab lock stlserver",
}
"""Room -> rooms that it may import besides itself, without those inside of them; ``core/*``: with them."""

THEIRS: Mapping[str, str] = {
    "click": "cli stlserver/__main__",
    "cryptography": "fleet",
    "dask": "fleet",
    "distributed": "fleet",
    "duckdb": "results/sql",
    "fsspec": "results/remote",
    "jinja2": "config/draft report/page/templates",
    "MLRsearch": "core/strategy/mlrsearch",
    "markupsafe": "report/page/html report/page/templates",
    "matplotlib": "report/run/picture report/run/picture_plot report/tcp/picture",
    "msgspec": "core/* dut/* endpoint fleet host lab results",
    "netmiko": "transport/cli",
    "numpy": "core/* stlserver/* twin",
    "paramiko": "results/remote transport/cli",
    "prometheus_client": "suite/notify",
    "pyarrow": "results/parquet results/sql",
    "pyroute2": "lab/endpoints lab/net lab/steering",
    "regex": "core/patterns",
    "requests": "host/power suite/notify",
    "rich": "report/run/terminal",
    "scapy": "generator/trex",
    "yaml": "config",
    "zmq": "generator/trex/watchdog stlserver/rpc",
}
"""Package of others -> the rooms and files that may import it, so that everything else starts fast and runs without."""

_IMPURE = """
    os io sys pathlib shutil tempfile glob socket select selectors ssl subprocess multiprocessing threading asyncio
    concurrent time datetime secrets signal logging sqlite3 urllib http ctypes fcntl atexit
"""
IMPURE = frozenset(_IMPURE.split())
"""Parts of the standard library that touch files, sockets, clocks or processes: nothing for core."""


@dataclass(frozen=True)
class Import:
    """``module``: a path below the package, as in core/load/plan; or the name of a package of others."""

    file: str
    line: int
    module: str
    ours: bool

    @property
    def importer(self) -> str:
        return self.file.removesuffix(".py").removesuffix("/__init__")


def is_module(path: str) -> bool:
    return (PACKAGE / path).is_dir() or (PACKAGE / f"{path}.py").is_file()


def imports_of(file: str, nodes: Iterable[ast.AST]) -> Iterator[Import]:
    """``file`` is relative to the package."""
    package = ["trexbench", *file.split("/")[:-1]]
    for node in nodes:
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            name = ".".join([*base, *([node.module] if node.module else [])])
            inner = [f"{name}.{alias.name}" for alias in node.names]
            names = [one if is_module(path_of(one)) else name for one in inner] if inside_package(name) else [name]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            started = re.fullmatch(r"(?:.*-m )?(trexbench(?:\.\w+)+)", node.value)
            names = [started[1]] if started and is_module(path_of(started[1])) else []
        for name in names:
            ours = inside_package(name)
            yield Import(file, node.lineno, path_of(name) if ours else name.split(".")[0], ours)


def inside_package(name: str) -> bool:
    return name.split(".")[0] == "trexbench"


def path_of(name: str) -> str:
    return "/".join(name.split(".")[1:])


def room_of(module: str) -> str | None:
    """The longest path of a room that the module is, or is below."""
    rooms = [room for room in (*ROOMS, *CORE.split()) if module == room or module.startswith(f"{room}/")]
    return max(rooms, key=len, default=None)


def allowed(room: str) -> str:
    order = CORE.split()
    return " ".join(order[: order.index(room)]) if room in order else ROOMS[room]


def matches(module: str, names: str) -> bool:
    """Test whether a module is in one of these rooms, or is one of these files."""
    room = room_of(module)
    return any(
        name in (module, room) or (name.endswith("/*") and module.startswith(name[:-1])) or name[:-2] == module
        for name in names.split()
    )


def forbidden(one: Import) -> str | None:
    """Why this import is not allowed; None when it is."""
    where, room = f"trexbench/{one.file}:{one.line}", room_of(one.importer)
    if room is None:
        return f"{where}: {one.importer} is in no room"
    if one.ours:
        if room_of(one.module) == room or matches(one.module, allowed(room)):
            return None
        return f"{where}: {room} may not import {one.module or 'the package itself'}"
    if one.module in sys.stdlib_module_names:
        pure = room.split("/")[0] == "core"
        return f"{where}: core is pure, {one.module} is not" if pure and one.module in IMPURE else None
    if not matches(one.importer, THEIRS.get(one.module, "")):
        return f"{where}: {room} may not import {one.module}"
    return None


FILES = sorted(file.relative_to(PACKAGE) for file in PACKAGE.rglob("*.py"))
BLOCKS = (ast.FunctionDef, ast.ClassDef, ast.Module, ast.If, ast.For, ast.While, ast.With, ast.Try)
FOLDERS = sorted({file.parts[0] for file in FILES})


@cache
def found_below(folder: str) -> tuple[list[Import], list[str]]:
    """Imports of the modules in a folder, and lines that edits leave behind."""
    imports, left = list[Import](), list[str]()
    for file in (file for file in FILES if file.parts[0] == folder):
        nodes = [*ast.walk(ast.parse((PACKAGE / file).read_text(encoding="utf-8")))]
        imports += imports_of(file.as_posix(), nodes)
        left += [
            f"{file}:{after.lineno}"
            for node in nodes
            for before, after in pairwise(node.body if isinstance(node, BLOCKS) else ())
            if isinstance(before, ast.Return | ast.Raise) or (is_text(before) and is_text(after))
        ]
    return imports, left


def is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_import_crosses_a_wall(folder: str) -> None:
    problems = [problem for one in found_below(folder)[0] if (problem := forbidden(one)) is not None]
    assert not problems, "\n".join(problems)


def test_no_line_of_code_is_there_twice_for_nothing() -> None:
    """A second docstring below the first, or a line that follows a return."""
    assert [line for folder in FOLDERS for line in found_below(folder)[1]] == []


def test_no_two_modules_need_each_other() -> None:
    graph: dict[str, set[str]] = {}
    imports = [one for folder in FOLDERS for one in found_below(folder)[0]]
    assert len(imports) > 300
    for one in imports:
        if one.ours and one.module != one.importer:
            graph.setdefault(one.importer, set()).add(one.module)
    assert find_circle(graph) == []


def find_circle(graph: Mapping[str, set[str]]) -> list[str]:
    """A way from a module back to itself; empty where there is none."""
    done: set[str] = set()

    def follow(way: list[str]) -> list[str]:
        for following in sorted(graph.get(way[-1], ())):
            if following in way:
                return [*way[way.index(following) :], following]
            if following not in done and (circle := follow([*way, following])):
                return circle
        done.add(way[-1])
        return []

    return next((circle for module in sorted(graph) if module not in done and (circle := follow([module]))), [])


def test_a_circle_is_found() -> None:
    assert find_circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert find_circle({"a": {"b", "c"}, "b": {"c"}}) == []


@pytest.mark.parametrize(
    ("file", "source", "words"),
    [
        ("core/load/plan.py", "from ..strategy import ramp", "core/load may not import core/strategy/ramp"),
        ("core/units.py", "def f():\n    from ..session.loop import run", "core/units may not import session/loop"),
        ("core/units.py", "import time", "core is pure, time is not"),
        ("generator/trex/watchdog.py", "from . import client", "watchdog may not import generator/trex/client"),
        ("report/run/text.py", "if True:\n    import matplotlib.pyplot", "report/run may not import matplotlib"),
        ("suite/jobs.py", 'ARGV = ["-m", "trexbench.cli"]', "suite may not import cli"),
        ("twin/engine.py", 'ARGV = "python3 -m trexbench.lab.keeper"', "twin may not import lab/keeper"),
        ("attic/old.py", "import os", "attic/old is in no room"),
        ("__init__.py", "from .api import ramp", "__init__ may not import api"),
    ],
)
def test_forbidden_arrows_are_caught(file: str, source: str, words: str) -> None:
    problems = [
        problem for one in imports_of(file, ast.walk(ast.parse(source))) if (problem := forbidden(one)) is not None
    ]
    assert len(problems) == 1 and words in problems[0] and problems[0].startswith(f"trexbench/{file}:")


def test_every_room_is_there() -> None:
    assert [room for room in (*ROOMS, *CORE.split()) if not is_module(room)] == []


def test_every_room_is_named_in_the_document() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert [room for room in (*ROOMS, *CORE.split()) if room.split("/")[-1] not in text] == []


def test_core_neither_prints_nor_opens() -> None:
    calls = [
        f"{file.name}:{node.lineno}: {node.func.id}()"
        for file in (PACKAGE / "core").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if node.func.id in ("print", "open", "input", "exit", "exec", "eval", "__import__")
    ]
    assert not calls


def test_a_file_name_has_few_meanings() -> None:
    """Every driver's folder holds the same files, and every verb has one of its name; others share theirs with one."""
    alike = [PACKAGE / "cli", *(PACKAGE / "dut").glob("*/")]
    names = [file.stem for file in PACKAGE.rglob("*.py") if file.stem != "__init__" and file.parent not in alike]
    assert [name for name, files in Counter(names).items() if files > 2] == []
    assert len(names) > 300


def test_a_class_name_has_one_meaning() -> None:
    places: dict[str, list[str]] = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        for name in re.findall(r"(?m)^class ([^_]\w*)", file.read_text(encoding="utf-8")):
            places.setdefault(name, []).append(str(file.relative_to(PACKAGE)))
    assert {name: files for name, files in places.items() if len(files) > 1} == {}
    assert len(places) > 500
