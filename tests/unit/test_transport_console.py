"""Commands at a serial line's prompt: what comes back, however it is echoed, coloured and split; and every failure."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from serial_line import SerialLine, serial_line

from trexbench.config.endpoints import TransportConfig
from trexbench.core.errors import DutError, DutLost
from trexbench.transport import console, open_transport
from trexbench.transport.console import ConsoleTransport, MarkedReply, console_socket, last_lines, typed_command

SHELLS = {"bash": ("bash", "--norc", "-i"), "busybox": ("busybox", "sh", "-i"), "dash": ("dash", "-i")}
RECORDED = (
    b"\x1b[6nip link\r\nprintf '\\036ab1<';ip link\r\n\x1eab1<1: lo: <LOOPBACK,UP>\n\x1eab1=0\x1e"
    b"Warning: \x1b[31mold\x1b[0m\n\x1eab1>"
)


@pytest.fixture(params=[name for name in SHELLS if shutil.which(name)])
def line(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SerialLine]:
    with serial_line(console_socket(tmp_path, "tbm-dut"), SHELLS[request.param], piece=7) as found:
        yield found


@pytest.fixture
def there(line: SerialLine, tmp_path: Path) -> Iterator[ConsoleTransport]:
    found = open_transport(TransportConfig("console", "tbm-dut"), tmp_path)
    assert isinstance(found, ConsoleTransport)
    yield found
    found.close()


def test_a_reply_is_read_however_it_is_split() -> None:
    chance = random.Random(7)
    for _ in range(300):
        reply, at, answers = MarkedReply("ab1"), 0, []
        while at < len(RECORDED):
            end = at + chance.randint(1, 20)
            answers.append(reply.feed(RECORDED[at:end]))
            at = end
        assert set(answers[:-1]) <= {None}
        assert answers[-1] == (0, "1: lo: <LOOPBACK,UP>\n", "Warning: \x1b[31mold\x1b[0m\n")


def test_an_echo_of_the_command_is_no_reply() -> None:
    reply = MarkedReply("ab1")
    assert reply.feed(typed_command(("echo", "x"), None, "ab1").encode()) is None
    assert reply.feed(RECORDED.replace(b"ab1", b"ab0")) is None
    assert reply.feed(RECORDED) is not None


def test_commands_at_a_real_prompt(there: ConsoleTransport) -> None:
    assert there.place == "console of tbm-dut"
    done = there.run(("sh", "-c", "echo out; echo err >&2; exit 7"), 10)
    assert (done.returncode, done.stdout, done.stderr, done.complaint) == (7, "out\n", "err\n", "err")
    words = ("printf", "%s|", "a b", "it's", "$HOME", "`id`", "\\n", "!", "", "\N{SNOWMAN}", "two\nlines")
    assert there.run(words, 10).stdout == "|".join(words[2:]) + "|"
    text = "one\ntwo 'three' \\ %s\x03\x04 \N{SNOWMAN}\n" * 300
    assert there.run(("cat",), 10, text).stdout == text
    assert there.run(("cat",), 10).stdout == ""  # a command never reads what is typed next
    assert there.run(("true",), 10).complaint == "exit code 0"
    done = there.run(("sh", "-c", "echo Kernel panic - not syncing; sleep 0.3; echo alive"), 20)
    assert done.stdout == "Kernel panic - not syncing\nalive\n", "a command's own words"


@pytest.mark.parametrize("how", ["closed", "dropped"])
def test_the_next_user_finds_a_prompt(there: ConsoleTransport, tmp_path: Path, how: str) -> None:
    """The user before said goodbye, or was killed."""
    there.run(("true",), 10)
    if how == "closed":
        there.close()
    else:
        there._drop()
    following = ConsoleTransport(console_socket(tmp_path, "tbm-dut"), "it")
    assert following.run(("echo", "again"), 10).stdout == "again\n"
    following.close()


def test_only_a_loop_is_ready_whatever_of_its_line_was_thrown_away() -> None:
    typed, word = console._LOOP.decode(), console._READY.decode()
    for at in range(len(typed)):
        argv = ("sh", "-c", typed[at:])
        said = subprocess.run(argv, input="echo in-$tbx\n", capture_output=True, text=True, check=False, timeout=10)
        assert (word in said.stdout) == ("in-dy" in said.stdout), typed[at:]


def test_a_command_that_hangs_or_prints_too_much_is_ended_by_the_next(
    there: ConsoleTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DutError, match=r"sleep 60 on console of tbm-dut did not end within 0.3 s"):
        there.run(("sleep", "60"), 0.3)
    assert there.run(("echo", "next"), 10).stdout == "next\n"
    monkeypatch.setattr(console, "OUTPUT_LIMIT_BYTES", 1000)
    with pytest.raises(DutError, match="printed more than 1000 bytes"):
        there.run(("sh", "-c", "while :; do echo much; done"), 10)
    assert there.run(("echo", "next"), 10).stdout == "next\n"


def test_what_cannot_be_run(there: ConsoleTransport, line: SerialLine) -> None:
    with pytest.raises(DutError, match="nonesuch is not installed on console of tbm-dut"):
        there.run(("nonesuch",), 10)
    with pytest.raises(DutError, match="cannot be held open"):
        there.start(("sleep", "9"))
    line.end()
    with pytest.raises(DutLost, match="its virtual machine has ended"):
        there.run(("true",), 10)


def test_no_machine_and_no_shell_are_said_in_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DutError, match=r"cannot be reached \(No such file or directory\): bring it up: it"):
        open_transport(TransportConfig("console", "none"), tmp_path, "it").run(("true",), 5)
    monkeypatch.setattr(console, "READY_S", 0.2)
    monkeypatch.setattr(console, "_AGAIN_S", 0.05)
    loader = "trap '' 2; printf '>'; while read -r x; do printf '\033[31mno such command\r\n'; done"
    words = r"shows no shell's prompt within 0.2 s: its console said: .*no such command"
    with serial_line(tmp_path / "line", ("sh", "-c", loader)), pytest.raises(DutLost, match=words):
        ConsoleTransport(tmp_path / "line", "it").run(("true",), 5)


def test_what_is_no_command_is_refused_as_by_ssh() -> None:
    for argv in ((), ("",), ("-c", "ls"), ("A=b", "ls"), ("a" * 200_000,)):
        with pytest.raises(DutError, match="cannot be run"):
            typed_command(argv, None, "ab1")


def test_a_panic_ends_the_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "_PANIC_S", 0.1)
    said = "echo; echo '[ 9.1] Kernel panic - not syncing: Fatal exception'; sleep 60"
    with serial_line(tmp_path / "line", ("dash", "-i")):
        there = ConsoleTransport(tmp_path / "line", "it")
        with pytest.raises(DutLost, match=r"it: its kernel panicked while sh .*: \[ 9.1\] Kernel panic"):
            there.run(("sh", "-c", said), 20)


def test_last_lines_are_one_line_without_escapes() -> None:
    said = last_lines(b"\x1b[2J1\r\n" + b"".join(b"%d\r\n" % number for number in range(2, 14)) + b"\x1b[6n\a\xff")
    assert said == "its console said: " + " | ".join([*map(str, range(5, 14)), "\N{REPLACEMENT CHARACTER}"])
    assert last_lines(b"") == "its console said nothing"
