"""The keys of a suite, and where suites are found: beside the caller, in the checkout, or where pip put them."""

from __future__ import annotations

from pathlib import Path

from ..core.profile import resolve_mode
from . import readers as r
from .lookup import listing, load_dut, search_path, unknown
from .model import DutConfig, PlanDefaults
from .schema import read_plan
from .suite import Suite, SuiteDut
from .yamltree import Value, load

SUITES_ENV = "TREXBENCH_SUITES"
_TOP = ("description", "duts", "modes", "directions", "plan", "keep_nights")
_DIRECTIONS = {"uni": False, "bidir": True}
_NAME = r.pattern(
    r"[A-Za-z0-9][A-Za-z0-9._-]*", "the name of a DUT", "netgate-vpp, which is dut_configs/netgate-vpp.yaml"
)
_STEM = r.pattern(r"[A-Za-z0-9][A-Za-z0-9._-]*", "a suite's name", "nightly.yaml")


def find_suites() -> dict[str, Path]:
    """Every suite by name, the first directory's where two have the same."""
    return listing(search_path("suites", SUITES_ENV), (".yaml", ".yml"))


def find_suite(name: str) -> Path:
    """The file of the suite of this name, or this file where the name is a path; ConfigError lists what there is."""
    if "/" in name or name.endswith((".yaml", ".yml")):
        return Path(name)
    suites = find_suites()
    if name not in suites:
        raise unknown("suite", name, suites, "suites", search_path("suites", SUITES_ENV))
    return suites[name]


def read_suite(path: Path, configs_dir: Path | None = None) -> Suite:
    """The suite that this file describes, its DUTs looked up; ConfigError naming file, line, key and fix."""
    root = load(path, "suite")
    root_name = Value(path, 1, "", path.stem)
    top = root.table("a suite", _TOP)
    return Suite(
        name=root_name.read(_STEM),
        file=path,
        description=top.get("description", r.text, ""),
        duts=top.get("duts", lambda value: _duts(value, configs_dir)),
        modes=top.get("modes", _modes),
        directions=top.get("directions", _directions),
        plan=top.get("plan", read_plan, PlanDefaults()),
        keep_nights=top.get("keep_nights", r.integer(1, 100_000), None),
    )


def _duts(value: Value, configs_dir: Path | None) -> tuple[SuiteDut, ...]:
    items = _some(value, "DUT")
    duts = tuple(item.read(lambda one: _dut(one, configs_dir)) for item in items)
    for index, dut in enumerate(duts):
        for before, other in zip(items, duts[:index], strict=False):
            if other.name == dut.name:
                raise items[index].wrong(
                    f"{dut.name} stands on line {before.line} already", "name it once, with all its rx_queues"
                )
    return duts


def _dut(value: Value, configs_dir: Path | None) -> SuiteDut:
    if isinstance(value.raw, str):
        return SuiteDut(_known(value, configs_dir).name)
    table = value.table("a DUT", ("name", "rx_queues"))
    dut = table.get("name", lambda one: _known(one, configs_dir))
    queues = table.get("rx_queues", r.integers(1, 256), ())
    for wished in queues:
        if wished not in dut.offered_queues:
            there = ", ".join(map(str, dut.offered_queues))
            raise table.at("rx_queues").wrong(
                f"{dut.name} is not measured with {wished} receive queues: its config offers {there}",
                f"choose of these, or state rx_queues: in {dut.file}",
            )
    return SuiteDut(dut.name, queues)


def _known(value: Value, configs_dir: Path | None) -> DutConfig:
    return load_dut(_NAME(value), configs_dir)


def _modes(value: Value) -> tuple[str, ...]:
    names = [item.read(lambda one: resolve_mode(r.text(one)).name) for item in _some(value, "mode")]
    return _different(value, "mode", names)


def _directions(value: Value) -> tuple[bool, ...]:
    words = _different(value, "direction", [item.read(r.choice(*_DIRECTIONS)) for item in _some(value, "direction")])
    return tuple(_DIRECTIONS[word] for word in words)


def _some(value: Value, what: str) -> list[Value]:
    items = list(value.items(what))
    if not items:
        raise value.wrong(f"no {what}", f"name one {what} at least")
    return items


def _different(value: Value, what: str, names: list[str]) -> tuple[str, ...]:
    items = value.items(what)
    for index, name in enumerate(names):
        if name in names[:index]:
            first = items[names.index(name)].line
            raise items[index].wrong(f"{what} {name} stands on line {first} already", "name each once")
    return tuple(names)
