"""The lock of a suite whose night is under way; a module of its own, since the others here are slow to import."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from ..lock import is_held, locked


@contextmanager
def suite_lock(name: str, results: Path) -> Iterator[None]:
    """Allow one night of a suite at a time for these results; TesterBusy names who holds the lock."""
    with locked(_lock_name(name, results), f"a night of {name} is under way in {results}", f"suite {name}"):
        yield


def is_under_way(name: str, results: Path) -> bool:
    """Test, unnoticed by it, whether a process of this user or of root measures a night of this suite now."""
    return is_held(_lock_name(name, results))


def _lock_name(name: str, results: Path) -> str:
    place = sha256(str(results.resolve()).encode()).hexdigest()[:12]
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:64]
    return f"suite-{safe}-{place}"
