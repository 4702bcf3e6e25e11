"""Commands on this machine and in namespaces; every failure in one line."""

from __future__ import annotations

import select
import signal

import pytest

from trexbench.config.endpoints import TransportConfig
from trexbench.core.errors import DutError
from trexbench.transport import Completed, LocalTransport, NetnsTransport, Running, Transport, open_transport

pytestmark = pytest.mark.portable


def test_runs_argv_without_a_shell() -> None:
    done = LocalTransport().run(["echo", "$HOME; `id`", "*"], 10)
    assert (done.argv, done.returncode, done.stdout) == (("echo", "$HOME; `id`", "*"), 0, "$HOME; `id` *\n")
    assert LocalTransport().run(["printf", r"\377\n"], 10).stdout == "\ufffd\n", "output that is no text"


def test_feeds_input_and_keeps_the_exit_code() -> None:
    assert LocalTransport().run(["cat"], 10, "abc").stdout == "abc"
    assert LocalTransport().run(["cat"], 10).stdout == ""
    done = LocalTransport().run(["ls", "/nonexistent"], 10)
    assert done.returncode != 0
    assert "No such file" in done.complaint
    assert LocalTransport().run(["false"], 10).complaint == "exit code 1"
    assert LocalTransport().run(["sh", "-c", "kill -9 $$"], 10).complaint == "signal 9"
    for marked in ("Error: no such file\ndelete table ip x\n             ^^", "Error: no such file"):
        assert Completed((), 1, "", f"{marked}\n").complaint == "Error: no such file"


CANNOT_RUN = [
    (LocalTransport(), ["no-such-program-here"], "no-such-program-here is not installed on this machine"),
    (LocalTransport(), ["/"], "/ on this machine cannot be run"),
    (LocalTransport(), ["echo", "a\0b"], "cannot be run"),
    (NetnsTransport("tbx-none"), ["cat"], "namespace tbx-none does not exist: bring it up: ip netns add tbx-none"),
]
UNREACHED = open_transport(TransportConfig("none", host="box"))


@pytest.mark.parametrize(
    ("transport", "argv", "words"),
    [
        *CANNOT_RUN,
        (LocalTransport(), ["sleep", "20"], "sleep 20 on this machine did not end within 0.05 s"),
        (UNREACHED, ["cat"], "cat cannot be run on box: its config has driver: none"),
    ],
)
def test_failures_are_one_line(transport: Transport, argv: list[str], words: str) -> None:
    with pytest.raises(DutError) as caught:
        transport.run(argv, 0.05)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_without_a_place_for_temporary_files_no_program_is_called_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/nonexistent")
    for begin in (lambda: LocalTransport().run(["true"], 5), lambda: LocalTransport().start(["true"])):
        with pytest.raises(DutError, match=r"^true on this machine cannot be run: .*'/nonexistent"):
            begin()


def heard(running: Running, lines: int) -> list[str]:
    found: list[str] = []
    while len(found) < lines and not running.ended:
        assert select.select([running], [], [], 10)[0]
        found += running.lines()
    return found


def test_a_held_process_answers_line_by_line_and_ends_with_its_stdin() -> None:
    with LocalTransport().start(["cat"]) as running:
        running.send(b"one\ntw")
        assert heard(running, 1) == ["one"]
        running.send(b"o\n")
        assert heard(running, 1) == ["two"]
        done = running.finish()
    assert (done.returncode, done.argv) == (0, ("cat",))


def test_what_a_held_process_complains_of() -> None:
    with LocalTransport().start(["ls", "/nonexistent"]) as running:
        assert heard(running, 1) == [] and running.ended
        running.send(b"nobody reads this\n" * 10_000)
        assert "No such file" in running.finish().complaint


def test_a_held_process_that_ignores_its_stdin_is_named_and_killed() -> None:
    with LocalTransport().start(["sleep", "30"]) as running:
        with pytest.raises(DutError, match=r"sleep 30 .* does not read its input"):
            running.send(b"x" * (1 << 20), 0.1)
        assert running.finish(0.1).returncode == -signal.SIGKILL


AT_A_PROMPT = open_transport(TransportConfig("cli", host="box", platform="edgeos"))


@pytest.mark.parametrize(
    ("transport", "argv", "words"),
    [
        *CANNOT_RUN,
        (AT_A_PROMPT, ["cat"], "cannot be held open on box: it needs a login"),
        (UNREACHED, ["cat"], "cat cannot be run on box: .* state another driver, and its transport:"),
    ],
)
def test_what_cannot_be_held_open(transport: Transport, argv: list[str], words: str) -> None:
    with pytest.raises(DutError, match=words):
        transport.start(argv)
