"""DUT configs, STL profiles and suites by name: those of the working directory, the user, the checkout, or pip."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import ConfigError
from ..core.names import nearest

_CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Catalogue:
    """Named files of one kind."""

    kind: str
    folder: str
    """Name of the directories that have them."""
    variable: str
    """Environment variable that names the only directory to search."""
    endings: tuple[str, ...] = (".yaml", ".yml")
    hidden: tuple[str, ...] = (".",)
    """Beginnings of names that are left out."""

    def directories(self, explicit: Path | None = None) -> list[Path]:
        """Return the directories to search, in order; one named by option or environment is the only one."""
        named = os.environ.get(self.variable) if explicit is None else str(explicit)
        if named:
            if not os.path.isdir(named):  # not Path's, which raises where it may not look
                where = f"the directory in {self.variable}" if explicit is None else "the directory given"
                raise ConfigError(f"{named}: {where} is not there", f"name another {self.folder} directory")
            return [Path(named)]
        home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
        of_user = [Path(home) / "trexbench"] if os.path.isabs(home) else []
        shared = Path(sys.prefix) / "share" / "trexbench"
        places = [top / self.folder for top in (Path(), *of_user, _CHECKOUT, shared)]
        different = {place.resolve(): place for place in reversed(places) if os.path.isdir(place)}
        return [place for place in places if place in different.values()]

    def files(self, explicit: Path | None = None) -> dict[str, Path]:
        """Return every file by name; of two with the same name, the one in the first directory."""
        known: dict[str, Path] = {}
        for directory in self.directories(explicit):
            try:
                paths = sorted(directory.iterdir())
            except OSError as error:
                raise ConfigError(f"{directory}: {error.strerror}", "make it readable, or name another one") from None
            for path in paths:
                if path.suffix in self.endings and path.is_file() and not path.name.startswith(self.hidden):
                    known.setdefault(path.stem, path)
        return known

    def find(self, name: str, explicit: Path | None = None) -> Path:
        """Return the file of this name, or the named file itself; ConfigError for an unknown name."""
        path = Path(name)
        is_file_name = path.suffix in self.endings
        if "/" in name or (is_file_name and os.path.isfile(path)):
            return path
        known, wanted = self.files(explicit), path.stem if is_file_name else name
        if wanted in known:
            return known[wanted]
        what = f"unknown {self.kind} {wanted!r}"
        if known:
            raise ConfigError(what, f"{nearest(wanted, sorted(known))}there are: {', '.join(sorted(known))}")
        looked = ", ".join(map(str, self.directories(explicit))) or f"./{self.folder} and beside the package"
        raise ConfigError(f"{what}: no {self.folder} found in {looked}", f"point to a {self.folder} directory")


DUTS = Catalogue("DUT", "dut_configs", "TREXBENCH_DUT_CONFIGS")
PROFILES = Catalogue("profile", "stl_profiles", "TREXBENCH_STL_PROFILES", (".py",), (".", "_"))
SUITES = Catalogue("suite", "suites", "TREXBENCH_SUITES")
