"""Machines of a test: each a network, mounts and processes of its own, gone with the test, however that ends.

A machine sees this one's files. What it changes below CHANGED and in /run stays its own. No network leads out of them.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sshd import SSHD, eventually
from tools import ROOT

CHANGED = ("etc", "opt", "srv", "var/lib")
HOME = "/var/lib/trexbench"
_BOOT = """\
mount -t tmpfs run /run
mkdir -p /run/sshd
mount -t sysfs sysfs /sys
for place in {places}; do
  mkdir -p {folder}/files/$place {folder}/work/$place
  mount -t overlay -o lowerdir=/$place,upperdir={folder}/files/$place,workdir={folder}/work/$place machine /$place
done
ip link set lo up
mkdir -p /opt/trexbench/bin {home}
printf '#!/bin/sh\\nexec {python} -m trexbench "$@"\\n' > /opt/trexbench/bin/trexbench
chmod +x /opt/trexbench/bin/trexbench
echo up
exec cat
"""
_ENVIRONMENT = {
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "PATH": f"/opt/trexbench/bin:{Path(sys.executable).parent}:{os.environ['PATH']}:/usr/sbin:/sbin",
    "PIP_NO_INDEX": "1",
    "PYTHONPATH": str(ROOT),
    "TREXBENCH_RUN_DIR": "/run/trexbench",
    "TREXBENCH_STATE_DIR": f"{HOME}/state",
}


@dataclass
class Machine:
    """A machine that is up. folder: of its files and the logs of what it runs."""

    name: str
    folder: Path
    pid: int
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def file(self, path: str) -> Path:
        """Return the machine's file of this path, as it is reached from outside."""
        return Path(f"/proc/{self.pid}/root") / path.lstrip("/")

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        self.file(path).parent.mkdir(parents=True, exist_ok=True)
        self.file(path).write_text(text)
        self.file(path).chmod(mode)

    def _argv(self, line: str, environment: dict[str, str], folder: str) -> list[str]:
        settings = [f"{name}={value}" for name, value in {**_ENVIRONMENT, **environment}.items()]
        words = ["sh", "-ec", f"cd {shlex.quote(folder)}; {line}"]
        return ["nsenter", "-t", str(self.pid), "-m", "-n", "-p", "env", "-i", *settings, *words]

    def run(self, line: str, folder: str = HOME, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
        """Run this line of a shell, which ends with 0."""
        argv = self._argv(line, {}, folder)
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout_s)
        said = f"{self.name}: {line}\n{done.stdout}{done.stderr}"
        assert done.returncode == 0 and "Traceback" not in said, said
        return done

    def start(
        self, name: str, line: str, environment: dict[str, str] | None = None, folder: str = HOME
    ) -> subprocess.Popen[bytes]:
        """Start this line of a shell, whose log has this name."""
        with (self.folder / f"{name}.log").open("wb") as log:
            argv = self._argv(f"exec {line}", environment or {}, folder)
            self.running[name] = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return self.running[name]

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def await_words(self, name: str, words: str, within_s: float = 90) -> None:
        """Wait until the log has these words; fail early if what writes it has ended."""
        ended = self.running[name].poll
        eventually(lambda: words in self.log(name) or ended() is not None, f"{self.name}: {words}", within_s)
        assert words in self.log(name), self.log(name)


@contextmanager
def machine(name: str, folder: Path) -> Iterator[Machine]:
    """The machine, up, until the end of the block."""
    folder.mkdir()
    boot = _BOOT.format(places=" ".join(CHANGED), folder=folder, python=sys.executable, home=HOME)
    argv = ["unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "sh", "-ec", boot]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            assert process.stdout.readline() == b"up\n"
            (child,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            found = Machine(name, folder, int(child))
            yield found
        finally:
            process.stdin.close()  # ends its first process, and all others with that
            process.wait(20)
    for one in found.running.values():
        one.wait(20)


def wire(one: Machine, port: str, other: Machine, far_port: str) -> None:
    """Lay a cable between two ports, over which IPv6 sends nothing by itself, and plug it in."""
    ends = ["name", port, "type", "veth", "peer", "name", far_port, "netns", str(other.pid)]
    subprocess.run(["nsenter", "-t", str(one.pid), "-n", "ip", "link", "add", *ends], check=True, timeout=20)
    for box, name in ((one, port), (other, far_port)):
        box.run(f"echo 1 > /proc/sys/net/ipv6/conf/{name}/disable_ipv6; ethtool -K {name} gro on")
        box.run(f"ip link set {name} up")


def join(hub: Machine, others: Sequence[Machine], names: Mapping[str, str]) -> None:
    """Join all to the hub, which routes between them, and to nothing else. names: of hosts, each with its machine's."""
    hosts = ["127.0.0.1 localhost", *(f"10.99.0.1 {host}" for host, name in names.items() if name == hub.name)]
    hub.run("ip address add 10.99.0.1/32 dev lo; echo 1 > /proc/sys/net/ipv4/ip_forward")
    for number, other in enumerate(others, start=1):
        wire(hub, other.name, other, "eth0")
        hub.run(f"ip address add 10.99.{number}.1/24 dev {other.name}")
        other.run(f"ip address add 10.99.{number}.2/24 dev eth0; ip route add 10.99.0.0/16 via 10.99.{number}.1")
        hosts += [f"10.99.{number}.2 {host}" for host, name in names.items() if name == other.name]
    for box in (hub, *others):
        box.write("/etc/hosts", "\n".join(hosts) + "\n")


def serve_ssh(hosts: Sequence[Machine], clients: Sequence[Machine], names: Sequence[str], keys: Path) -> None:
    """Let root of the clients log in at the hosts, which they know by these names. keys: a folder for keys."""
    keys.mkdir()
    for key in ("host", "user"):
        argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(keys / key)]
        subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, timeout=30)
    public = (keys / "host.pub").read_text()
    for box in hosts:
        box.write("/etc/ssh/test_config", _SERVER.format(keys=keys))
        box.start("sshd", f"{SSHD} -D -e -f /etc/ssh/test_config")
        box.await_words("sshd", "Server listening")
    for box in clients:
        box.write("/etc/ssh/ssh_known_hosts", "".join(f"{name} {public}" for name in names))
        box.write("/etc/ssh/ssh_config", f"User root\nIdentityFile {keys}/user\nUserKnownHostsFile /dev/null\n")


_SERVER = """\
HostKey {keys}/host
AuthorizedKeysFile {keys}/user.pub
PermitRootLogin prohibit-password
UsePAM no
StrictModes no
SetEnv PATH=/opt:/usr/sbin:/usr/bin:/sbin:/bin
"""
