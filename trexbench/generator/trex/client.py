"""Loads the genuine STL client, keeps its private libraries away from ours, and interprets its errors.

The client brings its own scapy, PyYAML, ZeroMQ binding and more, under their usual names in ``sys.modules``. They have
those names only inside ``with client.namespace():``; outside, ``import yaml`` imports ours as ever. Whatever may import
client code late (loading a profile, building a packet) belongs inside.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import logging
import os
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

from ...core.errors import GeneratorError, PortOwned
from ...signals import uninterrupted

T = TypeVar("T")
_LOG = logging.getLogger(__name__)

TREX_DIR_VARIABLE = "TREXBENCH_TREX_DIR"

_INTERACTIVE = Path("automation", "trex_control_plane", "interactive")
_FROM_PYPI = "lbr_trex_client"
_INSTALL = "pip install lbr-trex-client, or name a TRex installation with --trex-dir"
CLIENT_NAMES = frozenset(
    {"yaml", "zmq", "scapy", "texttable", "simpy", "dpkt", "repoze", "trex_openssl", "termstyle"}
    | {"trex", "trex_stl_lib", "lbr_trex_client", "imp", "cgi"}
)


@dataclass
class Client:
    """The loaded client; origin and version are for the result document."""

    origin: str
    version: str
    interactive: Path
    external: Path
    api: Any = None  # its module trex.stl.api
    _modules: dict[str, types.ModuleType] = field(default_factory=dict, repr=False)
    _lock: Any = field(default_factory=threading.RLock, repr=False)
    _depth: int = field(default=0, repr=False)

    def __str__(self) -> str:
        return f"{self.origin} {self.version}"

    @contextmanager
    def namespace(self) -> Iterator[Client]:
        """Give the client's libraries their names inside the block, which may be nested."""
        with self._lock:
            if self._depth:
                yield self
                return
            ours: dict[str, types.ModuleType] | None = None
            path, hooks, environment = list(sys.path), list(sys.meta_path), os.environ.get("TREX_EXT_LIBS")
            try:
                with uninterrupted():
                    ours = _swap(self._modules)
                    sys.path[:0] = [str(self.interactive)]
                    os.environ["TREX_EXT_LIBS"] = str(self.external)
                    self._depth = 1
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    yield self
            finally:
                with uninterrupted():
                    self._depth = 0
                    if ours is not None:
                        self._modules = _swap(ours)
                    sys.path[:], sys.meta_path[:] = path, hooks
                    os.environ.pop("TREX_EXT_LIBS", None)
                    if environment is not None:
                        os.environ["TREX_EXT_LIBS"] = environment

    def call(self, where: str, method: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Call the client's API, uninterrupted; its errors become GeneratorErrors about the server at ``where``."""
        _LOG.debug("TRex server %s: the client's %s", where, getattr(method, "__name__", "call"))
        with uninterrupted(), self.namespace():
            try:
                return method(*args, **kwargs)
            except self.api.TRexError as err:
                text = brief(err)
                if meaning_of(text) is Meaning.NOT_OURS:
                    remedy = "wait for its owner, or take the port with --force"
                    raise PortOwned(f"TRex server {where}: {text}", remedy) from err
                raise GeneratorError(f"TRex server {where}: {text}") from err


_loaded: dict[str, Client] = {}


def load_client(trex_dir: str | os.PathLike[str] | None = None) -> Client:
    """Load the STL client of this TRex directory, or of TREXBENCH_TREX_DIR, or of the package lbr-trex-client.

    A process loads each only once (0.4 s). GeneratorError names what is missing.
    """
    directory = str(trex_dir or os.environ.get(TREX_DIR_VARIABLE) or "")
    if directory not in _loaded:
        client = _find_in_directory(Path(directory)) if directory else _find_installed()
        # uninterrupted: one of their bare ``except``s would swallow the signal
        with uninterrupted(), client.namespace():
            client.api = module = _import_api(client)
        needed = ("STLClient", "STLProfile", "STLStream", "STLPktBuilder")
        ours = Path(module.__file__).is_relative_to(client.interactive)
        if not ours or not all(hasattr(module, name) for name in needed):
            raise GeneratorError(f"the STL client of {client.origin} lacks the API that trexbench uses", _INSTALL)
        _loaded[directory] = client
    return _loaded[directory]


def _find_in_directory(directory: Path) -> Client:
    interactive, external = directory / _INTERACTIVE, directory / "external_libs"
    if not (interactive / "trex" / "stl" / "api.py").is_file() or not external.is_dir():
        raise GeneratorError(
            f"no TRex client in {directory}",
            f"name the directory that holds t-rex-64, {_INTERACTIVE.parts[0]}/ and external_libs/",
        )
    whole = directory.absolute()
    version = (whole.parent if whole.name == "scripts" else whole) / "VERSION"  # sources have it above scripts/
    name = version.read_text().strip() if version.is_file() else whole.name
    return Client(str(whole), name, interactive, external)


def _find_installed() -> Client:
    spec = importlib.util.find_spec(_FROM_PYPI)
    if spec is None or not spec.submodule_search_locations:
        fork = importlib.util.find_spec("trex_stl_lib")
        dead = " (trex-stl-lib of PyPI is a dead fork that TRex v3 refuses)" if fork else ""
        raise GeneratorError(f"the STL client is not installed{dead}", _INSTALL)
    root = Path(next(iter(spec.submodule_search_locations)))
    version = importlib.metadata.version("lbr-trex-client")
    return Client("lbr-trex-client", version, root / "interactive", root / "external_libs")


def _import_api(client: Client) -> Any:
    scapy = sorted(client.external.glob("scapy-*"))
    if scapy:
        sys.path.insert(1, str(scapy[-1]))
    without = _WithoutPlots()
    sys.meta_path.insert(0, without)
    try:
        _restore_removed_modules()
        return importlib.import_module("trex.stl.api")
    except Exception as err:  # whatever the client's code raises: it did not load
        raise GeneratorError(
            f"the STL client of {client.origin} does not load on Python {sys.version.split()[0]}: "
            f"{type(err).__name__}: {err}"[:400],
            _INSTALL,
        ) from err
    finally:
        sys.meta_path.remove(without)


@dataclass
class _WithoutPlots:
    """Hides pyplot from one thread, since scapy would take half a second to load it."""

    thread: int = field(default_factory=threading.get_ident)

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
        if fullname in ("matplotlib", "matplotlib.pyplot") and threading.get_ident() == self.thread:
            raise ModuleNotFoundError(f"{fullname} is hidden from the client", name=fullname)


def _restore_removed_modules() -> None:
    """Provide what Python 3.12 and 3.13 removed and the client needs (its scapy and six are of 2019)."""
    if sys.version_info >= (3, 12):
        imp = types.ModuleType("imp")
        imp.reload = importlib.reload  # type: ignore[attr-defined]
        sys.modules["imp"] = imp
        try:
            six = importlib.import_module("scapy.modules.six")
        except ModuleNotFoundError:
            return
        importer = type(six._importer)
        importer.find_spec = lambda self, name, path=None, target=None: (
            importlib.util.spec_from_loader(name, self) if name in self.known_modules else None
        )
        importer.create_module = lambda self, spec: self.load_module(spec.name)
        importer.exec_module = lambda self, module: None
    if sys.version_info >= (3, 13):
        from html import escape

        cgi = types.ModuleType("cgi")
        cgi.escape = escape  # type: ignore[attr-defined]
        sys.modules["cgi"] = cgi


def _swap(modules: Mapping[str, types.ModuleType]) -> dict[str, types.ModuleType]:
    """Replace the modules that go by the client's names, and return them."""
    # a copy, since an abandoned profile's thread may still be importing
    replaced = {name: module for name, module in sys.modules.copy().items() if name.partition(".")[0] in CLIENT_NAMES}
    for name in replaced:
        sys.modules.pop(name, None)
    sys.modules.update(modules)
    return replaced


# TRex's errors have a text, but no code of their own: here are the texts that trexbench acts on. ``errors`` and
# ``conversation`` are recordings of TRex v3.08 in tests/fixtures/trex-v3.08.


class Meaning(Enum):
    OTHER_MODE = "the server is not in stateless mode"
    OTHER_VERSION = "server and client do not fit each other"
    NOT_OURS = "the port belongs to somebody else, or to nobody"
    WRONG_STATE = "the port is in the wrong state for this command: it no longer sends, or still does"
    TOO_FAST = "the rate exceeds the line's"
    RESTARTED = "the server was restarted since this session began"


_MEANINGS = (
    ("configuration mismatch", Meaning.OTHER_MODE),  # conversation: RPC ... - server RPC configuration: 'STL', client
    ("ASTF", Meaning.OTHER_MODE),  # not recorded
    ("ersion mismatch", Meaning.OTHER_VERSION),  # conversation: RPC version mismatch: a newer client ...; Version ...
    ("Mismatch between client and server", Meaning.OTHER_VERSION),  # the client's own words for TRex v2.30 and older
    ("taken by", Meaning.NOT_OURS),  # errors: port is already taken by 'root'
    ("not owned", Meaning.NOT_OURS),  # errors: port is not owned by you or your current executing session
    ("please acquire the port", Meaning.NOT_OURS),  # conversation: ... before modifying port state
    ("current state", Meaning.WRONG_STATE),  # conversation: command 'add_stream' cannot be executed on current state
    ("API verification failed", Meaning.RESTARTED),  # seen, in no recording: each TRex draws a handler of its own
    ("exceeds port line rate", Meaning.TOO_FAST),  # errors: Expected L1 B/W: '20 Gbps' exceeds port line rate
)


NO_COUNTER = "Failed allocating statistic counter"
"""Words of TRex v3.08 for a start with more packet groups than are left (trex_stl_fs.cpp)."""


def meaning_of(text: str) -> Meaning | None:
    """First meaning that fits; None for a text that is only passed on."""
    return next((meaning for words, meaning in _MEANINGS if words in text), None)


def brief(err: BaseException) -> str:
    """Text of a client's error in one line, without asterisks."""
    text = err.brief() if hasattr(err, "brief") else str(err)
    return " ".join(str(text).replace("*", " ").split())
