"""The words of a virtual machine's console until a shell waits there, and what is typed."""

from __future__ import annotations

import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from trexbench.config.lab import ConsoleLogin, LabVm
from trexbench.config.lookup import load_dut
from trexbench.core.errors import LabError
from trexbench.lab import LabSpec, boot, net
from trexbench.lab.boot import Dialogue
from trexbench.transport.console import console_socket

PASSWORD = "s3cret-word"
LOGIN = ConsoleLogin("admin", "ROUTER_PASSWORD", then=("8",))
PFSENSE = r"(?:Enter an option:|[#$]) *$"


def heard(*pieces: bytes, login: ConsoleLogin | None = None, prompt: str = LabVm().prompt) -> Dialogue:
    talk = Dialogue("it", prompt, login, PASSWORD if login is not None else "")
    for piece in pieces:
        talk.hear(piece)
    return talk


@pytest.mark.parametrize("said", [b"boot\r\n\x1b[6nlab-vm-linux# \x1b[6n", b"\x1b[32mroot@OpenWrt\x1b[0m:/# ", b"$ "])
def test_a_prompt_is_found_behind_what_moves_the_cursor(said: bytes) -> None:
    assert heard(said).waits_for() == "shell"
    for after in (b"\r\n", b"\r\nmore"):  # a line that has ended is no prompt
        assert not heard(said, after).waits_for()
    assert not heard(b"").waits_for() and not heard(b"Last login: ").waits_for()


def test_a_kernel_that_panics_is_quoted() -> None:
    said = b"[1.0] Kernel panic - not syncing: VFS: no root\r\n[1.1] more\r\n"
    with pytest.raises(LabError, match=r"it panicked: .*no root \| \[1.1\] more"):
        heard(said).waits_for()


def test_what_is_typed_from_the_question_for_a_name_to_a_shell() -> None:
    talk, typed = heard(login=LOGIN, prompt=PFSENSE), []
    for said in (b"FreeBSD\r\n\r\nlogin: ", b"admin\r\nPassword: ", b"\r\n 8) Shell\r\nEnter an option: ", b"8\r\n# "):
        talk.hear(said)
        typed.append(talk.reply(talk.waits_for()))
        assert talk.waits_for() == ""  # until it says more
    assert typed == [b"admin\n", f"{PASSWORD}\n".encode(), b"8\n", None]


def test_a_password_that_is_refused_or_shown() -> None:
    talk = heard(b"login: ", login=LOGIN)
    talk.reply(talk.waits_for())
    talk.hear(b"admin\r\nPassword: ")
    talk.reply(talk.waits_for())
    for piece in (b"s3cret", b"-word\r\nLogin incorrect\r\nlogin: "):
        talk.hear(piece)
    assert talk.waits_for() == "name"
    with pytest.raises(LabError, match=r"it does not let admin in: correct .* \*\*\* \| Login incorrect") as caught:
        talk.reply("name")
    assert PASSWORD not in str(caught.value)


def test_a_name_that_was_not_heard_is_typed_again() -> None:
    talk = heard(b"login: ", login=LOGIN)
    for _ in range(3):
        assert talk.reply("name") == b"admin\n"
        talk.hear(b"\r\nusb 1-1: new device\r\nlogin: ")
    with pytest.raises(LabError, match="it does not let admin in"):
        talk.reply("name")


def test_a_password_that_is_a_word_of_the_consoles() -> None:
    talk = Dialogue("it", LabVm().prompt, LOGIN, "login")
    talk.hear(b"router login: ")
    assert talk.waits_for() == "name" and talk.said == "its console said: router ***:"


def test_a_server_of_ssh_that_is_slow_to_greet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(net, "inside", lambda _namespace: nullcontext())
    monkeypatch.setattr(boot, "_LOOK_S", 0.01)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        monkeypatch.setattr(boot, "MANAGEMENT_PORT", listening.getsockname()[1])
        asked: list[socket.socket] = []

        def greets_the_first_at_the_third_look() -> bool:
            asked.append(listening.accept()[0] if not asked else asked[0])
            if len(asked) == 3:
                asked[0].sendall(b"SSH-2.0-OpenSSH")
            return False

        assert boot._greets(LabSpec(), greets_the_first_at_the_third_look) and len(asked) >= 3
        asked[0].close()
        assert not boot._greets(LabSpec(), lambda: True)


def test_a_console_that_never_ends_is_forgotten() -> None:
    talk = heard(*(b"y\n" * 40_000 for _ in range(3)), b"login: ", login=LOGIN)
    assert len(talk.heard) <= 1 << 16 and talk.waits_for() == "name"
    talk.reply("name")
    talk.hear(b"n\n" * 40_000)
    assert talk.waits_for() == ""


@pytest.fixture
def wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Wait for the prompt of a machine whose console says these pieces, with a pause after each."""
    monkeypatch.setenv("TREXBENCH_RUN_DIR", str(tmp_path))
    with socket.socket(socket.AF_UNIX) as listening, subprocess.Popen(["sleep", "60"]) as machine:
        listening.bind(str(console_socket(tmp_path, "tbm-dut")))
        listening.listen()

        def await_it(*pieces: bytes, **changes: object) -> None:
            def say() -> None:
                user, _ = listening.accept()
                with user:
                    for piece in pieces:
                        user.sendall(piece)
                        time.sleep(0.3)
                    user.recv(100)

            speaker = threading.Thread(target=say, daemon=True)
            speaker.start()
            spec = LabSpec.from_config(load_dut("lab-vm-linux"))
            stated = replace(spec.settings, vm=replace(spec.settings.vm, **changes))  # type: ignore[arg-type]
            boot.await_shell(replace(spec, settings=stated), machine, "log", lambda: False)
            speaker.join()

        yield await_it
        machine.kill()


def test_a_console_that_logs_in_by_itself(wait: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(boot._QUIET_S, "name", 30.0)
    wait(b"Debian 12\r\nrouter login: ", b"root (automatic login)\r\nLast login: ", b"Mon\r\nroot@router:~# ")


@pytest.mark.parametrize("asks", [b"Debian 12\r\nrouter login: ", b"Debian 12\r\nPassword: "])
def test_a_console_at_which_no_shell_will_wait(
    wait: Callable[..., None], monkeypatch: pytest.MonkeyPatch, asks: bytes
) -> None:
    monkeypatch.setattr(boot, "_QUIET_S", {"shell": 0.05, "name": 0.05, "password": 0.05})
    with pytest.raises(LabError, match=r"tbm asks for a login at its console: .* said: Debian 12 \| (router|Pass)"):
        wait(asks)
