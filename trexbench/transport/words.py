"""Quote argv as the one string that ssh hands to the login shell of the other side."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from ..core.errors import DutError

OWN_255 = "trexbench: the exit code 255 is that of the command"
"""Last line of stderr when a command ended with 255, which is ssh's own exit code as well."""

LONGEST_COMMAND = 100_000
"""Bytes; Linux takes no argument of more than 128 KiB, and to the login shell a command is one argument."""

# It stands in single quotes: no !, no backslash, no line end, no single quote in it, as with every word.
# Words arrive with \0ooo for what quoting cannot carry (see quoted), which printf gives back; the full stop keeps
# line ends at the end of a word from $(...). env, because "$@" would also run what is built into the shell (eval).
# The shell stays behind the command to tell its 255 from ssh's, and so that death by a signal has an exit code.
# PATH: whoever is not root on Linux finds no sbin there.
_SCRIPT = (
    "LC_ALL=C; PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin; export LC_ALL PATH; "
    'for w do shift; w=$(printf "%b." "$w"); set -- "$@" "${w%.}"; done; '
    'env "$@"; code=$?; '
    f'[ $code = 255 ] && echo "{OWN_255}" >&2; exit $code'
)


def remote_command(argv: Sequence[str]) -> str:
    """Build one line that any login shell passes on to /bin/sh, which runs argv, every word as it is.

    ssh joins its arguments with blanks, and the login shell of the other side (sh, bash, or tcsh of a FreeBSD's root)
    reads the result as program text, so it has quoted words only. DutError where argv cannot be a command.
    """
    if not argv or not argv[0] or argv[0].startswith("-") or "=" in argv[0]:
        raise DutError(f"{shown(argv) or 'nothing'} cannot be run: its first word is not a program's name")
    if any("\0" in word for word in argv):
        raise DutError(f"{shown(argv)} cannot be run: a zero byte in a word")
    try:
        command = " ".join([f"/bin/sh -c '{_SCRIPT}' sh", *(quoted(word) for word in argv)])
    except UnicodeEncodeError:
        raise DutError(f"{shown(argv)} cannot be run: a word is not valid text") from None
    if len(command) > LONGEST_COMMAND:
        raise DutError(f"{shown(argv)} cannot be run: {len(command)} bytes are too long for a command")
    return command


def quoted(word: str) -> str:
    r"""Put a word in single quotes, which sh, csh, zsh and fish read alike, with ``\0ooo`` for what is special there.

    shlex.quote is not enough: csh expands ``!`` and refuses line ends inside single quotes, fish takes ``\\`` there for
    one, and zsh expands an unquoted ``=ls``. Bytes that are not ASCII may be cut by any of them.
    """
    raw = word.encode("utf-8", "surrogateescape")
    return "'" + "".join(chr(b) if 32 <= b < 127 and b not in b"!\\'" else f"\\0{b:03o}" for b in raw) + "'"


def typed(argv: Sequence[str]) -> str:
    """Show the command as a person would type it; one word with blanks is a line of a CLI."""
    return argv[0] if len(argv) == 1 and " " in argv[0] else shlex.join(argv)


def shown(argv: Sequence[str], longest: int = 200) -> str:
    """Show the command in a message: one line, not too long, without programs that are handed to an interpreter."""
    words = [word for word in argv if "\n" not in word]
    text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in typed(words))
    text += " ..." * (len(words) < len(argv))
    return text if len(text) <= longest else text[: longest - 4] + " ..."
