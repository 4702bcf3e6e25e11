"""Every command in the documents, in the README and in the examples of the help is one that can be given.

tests/commands/test_documented_commands.py runs them, at night.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from itertools import chain
from pathlib import Path

import click
import pytest
from documented import documented, examples, options

from trexbench.cli.main import cli
from trexbench.core.history.rows import METRICS
from trexbench.core.tcp import bdp, signs
from trexbench.core.tcp.limit import TcpLimit
from trexbench.core.verdict import blame, warnings
from trexbench.core.verdict.parts import NOT_FINISHED, Limit

ROOT = Path(__file__).resolve().parents[2]
DOCS = sorted((ROOT / "docs").glob("*.md"))
DOCUMENTS = {file.name: file.read_text(encoding="utf-8") for file in (*DOCS, ROOT / "README.md")}
SOURCES = [
    path for folder in ("trexbench", "tests", "benchmarks", "stl_profiles") for path in ROOT.glob(f"{folder}/**/*.py")
]


def test_every_documented_command_can_be_given() -> None:
    wrong = []
    for where, line in (*documented(), *examples()):
        try:
            options(shlex.split(line))
        except click.UsageError as error:
            wrong.append(f"{where}: {line}: {error.format_message()}")
    assert wrong == []


def test_what_cannot_be_given_would_be_seen() -> None:
    for line in ("regress --sinse 2026-11-21", "results lists", "suite plan", "report --dut"):
        with pytest.raises(click.UsageError):
            options(shlex.split(line))
    assert len(list(documented())) > 30 and len(list(examples())) > 40


def test_docstrings_begin_with_a_verb_or_a_noun() -> None:
    assert len(SOURCES) > 500
    shown = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in SOURCES
        for line in re.findall(r'(?m)^ *"""(?:Of|What|How|Whether|Those)\b.*', path.read_text(encoding="utf-8"))
    ]
    assert not shown, "\n".join(shown)


def test_what_the_documents_name_of_the_code_is_there() -> None:
    named = [re.findall(r"`([a-z_]+(?:\.[a-z_]+)+)\.([A-Z]\w+)`", text) for text in DOCUMENTS.values()]
    assert len([*chain(*named)]) > 1
    for module, name in chain(*named):
        assert hasattr(import_module(f"trexbench.{module}"), name), f"{module}.{name}"


def texts() -> dict[str, str]:
    """The documents, and the help of every command."""

    def help_of(command: click.Command, name: str) -> Iterator[tuple[str, str]]:
        yield name, command.get_help(click.Context(command, info_name=name))
        for verb, one in getattr(command, "commands", {}).items():
            yield from help_of(one, f"{name} {verb}")

    return DOCUMENTS | dict(help_of(cli, "trexbench"))


def test_a_thing_has_the_one_name_of_the_glossary() -> None:
    every = texts()
    glossary, prose = every.pop("glossary.md"), "\n".join(every.values())
    terms = re.findall(r"\*\*(.+?)\*\*", glossary)
    unused = [word for several in re.findall(r"\[(.+?)\]", glossary) for word in several.split(", ")]
    assert len(terms) >= 30 and len(unused) >= 5
    assert [term for term in terms if re.search(rf"\b{term}", prose, re.IGNORECASE) is None] == []
    shown = [(name, word) for name, text in every.items() for word in unused if re.search(rf"(?i)\b{word}s?\b", text)]
    assert shown == []


def test_the_documents_are_short() -> None:
    """A newcomer reads so many words in an evening."""
    assert sum(len(text.split()) for text in DOCUMENTS.values()) <= 22_000


def sections(name: str) -> list[str]:
    return re.split(r"(?m)^#+ ", DOCUMENTS[name])


@pytest.mark.parametrize("name", [file.name for file in DOCS])
def test_nothing_is_explained_twice(name: str) -> None:
    for section in sections(name):
        keys = Counter(re.findall(r"(?m)^(?:\||-) `([a-z_-]+)`(?: \||:)", section))
        assert max(keys.values(), default=1) == 1, f"rows: {keys.most_common(3)}"
    blocks = [" ".join(one.split())[:40] for one in re.split(r"\n\s*\n", DOCUMENTS[name])]
    prose = Counter(one for one in blocks if one[:1].isalpha())
    assert max(prose.values(), default=1) == 1, f"paragraphs: {prose.most_common(3)}"


def test_who_was_the_limit_has_the_thresholds_of_the_code() -> None:
    (told,) = (one for one in sections("tcp.md") if one.startswith("What was the limit\n"))
    rows = dict(re.findall(r"(?m)^\| `([a-z-]+)` \| (.*) \|$", told))
    assert list(rows) == [one.value for one in TcpLimit]
    busy, delay, ceiling, line, nearly = (
        round(100 * one) for one in (signs.BUSY, signs.RUN_DELAY, signs.OF_CEILING, signs.OF_LINE, signs.NEARLY)
    )
    stated = {name: [int(one) for one in re.findall(r"(\d+) %", text)] for name, text in rows.items()}
    assert stated == {
        "endpoint-cpu": [busy, busy, delay, ceiling],
        "window": [],
        "link": [line],
        "dut": [busy, busy, nearly],
        "unknown": [],
    }
    assert "at least half of it" in rows["endpoint-cpu"] and "sleeps half the time" in rows["endpoint-cpu"]
    assert signs.HALF == 0.5 and "most of the retransmitted segments" in rows["dut"]
    assert signs.QUEUED == 3 and "round trips three times" in rows["dut"]


def test_who_lost_the_frames_has_the_thresholds_of_the_code() -> None:
    rows = dict(re.findall(r"(?m)^\| `([a-z-]+)` \| (.*) \|$", DOCUMENTS["measurement.md"]))
    stated = {name: [float(share) for share in re.findall(r"(\d+) %", rows[name])] for name in rows}
    missed = 100 * blame.BLAME_SHARE
    assert stated["generator-rx"] == [100 * blame.MOST]
    assert stated["generator-tx"] == [missed, blame.CPU_LIMIT_PERCENT, missed]
    assert {limit.value for limit in Limit} <= rows.keys()


def codes() -> Iterator[str]:
    """Every code of a warning that the program makes."""
    for path in ROOT.glob("trexbench/**/*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "RunWarning" in text or path.name == "warnings.py" else ():
            made = [node.args[0]] if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "RunWarning" else []
            if path.name == "warnings.py" and isinstance(node, ast.Yield) and isinstance(node.value, ast.Tuple):
                made = node.value.elts[:1]
            made += [part for one in made if isinstance(one, ast.IfExp) for part in (one.body, one.orelse)]
            yield from (str(one.value) for one in made if isinstance(one, ast.Constant))
    yield NOT_FINISHED


def test_every_warning_is_explained() -> None:
    """A code that ends in ``...`` stands for all that begin alike."""
    made, listed = {*codes()}, next(one for one in sections("measurement.md") if one.startswith("Warnings\n"))
    told = {code for text in DOCUMENTS.values() for code in re.findall(r"`([a-z-]+(?:\.\.\.)?)`", text)}
    known = tuple(one.removesuffix("...") for one in told if one.endswith("..."))
    assert sorted(code for code in made - told if not code.startswith(known)) == []
    rows = chain(
        *(re.findall(r"`([a-z-]+)`", row) for row in re.findall(r"(?m)^- ((?:`[a-z.-]+`,?\s+)*`[a-z.-]+`):", listed))
    )
    assert {*rows} <= made and len(made) > 60


def test_regressions_have_the_thresholds_of_the_code() -> None:
    (told,) = (one for one in sections("regression.md") if one.startswith("Find regressions\n"))
    stated = {}
    for names, text in re.findall(r"(?m)^\| (`.*`).* \| (.*) \|$", told):
        share, *least = (float(one) for one in re.findall(r"[\d.]+", text))
        for at, name in enumerate(re.findall("`(.+?)`", names)):
            unit = 100 if "points" in text else 1
            stated[name] = (share / 100, least[min(at, len(least) - 1)] / unit if least else 0.0)
    assert stated == {one.name: (one.minimum, one.absolute) for one in METRICS.values()}


def test_core_time_is_a_warning_from_the_share_that_is_documented() -> None:
    told = re.findall(r"From (\d+) % on in the deciding\s+windows", DOCUMENTS["measurement.md"])
    assert [float(one) / 100 for one in told] == [warnings.TAKEN_SHARE]


def test_a_line_is_filled_by_the_share_that_is_documented() -> None:
    (told,) = re.findall(r'"Fills the line" means (\d+) % or more, or (\d+) %', DOCUMENTS["tcp.md"])
    assert [float(one) / 100 for one in told] == [bdp.FULL, bdp.FILLS]
