"""Commands on this machine."""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from collections.abc import Sequence

from ..core.errors import DutError
from .command import Completed

_PACKAGES = {"ip": "iproute2", "ethtool": "ethtool", "grep": "grep", "tee": "coreutils", "nft": "nftables"}


class LocalTransport:
    place = "this machine"

    def run(self, argv: Sequence[str], timeout_s: float, input: str | None = None) -> Completed:
        return run_here(argv, argv, self.place, timeout_s, input)

    def close(self) -> None:
        """Nothing is open."""


def run_here(argv: Sequence[str], asked: Sequence[str], place: str, timeout_s: float, input: str | None) -> Completed:
    """Run argv, which is ``asked`` with the transport's own words around it."""
    begun = time.monotonic()
    try:
        done = subprocess.run(
            list(argv),
            input=(input or "").encode(),
            capture_output=True,
            timeout=timeout_s,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
    except FileNotFoundError:
        raise missing(argv[0], place) from None
    except subprocess.TimeoutExpired:
        raise DutError(
            f"{shlex.join(asked)} on {place} did not end within {timeout_s:g} s", "see whether the DUT still answers"
        ) from None
    except (OSError, ValueError) as error:
        raise DutError(f"{shlex.join(asked)} on {place} cannot be run: {error}") from None
    return Completed(
        tuple(asked),
        done.returncode,
        done.stdout.decode(errors="replace"),
        done.stderr.decode(errors="replace"),
        time.monotonic() - begun,
    )


def missing(program: str, place: str) -> DutError:
    return DutError(f"{program} is not installed on {place}", f"install the package {_PACKAGES.get(program, program)}")
