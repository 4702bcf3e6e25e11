"""Commands on this machine and in namespaces; every failure in one line."""

from __future__ import annotations

import pytest

from trexbench.core.errors import DutError
from trexbench.transport import LocalTransport, NetnsTransport, open_transport


def test_runs_argv_without_a_shell() -> None:
    done = LocalTransport().run(["echo", "$HOME; `id`", "*"], 10)
    assert (done.argv, done.returncode, done.stdout) == (("echo", "$HOME; `id`", "*"), 0, "$HOME; `id` *\n")
    assert done.duration_s > 0


def test_feeds_input_and_keeps_the_exit_code() -> None:
    assert LocalTransport().run(["cat"], 10, "abc").stdout == "abc"
    done = LocalTransport().run(["ls", "/nonexistent"], 10)
    assert done.returncode != 0
    assert "No such file" in done.complaint


def test_nothing_to_read_where_nothing_is_fed() -> None:
    assert LocalTransport().run(["cat"], 10).stdout == ""


def test_output_that_is_no_text() -> None:
    assert LocalTransport().run(["printf", r"\377\n"], 10).stdout == "\ufffd\n"


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["no-such-program-here"], "no-such-program-here is not installed on this machine"),
        (["sleep", "20"], "sleep 20 on this machine did not end within 0.05 s"),
        (["/"], "/ on this machine cannot be run"),
        (["echo", "a\0b"], "cannot be run"),
    ],
)
def test_failures_are_one_line(argv: list[str], words: str) -> None:
    with pytest.raises(DutError) as caught:
        LocalTransport().run(argv, 0.05)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_silent_failure_has_a_complaint() -> None:
    assert LocalTransport().run(["false"], 10).complaint == "exit code 1"


def test_missing_namespace() -> None:
    with pytest.raises(DutError, match="namespace tbx-none does not exist: bring it up: trexbench lab up"):
        NetnsTransport("tbx-none").run(["true"], 10)


def test_opens_what_there_is() -> None:
    assert isinstance(open_transport("local"), LocalTransport)
    assert open_transport("netns", "tbx-dut").place == "namespace tbx-dut"
    assert open_transport("ssh", host="netgate", user="root").place == "root@netgate"


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("ssh", "transport ssh has no host: write transport.host"),
        ("netns", "transport netns has no namespace"),
        ("telnet", "transport telnet is not known: write one of local, netns, ssh"),
    ],
)
def test_what_cannot_be_opened(kind: str, words: str) -> None:
    with pytest.raises(DutError, match=words):
        open_transport(kind)
