"""Every command in the documents, in the README and in the examples of the help is one that can be given.

tests/commands/test_documented_commands.py runs them, at night.
"""

from __future__ import annotations

import shlex

import click
import pytest
from documented import documented, examples, options


@pytest.mark.parametrize(("where", "line"), [*documented(), *examples()])
def test_a_documented_command_can_be_given(where: str, line: str) -> None:
    options(shlex.split(line))


def test_what_cannot_be_given_would_be_seen() -> None:
    for line in ("regress --sinse 2026-11-21", "results lists", "suite plan", "report --dut"):
        with pytest.raises(click.UsageError):
            options(shlex.split(line))
    assert len(list(documented())) > 30 and len(list(examples())) > 40
