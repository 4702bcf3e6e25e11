"""Files of DUTs, STL profiles and suites by name: the working directory's, the user's, the checkout's, or pip's."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import ConfigError
from ..core.names import nearest

_CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Catalogue:
    """Files of one kind, each with a name. folder: their directory; variable: of the environment, names another one.

    endings: of the files' names; names that begin with one of ``hidden`` are left out.
    """

    kind: str
    folder: str
    variable: str
    endings: tuple[str, ...] = (".yaml", ".yml")
    hidden: tuple[str, ...] = (".",)

    def directories(self, explicit: Path | None = None) -> list[Path]:
        """Directories to search, in this order; one named by option or environment is the only one."""
        named = os.environ.get(self.variable) if explicit is None else str(explicit)
        if named:
            if not os.path.isdir(named):  # not Path's, which raises where it may not look
                where = f"the directory in {self.variable}" if explicit is None else "the directory given"
                raise ConfigError(f"{named}: {where} is not there", f"name another {self.folder} directory")
            return [Path(named)]
        shared = Path(sys.prefix) / "share" / "trexbench"
        places = [top / self.folder for top in (Path(), *_of_user(), _CHECKOUT, shared)]
        different = {place.resolve(): place for place in reversed(places) if os.path.isdir(place)}
        return [place for place in places if place in different.values()]

    def files(self, explicit: Path | None = None) -> dict[str, Path]:
        """Every file by name; of two with the same name, the one in the first directory."""
        found: dict[str, Path] = {}
        for directory in self.directories(explicit):
            try:
                paths = sorted(directory.iterdir())
            except OSError as error:
                raise ConfigError(f"{directory}: {error.strerror}", "make it readable, or name another one") from None
            for path in paths:
                if path.suffix in self.endings and path.is_file() and not path.name.startswith(self.hidden):
                    found.setdefault(path.stem, path)
        return found

    def find(self, name: str, explicit: Path | None = None) -> Path:
        """The file of this name, or the file itself where the name is a path; ConfigError lists the known names."""
        path = Path(name)
        is_file_name = path.suffix in self.endings
        if "/" in name or (is_file_name and os.path.isfile(path)):
            return path
        known, wanted = self.files(explicit), path.stem if is_file_name else name
        if wanted not in known:
            raise self._unknown(wanted, sorted(known), explicit)
        return known[wanted]

    def _unknown(self, name: str, known: list[str], explicit: Path | None) -> ConfigError:
        """Make the error that has the nearest name, and all names."""
        what = f"unknown {self.kind} {name!r}"
        if not known:
            looked = ", ".join(map(str, self.directories(explicit))) or f"./{self.folder} and beside the package"
            return ConfigError(f"{what}: no {self.folder} found in {looked}", f"point to a {self.folder} directory")
        return ConfigError(what, f"{nearest(name, known)}there are: {', '.join(known)}")


def _of_user() -> Iterator[Path]:
    """The user's own directory of configs, where there is a home."""
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    if os.path.isabs(home):
        yield Path(home) / "trexbench"


DUTS = Catalogue("DUT", "dut_configs", "TREXBENCH_DUT_CONFIGS")
PROFILES = Catalogue("profile", "stl_profiles", "TREXBENCH_STL_PROFILES", (".py",), (".", "_"))
SUITES = Catalogue("suite", "suites", "TREXBENCH_SUITES")
