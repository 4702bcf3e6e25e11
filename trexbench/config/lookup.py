"""Where DUT configs and STL profiles are found: beside the caller, in the checkout, or where pip put them."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..core.errors import ConfigError
from .model import DutConfig
from .schema import read_dut

CONFIGS_ENV = "TREXBENCH_DUT_CONFIGS"
PROFILES_ENV = "TREXBENCH_STL_PROFILES"
_CHECKOUT = Path(__file__).resolve().parents[2]


def search_path(
    folder: str, variable: str, explicit: Path | None = None, environ: Mapping[str, str] | None = None
) -> tuple[Path, ...]:
    """Directories to look in, first match wins. One named by option or environment is the only one."""
    named = str(explicit) if explicit is not None else (os.environ if environ is None else environ).get(variable)
    if named:
        directory = Path(named)
        if not directory.is_dir():
            where = "the directory given" if explicit is not None else f"the directory in {variable}"
            raise ConfigError(f"{directory}: {where} is not there", f"create it or name another {folder} directory")
        return (directory,)
    places = (Path(folder), _CHECKOUT / folder, Path(sys.prefix) / "share" / "trexbench" / folder)
    found: list[Path] = []
    for place in places:
        if place.is_dir() and place.resolve() not in [p.resolve() for p in found]:
            found.append(place)
    return tuple(found)


def find_configs(directory: Path | None = None) -> dict[str, Path]:
    """Every DUT config by name, the first directory's where two have the same."""
    return listing(search_path("dut_configs", CONFIGS_ENV, directory), (".yaml", ".yml"))


def load_dut(name: str, directory: Path | None = None) -> DutConfig:
    """The DUT of this name, or of this file where the name is a path; ConfigError lists what there is."""
    if "/" in name or name.endswith((".yaml", ".yml")):
        return read_dut(Path(name))
    configs = find_configs(directory)
    if name not in configs:
        raise unknown("DUT", name, configs, "dut_configs", search_path("dut_configs", CONFIGS_ENV, directory))
    return read_dut(configs[name])


def find_profiles(directory: Path | None = None) -> dict[str, Path]:
    """Every STL profile by name."""
    found = listing(search_path("stl_profiles", PROFILES_ENV, directory), (".py",))
    return {name: path for name, path in found.items() if not name.startswith("_")}


def find_profile(path_or_name: str, directory: Path | None = None) -> Path:
    """The file of an STL profile, named by its path or, with or without ``.py``, by its name."""
    path = Path(path_or_name)
    if path.is_file():
        return path
    if path.parent == Path():
        profiles = find_profiles(directory)
        stem = path.name.removesuffix(".py")
        if stem in profiles:
            return profiles[stem]
        raise unknown("profile", stem, profiles, "stl_profiles", search_path("stl_profiles", PROFILES_ENV, directory))
    raise ConfigError(f"{path}: no such profile", "name a file that is there, or one of stl_profiles")


def listing(directories: Sequence[Path], endings: tuple[str, ...]) -> dict[str, Path]:
    """Files with one of these endings by name, the first directory's where two have the same."""
    found: dict[str, Path] = {}
    for directory in directories:
        for path in sorted(directory.iterdir()):
            if path.suffix in endings and path.is_file() and not path.name.startswith("."):
                found.setdefault(path.stem, path)
    return found


def unknown(kind: str, name: str, known: Mapping[str, Path], folder: str, places: Sequence[Path]) -> ConfigError:
    """What is told about a name that is not there: the nearest, and all that are."""
    if not known:
        looked = ", ".join(map(str, places)) or f"./{folder} and beside the package"
        return ConfigError(f"unknown {kind} {name!r}: no {folder} found in {looked}", f"point to a {folder} directory")
    close = difflib.get_close_matches(name, list(known), n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    return ConfigError(f"unknown {kind} {name!r}", f"{hint}there are: {', '.join(sorted(known))}")
