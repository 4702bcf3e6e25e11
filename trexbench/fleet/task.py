"""A cell as a task of a tester: looked up, its DUT leased, measured as in any night, and stored once."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any

from ..config.catalogue import DUTS, SUITES
from ..config.fleet import Fleet, read_fleet
from ..config.lookup import find_profile, load_dut, read_suite
from ..config.schema import dut_of, read_dut
from ..config.suite import Instead, Suite
from ..core.errors import BenchError, ConfigError, StoreError
from ..core.history.cell import Cell
from ..core.load.profile import Mode
from ..core.names import is_name
from ..core.verdict.parts import RunWarning
from ..files import link_new
from ..results.nights import TESTERS
from ..results.remote import address_of
from ..results.store import make_directory, safe_name
from ..session.keep import Measured, Output
from ..session.options import Setup
from ..session.process import host_facts
from ..suite.cells import RETRIED
from ..suite.jobs import Job, make_job, of_night
from .guard import LeaseGuard
from .leases import PATIENCE, Lease, LeaseFolder, leased
from .reverting import revert_changes
from .sign import sign_at, sign_words
from .stored import TOKEN_LENGTH, fetch_document, note_unsent, put_document, put_unsent
from .switches import PortTaker, joined_ports

NO_FLEET = Fleet((), (), ())
_PATHS = ("configs_dir", "trex_dir")
_GUARD = LeaseGuard()
_READING = threading.Lock()


@dataclass(frozen=True)
class CellOrder:
    """Everything that a tester needs to measure a cell."""

    suite: str
    """File of the suite, or its name by which the tester finds it."""
    suite_name: str
    setup: Setup
    instead: Instead
    cell: str
    number: int
    """Index of the cell in the suite."""
    date: str
    night: str
    """Name of the night's file."""
    results: str
    place: str
    """Path of the cell's document below the results: the same for every tester and every try."""
    digest: str
    """Digest of suite, DUTs' configs with their files, profile and version: the tester's must be the same."""
    lease_s: float
    fleet: str = ""
    """Digest of a cluster's fleet.yaml; empty: testers are processes of one machine, and share one history."""
    store: str = ""
    """Address of the store that a cluster's results mirror; empty: they are a directory."""


@dataclass(frozen=True)
class OwnSettings:
    """Settings of a tester of a cluster, chosen by its owner: no task changes them."""

    name: str
    results: str
    setup: Mapping[str, Any]
    """Values of a Setup: the configs' directory and the traffic generator."""
    duts: Sequence[str]
    """DUTs that are wired to the tester."""
    wiring: str
    """Digest of its fleet.yaml."""
    doubt: str | None = None
    """Warning that each result gets."""
    file: str = ""
    """Its fleet.yaml, if that has switches."""

    def read_fleet(self) -> Fleet:
        """Read the fleet of the tester's file; ConfigError if that has changed since the tester was started."""
        if not self.file:
            return NO_FLEET
        folder = self.setup.get("configs_dir")
        fleet = read_fleet(Path(self.file), Path(folder) if folder else None)
        if fleet.digest != self.wiring:
            raise ConfigError(f"{self.file} was changed after tester {self.name} was started", "start it again")
        return fleet

    def own_order(self, order: CellOrder) -> CellOrder:
        """Return the order with this tester's settings; ConfigError for one that it refuses."""
        place = PurePosixPath(order.place)
        if not is_name(order.suite) or not is_name(order.night) or place.is_absolute() or ".." in place.parts:
            remedy = "put the suite into a suites directory of its own"
            raise ConfigError(f"tester {self.name} takes suites by name", remedy)
        own: dict[str, Any] = {
            name: Path(value) if name in _PATHS and value else value for name, value in self.setup.items()
        }
        return replace(order, results=self.results, setup=replace(order.setup, **own))

    def require_wired(self, dut: str) -> None:
        if dut not in self.duts:
            raise ConfigError(f"{dut} is not wired to tester {self.name}", "compare its fleet.yaml with the night's")


OWN: OwnSettings | None = None
"""Settings of the tester whose process this is; None in a night on one machine, whose own process has them."""


@dataclass(frozen=True)
class CellOutcome:
    """Outcome of a cell. place: its document's path below the results; answer: its figure in words."""

    tester: str
    place: str | None = None
    answer: str = ""
    error: str | None = None
    code: int = 0
    unsent: str | None = None
    """Warning that its document is not in the store that the results mirror, and why."""


def digest_of(suite: Suite, setup: Setup) -> str:
    """Return the digest of a CellOrder."""
    return _digest(_files_of(suite, setup))


def _files_of(suite: Suite, setup: Setup) -> tuple[Path, ...]:
    dut_of.cache_clear()  # what a config names may have changed
    known, names = DUTS.files(setup.configs_dir), sorted({dut.name for dut in suite.duts})
    duts = [read_dut(known[name]) if name in known else load_dut(name, setup.configs_dir) for name in names]
    firewalls = [variant.firewall.file for dut in duts for _, variant in dut.variants]
    rules = [rule_set.file for rule_set in firewalls if rule_set is not None]
    return suite.file, *(dut.file for dut in duts), *rules, find_profile(Mode.profile)


def _digest(files: Iterable[Path]) -> str:
    version = str(versions()["trexbench"]).encode()
    try:
        return sha256(b"\0".join([version, *(file.read_bytes() for file in files)])).hexdigest()
    except OSError as error:
        remedy = "put it back, or start a new night"
        raise ConfigError(f"{error.filename}: {error.strerror}", remedy) from error


def place_of(started: str, night: str, cell: Cell) -> str:
    """Return the only place for the document of a cell in the night with this name and beginning."""
    clock, words = started[11:19].replace(":", ""), safe_name(f"{cell.mode}-{cell.kind}", "_-")
    unique = sha256(f"{night} {cell}".encode()).hexdigest()[:12]
    return f"{started[:10]}/{safe_name(cell.dut, '._-')}/{clock}-{words}-{unique}.json"


def measure_cell(order: CellOrder, drive: Callable[[Job, Output], Measured[Any]] | None = None) -> CellOutcome:
    """Measure the cell, unless that is done; an error that is worth a second try is raised.

    drive: measures the job while the DUT is leased.
    """
    wish = order if OWN is None else OWN.own_order(order)
    if OWN is not None:
        with contextlib.suppress(StoreError):
            put_unsent(Path(wish.results), wish.lease_s)
    outcome = _measure(wish, drive or measure_job)
    return outcome if outcome.place is None else _send(outcome, outcome.place, wish)


def _send(outcome: CellOutcome, place: str, wish: CellOrder) -> CellOutcome:
    """Put the document into the store, if there is one; a cell of a cluster fails if that fails."""
    patience_s = 0.0 if OWN is None else PATIENCE * wish.lease_s
    try:
        return replace(outcome, unsent=put_document(Path(wish.results), place, wish.lease_s, patience_s))
    except StoreError as error:
        if OWN is None:
            return replace(outcome, unsent=f"{error}; what is not there is put when the night ends")
        if outcome.error is not None:
            return replace(outcome, unsent=str(error))
        words = f"{error}; the document stays at tester {outcome.tester}, which puts it before its next cell"
        return CellOutcome(outcome.tester, error=words, code=error.exit_code)


def _measure(wish: CellOrder, drive: Callable[[Job, Output], Measured[Any]]) -> CellOutcome:
    tester, target = _tester_name(), Path(wish.results) / wish.place
    if target.exists():
        return CellOutcome(tester, wish.place)
    labels = {"tester": tester} | ({"fleet": wish.fleet} if wish.fleet else {})
    job = of_night(_job_of(wish), wish.suite_name, wish.date, wish.night).with_labels(labels, None)
    if OWN is not None:
        OWN.require_wired(job.cell.dut)
        doubts = () if OWN.doubt is None else (RunWarning("fleet", OWN.doubt),)
        job = replace(job, request=replace(job.request, doubts=doubts))
    token = secrets.token_hex(TOKEN_LENGTH // 2)
    below = Path(wish.results) / TESTERS
    folder = LeaseFolder(below / "leases", safe_name(job.cell.dut, "._-"), is_here=OWN is None)
    name = f"{tester}-{token}"
    try:
        with leased(folder, name, wish.lease_s, _GUARD, cell=f"{wish.night} {wish.cell}") as lease:
            make_directory(target.parent)
            if target.exists() or fetch_document(Path(wish.results), wish.place, wish.lease_s):
                return CellOutcome(tester, wish.place)
            staging = make_directory(below / wish.night / name)
            with contextlib.ExitStack() as remains:
                remains.callback(shutil.rmtree, staging, ignore_errors=True)
                if lease.abandoned:
                    revert_changes(job.request)
                    lease.abandoned = False
                with _prepared(job, wish, lease, PortTaker(tester, token, wish.lease_s, below, _GUARD)):
                    done = drive(job, Output(results=staging))
                lease.require()
                try:
                    return _commit(done, job, wish, staging, token, tester)
                except StoreError:
                    remains.pop_all()  # the document may still be there
                    raise
    except RETRIED as error:
        raise type(error)(str(error)) from None  # without the run, which it may hold
    except BenchError as error:
        return CellOutcome(tester, error=str(error), code=error.exit_code)


@contextlib.contextmanager
def _prepared(job: Job, wish: CellOrder, lease: Lease, taker: PortTaker) -> Iterator[None]:
    """Join ports of switches, and leave a sign at the DUT, for the block; neither for a simulated run."""
    with contextlib.ExitStack() as prepared:
        if not job.request.sim and OWN is not None:
            prepared.enter_context(joined_ports(OWN.read_fleet(), job.cell.dut, lease, taker))
            if job.request.apply:
                text = sign_words(taker.tester, wish.night, wish.cell, job.expected_s)
                prepared.enter_context(sign_at(job.request.dut.transport, text, lambda: not lease.is_lost))
        yield


def find_difference(order: CellOrder, version: str) -> tuple[str | None, str]:
    """Say how this tester differs from the night's process, None: in nothing that matters; and which TRex it has.

    order: of any cell of the night. version: of the night's trexbench.
    """
    assert OWN is not None
    mine, name = versions(), f"tester {OWN.name}"
    trex = f"{mine['lbr-trex-client']} {OWN.setup.get('trex_dir') or ''}".strip()
    if mine["trexbench"] != version:
        return f"{name} has trexbench {mine['trexbench']}, the night {version}", trex
    if not OWN.wiring.startswith(order.fleet):
        return f"{name} has another fleet.yaml", trex
    try:
        wish = OWN.own_order(order)
        results = Path(wish.results)
        is_there = bool(wish.store) or (results / TESTERS / wish.night).is_dir()
        if wish.store != (address_of(results) or "") or not is_there:
            other = f"its --results are not {wish.store}" if wish.store else f"{wish.night} is not in its --results"
            return f"{name} has other results: {other}", trex
        suite = read_suite(SUITES.find(wish.suite), wish.setup.configs_dir, wish.instead)
        is_same = digest_of(suite, wish.setup) == wish.digest
    except BenchError as error:
        return f"{name}: {error}", trex
    return None if is_same else f"{name} has another suite {wish.suite_name}, or other configs of its DUTs", trex


@cache
def versions() -> Mapping[str, str | None]:
    known: Mapping[str, str | None] = host_facts()["versions"]
    return known


def measure_job(job: Job, output: Output) -> Measured[Any]:
    with job.load.open(job.request, output.say) as session:
        return job.measure(session, output, lambda _: None)


def _commit(done: Measured[Any], job: Job, wish: CellOrder, staging: Path, token: str, tester: str) -> CellOutcome:
    """Move the document to its place in the results: the cell's if it is complete, else one of its own."""
    failure = done.error or done.result.no_answer
    if done.path is None or not done.path.is_relative_to(staging):
        raise StoreError(f"{wish.results} could not be written", f"the result is in {done.path}")
    place = Path(wish.place)
    if failure is not None:
        place = place.with_stem(f"{place.stem}-{token}")
    target = Path(wish.results) / place
    try:
        if wish.store:
            note_unsent(Path(wish.results), place.as_posix())
        link_new(done.path, target)
    except FileExistsError:
        pass  # another tester was faster; both are the same cell of the same night
    except OSError as error:
        raise StoreError(f"{target}: {error.strerror}", f"the result is in {done.path}") from error
    if isinstance(failure, RETRIED):
        raise failure
    if failure is not None:
        return CellOutcome(tester, place.as_posix(), error=str(failure), code=failure.exit_code)
    return CellOutcome(tester, place.as_posix(), job.answer(done.result))


def _job_of(wish: CellOrder) -> Job:
    with _READING:
        asked = wish.suite, wish.setup, wish.instead, wish.digest
        suite, cells, files = _read(*asked)
        if _digest(files) != wish.digest:  # changed since it was read
            _read.cache_clear()
            _read(*asked)  # which raises
    return make_job(suite, cells[wish.number], wish.setup)


@lru_cache(maxsize=4)
def _read(name: str, setup: Setup, instead: Instead, digest: str) -> tuple[Suite, Sequence[Cell], tuple[Path, ...]]:
    """Read the suite, its cells and the files of its digest; ConfigError if they are not the night's."""
    suite = read_suite(SUITES.find(name), setup.configs_dir, instead)
    files = _files_of(suite, setup)
    if _digest(files) != digest:
        what = f"suite {name}, its DUTs' configs or the version of trexbench are others at tester {_tester_name()}"
        raise ConfigError(what, "install the same there, or start a new night")
    return suite, suite.cells, files


def _tester_name() -> str:
    if OWN is not None:
        return OWN.name
    from distributed import get_worker

    try:
        return str(get_worker().name)
    except ValueError:
        return ""
