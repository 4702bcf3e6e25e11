"""Arguments passed to ssh and the meaning of its words; the real one is in tests/commands/test_ssh.py."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st

from trexbench.config.endpoints import TransportConfig
from trexbench.core.errors import DutError
from trexbench.transport import SshTransport
from trexbench.transport.local import run_bounded
from trexbench.transport.ssh import explain
from trexbench.transport.ssh_master import CannotOpen, open_master
from trexbench.transport.words import remote_command, shown

pytestmark = pytest.mark.portable

_SPECIAL = st.sampled_from(
    ["!", "'", '"', "\\", "\n", "$", "`", "*", "!!", "\\c", "\\0101", "'\\''", "=ls", "^a^b", "~"]
)
_WORD = st.lists(_SPECIAL | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), max_size=5)
WORDS = st.lists(
    _WORD.map("".join) | st.binary(max_size=8).map(lambda b: os.fsdecode(b.replace(b"\0", b""))), max_size=6
)


def through(shell: str, argv: list[str], input: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run the command as sshd does: the login shell with -c and the command."""
    return subprocess.run([shell, "-c", remote_command(argv)], input=input, capture_output=True, timeout=20)


@pytest.mark.parametrize("shell", ["/bin/sh", "bash", "dash", "csh", "tcsh", "fish", "zsh"])
def test_words_arrive_as_they_are_through_any_login_shell(shell: str) -> None:
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")

    @examples(40)
    @given(WORDS)
    def arrives(words: list[str]) -> None:
        done = through(shell, ["printf", "%s\\0", "first", *words])
        assert done.stdout == b"".join(os.fsencode(word) + b"\0" for word in ["first", *words]), done.stderr
        assert done.returncode == 0

    arrives()
    assert through(shell, ["sh", "-c", "exit 255"]).returncode == 255
    assert through(shell, ["tr", "a", "b"], b"a!\n").stdout == b"b!\n"


@given(WORDS)
def test_data_stays_between_single_quotes(words: list[str]) -> None:
    command = remote_command(["echo", *words])
    assert command.isascii() and command.isprintable()
    word = r"'(?:[ -~]*?)'"
    assert re.fullmatch(rf"/bin/sh -c {word} sh(?: {word})*", command)
    assert command.count("'") == 2 * (2 + len(words)), "no quote but those around the words"
    assert "!" not in command and not re.search(r"\\(?!0[0-7]{3})", command)


@given(st.lists(st.text()))
def test_a_command_in_a_message_is_one_short_line_without_programs(argv: list[str]) -> None:
    assert shown(argv).isprintable() and len(shown(argv)) <= 200
    assert shown(["python3", "-c", "\nimport os\n"]) == "python3 -c ..."


CHANGED = """@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!
Offending ED25519 key in /home/me/.ssh/known_hosts:1
Host key for netgate has changed and you have requested strict checking.
Host key verification failed.
"""
UNKNOWN = """No ED25519 host key is known for jump.example.net and you have requested strict checking.
Host key verification failed.
kex_exchange_identification: Connection closed by remote host
"""


@pytest.mark.parametrize(
    ("said", "wrong", "remedy"),
    [
        (CHANGED, "host key of netgate is not the one that known_hosts has", "ssh-keygen -R 'netgate'"),
        (UNKNOWN, "host key of jump.example.net is not in known_hosts", "log in once by hand"),
        ("root@box: Permission denied (publickey).\n", "box accepts none of your keys", "ssh-add"),
        (
            "ssh: Could not resolve hostname bxo: Name or service not known\n",
            "address is known for bxo",
            "transport.host",
        ),
        ("ssh: connect to host 192.0.2.1 port 22: Connection refused\n", "port 22 of 192.0.2.1", "start sshd"),
        ("ssh: connect to host 192.0.2.1 port 22: Connection timed out\n", "192.0.2.1 cannot be reached", "is up"),
        ("Connection timed out during banner exchange\n", "box cannot be reached", "is up"),
        ("Unable to negotiate with 192.0.2.1 port 22: no matching host key type found.\n", "in common", "ssh box"),
        (
            "/x: line 1: Bad configuration option: nosuch\n/x: terminating, 1 bad configuration options\n",
            "config",
            "box",
        ),
        ("something new in ssh\x1b[0m\n", "ssh to box failed (something new in ssh?[0m)", "ssh box"),
        ("", "ssh to box failed (it said nothing)", "ssh box"),
    ],
)
def test_what_ssh_says_is_explained_in_one_line(said: str, wrong: str, remedy: str) -> None:
    found = explain(said, "box", "ssh box")
    assert wrong in found[0] and remedy in found[1]
    assert all(part.isprintable() for part in found)


@given(st.text())
def test_whatever_ssh_says_is_one_line(said: str) -> None:
    assert all(part.isprintable() for part in explain(said, "box", "ssh box"))


def test_bounded_in_time() -> None:
    ended = run_bounded(["sh", "-c", "echo begun; sleep 20 & sleep 20"], b"", 0.3, 1000)
    assert (ended.cut, ended.stdout, ended.returncode) == ("time", b"begun\n", -9)
    closed = run_bounded(["sh", "-c", "exec >&- 2>&-; sleep 20"], b"", 0.3, 1000)
    assert closed.cut == "time", "with its outputs closed too"
    assert run_bounded(["sh", "-c", "while :; do echo a; done"], b"", 0.3, 1 << 40).cut == "time"


def test_large_input_is_fed_while_output_is_read() -> None:
    text = b"x" * 3_000_000
    assert run_bounded(["cat"], text, 20, 1 << 24).stdout == text
    assert run_bounded(["sh", "-c", "sleep 0.2; cat"], text, 20, 1 << 24).stdout == text, "that listens late"
    assert run_bounded(["true"], text, 20, 1 << 24).returncode == 0


@pytest.fixture
def short() -> Iterator[Path]:
    """A directory with a short path: a socket's has 107 bytes."""
    path = Path("/tmp") / f"tbx-unit-{os.getpid()}"
    path.mkdir()
    yield path
    shutil.rmtree(path)


def fake_ssh(folder: Path, script: str) -> tuple[str, ...]:
    """A program in place of ssh that writes down its words, one a line."""
    path = folder / "fake"
    path.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >> {folder}/words\n{script}\n')
    path.chmod(0o755)
    return (str(path),)


@pytest.mark.parametrize("place", ["run", "r" * 120, "r${HOME}", "per%cent and blank"])
def test_the_socket_lies_in_a_private_directory_with_a_short_path(short: Path, place: str) -> None:
    ssh = fake_ssh(short, f'for w; do case $w in */c) ls -ld "${{w%/c}}" > {short}/mode; esac; done; exit 255')
    with pytest.raises(CannotOpen):
        open_master(ssh, "box", short / place)
    words = (short / "words").read_text().splitlines()
    control = words[words.index("-S") + 1]
    assert len(control) + 17 <= 107
    assert control.replace("%%", "").count("%") == 0
    if place == "run":
        assert control.startswith(str(short / place))
        assert (short / "mode").read_text().startswith("drwx------")
    assert not Path(control.replace("%%", "%")).parent.exists(), "and is gone when nothing came of it"


def test_ssh_never_asks_and_always_checks_the_host_key(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path(*fake_ssh(short, "env >> $(dirname $0)/env; exit 255")).rename(short / "ssh")
    monkeypatch.setenv("PATH", f"{short}:{os.environ['PATH']}")
    monkeypatch.setenv("SSH_ASKPASS", "/usr/bin/ask")
    with pytest.raises(DutError, match="ssh to netgate failed"):
        SshTransport(TransportConfig("ssh", None, "netgate", "root", 2222), short, Path("/my config")).run(["true"], 5)
    words = (short / "words").read_text().splitlines()
    assert {"-oBatchMode=yes", "-oStrictHostKeyChecking=yes", "-F/my config", "netgate", "-M"} <= set(words)
    assert words[words.index("-l") + 1] == "root" and words[words.index("-p") + 1] == "2222"
    assert words.index("--") == words.index("netgate") - 1
    environment = (short / "env").read_text().splitlines()
    assert "LC_ALL=C" in environment and "SSH_ASKPASS=/usr/bin/ask" not in environment


@pytest.mark.parametrize(("host", "user"), [("-oProxyCommand=id", None), ("", None), ("box", "-x")])
def test_a_host_that_would_be_an_option(host: str, user: str | None) -> None:
    with pytest.raises(DutError, match="not the name of a host"):
        SshTransport(TransportConfig("ssh", None, host, user))


def test_without_ssh(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(short))
    with pytest.raises(DutError, match="ssh is not installed on this machine: install the package openssh-client"):
        SshTransport(TransportConfig("ssh", host="box"), short).run(["true"], 5)


def test_closing_what_was_never_opened_runs_no_ssh(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path(*fake_ssh(short, "exit 0")).rename(short / "ssh")
    monkeypatch.setenv("PATH", f"{short}:{os.environ['PATH']}")
    with closing(SshTransport(TransportConfig("ssh", host="box"), short / "run")) as transport:
        transport.close()
    assert [path.name for path in short.iterdir()] == ["ssh"]
