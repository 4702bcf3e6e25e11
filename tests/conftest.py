"""What all tests begin with."""

from __future__ import annotations

import signal

# A shell's background jobs ignore Ctrl-C, and what they start inherits that: tests of Ctrl-C would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)
