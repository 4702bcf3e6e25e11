"""DUT configs, STL profiles and suites by name: beside the caller, in the checkout, or where pip put them."""

from __future__ import annotations

import difflib
import os
import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ..core.errors import ConfigError
from .model import DutConfig
from .readers import pattern, section
from .schema import read_dut
from .suite import Suite, SuiteDut
from .yamltree import Value, load

_STEM = pattern(r"[A-Za-z0-9][A-Za-z0-9._-]*", "a suite's name", "nightly.yaml")
_CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Catalogue:
    """Files of one kind, each with a name. variable: of the environment; endings, hidden: of the files' names."""

    kind: str
    folder: str
    variable: str
    endings: tuple[str, ...] = (".yaml", ".yml")
    hidden: tuple[str, ...] = (".",)

    def directories(self, explicit: Path | None = None) -> list[Path]:
        """Directories to look in, first match wins. One named by option or environment is the only one."""
        named = os.environ.get(self.variable) if explicit is None else str(explicit)
        if named:
            if not Path(named).is_dir():
                where = f"the directory in {self.variable}" if explicit is None else "the directory given"
                raise ConfigError(
                    f"{named}: {where} is not there", f"create it or name another {self.folder} directory"
                )
            return [Path(named)]
        places = (Path(self.folder), _CHECKOUT / self.folder, Path(sys.prefix) / "share" / "trexbench" / self.folder)
        different = {place.resolve(): place for place in reversed(places) if place.is_dir()}
        return [place for place in places if place in different.values()]

    def files(self, explicit: Path | None = None) -> dict[str, Path]:
        """Every file by name, the first directory's where two have the same."""
        found: dict[str, Path] = {}
        for directory in self.directories(explicit):
            for path in sorted(directory.iterdir()):
                if path.suffix in self.endings and path.is_file() and not path.name.startswith(self.hidden):
                    found.setdefault(path.stem, path)
        return found

    def find(self, name: str, explicit: Path | None = None) -> Path:
        """The file of this name, or this file where the name is a path; ConfigError lists what there is."""
        path = Path(name)
        is_file_name = path.suffix in self.endings
        if "/" in name or (is_file_name and path.is_file()):
            return path
        known, wanted = self.files(explicit), path.stem if is_file_name else name
        if wanted not in known:
            raise self._unknown(wanted, sorted(known), explicit)
        return known[wanted]

    def _unknown(self, name: str, known: list[str], explicit: Path | None) -> ConfigError:
        """The nearest name, and all that there are."""
        what = f"unknown {self.kind} {name!r}"
        if not known:
            looked = ", ".join(map(str, self.directories(explicit))) or f"./{self.folder} and beside the package"
            return ConfigError(f"{what}: no {self.folder} found in {looked}", f"point to a {self.folder} directory")
        close = difflib.get_close_matches(name, known, n=1)
        return ConfigError(what, f"{f'did you mean {close[0]}? ' if close else ''}there are: {', '.join(known)}")


DUTS = Catalogue("DUT", "dut_configs", "TREXBENCH_DUT_CONFIGS")
PROFILES = Catalogue("profile", "stl_profiles", "TREXBENCH_STL_PROFILES", (".py",), (".", "_"))
SUITES = Catalogue("suite", "suites", "TREXBENCH_SUITES")


def load_dut(name: str, directory: Path | None = None) -> DutConfig:
    """The DUT of this name, or of this file where the name is a path."""
    return read_dut(DUTS.find(name, directory))


def find_profile(name: str, directory: Path | None = None) -> Path:
    """The file of an STL profile, named by its path or, with or without ``.py``, by its name."""
    path = PROFILES.find(name, directory)
    if not path.is_file():
        raise ConfigError(f"{path}: no such profile", "name a file that is there, or one of stl_profiles")
    return path


def read_suite(path: Path, configs_dir: Path | None = None) -> Suite:
    """The suite that this file describes, its DUTs looked up; ConfigError naming file, line, key and fix."""
    root = load(path, "suite")
    suite = section(Suite, "a suite", name=Value(path, 1, "", path.stem).read(_STEM), file=path)(root)
    duts = zip(root.at("duts").items("DUT"), suite.duts, strict=True)
    return replace(suite, duts=tuple(item.read(partial(_known, dut, configs_dir)) for item, dut in duts))


def _known(wanted: SuiteDut, configs_dir: Path | None, value: Value) -> SuiteDut:
    """The DUT as its own config names it, which must offer the queues that are wanted."""
    dut = load_dut(wanted.name, configs_dir)
    for queues in wanted.rx_queues:
        if queues not in dut.offered_queues:
            raise value.at("rx_queues").wrong(
                f"{dut.name} is not measured with {queues} receive queues: "
                f"its config offers {', '.join(map(str, dut.offered_queues))}",
                f"choose of these, or state rx_queues: in {dut.file}",
            )
    return SuiteDut(dut.name, wanted.rx_queues)
