"""Shared by all programs: how they are told what to do, what they say, and what they run on their host.

The first line on stdin says what to do and holds the secrets, the rest of stdin only has an end, and with it the
program ends. Each line on stdout is a JSON object with one key. Nothing is left on the host.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import struct
import subprocess
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    Options = dict[str, Any]  # the first line on stdin

MOST_SHOWN = 300
"""Characters of what another program says that are shown, the last ones."""


class ProgramFailure(Exception):
    """Error that says what is wrong, and what helps."""

    def __init__(self, what: str, remedy: str = "") -> None:
        Exception.__init__(self, what)
        self.what, self.remedy = what, remedy


def carry_out(work: Callable[[Options], None]) -> int:
    """Do the work that the first line on stdin asks for, say how it ended, and return the exit code."""
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
    with contextlib.suppress(OSError):  # nobody listens any more; stdin ends likewise
        while data:
            data = data[os.write(1, data) :]


def keep_within(options: Options) -> None:
    """Run on the CPUs that are named, as far as the host lets it, until a signal or the deadline."""

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
    """Return what a child calls before exec, to get this signal when this program is killed.

    None where there is no such call (PR_SET_PDEATHSIG).
    """
    try:
        import ctypes

        prctl = ctypes.CDLL(None).prctl
    except Exception:
        return None
    return lambda: prctl(1, number)


def text_of(path: str) -> str:
    try:
        with open(path, errors="replace") as file:
            return " ".join(file.read().split())
    except OSError:
        return ""


def readable(data: bytes) -> str:
    """Return what somebody else said, in one line and without anything that a terminal would obey."""
    text = " ".join(data.decode("utf-8", "replace").split())
    return "".join(one if one.isprintable() else "?" for one in text[-MOST_SHOWN:])


def call(argv: list[str], told: str = "", may_fail: bool = False) -> str:
    """Run a program and return its output. told: on its stdin, where keys are; never in argv."""
    try:
        done = subprocess.run(argv, input=told.encode(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
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
    """A new TUN interface, which goes when the descriptor is closed."""
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
    """Address and MTU of an interface without IPv6, which go with it."""
    with contextlib.suppress(OSError), open(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6", "w") as file:
        file.write("1")
    ip("link", "set", "dev", name, "mtu", str(mtu), "qlen", "1000", "up")
    ip("addr", "add", own, "peer", peer, "dev", name)
