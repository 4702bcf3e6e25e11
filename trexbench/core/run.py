"""The envelope that every run has, whatever its load; its JSON document, and damage in one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from .errors import NoAnswer
from .names import is_name, shown
from .typed import Status
from .verdict.parts import RunWarning

EMULATOR = "tcg"


def mark_of(simulated: bool, emulated: bool) -> str:
    """Return the mark of figures from a simulated or emulated DUT: ``simulated``, ``emulated``; else empty."""
    return "simulated" if simulated else "emulated" if emulated else ""


@dataclass(frozen=True, kw_only=True)
class Run(ABC):
    """One run. The mappings hold JSON values."""

    id: str  # start, DUT and mode in one word
    started: str  # when it began; UTC, ISO 8601, as ``finished``
    status: Status  # ``running``: being written, or its writer was killed; ``incomplete``: it ended early
    command: Mapping[str, Any]  # what was asked: verb, options, suite, night, label, variant
    dut: Mapping[str, Any]  # name, text of its config, what was applied, facts read back and their SHA-256
    host: Mapping[str, Any]  # machine and version of trexbench
    finished: str | None = None  # when it ended; None until then
    reason: str | None = None  # why the run is incomplete
    simulated: bool = False  # no real packet was sent
    warnings: tuple[RunWarning, ...] = ()  # those noted during the run, without those derived from its readings

    schema: ClassVar[str]
    version: ClassVar[int]

    @property
    def accelerator(self) -> str:
        """QEMU's name of what ran the DUT's processor, ``kvm`` or EMULATOR; empty: the DUT was no virtual machine."""
        accelerator = self.dut.get("accelerator")
        return accelerator if isinstance(accelerator, str) else ""

    @property
    def emulated(self) -> bool:
        """True if the DUT's processor was emulated."""
        return self.accelerator == EMULATOR

    @property
    def mark(self) -> str:
        return mark_of(self.simulated, self.emulated)

    @property
    @abstractmethod
    def file_words(self) -> tuple[str, ...]:
        """Words of the file's name, behind the time at which the run started."""

    @abstractmethod
    def setting(self) -> dict[str, Any]:
        """JSON values of this kind of load that cannot be derived again, without the readings."""

    @abstractmethod
    def readings(self) -> Mapping[str, Sequence[Any]]:
        """Lists of raw counters by their names in the document; JSON values, or values that msgspec encodes."""

    def growing(self) -> Mapping[str, Sequence[Any]]:
        """Lists that grow while the run goes on, by their names in its journal; values that msgspec encodes."""
        return self.readings()

    @abstractmethod
    def figures(self) -> dict[str, Any]:
        """JSON values derived from the readings."""

    @abstractmethod
    def derived_warnings(self) -> Iterator[tuple[str, RunWarning]]:
        """Yield the warnings that follow from the readings, each with the name of its source."""

    @property
    def no_answer(self) -> NoAnswer | None:
        """The reason why a complete run does not answer what was asked; None where it does."""
        return None

    @abstractmethod
    def odd_values(self) -> Iterator[str]:
        """Yield in a few words each value that a document can hold and a run cannot produce."""

    @property
    def _noted(self) -> list[dict[str, str]]:
        return [_warning("run", warning) for warning in self.warnings]

    def raw_part(self) -> dict[str, Any]:
        """Return the part of the document that cannot be derived again, without the readings."""
        names = ("schema", "version", "id", "status", "reason", "simulated", "started", "finished")
        return {
            **{name: getattr(self, name) for name in names},
            "status": self.status.value,
            **{name: dict(getattr(self, name)) for name in ("command", "dut", "host")},
            **self.setting(),
            "warnings": self._noted,
        }

    def without_readings(self) -> dict[str, Any]:
        """Return the document, figures included, without the readings, which come last in it."""
        raw = self.raw_part()
        derived = [_warning(source, warning) for source, warning in self.derived_warnings()]
        return {**raw, **self.figures(), "warnings": [*raw["warnings"], *derived]}


def noted_warnings(values: Any, source: str = "run") -> tuple[RunWarning, ...]:
    """Read the warnings of a document from this source; TypeError or KeyError for other values."""
    own = (warning for warning in values if warning["source"] == source)
    return tuple(RunWarning(str(warning["code"]), str(warning["text"])) for warning in own)


def _warning(source: str, warning: RunWarning) -> dict[str, str]:
    """source: ``run`` (noted during it), else what it is derived from."""
    return {"source": source, "code": warning.code, "text": warning.text}


_NAMES = ("mode", "suite", "night", "label", "variant")


def find_damage(run: Run) -> str | None:
    """Find a value that no run can have produced, in a few words; None when every report can be made of it."""
    for what in ("reason", "finished"):
        if not isinstance(getattr(run, what), str | None):
            return f"{what} is not text"
    # Names go into paths, tables and pages.
    names = {"dut.name": run.dut.get("name")} | {f"command.{key}": run.command.get(key) for key in _NAMES}
    for key, name in names.items():
        if name is not None and not is_name(name):
            return f"{key} is not a valid name: {shown(name)}"
    if odd := next(run.odd_values(), None):
        return odd
    try:
        run.without_readings()  # proves that the readings fit together
    except (ArithmeticError, LookupError) as error:
        return f"the readings cannot be analysed ({type(error).__name__})"
    return None
