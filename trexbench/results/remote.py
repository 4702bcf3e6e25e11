"""``--results s3://lab/results``: stored nights at an address that fsspec can read, and the directory that mirrors it.

Runs are measured into, and read from, the mirror, a directory of this user. A file missing there is fetched as a whole;
a night that has ended is put into the store, see keep_night. Credentials are left to the library.
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
"""Copies of the store's files get a modification time before this (2001), derived from their stamp in the store."""
_AT_ONCE = 64
"""Number of files requested together."""
_SSH = ("sftp:", "ssh:")
ANSWER_S = 30.0
"""An SSH connection on which an answer takes longer counts as lost."""
_NO_NAMES = frozenset({"", ".", ".."})


def has_parquet() -> bool:
    """Test whether rows can be kept as Parquet files."""
    return can_import("pyarrow.parquet")


def can_import(module: str) -> bool:
    """Test whether this module is installed and works, for instance with this version of numpy."""
    try:
        import_module(module)
    except Exception:  # each library has errors of its own
        return False
    return True


def require_parquet(address: str) -> None:
    """Raise ConfigError if pyarrow does not work."""
    if not has_parquet():
        raise ConfigError(f"results at {address.partition('://')[0]}:// need pyarrow", INSTALL)


def is_inside(name: str) -> bool:
    """Test whether a path stays below any directory that it is joined to."""
    return _NO_NAMES.isdisjoint(name.split("/")) and "\0" not in name


def place_of(results: str) -> Path:
    """Return the directory of results at this place; the mirror if it is an address."""
    return mirror_of(results) if _ADDRESS.fullmatch(results) else Path(results)


def mirror_of(address: str) -> Path:
    """Return the mirror's directory, made if there is none; ConfigError for an address with a secret in it."""
    for package in ("fsspec", "pyarrow"):
        if find_spec(package) is None:  # that it works is checked where it is used: pyarrow takes long to import
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
    if parts.scheme == "file" and parts.netloc:
        raise ConfigError(f"--results {address} names no directory", f"write file://{Path(path).absolute()}")
    place = _place(address)
    try:
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not (place / _MARK).exists():
            files.replace_file(place / _MARK, address.encode())
    except OSError as error:
        remedy = "name another directory with TREXBENCH_STATE_DIR"
        raise StoreError(f"{place} cannot be written: {error.strerror}", remedy) from None
    return place


def _place(address: str) -> Path:
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    state = os.environ.get("TREXBENCH_STATE_DIR") or Path(home, "trexbench")
    return Path(state, "stores", sha256(address.encode()).hexdigest()[:16]).absolute()


def address_of(results: Path) -> str | None:
    """Return the address of the store that this directory mirrors; None if it mirrors none."""
    try:
        address = (results / _MARK).read_text()
    except (OSError, UnicodeDecodeError):
        return None
    return address if _place(address).resolve() == results.resolve() else None  # not what somebody put beside a file


def store_of(results: Path) -> Store | None:
    """Open the store that this directory mirrors; None if it mirrors none."""
    address = address_of(results)
    return None if address is None else Store(address, results)


def fetch_missing(path: Path) -> bool:
    """Fetch a file that is missing in its mirror; False if the store has none, or outside of mirrors."""
    for folder in path.parents:
        if (store := store_of(folder)) is not None:
            return store.fetch([path.relative_to(folder).as_posix()]) > 0
    return False


def fetch_together(results: Path, names: Iterable[str]) -> None:
    """Fetch those of these files that are missing in the mirror, many at a time; nothing outside of mirrors."""
    if (store := store_of(results)) is not None:
        with contextlib.suppress(StoreError):  # whoever reads them reports it
            store.fetch([name for name in names if not (results / name).exists()])


_opened: dict[str, tuple[Any, str]] = {}
"""File systems of addresses, each with the path there."""


def _open(address: str) -> tuple[Any, str]:
    if address in _opened:
        return _opened[address]
    with _as_store_error(address):
        import fsspec

        options = {"host_key_policy": _known_hosts_only()} if address.startswith(_SSH) else {}
        system, root = fsspec.core.url_to_fs(address, skip_instance_cache=True, **options)
        if options:
            system.client.get_transport().set_keepalive(60)  # nothing else is sent until the night ends
            system.ftp.get_channel().settimeout(ANSWER_S)
        return _opened.setdefault(address, (system, root.rstrip("/")))


_turns: dict[str, AbstractContextManager[Any]] = {}
"""Locks of SSH addresses: if two threads ask at once, paramiko drops the answer to one."""


def _forget_lost(address: str, error: Exception) -> None:
    """Have the address opened anew next time, unless its SSH connection works: the former one would stay open."""
    opened = _opened.get(address)
    if opened is not None and address.startswith(_SSH):
        channel = opened[0].ftp.get_channel()
        if not (channel.closed or channel.eof_received or isinstance(error, TimeoutError)):
            return
        channel.get_transport().close()
    _opened.pop(address, None)


def _known_hosts_only() -> Any:
    """Return a policy for paramiko: fsspec would trust any host."""
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
    """Files at an address, each by its path below it; StoreError if it cannot be reached."""

    def __init__(self, address: str, mirror: Path) -> None:
        self.address, self.mirror = address, mirror
        self._system, self._root = _open(address)
        protocol = self._system.protocol
        self._protocols: tuple[str, ...] = (protocol,) if isinstance(protocol, str) else tuple(protocol)

    def find(self, folder: str) -> dict[str, str]:
        """List the files below the folder, with stamps that change when they do."""
        place, facts = self._path(folder), dict[str, Mapping[str, Any]]()
        with _as_store_error(self.address), contextlib.suppress(FileNotFoundError):
            self._system.invalidate_cache()
            if "file" in self._protocols:
                facts = _find_local(place)
            else:
                # without "raise", a lost connection would read as an empty folder
                walking = {} if "s3" in self._protocols else {"on_error": "raise"}
                facts = self._system.find(place, detail=True, **walking)
        cut = len(self._root.lstrip("/")) + 1
        there = {path.lstrip("/")[cut:]: _stamp(about) for path, about in facts.items()}
        return {name: stamp for name, stamp in there.items() if is_inside(name)}

    def _path(self, name: str) -> str:
        """Return the file's place; StoreError for one outside, which documents of others may name."""
        if not is_inside(name):
            raise StoreError(f"{self.address}: {name!r} is not the path of a file below it", "remove what names it")
        return f"{self._root}/{name}"

    def mirror_files(self, stamps: Mapping[str, str]) -> None:
        """Fetch the files of which the mirror has no current copy; what was made there, and is not sent, stays."""
        marks = {name: files.written_ns(self.mirror / name) for name in stamps}
        stale = [name for name, mark in marks.items() if mark != _time_of(stamps[name]) and mark < SENT_BEFORE_NS]
        self.fetch(stale, stamps)

    def mark(self, name: str, stamp: str) -> None:
        """Note that the mirror's file equals the one with this stamp in the store."""
        with contextlib.suppress(FileNotFoundError):
            os.utime(self.mirror / name, ns=(_time_of(stamp),) * 2)

    def fetch(self, names: Sequence[str], stamps: Mapping[str, str] | None = None) -> int:
        """Fetch these files into the mirror, and return how many of them exist.

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
        """Yield each of these files that exists, with its content."""
        if len(names) == 1:  # for one, ``cat`` would first ask whether it is a pattern
            data = self.read(names[0])
            yield from () if data is None else [(names[0], data)]
            return
        places = {name: self._path(name) for name in names}
        with _as_store_error(self.address):
            read = self._system.cat([*places.values()], on_error="return")
            by_place = {str(place).lstrip("/"): data for place, data in read.items()}  # some systems omit the slash
            for name in names:
                data = by_place.get(places[name].lstrip("/"), FileNotFoundError())
                if isinstance(data, bytes):
                    yield name, data
                elif not isinstance(data, FileNotFoundError):
                    raise data

    def read(self, name: str) -> bytes | None:
        """Return the file's content; None if there is no file."""
        with _as_store_error(self.address):
            try:
                return bytes(self._system.cat_file(self._path(name)))
            except FileNotFoundError:
                return None

    def replace(self, name: str) -> None:
        """Put the mirror's file in this place."""
        self.write(name, self._mirrored(name))
        with _as_store_error(self.address):
            self._system.invalidate_cache()
            self.mark(name, _stamp(self._system.info(self._path(name))))

    def _mirrored(self, name: str) -> bytes:
        self._path(name)  # raises
        with _as_store_error(self.address):
            return (self.mirror / name).read_bytes()

    def write(self, name: str, data: bytes) -> None:
        """Put this content in the place, whatever is there."""
        self._make_folder(name)
        with _as_store_error(self.address):
            place = self._path(name)
            if "file" in self._protocols:
                files.replace_file(Path(place), data)
            elif "sftp" in self._protocols:
                self._rename(data, place, self._system.ftp.posix_rename)
            else:
                self._system.pipe_file(place, data)

    def _rename(self, data: bytes, place: str, rename: Callable[[str, str], None]) -> None:
        """Write a file with another name beside the place, and rename it."""
        temporary = f"{place}.{uuid4().hex}.tmp"
        try:
            self._system.pipe_file(temporary, data)
            rename(temporary, place)
        except BaseException:
            with contextlib.suppress(Exception):
                self._system.rm_file(temporary)
            raise

    def create(self, name: str) -> None:
        """Put the mirror's file in this place unless the same one is there; StoreError for a different one.

        The mirror's file is marked as sent, without the store's stamp, which would take one more request.
        """
        if not self.write_new(name, self._mirrored(name)):
            remedy = f"remove that, or {self.mirror / name}"
            raise StoreError(f"{self.address}/{name} is there already, and another one", remedy)
        self.mark(name, "")

    def write_new(self, name: str, data: bytes) -> bool:
        """Put this content in the place; False if other content is there. The same, as of an earlier try, is fine."""
        self._make_folder(name)
        with _as_store_error(self.address):
            try:
                self._create(self._path(name), data)
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
                self._rename(data, place, self._system.ftp.rename)  # which fails with OpenSSH if there is a file
            except OSError:
                if not self._system.exists(place):
                    raise
                raise FileExistsError(place) from None
        else:
            self.check()  # raises

    def check(self) -> None:
        """Raise StoreError if no night can be put here: the wrong kind of address, or one that cannot be reached."""
        require_parquet(self.address)
        if not {"file", "s3", "memory", "sftp"} & {*self._protocols}:
            what = f"{self._protocols[0]}:// cannot create a file only where there is none"
            raise StoreError(what, "name a directory, s3:// or sftp://")
        bucket = self._root.lstrip("/").partition("/")[0]
        if not self._is_there(bucket if "s3" in self._protocols else self._root) and "s3" in self._protocols:
            raise StoreError(f"{self.address}: there is no bucket {bucket}", "make it, or check the address")

    def check_there(self) -> None:
        """Raise StoreError if nothing is at the address: it may be mistyped."""
        if not self._is_there(self._root):
            raise StoreError(f"{self.address}: nothing is there", "check the address; the first night makes it")

    def _is_there(self, place: str) -> bool:
        with _as_store_error(self.address):
            self._system.invalidate_cache()
            try:
                return bool(self._system.info(place))
            except FileNotFoundError as error:
                cause = error.__cause__  # fsspec's HTTP says so of a refused connection and of any status, too
                if isinstance(cause, OSError) or getattr(cause, "status", 404) != 404:
                    raise cause or error from None
                return False

    def _make_folder(self, name: str) -> None:
        if "s3" not in self._protocols:
            with _as_store_error(self.address):
                self._system.makedirs(self._path(name).rpartition("/")[0], exist_ok=True)

    def remove(self, names: Iterable[str]) -> None:
        """Remove files, as far as they are there."""
        with _as_store_error(self.address):
            for name in names:
                with contextlib.suppress(FileNotFoundError):
                    self._system.rm_file(self._path(name))


def _find_local(folder: str) -> dict[str, Mapping[str, Any]]:
    """List the files below the folder, much faster than fsspec does."""
    facts: dict[str, Mapping[str, Any]] = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):  # gone in the meantime
                if entry.is_dir(follow_symlinks=False):
                    facts |= _find_local(entry.path)
                elif entry.is_file():
                    about = entry.stat()
                    facts[entry.path] = {"size": about.st_size, "mtime": about.st_mtime}
    return facts


def _stamp(about: Mapping[str, Any]) -> str:
    return f"{about.get('size')} {about.get('ETag') or about.get('mtime') or about.get('created')}"


def _time_of(stamp: str) -> int:
    """Return the time in nanoseconds that marks a copy of the file with this stamp."""
    return int.from_bytes(sha256(stamp.encode()).digest(), "big") % SENT_BEFORE_NS


@contextlib.contextmanager
def _as_store_error(address: str) -> Iterator[None]:
    """Turn what any of these libraries raises into one line."""
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
            clock = ", and the clock here" * isinstance(error, PermissionError)  # S3 takes minutes off for forged
            remedy = f"check the address, and its credentials{clock}"
            raise StoreError(f"{address} cannot be reached: {text}", remedy) from None
