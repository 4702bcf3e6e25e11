"""Nights, known changes and differences between testers on disk: files that are replaced as a whole or not at all.

Nights of suites are ``results/nights/<date>-<suite>[-<n>].json``, each known change
``results/acknowledged/<number>.json``; by how much the testers of a fleet differ, ``results/.fleet/testers.json``.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from secrets import token_hex

from ..core.errors import StoreError
from ..core.history.known import Known, is_date, known_from_dict, known_to_dict
from ..core.history.night import Night, night_from_dict, night_to_dict
from ..core.history.testers import FigureRatio, ratios_from_dict, ratios_to_dict
from ..files import changed_alone, written_ns
from .document import naming, read_object
from .remote import SENT_BEFORE_NS, address_of, store_of
from .store import create_file, encode_json, make_directory, replace_file, safe_name

PAGE_PREFIX = "report-"
"""Beginning of the name of a night's page, which lies where its links work: in the results directory itself."""
FOLDER, KNOWN_FOLDER = "nights", "acknowledged"
KNOWN_FILE = "acknowledged.json"
"""Known changes of earlier versions, all in one file."""
TESTERS = ".fleet"
"""Folder below the results for leases, what a fleet is measuring, and by how much its testers differ."""
MAX_BYTES = 8 << 20
"""Larger files are not read: a night of a thousand cells has half a megabyte."""


class NightWriter:
    """Keeps one night's file current. ``name`` is the file's without its ending, unique among nights."""

    def __init__(self, path: Path, night: Night) -> None:
        self.path, self.night = path, night

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def scratch(self) -> Path:
        """The directory of a fleet's testers: nothing in it is needed once the night has ended."""
        return self.path.parents[1] / TESTERS / self.name

    @staticmethod
    def begin(results: Path, night: Night) -> NightWriter:
        """Write the night to a new file; StoreError if that fails, or the store would not take it at its end."""
        if not is_date(night.night):
            raise StoreError(f"{night.night!r} is not the date of a night", "write it as 2026-11-21")
        if (store := store_of(results)) is not None:
            store.check()
        stem = f"{night.night}-{safe_name(night.suite, '._-')}"
        return NightWriter(create_file(results / FOLDER, stem, encode_json(night_to_dict(night))), night)

    def write(self, night: Night) -> None:
        """Replace the file with the night as it is now; StoreError if that fails."""
        replace_file(self.path, encode_json(night_to_dict(night)))
        self.night = night


def read_night(path: Path) -> Night:
    """Read a night; StoreError names the file and what is wrong with it, in one line."""
    with naming(path):
        return night_from_dict(read_object(path, MAX_BYTES))


def find_nights(
    results: Path,
    warn: Callable[[str], None],
    newest: int | None = None,
    suite: str | None = None,
    since: str | None = None,
    is_begun_here: bool = False,
) -> list[tuple[Path, Night]]:
    """Read every night, oldest first, with its file; ``warn`` gets a line that names a file that cannot be read.

    newest: only the last so many that were written. suite, since: of a store, other and older nights are left out.
    is_begun_here: in a mirror, only nights that the store lacks as they are now; the store is not asked.
    """
    nights, files = [], _files(results, warn, suite and safe_name(suite, "._-"), since, is_begun_here)
    if newest is not None:
        files = sorted(files, key=written_ns)[-newest:]
    for path in files:
        try:
            nights.append((path, read_night(path)))
        except StoreError as error:
            warn("".join(letter if letter.isprintable() else "?" for letter in str(error)))
    return sorted(nights, key=lambda pair: (pair[1].night, pair[1].started, pair[0].name))


def page_name(night: str) -> str:
    """Return the name, in the results directory, of the page of a night whose file has this stem."""
    return f"{PAGE_PREFIX}{night}.html"


def find_pages(results: Path, stored: Sequence[tuple[Path, Night]], suite: str | None) -> list[tuple[str, str]]:
    """List the nights that have a page, newest first, each with the page's name. stored: as find_nights has them."""
    count, pages = Counter((night.suite, night.night) for _, night in stored), []
    for path, night in reversed(stored):
        if suite in (None, night.suite) and (results / page_name(path.stem)).exists():
            words = night.night if suite is not None else f"{night.night} {night.suite}"
            at = f", {night.started[11:16]} UTC" if count[night.suite, night.night] > 1 else ""
            pages.append((words + at, page_name(path.stem)))
    return pages


def load_nights(
    results: Path, warn: Callable[[str], None], suite: str | None = None, since: str | None = None
) -> list[Night]:
    """Read every night, oldest first, as find_nights does."""
    return [night for _, night in find_nights(results, warn, suite=suite, since=since)]


def _files(
    results: Path, warn: Callable[[str], None], suite: str | None, since: str | None, is_begun_here: bool
) -> list[Path]:
    """List the files of nights. suite, since: as in their names."""
    folder, begin, there = results / FOLDER, since or "", dict[str, str]()
    is_mirror = address_of(results) is not None
    if not is_begun_here and (store := store_of(results)) is not None:
        there = {Path(name).name: stamp for name, stamp in store.find(FOLDER).items()}
        there = {name: stamp for name, stamp in there.items() if name >= begin and name[11:].startswith(suite or "")}
        store.mirror_files({f"{FOLDER}/{name}": stamp for name, stamp in there.items()})
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix == ".json" and not path.name.startswith("."))
        return [path for path in paths if path.name in there or not is_sent(path)] if is_mirror else paths
    except FileNotFoundError:
        return []
    except OSError as error:
        if results.is_dir():  # else whoever writes there reports it
            warn(f"{folder}: {error.strerror}")
        return []


def is_sent(path: Path) -> bool:
    """Test whether the store has this file of a mirror, which has not been written here since."""
    return written_ns(path) < SENT_BEFORE_NS


def load_known(results: Path) -> list[Known]:
    """Read the known changes; StoreError names a file that cannot be read."""
    return [known for _, known in _known_with_files(results)]


def _known_with_files(results: Path) -> list[tuple[Path, Known]]:
    old, folder, pairs = results / KNOWN_FILE, results / KNOWN_FOLDER, list[tuple[Path, Known]]()
    if (store := store_of(results)) is not None:
        store.fetch([KNOWN_FILE])
        there = store.find(KNOWN_FOLDER)
        store.mirror_files(there)
    files = sorted(folder.glob("*.json"))
    if store is not None:  # what was removed there, or never arrived, does not count
        files = [path for path in files if f"{KNOWN_FOLDER}/{path.name}" in there]
    for path in [old, *files] if old.exists() else files:
        with naming(path):
            pairs += [(path, known) for known in known_from_dict(read_object(path, MAX_BYTES))]
    return pairs


def add_known(results: Path, one: Known) -> None:
    """Store one more known change, in a file of its own: two people who acknowledge at once overwrite nothing."""
    if not results.is_dir():
        raise StoreError(f"{results}: No such file or directory", "name the results with --results")
    data = encode_json(known_to_dict([one]))
    path = create_file(results / KNOWN_FOLDER, f"{time.time_ns()}-{token_hex(4)}", data)
    if (store := store_of(results)) is not None:
        store.create(f"{KNOWN_FOLDER}/{path.name}")


def remove_known(results: Path, number: int) -> Known:
    """Remove the known change with this number (from 1, as listed)."""
    known = _known_with_files(results)
    if not 1 <= number <= len(known):
        raise StoreError(f"no known change {number}", "trexbench regress --known lists them")
    path, gone = known.pop(number - 1)
    left, store = [other for file, other in known if file == path], store_of(results)
    if left or path.name == KNOWN_FILE:  # which stays, empty: mirrors have copies of it
        replace_file(path, encode_json(known_to_dict(left)))
        if store is not None:
            store.replace(path.relative_to(results).as_posix())
        return gone
    if store is not None:
        store.remove([path.relative_to(results).as_posix()])
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}", "make it writable") from None
    return gone


def ratios_file(results: Path) -> Path:
    return results / TESTERS / "testers.json"


def load_ratios(results: Path) -> list[FigureRatio]:
    """Read by how much testers differ; nothing if none was calibrated. StoreError names a file that cannot be read."""
    path = ratios_file(results)
    if not path.exists():
        return []
    with naming(path):
        return ratios_from_dict(read_object(path, MAX_BYTES))


def keep_ratios(results: Path, new: Sequence[FigureRatio]) -> Path:
    """Store ratios in the place of former ones of the same traffic, DUT and testers."""

    def kind_of(ratio: FigureRatio) -> tuple[object, ...]:
        return ratio.load, ratio.metric, ratio.dut, ratio.simulated, ratio.tester, ratio.reference

    path, kinds = ratios_file(results), set(map(kind_of, new))
    make_directory(path.parent)
    try:
        with changed_alone(path):
            kept = [ratio for ratio in load_ratios(results) if kind_of(ratio) not in kinds]
            replace_file(path, encode_json(ratios_to_dict([*kept, *new])))
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}", "make it writable, on a file system with locks") from None
    return path
