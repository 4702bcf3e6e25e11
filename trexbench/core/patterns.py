"""Regular expressions that a user wrote, on text that a device printed: bounded in length and in time.

The module is ``regex``, whose matching takes a timeout and releases the interpreter: a pattern that backtracks for ever
would otherwise hold up the run's samples.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping

import regex

from .errors import ConfigError, DutError

LONGEST_PATTERN = 1000
LONGEST_TEXT = 256 * 1024
"""Characters of an output that are searched; the rest is ignored."""
_PATIENCE_S = 0.25


def named_groups(pattern: str) -> tuple[int, tuple[str, ...]]:
    """Count a pattern's groups, and name those that have a name; ConfigError where it is not a pattern."""
    compiled = _compiled(pattern)
    return compiled.groups, tuple(compiled.groupindex)


def find(pattern: str, text: str) -> str | None:
    """Return the match of the pattern's first group, or of all of it where it has none; None where nothing matches.

    ``^`` and ``$`` match the ends of a line. DutError where the search takes too long.
    """
    return next((groups.get("1", groups["0"]) for groups in find_all(pattern, text)), None)


def find_all(pattern: str, text: str) -> Iterator[Mapping[str, str]]:
    """Yield each match by the names and numbers of its groups; ``0`` is all of it. DutError as for find."""
    try:
        for match in _compiled(pattern).finditer(text[:LONGEST_TEXT], timeout=_PATIENCE_S, concurrent=True):
            numbered = {str(at): value or "" for at, value in enumerate((match[0], *match.groups()))}
            yield {**numbered, **{name: value or "" for name, value in match.groupdict().items()}}
    except TimeoutError:
        words = f"looking for {pattern[:80]!r} took more than {_PATIENCE_S:g} s"
        raise DutError(words, "write it without a repetition inside of a repetition") from None


@functools.lru_cache(maxsize=512)
def _compiled(pattern: str) -> regex.Pattern[str]:
    if len(pattern) > LONGEST_PATTERN:
        raise ConfigError(f"a pattern of {len(pattern)} characters", f"{LONGEST_PATTERN} at most")
    try:
        return regex.compile(pattern, regex.MULTILINE)
    except (regex.error, RecursionError, OverflowError) as error:
        words = " ".join(str(error).split())
        raise ConfigError(f"{pattern[:80]!r} is no regular expression ({words})", "correct it there") from None
