"""Passwords where a config says that they are; they are never written into one."""

from __future__ import annotations

import os
from pathlib import Path

from ..core.errors import DutError


def stated_password(variable: str | None, file: str | None) -> str | None:
    """The value of this variable of the environment, or the first line of this file; None without either."""
    if variable is not None:
        if not os.environ.get(variable):
            raise DutError(f"the environment has no {variable}", "export it; it holds the DUT's password")
        return os.environ[variable]
    if file is not None:
        path = Path(file).expanduser()
        try:
            return path.read_text(encoding="utf-8").splitlines()[0]
        except (OSError, UnicodeDecodeError, IndexError) as error:
            reason = getattr(error, "strerror", None) or "no text in it"
            raise DutError(f"{path}: {reason}", "its first line is to be the DUT's password") from None
    return None
