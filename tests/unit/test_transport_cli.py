"""Lines typed at a prompt: what ends a wait, and what is said of each failure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from trexbench.config.endpoints import TransportConfig
from trexbench.core.errors import DutError, DutLost
from trexbench.transport.cli import CliTransport

paramiko = pytest.importorskip("paramiko", reason="needs pip install 'trexbench[cli]'")
from cli_server import PASSWORD, CliServer, cli_server  # noqa: E402

pytestmark = pytest.mark.portable

ADD = "/ip address add address=10.0.0.1/24 interface=ether2"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[CliServer]:
    (tmp_path / "secret").write_text(f"{PASSWORD}\n")
    with cli_server(tmp_path, "routeros") as found:
        yield found


def transport(server: CliServer, **changes: str) -> CliTransport:
    login = {"platform": "mikrotik_routeros", "password_file": str(server.folder / "secret"), "refusal": "^failure:"}
    return CliTransport(TransportConfig("cli", host="dut", user="admin", **(login | changes)), server.client_config)  # type: ignore[arg-type]


def test_lines_are_typed_in_one_session(server: CliServer) -> None:
    there = transport(server)
    assert there.run((ADD,), 10).stdout == ""
    done = there.run(('/ip address print terse where address="10.0.0.1/24"',), 10)
    assert (done.returncode, done.stdout.strip()) == (0, "0   address=10.0.0.1/24 interface=ether2")
    assert there.place == "admin@dut" and server.connections == 1
    refused = there.run((ADD,), 10)
    assert (refused.returncode, refused.complaint) == (126, "failure: already have such address")
    assert there.run((":put [/system resource get version]",), 10).stdout == "7.15.3 (stable)"
    assert server.connections == 2  # after a refusal nobody knows in which mode it is
    there.close()


@pytest.mark.parametrize(
    ("order", "kind", "words"),
    [
        ("hang", DutError, "':put 1' on admin@dut: no prompt came back within 1.5 s"),
        ("endless", DutError, "':put 1' on admin@dut"),
        ("cut", DutLost, "the connection to admin@dut was lost while ':put 1' ran"),
    ],
)
def test_every_wait_has_an_end(server: CliServer, order: str, kind: type[DutError], words: str) -> None:
    there = transport(server)
    server.orders[":put 1"] = order
    with pytest.raises(kind) as caught:
        there.run((":put 1",), 1.5)
    assert words.replace("'", "") in str(caught.value).replace("'", "")
    assert "\n" not in str(caught.value)
    server.orders.clear()
    assert there.run((":put [/system resource get board-name]",), 10).stdout == "RB5009UG+S+"  # a new session
    there.close()


def _writes(name: str, text: str) -> Callable[[CliServer], object]:
    return lambda server: (server.folder / name).write_text(text)


@pytest.mark.parametrize(
    ("spoil", "changes", "words"),
    [
        (_writes("known_hosts", ""), {}, "host key of admin@dut is not in known_hosts .*log in once by hand"),
        (lambda one: one.trust(paramiko.ECDSAKey.generate()), {}, "the host key of admin@dut has changed"),
        (
            _writes("ssh_config", "Host *\n  ForwardAgent\n"),
            {},
            "config: Unparsable line ForwardAgent: correct that line",
        ),
        (_writes("secret", "wrong\n"), {}, "admin@dut accepts neither your keys nor the password"),
        (id, {"platform": "mikrotik_router"}, "knows no platform 'mikrotik_router' over ssh: did you mean mikrotik_ro"),
        (id, {"password_file": "/nonexistent/secret"}, "/nonexistent/secret: No such file"),
        (id, {"password_env": "TREXBENCH_NO_SUCH"}, "the environment has no TREXBENCH_NO_SUCH"),
    ],
)
def test_a_login_that_cannot_be(
    server: CliServer, spoil: Callable[[CliServer], object], changes: dict[str, str], words: str
) -> None:
    spoil(server)
    with pytest.raises(DutError, match=words):
        transport(server, **changes).run((ADD,), 5)
    assert server.connections == 0


def test_nobody_listens(server: CliServer) -> None:
    server.close()
    to = TransportConfig("cli", None, "127.0.0.1", "admin", 1, "mikrotik_routeros", None, str(server.folder / "secret"))
    with pytest.raises(DutLost, match=r"admin@127.0.0.1 cannot be reached by ssh \(.*\)"):
        CliTransport(to, server.folder / "none").run((ADD,), 5)


@pytest.mark.parametrize("argv", [("a", "b"), ("a\nb",), ("a\x03",), ()])
def test_only_single_lines_are_typed(server: CliServer, argv: tuple[str, ...]) -> None:
    with pytest.raises(DutError, match="it takes single lines"):
        transport(server).run(argv, 5)
