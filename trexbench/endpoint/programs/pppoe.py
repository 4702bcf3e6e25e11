"""One end of PPPoE by pppd: the access concentrator, whose pppoe-server starts pppd, or the client that dials in.

Its Linux host needs ip, pppd, a kernel with PPPoE, and on the server pppoe-server. It reports: listening, up, down,
error, done. pppd's folders, with options and secrets, are in memory: only this program and its children see them.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import signal
import socket
import sys
import time
from typing import TYPE_CHECKING

from .common import END_S, ProgramFailure, carry_out, child, ip, keep_within, readable, say, text_of, wait_for

if TYPE_CHECKING:
    import subprocess

    from .common import Options

FOLDER, NOTES, CONCENTRATOR = "/etc/ppp", "/var/run", "trexbench"
CONF6 = "/proc/sys/net/ipv6/conf"
OPTIONS = """plugin pppoe.so
nic-{interface}
ifname {tun}
nodetach
debug
noccp
mtu 1492
mru 1492
lcp-echo-interval 1
lcp-echo-failure 4
lcp-echo-adaptive
lcp-restart 1
lcp-max-configure 20
"""
SERVES = f"name {CONCENTRATOR}\nauth\n{{own}}:{{peer}}\n"
DIALS = "user {user}\nnoauth\nnoipdefault\nnodefaultroute\n"
METHODS = ("chap", "pap")
STARTER = """#!/bin/sh
# pppoe-server starts this as: pppd pty "pppoe -I eth0 -e SESSION:MAC" ...; here the kernel moves frames, not pppoe.
exec >>/proc/$PPID/fd/1 2>&1
for word in $*; do
  case $word in *:*:*:*:*:*:*)
    echo "pppd $$, PPP session is ${word%%:*}"
    exec pppd rp_pppoe_sess "$word"
  esac
done
echo "pppoe-server names no session: $*"
"""
SAID = {
    "pid": r"^pppd (\d+), PPP session",
    "auth": r"(?:sent|rcvd) \[(?=CHAP Success|PAP AuthAck)(CHAP|PAP) ",
    "user": r'rcvd \[(?:CHAP Response.* name = |PAP AuthReq.* user=)"(.*?)"',
    "own": r"local IP address (\S+)",
    "peer": r"remote IP address (\S+)",
    "ipv6": r"remote (LL) address",
}
"""Facts by the lines of pppd's log that report them; a run of blanks there is one blank here."""
REASON = re.compile(
    r"(?i)no response|terminated by|terminating|hangup|fail|refused|unable|time.?out|not authorized|no .*secret|looped"
    r"|couldn't|can't|error|unrecognized|is not ethernet|names no session"
)
"""Lines of no packet that say why a session ended or did not come up; the first one counts."""


class PppdLog:
    """pppd's log of one session after the other. six: a session is up only with IPv6, too."""

    def __init__(self, six: bool) -> None:
        self.wanted, self.rest = {"own", "peer", *(["ipv6"] if six else [])}, b""
        self.begin()

    def begin(self) -> None:
        self.said: dict[str, str] = {}
        self.why, self.is_up = "", False

    def lines_of(self, part: bytes) -> list[str]:
        """Take in more of the output, and return the lines that it completes."""
        *lines, self.rest = (self.rest + part).split(b"\n")
        self.rest = self.rest[-4096:]
        return [readable(line) for line in lines]

    def take(self, line: str) -> str:
        """Take in a line; return ``up`` or ``down`` where it changes the session's state, else an empty string."""
        if line.startswith("pppd "):
            self.begin()  # a session whose end was not reported was killed
        for name, pattern in SAID.items():
            match = re.search(pattern, line)
            if match:
                self.said.setdefault(name, match.group(1))
        if not line.startswith(("sent ", "rcvd ")) and not self.why and REASON.search(line):
            self.why = line
        if line == "Connection terminated.":
            return "down"
        if self.is_up or not self.said.keys() >= self.wanted:
            return ""
        self.is_up, self.why = True, ""
        return "up"


def require_kernel() -> None:
    """ProgramFailure where the kernel has no PPPoE."""
    remedy = "as root: modprobe pppoe; without it take a kernel that has it (Debian: linux-image-amd64)"
    try:
        socket.socket(24, socket.SOCK_STREAM, 0).close()  # AF_PPPOX, PX_PROTO_OE
        os.close(os.open("/dev/ppp", os.O_RDWR))
    except PermissionError as error:
        raise ProgramFailure(f"PPP is not for this user ({error.strerror})", "run as root") from None
    except OSError as error:
        raise ProgramFailure(f"the kernel has no PPPoE ({error.strerror})", remedy) from None


def hide_folders() -> None:
    """Mount empty folders in memory over pppd's, for this program and its children, as long as they run."""
    try:
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
    except Exception as error:
        raise ProgramFailure(f"python3 has no ctypes ({error})", "install it") from None
    new_namespace, private = 0x20000, 0x44000  # CLONE_NEWNS; MS_REC | MS_PRIVATE
    failed = libc.prctl(36, 1)  # PR_SET_CHILD_SUBREAPER, for end_sessions
    failed = failed or libc.unshare(new_namespace) or libc.mount(b"none", b"/", None, private, None)
    for folder in (FOLDER, NOTES):
        failed = failed or libc.mount(b"tmpfs", folder.encode(), b"tmpfs", 0, b"mode=700")
    if failed:
        said = os.strerror(ctypes.get_errno())
        raise ProgramFailure(f"{FOLDER} and {NOTES} cannot be hidden ({said})", "run as root, and see that they exist")


def allow_ipv6(name: str) -> None:
    """Enable IPv6 on this interface, where the host's default is that it has none."""
    path = f"{CONF6}/{name}/disable_ipv6"
    if text_of(path) != "1":
        return
    try:
        with open(path, "w") as file:
            file.write("0")
    except OSError as error:
        raise ProgramFailure(f"{name} can have no IPv6 ({path}: {error.strerror})", "see why it is read-only") from None


def quoted(text: str) -> str:
    """Text as a word of pppd's files, with every byte escaped."""
    return '"{}"'.format("".join(f"\\{byte:03o}" for byte in text.encode()))


def files_of(options: Options, serves: bool) -> dict[str, str]:
    """Text of each file in FOLDER, by name."""
    text, auth = (OPTIONS + (SERVES if serves else DIALS)).format(**options), options.get("auth", METHODS)
    for method in METHODS:
        if serves == (method in auth):
            text += f"{'require' if serves else 'refuse'}-{method}\n"
    secrets = f"{quoted(options['user'])} * {quoted(options['secret'])} *\n"
    text += "+ipv6\n" if options.get("ipv6") else "noipv6\n"
    return {"options": text, "chap-secrets": secrets, "pap-secrets": secrets, "start": STARTER}


def command(options: Options, serves: bool) -> list[str]:
    """The command line, which holds no secret."""
    if not serves:
        return ["pppd"]
    own = ["-I", options["interface"], "-C", CONCENTRATOR, "-L", options["own"], "-R", options["peer"]]
    service = ["-S", options["service"]] if options.get("service") else []
    # in the foreground; one session, and nothing for others meanwhile
    return ["pppoe-server", "-F", "-N", "1", "-i", "-r", "-q", f"{FOLDER}/start", "-X", f"{FOLDER}/pid", *own, *service]


class PppoeLine:
    """Sessions of one end, which come and go as pppd's log says."""

    def __init__(self, options: Options, serves: bool) -> None:
        self.options, self.serves = options, serves
        self.log = PppdLog(bool(options.get("ipv6")))
        self.pids: set[int] = set()

    def hold(self, running: subprocess.Popen[bytes]) -> None:
        """Wait for the end of stdin; ProgramFailure where a client's session ends, or pppoe-server."""
        assert running.stdout is not None
        out = running.stdout.fileno()
        while True:
            ready = select.select([0, out], [], [], 0.5)[0]
            if 0 in ready and not os.read(0, 4096):
                return
            part = os.read(out, 65536) if out in ready else b""
            for line in self.log.lines_of(part):
                self.take(line)
            if not part and running.poll() is not None:
                who, why = "pppoe-server" if self.serves else "pppd", self.log.why or f"exit code {running.returncode}"
                raise ProgramFailure(f"{who} has ended ({why})", "see what the other end says")

    def end_sessions(self) -> None:
        """Wait until pppoe-server's sessions have ended, too, and kill those that have not in time.

        pppoe-server asks them to end when it ends; they are then children of this process.
        """
        until = time.monotonic() + END_S
        for pid in self.pids:
            with contextlib.suppress(ChildProcessError, ProcessLookupError):
                while os.waitpid(pid, os.WNOHANG)[0] == 0:
                    if time.monotonic() > until:
                        os.kill(pid, signal.SIGKILL)
                    time.sleep(0.02)

    def take(self, line: str) -> None:
        change = self.log.take(line)
        if self.options.get("ipv6") and line == f"Using interface {self.options['tun']}":  # nothing is agreed on yet
            allow_ipv6(self.options["tun"])
        if "pid" in self.log.said:
            self.pids.add(int(self.log.said["pid"]))
        if change == "up":
            self.set_up(self.log.said)
        elif change == "down":
            why = self.log.why or "it has ended"
            say("down", {"why": why})
            if not self.serves:
                raise ProgramFailure(why, "see what the other end says")
            self.log.begin()

    def set_up(self, said: dict[str, str]) -> None:
        """Set IPv6 addresses and routes, which pppd does not, and report what its log says."""
        name = self.options["tun"]
        if self.options.get("ipv6"):
            own6, other6 = self.options["ipv6"]
            ip("-6", "addr", "add", own6 + "/128", "dev", name, "nodad")
            ip("-6", "route", "replace", other6 + "/128", "dev", name)
        for route in self.options.get("routes", []):
            ip("-6" if ":" in route else "-4", "route", "replace", route, "dev", name)
        session = {"interface": name, "own": said["own"], "peer": said["peer"], "user": said.get("user", "")}
        mtu = int(text_of(f"/sys/class/net/{name}/mtu") or 0)  # 0: it has gone by now
        say("up", dict(session, auth=said.get("auth", "none").lower(), mtu=mtu))


def run(options: Options) -> None:
    serves = options["role"] == "server"
    for name, package in (("pppd", "ppp"), *([("pppoe-server", "pppoe")] if serves else [])):
        if shutil.which(name) is None:
            raise ProgramFailure(f"{name} is not installed", f"install it (Debian: {package})")
    require_kernel()
    keep_within(options)
    hide_folders()
    for name, text in files_of(options, serves).items():
        mode = 0o700 if name == "start" else 0o600
        with open(os.open(f"{FOLDER}/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w") as file:
            file.write(text)
    line = PppoeLine(options, serves)
    try:
        with child(command(options, serves)) as running:
            if serves:
                wait_for(running, "pppoe-server", path=f"{FOLDER}/pid")
                say("listening", {})
            line.hold(running)
    finally:
        line.end_sessions()


def main() -> None:
    sys.exit(carry_out(run))
