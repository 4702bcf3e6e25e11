"""Shared by all programs: options on stdin, reports on stdout, and the commands that they run on their host.

The first line on stdin has the options, with secrets; at the end of stdin the program ends. Each line on stdout is a
JSON object with one key. Nothing is left on the host.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import struct
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Options = dict[str, Any]  # the first line on stdin

MOST_SHOWN = 300
"""Characters of another program's output that are shown, the last ones."""
UP_S = 20.0
"""Time for another program to have its interface, and to agree with its peer."""
END_S = 1.0
"""Time for it to end by itself."""


class ProgramFailure(Exception):
    """A failure with its remedy."""

    def __init__(self, what: str, remedy: str = "") -> None:
        Exception.__init__(self, what)
        self.what, self.remedy = what, remedy


def carry_out(work: Callable[[Options], None]) -> int:
    """Do the work with the options on stdin, report how it ended, and return the exit code."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte or len(line) > 65536:
            return 1
        line += byte
    try:
        work(json.loads(line.decode()))
        say("done", {})
        return 0
    except ProgramFailure as failure:
        say("error", {"what": failure.what, "remedy": failure.remedy})
    except Exception as error:
        say("error", {"what": f"{type(error).__name__}: {error}", "remedy": "this is a defect of trexbench"})
    return 1


def say(what: str, value: Any) -> None:
    data = json.dumps({what: value}).encode() + b"\n"
    with contextlib.suppress(OSError):  # nobody listens any more; stdin ends, too
        while data:
            data = data[os.write(1, data) :]


def keep_within(options: Options) -> None:
    """Run on the CPUs that are named, if the host allows it, until a signal or the deadline."""

    def stop(*_: Any) -> None:
        sys.exit(0)

    def overdue(*_: Any) -> None:
        raise ProgramFailure("did not end in time", "see what holds it")

    if options.get("cpus"):
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, options["cpus"])
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    signal.signal(signal.SIGALRM, overdue)
    signal.alarm(int(options["deadline_s"]))


def die_with_parent(number: int) -> Any:
    """Make a preexec_fn by which a child gets this signal when this program is killed; None without such a call."""
    try:
        import ctypes

        prctl = ctypes.CDLL(None).prctl
    except Exception:
        return None
    return lambda: prctl(1, number)  # PR_SET_PDEATHSIG


def text_of(path: str) -> str:
    try:
        file = os.open(path, os.O_RDONLY)  # open() lets go of the GIL twice as often, which threads of payload take
        try:
            return " ".join(os.read(file, 65536).decode(errors="replace").split())
        finally:
            os.close(file)
    except OSError:
        return ""


def readable(data: bytes) -> str:
    """Another program's output in one line, without control characters, which a terminal would obey."""
    text = " ".join(data.decode("utf-8", "replace").split())
    return "".join(letter if letter.isprintable() else "?" for letter in text[-MOST_SHOWN:])


def call(argv: list[str], text: str = "", may_fail: bool = False) -> str:
    """Run a program and return its output. text: for its stdin, where keys go; never in argv."""
    try:
        done = subprocess.run(argv, input=text.encode(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except OSError as error:
        if may_fail:
            return ""
        raise ProgramFailure(f"{argv[0]} cannot be started ({error.strerror})", f"install {argv[0]}") from None
    if done.returncode and not may_fail:
        raise ProgramFailure("{}: {}".format(" ".join(argv), readable(done.stdout)), "see what it says")
    return done.stdout.decode("utf-8", "replace")


def ip(*words: str) -> None:
    call(["ip", *words])


def make_tun(name: str) -> int:
    """Make a TUN interface, which goes when the returned descriptor is closed."""
    set_interface = 0x800454CA if os.uname().machine.startswith(("mips", "ppc", "sparc")) else 0x400454CA
    try:
        tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise ProgramFailure(f"/dev/net/tun cannot be opened ({error.strerror})", "as root: modprobe tun") from None
    try:
        fcntl.ioctl(tun, set_interface, struct.pack("16sH22x", name.encode(), 0x1001))  # TUN, without PI
    except OSError as error:
        os.close(tun)
        what = f"interface {name} cannot be made ({error.strerror})"
        raise ProgramFailure(what, "run as root, and see whether it is there already") from None
    return tun


def set_up(name: str, mtu: int, own: str, peer: str) -> None:
    """Set address and MTU of an interface, bring it up, and disable IPv6 on it; all goes with the interface."""
    with contextlib.suppress(OSError), open(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6", "w") as file:
        file.write("1")
    ip("link", "set", "dev", name, "mtu", str(mtu), "qlen", "1000", "up")
    ip("addr", "add", own, "peer", peer, "dev", name)


@contextlib.contextmanager
def child(argv: list[str], text: str = "", **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program until the end of the block, or of this program. text: for its stdin, which is then closed."""
    try:
        running = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            preexec_fn=die_with_parent(signal.SIGTERM),
        )
    except OSError as error:
        raise ProgramFailure(f"{argv[0]} cannot be started ({error.strerror})", f"install {argv[0]}") from None
    assert running.stdin is not None
    try:
        with contextlib.suppress(BrokenPipeError):
            running.stdin.write(text.encode())
            running.stdin.close()
        yield running
    finally:
        running.terminate()
        try:
            running.wait(END_S)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()


def wait_for(running: subprocess.Popen[bytes], what: str, path: str = "", word: bytes = b"") -> None:
    """Wait until the path exists, or the program has printed the word; ProgramFailure if it ends, or not in time."""
    until, said = time.monotonic() + UP_S, b""
    assert running.stdout is not None
    while not (os.path.exists(path) if path else word in said):
        if select.select([running.stdout], [], [], 0.05)[0]:
            part = os.read(running.stdout.fileno(), 65536)
            said = (said + part)[-65536:]
            if not part and running.poll() is not None:
                raise ProgramFailure(f"{what} has ended ({readable(said)})", "see what it says there")
        if select.select([0], [], [], 0)[0] and not os.read(0, 4096):
            raise SystemExit(0)
        if time.monotonic() > until:
            raise ProgramFailure(
                f"{what} was not up within {UP_S:g} s ({readable(said)})", "see what the other end says"
            )
