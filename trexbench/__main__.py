"""Entry point of the command: from here on Ctrl-C ends it with exit code 130, also while the rest is imported."""

from __future__ import annotations

import os
import signal


def main() -> None:
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # a SIGINT that is ignored stays so
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    from .cli.main import main

    main()


if __name__ == "__main__":
    main()
