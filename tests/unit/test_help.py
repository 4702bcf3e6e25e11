"""Help of every verb: it fits a screen, and nothing of a verb is missing from it; names that verbs had before."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from documented import DOCUMENTS
from verbs import ROOT, empty_directory, run  # noqa: F401

from trexbench.cli.main import RENAMED, RENAMED_UNTIL, VERBS, cli

pytestmark = [pytest.mark.portable, pytest.mark.usefixtures("empty_directory")]

LINES, COLUMNS, OPTIONS, AT_THE_TOP = 50, 80, 12, 14


def walk(command: click.Command = cli, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    for name in command.list_commands(click.Context(command)) if isinstance(command, click.Group) else ():
        found = command.get_command(click.Context(command), name)
        assert found is not None
        yield from walk(found, (*path, name))


COMMANDS = dict(walk())


def help_of(*words: str) -> str:
    code, out, err = run(*words)
    assert (code, err) == (0, "")
    return out


def listed(text: str) -> set[str]:
    """The longest name of each option that this help has a line for."""
    return set(re.findall(r"(?m)^  (?:-\w, )?(--[a-z0-9-]+)", text))


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_fits_a_screen_and_the_other_has_all_options(
    path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    usual, every = help_of(*path, "--help"), help_of(*path, "--help-all")
    assert usual.count("\n") <= LINES and len(listed(usual)) <= OPTIONS
    assert max(map(len, (usual + every).splitlines())) <= COLUMNS
    every_option = [one for one in COMMANDS[path].params if isinstance(one, click.Option)]
    options = [one for one in every_option if not one.hidden]
    assert not {name for one in every_option if one.hidden for name in one.opts} & set(every.split())
    assert {max(one.opts, key=len) for one in options} <= listed(every)
    left_out = re.findall(rf"(?m)^  (\d+) more options: {' '.join(('trexbench', *path))} --help-all$", usual)
    assert left_out == ([str(len(options) - len(listed(usual)))] if len(options) >= OPTIONS else [])
    assert usual.count("  trexbench ") <= max(3, every.count("  trexbench ")) if left_out else usual == every


def test_the_top_has_few_verbs_in_groups() -> None:
    text = help_of("--help")
    assert sum(map(len, VERBS.values())) <= AT_THE_TOP
    for heading, verbs in VERBS.items():
        assert f"\n{heading}:\n" in text and all(re.search(rf"(?m)^  {name} ", text) for name in verbs)


@pytest.mark.parametrize("name", RENAMED)
def test_former_names_work_and_one_line_says_the_new_one(name: str) -> None:
    now = RENAMED[name].split()
    assert re.search(rf"(?m)^  {name} ", help_of("--help")) is None
    code, out, err = run(name, "--help")
    assert (code, out) == (0, help_of(*now, "--help"))
    assert err == f"{name} is now: trexbench {RENAMED[name]} (the old name works until {RENAMED_UNTIL})\n"
    missing, _, err = run(name, "--no-such-option")
    assert missing == 2 and err.count("\n") == 2 and "--no-such-option" in err


def test_documents_and_messages_have_the_new_names() -> None:
    texts = [*DOCUMENTS, *ROOT.glob("trexbench/**/*.py"), *ROOT.glob("trexbench/report/page/static/*")]
    texts += [*ROOT.glob("dut_configs/**/*.yaml"), *ROOT.glob("suites/*.yaml"), *ROOT.glob("tests/**/*.py")]
    former = re.compile(rf"(?<!is now: )\btrexbench ({'|'.join(RENAMED)})\b(?! --dut mini)")
    found = [f"{path}: {one[0]}" for path in map(Path, texts) for one in former.finditer(path.read_text("utf-8"))]
    assert len(texts) > 500 and not found, "\n".join(found)
