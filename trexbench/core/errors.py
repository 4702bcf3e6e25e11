"""Errors that a user can act on, by where the cause lies.

    BenchError                 any error, in one line: the thing, the place, the remedy (exit 1 where no other fits)
    ├── ConfigError            what the user wrote or asked (exit 2)
    ├── GeneratorError         the traffic generator or the way to it (exit 5)
    │   ├── GeneratorLost      the connection to it was lost
    │   └── PortOwned          somebody else took the ports
    │       └── PortBusy       somebody else had the ports before (exit 8)
    ├── DutError               the device under test, or what was read back from it (exit 6)
    │   ├── NoInterface        it lacks an interface that its config names
    │   └── DutLost            no connection to it, or one that was lost
    ├── LabError               this machine cannot host the lab (exit 7)
    ├── TesterBusy             another run holds this tester (exit 8)
    ├── FleetError             the fleet's scheduler or a tester of it was lost, or is not there (exit 10)
    ├── StoreError             a result could not be read or written (exit 9)
    └── NoAnswer               a complete run does not answer what was asked (exit 4)

Exit 0: measured. 3: measured, and something got worse. 4: too few nights to judge, or nothing measured in the last one
(``regress``, and ``nightly --strict``). 130/143: interrupted. What was measured before a run ended early is always
saved.
"""

from __future__ import annotations

from collections.abc import Sequence


class BenchError(Exception):
    """One line that names the thing, the place and the remedy."""

    exit_code = 1
    result: object = None  # for Python callers: what was measured before this error ended the run

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(" ".join((f"{message}: {remedy}" if remedy else message).split()))


class ConfigError(BenchError):
    exit_code = 2

    @property
    def each(self) -> Sequence[ConfigError]:
        """Every error, where several things are wrong."""
        return (self,)


class ConfigErrors(ConfigError):
    """Several errors at once: the line is the first one's, with the number of the others and ``where`` to see them."""

    def __init__(self, errors: Sequence[ConfigError], where: str = "") -> None:
        super().__init__(f"{errors[0]} (and {len(errors) - 1} more{where and f', see: {where}'})")
        self._each = tuple(errors)

    @property
    def each(self) -> Sequence[ConfigError]:
        return self._each


class GeneratorError(BenchError):
    exit_code = 5


class GeneratorLost(GeneratorError):
    pass


class PortOwned(GeneratorError):
    pass


class PortBusy(PortOwned):
    exit_code = 8


class DutError(BenchError):
    exit_code = 6


class NoInterface(DutError):
    """The DUT does not have an interface that its config names."""


class DutChanged(DutError):
    """The DUT was no longer set as its config says when the run ended: it has undone something by itself."""


class DutLost(DutError):
    pass


class LabError(BenchError):
    exit_code = 7


class TesterBusy(BenchError):
    exit_code = 8


class FleetError(BenchError):
    exit_code = 10


class StoreError(BenchError):
    exit_code = 9


class NoAnswer(BenchError):
    exit_code = 4


def as_bench_error(error: BaseException) -> BenchError:
    """Return any error as one line; one that is not a BenchError is a defect of trexbench."""
    if isinstance(error, BenchError):
        return error
    defect = BenchError(f"{type(error).__name__}: {error}", "this is a defect of trexbench; please report it")
    defect.__cause__ = error
    return defect
