"""Type lines at the prompt of a network operating system, whose login is no shell, by netmiko.

netmiko knows the prompt, the paging and the echo of each platform; it is loaded with the first command. Host keys are
checked, nobody is prompted, and every wait has an end.
"""

from __future__ import annotations

import difflib
import io
import logging
import os
import re
import threading
from collections.abc import Sequence
from getpass import getuser
from pathlib import Path
from typing import Any

from ..config.endpoints import TransportConfig
from ..core.errors import DutError, DutLost
from ..core.patterns import find
from .command import Completed, Transport
from .words import shown

CONNECT_S = 15.0
"""Limit of each: the connection, the server's greeting, the login."""
OUTPUT_LIMIT_BYTES = 2_000_000
REFUSED = 126
"""Exit code of a line that the device refuses, as a shell's of what it cannot run."""
_INSTALL = "pip install 'trexbench[cli]'"


class CliTransport(Transport):
    """Prompt of a device, for several threads, one command after the other."""

    def __init__(self, to: TransportConfig, config_file: Path | None) -> None:
        self._to, self.place = to, f"{to.user}@{to.host}" if to.user else str(to.host)
        self._config_file = config_file or Path.home() / ".ssh" / "config"
        self._lock = threading.Lock()
        self._connection: Any = None
        self._printed = _OutputLimit()

    def run(self, argv: Sequence[str], timeout_s: float, input: str | None = None) -> Completed:
        """Type one line and wait for the prompt. The exit code is REFUSED or 0.

        The next line continues in a mode that this one enters (``configure``), or, after any error, in a new session.
        DutLost where the connection is lost.
        """
        if len(argv) != 1 or input is not None or not argv[0].isprintable():
            raise DutError(f"{shown(argv)} cannot be typed at the prompt of {self.place}", "it takes single lines")
        with self._lock:
            try:
                output = self._type(argv[0], timeout_s)
            except BaseException:  # the prompt it is at is unknown
                self._drop()
                raise
            sign, lines = self._to.refusal, output.splitlines()
            refusals = [line.strip() for line in lines if sign is not None and find(sign, line) is not None]
            if refusals:
                self._drop()
        return Completed(tuple(argv), REFUSED if refusals else 0, output, "\n".join(refusals[:1]))

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _type(self, line: str, timeout_s: float) -> str:
        netmiko = _load_netmiko()
        what = f"{shown((line,))} on {self.place}"
        if self._connection is None:
            self._connection = self._open(netmiko)
        self._printed.begin()
        try:
            # the prompt after login, or of a mode that puts words between the name and the prompt's last sign
            base = str(self._connection.base_prompt)
            prompt = re.escape(base) + ("" if base.endswith((">", "#", "$", "%")) else r"[^\r\n]{0,80}[>#$%]")
            output: str = self._connection.send_command(line, expect_string=rf"{prompt}\s*$", read_timeout=timeout_s)
            return re.sub(rf"(?:(?:^|[\r\n])\s*{prompt}\s*)+$", "", output)  # the device may print it once more
        except _TooMuchOutput:
            words = f"{what} printed more than {OUTPUT_LIMIT_BYTES} bytes"
            raise DutError(words, "it was cut off: ask for less") from None
        except (OSError, EOFError, ValueError, netmiko.NetmikoBaseException, netmiko.NetmikoTimeoutException) as error:
            if isinstance(error, netmiko.ReadTimeout) and not self._connection.remote_conn.closed:
                remedy = "see whether it asks something, and whether transport.platform is right"
                raise DutError(f"{what}: no prompt came back within {timeout_s:g} s", remedy) from None
            lost = f"the connection to {self.place} was lost while {shown((line,))} ran"
            raise DutLost(lost, "whether it took effect is not known; see whether the DUT still answers") from None

    def _open(self, netmiko: Any) -> Any:
        known = [name for name in netmiko.platforms if not name.endswith(("_telnet", "_serial"))]
        platform = self._to.platform or ""
        if platform not in known:
            close = difflib.get_close_matches(platform, known, n=1)
            fix = f"did you mean {close[0]}?" if close else "see netmiko's list of supported device types"
            raise DutError(f"{self.place}: netmiko knows no platform {platform!r} over ssh", fix)
        try:
            return netmiko.ConnectHandler(**self._arguments())
        except netmiko.NetmikoAuthenticationException:
            wrong = f"{self.place} accepts neither your keys nor the password that its config names"
            raise DutError(wrong, "correct transport.user, key_file, password_env or password_file") from None
        except netmiko.ReadTimeout as error:
            remedy = f"see whether it is a {platform}, and whether it asks something after login"
            raise DutLost(f"{self.place} showed no prompt ({_reason(error)})", remedy) from None
        except (OSError, EOFError, ValueError, netmiko.NetmikoBaseException, netmiko.NetmikoTimeoutException) as error:
            raise _not_connected(self.place, error) from None

    def _arguments(self) -> dict[str, Any]:
        from paramiko import SSHConfig, SSHException

        stated: dict[str, Any] = {}
        if self._config_file.is_file():
            try:
                stated = dict(SSHConfig.from_path(str(self._config_file)).lookup(self._to.host))
            except SSHException as error:
                raise DutError(f"{self._config_file}: {error}", "correct that line") from None
        keys = [self._to.key_file] if self._to.key_file else stated.get("identityfile", [])
        key = next(filter(os.path.isfile, map(os.path.expanduser, keys)), None)
        hosts = os.path.expanduser(str(stated.get("userknownhostsfile", "~/.ssh/known_hosts")).split()[0])
        password = stated_password(self._to.password_env, self._to.password_file)
        return {
            "device_type": self._to.platform,
            "host": self._to.host,
            "port": self._to.port or 22,
            "username": self._to.user or str(stated.get("user") or getuser()),
            "password": password,
            "use_keys": password is None,
            "key_file": key,
            "allow_agent": password is None and stated.get("identityagent") != "none",
            "ssh_config_file": str(self._config_file) if stated else None,
            "ssh_strict": True,
            "alt_host_keys": True,
            "alt_key_file": hosts,
            "conn_timeout": CONNECT_S,
            "auth_timeout": CONNECT_S,
            "banner_timeout": CONNECT_S,
            "session_log": self._printed,
            "auto_connect": True,
        }

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.paramiko_cleanup()  # not disconnect, which types, and waits for an answer


class _TooMuchOutput(Exception):
    pass


class _OutputLimit(io.BufferedIOBase):
    """Session log for netmiko that counts what is printed, and keeps nothing."""

    def __init__(self) -> None:
        self._bytes = 0

    def begin(self) -> None:
        self._bytes = 0

    def write(self, data: Any) -> int:
        self._bytes += len(data)
        if self._bytes > OUTPUT_LIMIT_BYTES:
            raise _TooMuchOutput
        return len(data)


def _load_netmiko() -> Any:
    try:
        import netmiko
    except ImportError:
        raise DutError("transport cli needs netmiko, which is not installed", _INSTALL) from None
    for name in ("netmiko", "paramiko"):
        logging.getLogger(name).addHandler(logging.NullHandler())  # otherwise their warnings go to the terminal
    return netmiko


def _not_connected(place: str, error: BaseException) -> DutError:
    reason = _reason(error)
    if "not found in known_hosts" in reason:
        remedy = "log in once by hand with ssh and compare its fingerprint"
        return DutLost(f"the host key of {place} is not in known_hosts ({reason})", remedy)
    if "does not match" in reason:
        remedy = "this may be an attack; if not: ssh-keygen -R"
        return DutLost(f"the host key of {place} has changed ({reason})", remedy)
    return DutLost(f"{place} cannot be reached by ssh ({reason})", "see whether it is up, and correct transport.host")


def _reason(error: BaseException) -> str:
    """Describe an error in one line: netmiko's own message is a page, and its cause the error before it."""
    cause = error.__context__ if isinstance(error.__context__, OSError) else error
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    return (lines[-1] if lines else type(cause).__name__)[:200]


def stated_password(variable: str | None, file: str | None) -> str | None:
    """Read a password from an environment variable, or the first line of a file; None without either."""
    if variable is not None:
        if not os.environ.get(variable):
            raise DutError(f"the environment has no {variable}", "export it; it holds the DUT's password")
        return os.environ[variable]
    if file is not None:
        path = Path(file).expanduser()
        try:
            return path.read_text(encoding="utf-8").splitlines()[0]
        except (OSError, UnicodeDecodeError, IndexError) as error:
            reason = getattr(error, "strerror", None) or "no text in it"
            raise DutError(f"{path}: {reason}", "its first line must be the DUT's password") from None
    return None
