"""One end of a TCP test, by iperf3's protocol, or the genuine iperf3 under a time limit; and readings of its host.

It reports: facts, ready, reading, used, output, processes, error, done. It ends at once when its stdin does.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import tempfile
import threading
import time
from typing import TYPE_CHECKING, NoReturn

from .common import ProgramFailure, carry_out, die_with_parent, say
from .ends import client, port_in_use, server
from .payload import reading
from .processes import ProcessWatch, facts

if TYPE_CHECKING:
    from .common import Options

BEGAN = time.monotonic()

CHILDREN: list[subprocess.Popen[bytes]] = []
ASKED = threading.Event()
"""Set when anything came on stdin after the first line."""


def end(code: int) -> NoReturn:
    for child in CHILDREN:
        with contextlib.suppress(OSError):
            os.killpg(child.pid, signal.SIGKILL)
    os._exit(code)


def end_with_stdin(deadline_s: float) -> None:
    """End this process when stdin ends, or at its own deadline; runs in a thread."""
    while True:
        left_s = BEGAN + deadline_s - time.monotonic()
        if left_s <= 0:
            what = f"did not end within {deadline_s:.0f} s"
            say("error", {"what": what, "remedy": "see whether the other end hangs"})
            end(3)
        if select.select([0], [], [], left_s)[0]:
            if not os.read(0, 4096):
                end(0)
            ASKED.set()
            for child in CHILDREN:  # iperf3 then reports what it has
                child.send_signal(signal.SIGINT)


def listens(port: int) -> bool:
    """Test whether anything in this network namespace listens on this port."""
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError), open("/proc/net/" + name) as file:
            for line in file:
                words = line.split()
                if words[3] == "0A" and int(words[1].rpartition(":")[2], 16) == port:
                    return True
    return False


def program(options: Options) -> None:
    """Run options["argv"] and report a reading at each interval until it ends."""
    argv, serves = options["argv"], bool(options.get("serves"))
    if serves and listens(options["port"]):
        raise port_in_use(options["port"])
    out, errors = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115, closed with the process
    try:
        child = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=errors,
            start_new_session=True,
            preexec_fn=die_with_parent(signal.SIGKILL),
        )
    except OSError as error:
        remedy = "install it, or use the embedded engine" if "port" in options else "install it"
        raise ProgramFailure(f"{argv[0]} cannot be started ({error.strerror})", remedy) from None
    CHILDREN.append(child)
    while serves and child.poll() is None and not listens(options["port"]):
        time.sleep(0.02)
    if child.poll() is None:
        say("ready", {})
    began, number, processes = time.monotonic(), 0, ProcessWatch(child.pid)
    while child.poll() is None:
        say("reading", reading([], child.pid, BEGAN))
        processes.note()
        number += 1
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(max(0.0, began + number * options["interval_s"] - time.monotonic()))
    CHILDREN.clear()
    processes.say()
    at_s = time.monotonic() - BEGAN
    say("reading", reading([], os.getpid(), BEGAN))
    texts = []
    for file in (out, errors):
        file.seek(0)
        texts.append(file.read(32 << 20).decode(errors="replace"))
    say("output", {"at_s": at_s, "code": child.returncode, "stdout": texts[0], "stderr": texts[1]})


def watcher(options: Options) -> None:
    """Report the CPU time of processes from now until anything comes on stdin."""
    processes = ProcessWatch(0)
    say("ready", {})
    ASKED.wait()
    processes.say()


def run(options: Options) -> None:
    threading.Thread(target=end_with_stdin, args=(options["deadline_s"],), daemon=True).start()
    if options.get("cpu") is not None:
        try:
            os.sched_setaffinity(0, [options["cpu"]])
        except OSError as error:
            raise ProgramFailure("CPU {} cannot be used ({})".format(options["cpu"], error.strerror)) from None
    say("facts", facts())
    {"client": client, "server": server, "program": program, "watcher": watcher}[options["role"]](options)


def main() -> None:
    end(carry_out(run))
