"""Every command in the documents, in the README and in the examples of the help is one that can be given."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from trexbench.cli.main import cli

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
_LINE = re.compile(r"^(?: {4}|\$ )?(?:[A-Z_]+=\S+ )?(?:\.venv/bin/)?trexbench ([a-z].*)$")


def commands_of(text: str) -> Iterator[str]:
    """Of indented lines and of fenced ones; what explains a command behind it, and synopses, left out."""
    fenced = False
    for line in text.splitlines():
        fenced ^= line.startswith("```")
        for part in line.split(" && ") if fenced or line.startswith("    ") else ():
            found = _LINE.match(part)
            if found and "[--" not in part and "{" not in part and "--dut D" not in part:
                yield re.split(r" {2,}|\s#|: ", found[1])[0]


def examples(command: click.Command, name: str = "trexbench") -> Iterator[tuple[str, str]]:
    for line in (command.epilog or "").splitlines():
        if line.startswith("  trexbench "):
            yield from ((name, one) for one in commands_of(f"    {line.strip()}"))
    if isinstance(command, click.Group):
        for verb in command.list_commands(click.Context(command)):
            found = command.get_command(click.Context(command), verb)
            assert found is not None
            yield from examples(found, f"{name} {verb}")


def documented() -> Iterator[tuple[str, str]]:
    for path in DOCUMENTS:
        yield from ((path.name, one) for one in commands_of(path.read_text(encoding="utf-8")))


def parse(words: list[str]) -> None:
    """As the command line does, up to where the command would begin; click.UsageError for what it would refuse."""
    command: click.Command = cli
    while isinstance(command, click.Group) and words:
        found = command.get_command(click.Context(command), words[0])
        if found is None:
            raise click.UsageError(f"no command {words[0]!r}")
        command, words = found, words[1:]
    command.make_context(command.name, list(words)).close()


@pytest.mark.parametrize(("where", "line"), [*documented(), *examples(cli)])
def test_a_documented_command_can_be_given(where: str, line: str) -> None:
    parse(shlex.split(line))


def test_what_cannot_be_given_would_be_seen() -> None:
    for line in ("regress --sinse 2026-11-21", "results lists", "suite plan", "report --dut"):
        with pytest.raises(click.UsageError):
            parse(shlex.split(line))
    assert len(list(documented())) > 30 and len(list(examples(cli))) > 40
