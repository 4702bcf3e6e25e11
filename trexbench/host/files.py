"""Read files of a host by ``grep -H``, and parse numbers and lists of CPUs; absent is None, never zero."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ..transport import TIMEOUT_S, Transport


def read_lines(transport: Transport, *words: str) -> dict[str, list[str]]:
    """Read all lines of the files that grep is asked for; its exit code only says that some are missing."""
    return parse_lines(transport.run(("grep", *words), TIMEOUT_S).stdout)


def read_files(transport: Transport, *words: str) -> dict[str, str]:
    """Read the first line of each of these files, stripped."""
    return {path: lines[0].strip() for path, lines in read_lines(transport, *words).items()}


def parse_lines(text: str) -> dict[str, list[str]]:
    """Parse ``grep -sH ""``: all lines of each file."""
    files: dict[str, list[str]] = {}
    for line in text.splitlines():
        path, colon, value = line.partition(":")
        if colon and path.startswith("/"):
            files.setdefault(path, []).append(value)
    return files


def number(text: str | None) -> int | None:
    """Parse a whole number; None for anything else."""
    return int(text) if text is not None and re.fullmatch("-?[0-9]{1,20}", text) else None


def counts(words: Sequence[str]) -> list[int] | None:
    """Parse whole numbers from 0 on; None where a word is something else."""
    return list(map(int, words)) if all(re.fullmatch("[0-9]{1,20}", word) for word in words) else None


def parse_cpus(text: str | None) -> list[int] | None:
    """Parse the kernel's list of CPUs, ``0-3,8``; None for anything else."""
    if text is None or not re.fullmatch(r"[0-9]{1,4}(-[0-9]{1,4})?(,[0-9]{1,4}(-[0-9]{1,4})?)*", text):
        return None
    cpus: set[int] = set()
    for part in text.split(","):
        low, _, high = part.partition("-")
        cpus.update(range(int(low), int(high or low) + 1))
    return sorted(cpus)


def parse_mask(text: str | None) -> list[int] | None:
    """Parse a mask of CPUs as in rps_cpus, ``00000000,0000000c``; None for anything else."""
    if text is None or not re.fullmatch(r"[0-9a-f]{1,8}(,[0-9a-f]{8}){0,127}", text):
        return None
    bits = int(text.replace(",", ""), 16)
    return [cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1]


def mask(cpus: Iterable[int]) -> str:
    """Mask of CPUs as rps_cpus takes it: hexadecimal, a comma between groups of 32."""
    digits = f"{sum(1 << cpu for cpu in set(cpus)):x}"
    digits = digits.zfill(-(-len(digits) // 8) * 8)
    return ",".join(digits[at : at + 8] for at in range(0, len(digits), 8))
