"""Leases in the shared store: ``<folder>/<dut>/<number>``, each written once and only if there is none."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from ..core.errors import StoreError, TesterBusy
from ..core.fleet.lease import RENEW_SHARE, Holding, LeaseRecord, Sight
from ..results.shared import shared_files
from .guard import LeaseGuard, now

KEPT = 64
"""Number of a DUT's records that stay; older ones are removed when it is leased."""
WAIT_S = 10.0
"""Maximum wait for the store: a record that it writes later is used by nobody."""
PATIENCE = 4.0
"""Maximum wait for a DUT that another goes on using, in lengths of the longer lease; also for a store that fails."""
LEFT_BEHIND = 1.5
"""The same for what a dead tester seems to have left behind: its lease ends after one."""


class DutLeased(TesterBusy):
    """The DUT stays in use by somebody else."""


class DamagedRecord(StoreError):
    """A lease's record that cannot be read, however often it is asked for."""


class LeaseFolder:
    """Records of one DUT's leases. OSError or StoreError if the store cannot be read or written.

    is_here: keep them in this machine's mirror of the store, as all testers are processes of this machine.
    """

    def __init__(self, folder: Path, dut: str, is_here: bool = False) -> None:
        self.dut, self._folder = dut, folder / dut
        self._files = shared_files(self._folder, wait_s=WAIT_S, is_here=is_here)

    def latest(self) -> LeaseRecord | None:
        while True:
            numbers = self._numbers()
            if not numbers:
                return None
            if (data := self._files.read(f"{numbers[-1]}")) is None:
                continue  # removed in the meantime, as there are later ones
            try:
                return msgspec.json.decode(data, type=LeaseRecord)
            except msgspec.MsgspecError as error:
                where = f"{self._folder}/{numbers[-1]} is no lease ({error})"
                raise DamagedRecord(where, "remove it when nothing measures this DUT") from error

    def append(self, record: LeaseRecord) -> bool:
        """Append a record; False if another was written in its place, or after it.

        StoreError if the store, which may list what is new a little later, does not list it in time.
        """
        if not self._files.create(f"{record.number}", msgspec.json.encode(record)):
            return False
        ends_s = now() + WAIT_S
        while (last := max(self._numbers(), default=0)) < record.number:
            if now() > ends_s:
                what = f"{self._folder}/{record.number} was written, and is not listed after {WAIT_S:g} s"
                raise StoreError(what, "use a store that lists at once what it has")
            time.sleep(WAIT_S / 50)
        return last == record.number

    def tidy(self) -> None:
        for number in self._numbers()[:-KEPT]:
            with contextlib.suppress(OSError, StoreError):
                self._files.remove(f"{number}")

    def _numbers(self) -> list[int]:
        return sorted(int(name) for name in self._files.names() if name.isdigit())


@dataclass
class Lease:
    """A lease that this process holds, renewed by a thread until it is given back."""

    folder: LeaseFolder
    holding: Holding
    abandoned: bool
    """True if the previous holder never gave the lease back, and may have left the DUT in any state.

    While it is true this lease is not given back either: whoever takes the DUT next has to know.
    """
    guard: LeaseGuard
    _ended: threading.Event = field(default_factory=threading.Event)
    _lost: bool = False

    @property
    def is_lost(self) -> bool:
        """True if somebody else may be driving the DUT by now."""
        return self._lost or self.holding.is_over(now())

    def require(self) -> None:
        """Raise TesterBusy if the lease is lost."""
        if self.is_lost:
            raise TesterBusy(f"the lease of {self.folder.dut} was lost", "what was measured since is not kept")

    def renew(self) -> None:
        """Keep renewing the lease; if that fails, the guard ends this process in time."""
        length_s, first_s = self.holding.record.length_s, None
        while not self._ended.wait(max(0.0, min(self.holding.renew_s - now(), length_s * RENEW_SHARE))):
            if now() < self.holding.renew_s:
                continue
            first_s = now() if first_s is None else first_s
            record = self.holding.renewal(end_words(length_s))
            try:
                done = self.folder.append(record) or self._is_mine(record.number)
            except (OSError, StoreError):
                self._ended.wait(length_s * RENEW_SHARE / 2)
                continue
            if not done:
                self._lost = True
                return
            self.holding, first_s = self.holding.renewed(record, first_s, now()), None
            self.guard.kill_at(self.holding.stop_s, self.folder)

    def _is_mine(self, number: int) -> bool:
        """Test whether an earlier try wrote this record, and only its answer was lost: others count from that try."""
        latest = self.folder.latest()
        return latest is not None and (latest.number, latest.holder) == (number, self.holding.record.holder)


@contextlib.contextmanager
def leased(
    folder: LeaseFolder,
    holder: str,
    length_s: float,
    guard: LeaseGuard,
    sleep: Callable[[float], None] = time.sleep,
    cell: str = "",
    patience: float = PATIENCE,
) -> Iterator[Lease]:
    """Hold the DUT's lease for the block. cell: what is measured.

    The process is killed before the lease ends, unless it is renewed or given back. DutLeased names a holder, and
    StoreError a store that fails, if that outlasts the patience (in lengths of a lease).
    """
    try:
        lease = Lease(folder, *_take(folder, holder, length_s, sleep, cell, patience), guard)
    except OSError as error:
        raise StoreError(f"the lease of {folder.dut} cannot be taken: {error.strerror}", "look at --results") from error
    guard.kill_at(lease.holding.stop_s, folder)
    renewer = threading.Thread(target=lease.renew, name=f"lease of {folder.dut}", daemon=True)
    renewer.start()
    try:
        yield lease
    finally:
        lease._ended.set()
        renewer.join()
        guard.kill_at(None, folder)
        if not (lease._lost or lease.abandoned):
            with contextlib.suppress(OSError, StoreError):  # then the lease runs out by itself
                folder.append(lease.holding.release())


def _take(
    folder: LeaseFolder, holder: str, length_s: float, sleep: Callable[[float], None], cell: str, patience: float
) -> tuple[Holding, bool]:
    """Take the lease; True if the previous one was never given back."""
    begun_s, sight = now(), Sight(None, now())
    while True:
        try:
            sight = sight.looked(folder.latest(), now())
            asked_s = now()
            if asked_s >= sight.free_s:
                record = sight.next_record(holder, length_s, end_words(length_s), cell)
                if folder.append(record) and not (held := Holding(record, asked_s)).is_over(now()):
                    folder.tidy()
                    return held, sight.latest is not None and sight.latest.length_s > 0
            elif (other := sight.latest) and asked_s - begun_s > patience * max(length_s, other.length_s):
                raise DutLeased(f"{folder.dut} is leased by {other.holder} until {other.until}", "wait for it to end")
        except DamagedRecord:
            raise
        except StoreError:  # full, or unreachable: that passes
            if now() - begun_s > patience * length_s:
                raise
        sleep(min(length_s / 50, 0.5))


def end_words(length_s: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + length_s))
