"""An ssh server that lets any user in by password, with a device of cli_device behind it.

sshd cannot: RouterOS's login has options behind the user's name (``admin+ct511w4098h``), which no account has.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import paramiko
from cli_device import KINDS

PASSWORD = "s3cret-and-nowhere-else"


class _Login(paramiko.ServerInterface):
    def check_auth_password(self, username: str, password: str) -> int:
        fits = username.startswith("admin") and password == PASSWORD
        return int(paramiko.AUTH_SUCCESSFUL if fits else paramiko.AUTH_FAILED)

    def get_allowed_auths(self, username: str) -> str:
        return "password"

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return int(paramiko.OPEN_SUCCEEDED)

    def check_channel_pty_request(self, *request: Any) -> bool:
        return True

    def check_channel_shell_request(self, channel: Any) -> bool:
        return True


@dataclass
class CliServer:
    """client_config: an ``ssh_config`` in which the host is called ``dut``. orders: see Device."""

    folder: Path
    kind: str
    orders: dict[str, str] = field(default_factory=dict)
    connections: int = 0

    def __post_init__(self) -> None:
        self.state = self.folder / "state.json"
        self.client_config = self.folder / "ssh_config"
        self._key = paramiko.ECDSAKey.generate()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.client_config.write_text(
            f"Host dut\nHostName 127.0.0.1\nPort {self.port}\nIdentityAgent none\n"
            f"UserKnownHostsFile {self.folder}/known_hosts\n"
        )
        self.trust()
        threading.Thread(target=self._accept, daemon=True).start()

    def trust(self, key: Any = None) -> None:
        key = key or self._key
        line = f"[127.0.0.1]:{self.port} {key.get_name()} {key.get_base64()}\n"
        (self.folder / "known_hosts").write_text(line)

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                there, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(there,), daemon=True).start()

    def _serve(self, there: socket.socket) -> None:
        transport = paramiko.Transport(there)
        with suppress(Exception):
            transport.add_server_key(self._key)
            transport.start_server(server=_Login())
            channel = transport.accept(20)
            self.connections += channel is not None
            read = lambda: channel.recv(1).decode(errors="replace")  # noqa: E731
            KINDS[self.kind](read, lambda text: channel.sendall(text.encode()), self.state, self.orders).serve()
        transport.close()


@contextmanager
def cli_server(folder: Path, kind: str) -> Iterator[CliServer]:
    server = CliServer(folder, kind)
    try:
        yield server
    finally:
        server.close()
