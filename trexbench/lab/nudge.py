"""Program beside QEMU that keeps a virtual machine's NICs receiving; it imports nothing of this package.

QEMU that cannot load its eBPF (Debian's 7.2) spreads frames over a NIC's queues itself. If a frame's queue is full, it
reads no more from the TAP's queue of that frame until the guest has refilled the NIC's queue of the same number. The
guest does not notify it, since that queue is not empty: nothing is received any more, for good. Setting a link to the
state that it has makes QEMU try again.
"""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Sequence
from typing import BinaryIO

PERIOD_S = 0.001
"""Short enough that at most all free buffers of a NIC's queues (vm.RING each) are filled in between."""


def main(monitor: str, links: Sequence[str]) -> None:
    """Nudge these links until QEMU ends. monitor: abstract name of its socket; links: its names of NICs' far ends."""
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(f"\0{monitor}")
        with line.makefile("rb") as replies:
            replies.readline()  # its greeting
            _ask(line, replies, "qmp_capabilities")
            while True:
                for link in links:
                    _ask(line, replies, "set_link", name=link, up=True)
                time.sleep(PERIOD_S)


def _ask(line: socket.socket, replies: BinaryIO, command: str, **arguments: object) -> None:
    """Have QEMU carry out a command; SystemExit if it has ended or refuses. Events come in between."""
    line.sendall(json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n")
    while b'"return"' not in (reply := replies.readline()):
        if not reply or b'"error"' in reply:
            raise SystemExit(reply.decode(errors="replace") or "QEMU has ended")


if __name__ == "__main__":
    try:
        main(sys.argv[1], sys.argv[2:])
    except OSError as error:
        raise SystemExit(f"QEMU has ended: {error}") from None
