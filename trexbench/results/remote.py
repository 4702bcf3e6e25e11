"""``--results s3://lab/results``: stored nights at an address that fsspec can read, and the directory that mirrors it.

Everything is measured into, and read from, the mirror, a directory of this user: what is missing there is fetched as a
whole file, a night that has ended is put there, see keep_night. Credentials are the library's own concern.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from .. import files
from ..core.errors import ConfigError, StoreError

INSTALL = "pip install 'trexbench[store]'"
_MARK = ".store"
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://.*")
SENT_BEFORE_NS = 10**18
"""Copies of the store's files are marked with a time before this, of 2001: it is made of their stamp there."""
_AT_ONCE = 64
"""So many files are asked for together."""
_SSH = ("sftp:", "ssh:")
ANSWER_S = 30.0
"""An SSH connection on which an answer takes longer is lost."""
_NO_NAMES = frozenset({"", ".", ".."})


def has_parquet() -> bool:
    """Test whether rows can be kept as Parquet files."""
    return can_import("pyarrow.parquet")


def can_import(module: str) -> bool:
    """Test whether this module is there and works, such as with this version of numpy."""
    try:
        import_module(module)
    except Exception:  # each library has errors of its own
        return False
    return True


def require_parquet(address: str) -> None:
    """ConfigError where pyarrow does not work."""
    if not has_parquet():
        raise ConfigError(f"results at {address.partition('://')[0]}:// need pyarrow", INSTALL)


def is_inside(name: str) -> bool:
    """Test whether a path is that of a file below any directory that it is joined to."""
    return _NO_NAMES.isdisjoint(name.split("/")) and "\0" not in name


def place_of(results: str) -> Path:
    """The directory of results at this place, of an address the mirror."""
    return mirror_of(results) if _ADDRESS.fullmatch(results) else Path(results)


def mirror_of(address: str) -> Path:
    """The mirror's directory, made where there is none; ConfigError for an address with a secret in it."""
    for package in ("fsspec", "pyarrow"):
        if find_spec(package) is None:  # whether it works is seen where it is used: pyarrow takes long to import
            raise ConfigError(f"results at {address.partition('://')[0]}:// need {package}", INSTALL)
    if "::" in address:
        raise ConfigError(f"--results {address.partition('::')[0]}:: chains file systems", "name one address")
    kind, _, path = address.partition("://")
    address = f"{kind}://{path.rstrip('/') or path}"
    parts = urlsplit(address)
    if parts.password is not None or parts.query:
        shown = f"{parts.scheme}://{parts.hostname or ''}{parts.path}"
        remedy = "leave it out: the library finds it in the environment, ~/.aws or ~/.ssh"
        raise ConfigError(f"--results {shown} holds a password or an option", remedy)
    place = _place(address)
    try:
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not (place / _MARK).exists():
            files.replace_file(place / _MARK, address.encode())
    except OSError as error:
        raise StoreError(
            f"{place} cannot be written: {error.strerror}", "name another directory with TREXBENCH_STATE_DIR"
        ) from None
    return place


def _place(address: str) -> Path:
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    state = os.environ.get("TREXBENCH_STATE_DIR") or Path(home, "trexbench")
    return Path(state, "stores", sha256(address.encode()).hexdigest()[:16]).absolute()


def address_of(results: Path) -> str | None:
    """The address of the store that this directory mirrors; None for a directory of its own."""
    try:
        address = (results / _MARK).read_text()
    except (OSError, UnicodeDecodeError):
        return None
    return address if _place(address).resolve() == results.resolve() else None  # not what somebody put beside a file


def store_of(results: Path) -> Store | None:
    """The store that this directory mirrors, opened; None for a directory of its own."""
    address = address_of(results)
    return None if address is None else Store(address, results)


def fetch_missing(path: Path) -> bool:
    """Fetch a file that is not in its mirror, and test whether there is one; False outside of mirrors."""
    for folder in path.parents:
        if (store := store_of(folder)) is not None:
            return store.fetch([path.relative_to(folder).as_posix()]) > 0
    return False


def fetch_together(results: Path, names: Iterable[str]) -> None:
    """Fetch those of these files that are not in the mirror, many at a time; nothing outside of mirrors."""
    if (store := store_of(results)) is not None:
        with contextlib.suppress(StoreError):  # who reads them says so
            store.fetch([name for name in names if not (results / name).exists()])


_opened: dict[str, tuple[Any, str]] = {}
"""File systems of addresses, each with the path there."""


def _open(address: str) -> tuple[Any, str]:
    if address in _opened:
        return _opened[address]
    with _saying(address):
        import fsspec

        options = {"host_key_policy": _known_hosts_only()} if address.startswith(_SSH) else {}
        system, root = fsspec.core.url_to_fs(address, skip_instance_cache=True, **options)
        if options:
            system.client.get_transport().set_keepalive(60)  # between a night's begin and its end nothing else is sent
            system.ftp.get_channel().settimeout(ANSWER_S)
        return _opened.setdefault(address, (system, root.rstrip("/")))


_turns: dict[str, AbstractContextManager[Any]] = {}
"""Locks of SSH addresses: of two threads that ask at once, paramiko drops one's answer."""


def _forget_lost(address: str, error: Exception) -> None:
    """Open the address anew next time, unless its SSH connection works: each new one would stay beside the former."""
    opened = _opened.get(address)
    if opened is not None and address.startswith(_SSH):
        channel = opened[0].ftp.get_channel()
        if not (channel.closed or channel.eof_received or isinstance(error, TimeoutError)):
            return
        channel.get_transport().close()
    _opened.pop(address, None)


def _known_hosts_only() -> Any:
    """A policy of paramiko: fsspec would trust any host."""
    import paramiko

    known = paramiko.HostKeys()
    for place in (Path("/etc/ssh/ssh_known_hosts"), Path.home() / ".ssh" / "known_hosts"):
        with contextlib.suppress(OSError):
            known.load(str(place))

    class KnownHosts(paramiko.MissingHostKeyPolicy):  # type: ignore[misc]
        def missing_host_key(self, client: Any, hostname: str, key: Any) -> None:
            if not known.check(hostname, key):
                raise paramiko.SSHException(f"{hostname} is not in ~/.ssh/known_hosts with this key")

    return KnownHosts()


class Store:
    """Files at an address, each by its path below it; StoreError where it cannot be reached."""

    def __init__(self, address: str, mirror: Path) -> None:
        self.address, self.mirror = address, mirror
        self._system, self._root = _open(address)

    def find(self, folder: str, *begins: str) -> dict[str, str]:
        """Every file below the folder, with a stamp that changes when it does; begins: of the names of files in it."""
        place, found = self._at(folder), dict[str, Mapping[str, Any]]()
        with _saying(self.address), contextlib.suppress(FileNotFoundError):
            self._system.invalidate_cache()
            if "file" in self._protocols:
                found = _find_local(place, begins)
            elif not begins:
                walking = {} if "s3" in self._protocols else {"on_error": "raise"}  # else a lost connection is empty
                found = self._system.find(place, detail=True, **walking)
            elif "s3" in self._protocols:
                for begin in begins:
                    found |= self._system.find(place, detail=True, prefix=begin)
            else:
                names = [name.rpartition("/")[2] for name in self._system.ls(place, detail=False)]
                places = [f"{place}/{name}" for name in names if name.startswith(begins)]
                found = {one: self._system.info(one) for one in places}
        cut = len(self._root.lstrip("/")) + 1
        there = {place.lstrip("/")[cut:]: _stamp(about) for place, about in found.items()}
        return {name: stamp for name, stamp in there.items() if is_inside(name)}

    def _at(self, name: str) -> str:
        """The file's place; StoreError for one outside, which documents of others may name."""
        if not is_inside(name):
            raise StoreError(f"{self.address}: {name!r} is not the path of a file below it", "remove what names it")
        return f"{self._root}/{name}"

    @property
    def _protocols(self) -> Sequence[str]:
        protocol = self._system.protocol
        return (protocol,) if isinstance(protocol, str) else tuple(protocol)

    def mirror_files(self, found: Mapping[str, str]) -> None:
        """Fetch those that are not in the mirror as they are now; what was made there, and is not sent, stays."""
        marks = {name: files.written_ns(self.mirror / name) for name in found}
        stale = [name for name, mark in marks.items() if mark != _time_of(found[name]) and mark < SENT_BEFORE_NS]
        self.fetch(stale, found)

    def mark(self, name: str, stamp: str) -> None:
        """Note that the mirror's file is what has this stamp in the store."""
        with contextlib.suppress(FileNotFoundError):
            os.utime(self.mirror / name, ns=(_time_of(stamp),) * 2)

    def fetch(self, names: Sequence[str], stamps: Mapping[str, str] | None = None) -> int:
        """Fetch these files into the mirror; the number of those that there are.

        stamps: of each file in the store. A copy appears together with its mark, but may not outlast a loss of power.
        """
        there = 0
        for at in range(0, len(names), _AT_ONCE):
            for name, data in self._read(names[at : at + _AT_ONCE]):
                target = self.mirror / name
                target.parent.mkdir(parents=True, exist_ok=True)
                if stamps is None:
                    files.replace_file(target, data)
                else:
                    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
                    temporary.write_bytes(data)
                    os.utime(temporary, ns=(_time_of(stamps[name]),) * 2)
                    temporary.replace(target)
                there += 1
        return there

    def _read(self, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the content of each of these files that there is."""
        if len(names) == 1:  # of one, ``cat`` asks first whether it is a pattern
            data = self.read(names[0])
            yield from () if data is None else [(names[0], data)]
            return
        places = {name: self._at(name) for name in names}
        with _saying(self.address):
            read = self._system.cat([*places.values()], on_error="return")
            by_place = {str(place).lstrip("/"): data for place, data in read.items()}  # some leave out the slash
            for name in names:
                data = by_place.get(places[name].lstrip("/"), FileNotFoundError())
                if isinstance(data, bytes):
                    yield name, data
                elif not isinstance(data, FileNotFoundError):
                    raise data

    def read(self, name: str) -> bytes | None:
        """The file's content; None where there is none."""
        with _saying(self.address):
            try:
                return bytes(self._system.cat_file(self._at(name)))
            except FileNotFoundError:
                return None

    def replace(self, name: str) -> None:
        """Put the mirror's file in this place."""
        self.write(name, self._mirrored(name))
        with _saying(self.address):
            self._system.invalidate_cache()
            self.mark(name, _stamp(self._system.info(self._at(name))))

    def _mirrored(self, name: str) -> bytes:
        self._at(name)  # raises
        with _saying(self.address):
            return (self.mirror / name).read_bytes()

    def write(self, name: str, data: bytes) -> None:
        """Put this content in the place, whatever is there."""
        self._make_folder(name)
        with _saying(self.address):
            place = self._at(name)
            if "file" in self._protocols:
                files.replace_file(Path(place), data)
            elif "sftp" in self._protocols:
                self._rename(data, place, self._system.ftp.posix_rename)
            else:
                self._system.pipe_file(place, data)

    def _rename(self, data: bytes, place: str, rename: Callable[[str, str], None]) -> None:
        """Write a file of another name beside the place, and rename it."""
        temporary = f"{place}.{uuid4().hex}.tmp"
        try:
            self._system.pipe_file(temporary, data)
            rename(temporary, place)
        except BaseException:
            with contextlib.suppress(Exception):
                self._system.rm_file(temporary)
            raise

    def create(self, name: str) -> None:
        """Put the mirror's file in this place unless there is one, which must be the same; StoreError for another.

        The mirror's is marked as sent, with no stamp of the store's, which would be one more request.
        """
        if not self.write_new(name, self._mirrored(name)):
            remedy = f"remove that, or {self.mirror / name}"
            raise StoreError(f"{self.address}/{name} is there already, and another one", remedy)
        self.mark(name, "")

    def write_new(self, name: str, data: bytes) -> bool:
        """Put this content in the place; False if there is another, True also if it is there, as by an earlier try."""
        self._make_folder(name)
        with _saying(self.address):
            try:
                self._create(self._at(name), data)
            except FileExistsError:
                return self.read(name) == data
        return True

    def _create(self, place: str, data: bytes) -> None:
        if "file" in self._protocols:
            files.replace_file(Path(place), data, exclusive=True, by_link=True)
        elif {"s3", "memory"} & {*self._protocols}:
            self._system.pipe_file(place, data, mode="create")  # S3: If-None-Match
        elif "sftp" in self._protocols:
            try:
                self._rename(data, place, self._system.ftp.rename)  # of OpenSSH: fails where there is one
            except OSError:
                if not self._system.exists(place):
                    raise
                raise FileExistsError(place) from None
        else:
            self.check()  # raises

    def check(self) -> None:
        """StoreError where no night can be put: of the wrong kind, or not to be reached."""
        require_parquet(self.address)
        if not {"file", "s3", "memory", "sftp"} & {*self._protocols}:
            what = f"{self._protocols[0]}:// cannot create a file only where there is none"
            raise StoreError(what, "name a directory, s3:// or sftp://")
        bucket = self._root.lstrip("/").partition("/")[0]
        if not self._is_there(bucket if "s3" in self._protocols else self._root) and "s3" in self._protocols:
            raise StoreError(f"{self.address}: there is no bucket {bucket}", "make it, or check the address")

    def check_there(self) -> None:
        """StoreError where nothing is at the address: it may be mistyped."""
        if not self._is_there(self._root):
            raise StoreError(f"{self.address}: nothing is there", "check the address; the first night makes it")

    def _is_there(self, place: str) -> bool:
        with _saying(self.address):
            self._system.invalidate_cache()
            try:
                return bool(self._system.info(place))
            except FileNotFoundError:
                return False

    def _make_folder(self, name: str) -> None:
        if "s3" not in self._protocols:
            with _saying(self.address):
                self._system.makedirs(self._at(name).rpartition("/")[0], exist_ok=True)

    def remove(self, names: Iterable[str]) -> None:
        """Remove files; those that are not there are gone already."""
        with _saying(self.address):
            for name in names:
                with contextlib.suppress(FileNotFoundError):
                    self._system.rm_file(self._at(name))


def _find_local(folder: str, begins: tuple[str, ...] = ()) -> dict[str, Mapping[str, Any]]:
    """Every file below the folder, in a small part of the time that fsspec takes; begins: of the names in it."""
    found: dict[str, Mapping[str, Any]] = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            if begins and not entry.name.startswith(begins):
                continue
            with contextlib.suppress(FileNotFoundError):  # gone in the meantime
                if entry.is_dir(follow_symlinks=False):
                    found |= _find_local(entry.path)
                elif entry.is_file():
                    about = entry.stat()
                    found[entry.path] = {"size": about.st_size, "mtime": about.st_mtime}
    return found


def _stamp(about: Mapping[str, Any]) -> str:
    return f"{about.get('size')} {about.get('ETag') or about.get('mtime') or about.get('created')}"


def _time_of(stamp: str) -> int:
    """A time in nanoseconds that marks a copy of the file with this stamp."""
    return int.from_bytes(sha256(stamp.encode()).digest(), "big") % SENT_BEFORE_NS


@contextlib.contextmanager
def _saying(address: str) -> Iterator[None]:
    """Make one line of what any of these libraries raises."""
    turn = _turns.setdefault(address, threading.RLock()) if address.startswith(_SSH) else contextlib.nullcontext()
    with turn:
        try:
            yield
        except (StoreError, ConfigError):
            raise
        except ImportError as error:
            cause = error.__cause__ if isinstance(error.__cause__, ImportError) else error
            remedy = f"pip install {cause.name.partition('.')[0]}" if cause.name else INSTALL
            raise ConfigError(f"{address} cannot be read: {error}", remedy) from None
        except Exception as error:  # each library has errors of its own
            _forget_lost(address, error)
            text = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            raise StoreError(f"{address} cannot be reached: {text}", "check the address, and its credentials") from None
