"""Finds every command in the documents, in the README and in the examples of the help."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from trexbench.cli.main import cli

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
_LINE = re.compile(r"^(?: {4}|\$ )?(?:[A-Z_]+=\S+ )?(?:\.venv/bin/)?trexbench ([a-z].*)$")


def commands_of(text: str) -> Iterator[str]:
    """Find the commands of indented and fenced lines; leave out synopses, and what explains a command behind it."""
    fenced = False
    for line in text.splitlines():
        fenced ^= line.startswith("```")
        for part in line.split(" && ") if fenced or line.startswith("    ") else ():
            found = _LINE.match(part)
            if found and "[--" not in part and "{" not in part and "--dut D" not in part:
                yield re.split(r" {2,}|\s#|: ", found[1])[0]


def documented() -> Iterator[tuple[str, str]]:
    """Yield each document's name and command."""
    for path in DOCUMENTS:
        yield from ((path.name, one) for one in commands_of(path.read_text(encoding="utf-8")))


def printed() -> Iterator[tuple[str, str]]:
    """Yield each command whose output is shown, as the next block of text, with a line of it, cut where that is."""
    for path in DOCUMENTS:
        before, *rest = path.read_text(encoding="utf-8").split("\n```text\n")
        for part in rest:
            *_, command = commands_of(before)
            yield from (
                (command, " ".join(line.partition("...")[0].split())) for line in part.partition("```")[0].splitlines()
            )
            before = part.partition("```")[2]


def examples(command: click.Command = cli, name: str = "trexbench") -> Iterator[tuple[str, str]]:
    """Yield each verb and example of its help."""
    for line in (command.epilog or "").splitlines():
        if line.startswith("  trexbench "):
            yield from ((name, one) for one in commands_of(f"    {line.strip()}"))
    if isinstance(command, click.Group):
        for verb in command.list_commands(click.Context(command)):
            found = command.get_command(click.Context(command), verb)
            assert found is not None
            yield from examples(found, f"{name} {verb}")


def options(words: list[str]) -> set[str]:
    """Options of the command that these words begin with; click.UsageError for what the command line would refuse."""
    command: click.Command = cli
    while isinstance(command, click.Group) and words:
        found = command.get_command(click.Context(command), words[0])
        if found is None:
            raise click.UsageError(f"no command {words[0]!r}")
        command, words = found, words[1:]
    command.make_context(command.name, list(words)).close()
    return {option for parameter in command.params for option in parameter.opts}
