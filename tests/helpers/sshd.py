"""A real sshd on loopback with keys of its own, and what its log says of connections."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from endpoints import free_port

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
WHY_NOT = (
    "" if SSHD and shutil.which("ssh") else "needs openssh-server and openssh-client: sshd or ssh is not installed"
)
_PRIVILEGE_SEPARATION = Path("/run/sshd")
"""Compiled into Debian's sshd, which as root does not start without it; the service makes it when it starts."""


@dataclass
class Sshd:
    """folder: its files and the client's ``ssh_config``, where the host is called ``dut`` if by no other name."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes]
    address: str = "127.0.0.1"

    @property
    def client_config(self) -> Path:
        return self.folder / "ssh_config"

    @property
    def connections(self) -> int:
        """Number of connections let in so far."""
        return self.log.count("Accepted publickey")

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def sessions(self) -> list[int]:
        """Process ids of this sshd's children, one for each connection that stands."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(pid) for pid in children.read_text().split()]

    def cut(self) -> None:
        """Kill what serves the connections, as if the other machine had gone."""
        for pid in self.sessions():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def trust(self, host_key: str = "host") -> None:
        """known_hosts names this key, and no other, for the server."""
        kind, key = (self.folder / f"{host_key}.pub").read_text().split()[:2]
        (self.folder / "known_hosts").write_text(f"[{self.address}]:{self.port} {kind} {key}\n")


@contextmanager
def running_sshd(
    *settings: str, path: str = "", host: str = "dut", namespace: str = "", address: str = "127.0.0.1"
) -> Iterator[Sshd]:
    """The server, trusted and accepting; settings: more lines of its config; path: where its sessions find programs.

    host: what the client's config calls it. namespace: of the network, in which it has this address; else loopback.
    """
    assert SSHD
    if os.geteuid() == 0:
        _PRIVILEGE_SEPARATION.mkdir(mode=0o755, exist_ok=True)
    # Not below pytest's directory: the path of a socket has 107 bytes, and the client's lies here too.
    with tempfile.TemporaryDirectory(prefix="tbx-sshd-") as name:
        folder = Path(name)
        for key in ("host", "other_host", "user"):
            argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)]
            subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, timeout=30)
        port = free_port()
        # A home of its own: what a shell does when it starts is not up to whoever runs the tests.
        given = " ".join([f"HOME={folder}", *([f"PATH={path}"] if path else [])])
        _write_configs(folder, (*settings, f"SetEnv {given}"), port=port, host=host, address=address)
        argv = [SSHD, "-D", "-f", str(folder / "sshd_config"), "-E", str(folder / "log")]
        inside = ["ip", "netns", "exec", namespace] if namespace else []
        process = subprocess.Popen([*inside, *argv], stdin=subprocess.DEVNULL)
        server = Sshd(folder, port, process, address)
        server.trust()
        shutil.copy(folder / "user.pub", folder / "authorized_keys")
        try:
            eventually(lambda: "Server listening" in server.log, "sshd listens")
            yield server
        finally:
            server.cut()
            process.terminate()
            process.wait(60)


_SERVER = """
Port {port}
ListenAddress {address}
HostKey {folder}/host
AuthorizedKeysFile {folder}/authorized_keys
PidFile {folder}/pid
AuthenticationMethods publickey
PermitRootLogin prohibit-password
UsePAM no
StrictModes no
LogLevel VERBOSE
"""
_CLIENT = """Host {host}
HostName {address}
Port {port}
User {user}
IdentityFile {folder}/user
IdentitiesOnly yes
IdentityAgent none
UserKnownHostsFile {folder}/known_hosts
GlobalKnownHostsFile {folder}/none
"""


def _write_configs(folder: Path, settings: tuple[str, ...], **values: object) -> None:
    (folder / "log").touch()
    (folder / "sshd_config").write_text("\n".join(settings) + _SERVER.format(folder=folder, **values))
    user = pwd.getpwuid(os.geteuid()).pw_name
    (folder / "ssh_config").write_text(_CLIENT.format(folder=folder, user=user, **values))


def eventually(holds: Callable[[], bool], what: str, within_s: float = 20) -> None:
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, f"not within {within_s} s: {what}"
        time.sleep(0.02)
