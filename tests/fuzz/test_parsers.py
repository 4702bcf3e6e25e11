"""Every parser of what a device prints gives a value or a named error for any text, and soon.

The parsers are found, not listed: a new one is mutated as soon as it is there, and fails here until some recorded
output (tests/fixtures) or sample (samples.py) is one that it takes.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import math
import os
import pkgutil
import random
import re
import signal
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from effort import scaled
from mutate import mutate
from samples import SAMPLES

import trexbench.dut
import trexbench.host
from trexbench.core.errors import BenchError
from trexbench.dut.linux.parse import queue_of
from trexbench.host import freebsd, linux
from trexbench.host.files import parse_lines
from trexbench.host.power import NOT_AN_ANSWER

COUNT = scaled(1500, 100)
"""Texts that each parser gets."""
SEED = int(os.environ.get("TREXBENCH_FUZZ_SEED", "1"))
FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
CALL_S = 2.0
"""Processor time allowed for one call: the slowest takes some milliseconds."""
SHORT = 3000
"""Characters of a seed: more of the same rows finds no more, and takes longer."""

MORE: Mapping[str, Any] = {
    "what": "the command",
    "interface": "d0",
    "clocks": {0: 2.2e9},
    "channel": 0,
    "place": "the DUT",
    "field": "now",
}
"""Arguments that parsers are given besides the text, by the parameter's name."""


def _split_pairs(text: str) -> dict[str, str]:
    pairs = (line.partition(":" if ":" in line else "=") for line in text.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


FEED: Mapping[str, Callable[[str], Any]] = {
    "str": str,
    "str | None": str,
    "Sequence[str]": str.splitlines,
    "Mapping[str, str]": _split_pairs,
    "Mapping[str, Sequence[str]]": parse_lines,
    "Any": json.loads,
}
"""Conversion of a text to the first argument, by its annotation. A text that is no JSON never gets to a JSON parser."""


@dataclasses.dataclass(frozen=True)
class Parser:
    name: str
    call: Callable[..., Any]

    @property
    def first(self) -> str:
        return str(next(iter(inspect.signature(self.call).parameters.values())).annotation)

    @property
    def more(self) -> dict[str, inspect.Parameter]:
        return dict(list(inspect.signature(self.call).parameters.items())[1:])

    def __call__(self, text: str) -> Any:
        """Parse a text; BenchError where the parser cannot."""
        try:
            argument = FEED[self.first](text)
        except (ValueError, RecursionError) as error:
            raise BenchError("no JSON") from error
        more = {name: MORE[name] for name, one in self.more.items() if one.default is one.empty}
        if self.first != "Any":
            return self.call(argument, **more)
        if not isinstance(argument, dict):
            raise BenchError("no JSON object")
        try:
            return self.call(argument, **more)
        except NOT_AN_ANSWER as error:
            raise BenchError("wrong JSON") from error

    def takes(self, text: str) -> bool:
        try:
            return bool(self(text))
        except BenchError:
            return False


def find_parsers() -> Iterator[Parser]:
    """Public functions of dut and host that are called parse_* or count_*, and all that parse a ``text``."""
    for room in (trexbench.dut, trexbench.host):
        for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            loaded, short = importlib.import_module(module.name), module.name.partition(".")[2]
            for name, function in inspect.getmembers(loaded, inspect.isfunction):
                if function.__module__ != module.name or name.startswith("_"):
                    continue
                texts = "parse" in short or short in ("host.linux", "host.freebsd", "host.files")
                if name.startswith(("parse_", "count_")) or (
                    texts and "text" in inspect.signature(function).parameters
                ):
                    yield Parser(f"{short}.{name}", function)


def _queues_of_interrupts(text: str) -> Any:
    return freebsd.receive_queues(freebsd.parse_interrupts(text))


def _queues_of_counters(text: str) -> Any:
    return linux.queue_counts(linux.parse_nic_counters(text))


PARSERS = (
    *find_parsers(),
    Parser("host.freebsd.receive_queues", _queues_of_interrupts),
    Parser("host.linux.queue_counts", _queues_of_counters),
    Parser("dut.linux.parse.queue_of", queue_of),
)


@cache
def recorded() -> tuple[str, ...]:
    """All that devices were recorded to print: text files, and the answers in recorded conversations."""
    found: list[str] = []
    for file in sorted(path for kind in ("linux-*", "vpp-*", "freebsd-*") for path in FIXTURES.glob(f"{kind}/**/*")):
        if file.suffix == ".txt":
            found.append(file.read_text(encoding="utf-8"))
        elif file.suffix == ".json":
            found += _strings(json.loads(file.read_text(encoding="utf-8")))
    files = [one for text in found if text.startswith("/") for one in _file_texts(text)]
    return tuple(dict.fromkeys(text for text in (*found, *files) if text.strip()))


def _file_texts(text: str) -> Iterator[str]:
    """Yield what each file that ``grep -H`` has read contains; equal contents only once, and no empty ones."""
    yield from dict.fromkeys("\n".join(lines) for lines in parse_lines(text).values() if lines != [""])


def _strings(value: Any) -> Iterator[str]:
    """Yield what a recorded conversation's commands printed."""
    if isinstance(value, dict):
        if isinstance(value.get("stdout"), str):
            yield value["stdout"]
        else:
            for one in value.values():
                yield from _strings(one)
    elif isinstance(value, list):
        for one in value:
            yield from _strings(one)


def _shortened(parser: Parser, text: str) -> str:
    """Its first lines, or entries of a JSON list, as long as the parser still takes them."""
    try:
        tree = json.loads(text)
        short = json.dumps(tree[:3]) if isinstance(tree, list) else text
    except ValueError:
        short = text[: max(text.rfind("\n", 0, SHORT), 0)] + "\n" if len(text) > SHORT else text
    return short if parser.takes(short) else text


@cache
def seeds(parser: Parser) -> tuple[str, ...]:
    """Return the samples that the parser takes, shortened; the longest are left out where there are plenty."""
    texts = [*SAMPLES.get(parser.name, ()), *recorded()]
    found = dict.fromkeys(_shortened(parser, text) for text in texts if parser.takes(text))
    return tuple(sorted(found, key=len)[:40])


class TooLong(BaseException):
    """Nobody catches it by accident."""


def _too_long(_number: int, _frame: FrameType | None) -> None:
    raise TooLong


def _unfit(value: Any) -> str | None:
    """Why a value would be none that a result can hold; None for those that are."""
    if isinstance(value, float):
        return None if math.isfinite(value) else f"{value} is no number of JSON"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _unfit([getattr(value, field.name) for field in dataclasses.fields(value)])
    if isinstance(value, Mapping):
        return _unfit([*value.keys(), *value.values()])
    if isinstance(value, (list, tuple, set, frozenset)):
        return next((why for one in value if (why := _unfit(one))), None)
    return None if value is None or isinstance(value, (str, int)) else f"a {type(value).__name__}"


def test_there_are_parsers_of_every_system() -> None:
    modules = {parser.name.rpartition(".")[0] for parser in PARSERS}
    assert {"dut.linux.parse", "dut.vpp.parse", "dut.freebsd.parse", "host.linux", "host.freebsd"} <= modules
    assert len(PARSERS) >= 50


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_every_parser_is_given_what_it_takes(parser: Parser) -> None:
    assert parser.first in FEED, f"{parser.name} takes a {parser.first}: say in FEED how a text becomes one"
    unknown = [name for name, one in parser.more.items() if one.default is one.empty and name not in MORE]
    assert not unknown, f"{parser.name}: say in MORE what {', '.join(unknown)} may be"
    assert seeds(parser), f"{parser.name} takes nothing that was recorded: add a fixture, or a sample to samples.py"


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers to stop a call that takes too long")
@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_any_text_is_a_value_or_a_named_error(parser: Parser) -> None:
    mine, all_texts = seeds(parser), [text[:SHORT] for text in recorded()]
    source = random.Random(f"{SEED} {parser.name}")
    before = signal.signal(signal.SIGVTALRM, _too_long)
    defects: dict[str, str] = {}
    try:
        for number in range(COUNT):
            text = mutate(source, source.choice(mine), all_texts)
            why = _defect(parser, text)
            if why and len(defects) < 20:
                defects.setdefault(why, f"text {number}: {text[:300]!r}")
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    assert not defects, "\n".join(f"{parser.name}: {why}: {text}" for why, text in defects.items())


def _defect(parser: Parser, text: str, limit_s: float = CALL_S) -> str | None:
    """Return what is wrong with the outcome for a text; None when all is well."""
    signal.setitimer(signal.ITIMER_VIRTUAL, limit_s)
    try:
        why = _unfit(parser(text))
    except BenchError as error:
        why = None if len(str(error)) < 500 and "\n" not in str(error) else "its error is no line"
    except TooLong:
        why = f"takes longer than {limit_s:g} s"
    except Exception as error:
        place = error.__traceback__
        while place is not None and place.tb_next is not None:
            place = place.tb_next
        where = f"{Path(place.tb_frame.f_code.co_filename).name}:{place.tb_lineno}" if place else "?"
        why = f"{type(error).__name__} at {where}"
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return why


PLANTED: Mapping[str, tuple[Callable[[str], Any], str]] = {
    "a value": (lambda text: {"rows": [len(text), None, "é"]}, ""),
    "no named error": (lambda text: text.split()[99], "IndexError at test_parsers.py"),
    "what JSON has not": (lambda text: [{"a": float("inf")}], "inf is no number of JSON"),
    "a pattern that tries for ever": (lambda text: re.fullmatch("(a+)+", "a" * 60 + "!"), "takes longer than"),
}


@pytest.mark.parametrize(("call", "words"), PLANTED.values(), ids=PLANTED)
def test_planted_defects_are_seen(call: Callable[[str], Any], words: str) -> None:
    def planted(text: str) -> Any:
        return call(text)

    before = signal.signal(signal.SIGVTALRM, _too_long)
    try:
        why = _defect(Parser("planted", planted), "a few words", limit_s=0.1)
    finally:
        signal.signal(signal.SIGVTALRM, before)
    assert (why or "").startswith(words) and bool(why) == bool(words)
