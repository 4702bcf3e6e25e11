"""Commands through a real sshd on loopback: what arrives, what is told when it does not, and what is left behind."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from sshd import WHY_NOT, Sshd, eventually, running_sshd
from tools import ROOT

from trexbench.config.endpoints import TransportConfig
from trexbench.core.errors import DutError
from trexbench.transport import SshTransport, Transport, local
from trexbench.transport.ssh import CONFIG_ENV
from trexbench.transport.ssh_master import CannotOpen, open_master

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "runs")


@pytest.fixture(scope="module")
def server() -> Iterator[Sshd]:
    with running_sshd() as running:
        yield running


@pytest.fixture
def run_dir(server: Sshd) -> Path:
    """Empty, private to one test, and with a short path."""
    path = server.folder / "run"
    shutil.rmtree(path, ignore_errors=True)
    return path


@pytest.fixture
def dut(server: Sshd, run_dir: Path) -> Iterator[SshTransport]:
    with closing(to(server, run_dir)) as transport:
        yield transport


@pytest.fixture(scope="module")
def shared(server: Sshd) -> Iterator[SshTransport]:
    """One for all tests that only have commands run: each of its own would take as long again as the test."""
    with closing(to(server, server.folder / "shared")) as transport:
        yield transport


def to(
    server: Sshd, run_dir: Path, config: Path | None = None, host: str = "dut", port: int | None = None
) -> SshTransport:
    return SshTransport(TransportConfig("ssh", host=host, port=port), run_dir, config or server.client_config)


def masters(run_dir: Path) -> list[int]:
    """Processes of ssh, and shells around it, whose socket is in this directory, by their command lines."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes()
        except OSError:
            continue
        if words.startswith((b"ssh", b"/bin/sh\0-c")) and os.fsencode(run_dir) in words:
            found.append(int(path.parent.name))
    return found


def failure(transport: Transport, *argv: str, timeout_s: float = 20) -> str:
    with pytest.raises(DutError) as caught:
        transport.run(argv or ("true",), timeout_s)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_runs_argv_word_for_word(shared: SshTransport) -> None:
    words = ["$HOME; `id`", "*", "a b", "", "it's", "!!", "two\nlines\n", '"\\"', "~", "ü", "\udcff"]
    done = shared.run(["printf", "%s\\0", *words], 20)
    assert done.argv == ("printf", "%s\\0", *words)
    assert done.stdout == "".join(f"{word}\0" for word in words).replace("\udcff", "\ufffd")
    assert (done.returncode, done.stderr) == (0, "")
    assert shared.place == "dut"


@pytest.mark.parametrize("code", [1, 127, 255])
def test_exit_codes_are_the_commands_own(shared: SshTransport, code: int) -> None:
    done = shared.run(["sh", "-c", f"echo out; echo err >&2; exit {code}"], 20)
    assert (done.returncode, done.stdout, done.stderr) == (code, "out\n", "err\n")


def test_the_language_is_plain_and_system_programs_are_found(shared: SshTransport) -> None:
    assert shared.run(["sh", "-c", "kill -9 $$"], 20).returncode == 128 + 9, "death by a signal is an exit code"
    language, path = shared.run(["sh", "-c", "echo $LC_ALL; echo $PATH"], 20).stdout.splitlines()
    assert language == "C" and {"/sbin", "/usr/sbin"} <= set(path.split(":"))


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["no-such-program-here"], "no-such-program-here is not installed on dut"),
        (["/"], "/ on dut cannot be run"),
        (["eval", "echo hello"], "eval is not installed on dut"),
        (["echo", "a\0b"], "a zero byte"),
        (["-i"], "not a program's name"),
        (["echo", "\ud800"], "not valid text"),
        (["echo", "a" * 200_000], "too long for a command"),
    ],
)
def test_what_cannot_be_run_is_said_in_one_line(shared: SshTransport, argv: list[str], words: str) -> None:
    with pytest.raises(DutError) as caught:
        shared.run(argv, 20)
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_a_command_that_hangs_costs_its_time_and_not_the_connection(server: Sshd, dut: SshTransport) -> None:
    dut.run(["true"], 20)
    before = server.connections
    assert "sleep 8 on dut did not end within 0.3 s" in failure(dut, "sleep", "8", timeout_s=0.3)
    assert dut.run(["echo", "still here"], 20).stdout == "still here\n"
    assert server.connections == before


def test_output_without_end_is_cut_off(dut: SshTransport, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "OUTPUT_LIMIT_BYTES", 100_000)
    assert len(dut.run(["head", "-c", "100000", "/dev/zero"], 20).stdout) == 100_000
    assert "printed more than 100000 bytes" in failure(dut, "cat", "/dev/zero")
    assert "printed more than 100000 bytes" in failure(dut, "sh", "-c", "cat /dev/zero >&2")
    assert dut.run(["echo", "fine"], 20).stdout == "fine\n"


def test_many_commands_share_one_connection(server: Sshd, dut: SshTransport) -> None:
    """Also that of the threads that come first."""
    before = server.connections
    with ThreadPoolExecutor(4) as pool:
        said = pool.map(lambda number: dut.run(["echo", str(number)], 20).stdout, range(20))
        assert list(said) == [f"{number}\n" for number in range(20)]
    for number in range(10):
        assert dut.run(["echo", str(number)], 20).stdout == f"{number}\n"
    assert server.connections == before + 1


def test_a_connection_lost_in_the_middle_is_told_and_opened_again(server: Sshd, dut: SshTransport) -> None:
    dut.run(["true"], 20)
    before = server.connections
    mark = server.folder / "begun"
    mark.unlink(missing_ok=True)

    def cut_when_begun() -> None:
        eventually(mark.exists, "the command has begun")
        server.cut()

    cutter = threading.Thread(target=cut_when_begun)
    cutter.start()
    said = failure(dut, "sh", "-c", f"touch {shlex.quote(str(mark))}; exec sleep 8")
    cutter.join()
    assert said.startswith("the connection to dut was lost while sh -c") and "not known" in said
    assert dut.run(["echo", "again"], 20).stdout == "again\n"
    assert server.connections == before + 1


def test_a_connection_lost_between_commands_is_opened_again(server: Sshd, dut: SshTransport, run_dir: Path) -> None:
    dut.run(["true"], 20)
    server.cut()
    eventually(lambda: not list(run_dir.glob("*/c")), "the client has noticed")
    assert dut.run(["echo", "again"], 20).stdout == "again\n"
    assert len(list(run_dir.iterdir())) == 1, "the former socket's directory is gone"


def test_a_shell_killed_there_is_not_taken_for_the_command(dut: SshTransport) -> None:
    said = failure(dut, "sh", "-c", "kill -9 $PPID")
    assert "did not run to its end" in said


def test_a_changed_host_key(server: Sshd, dut: SshTransport, run_dir: Path) -> None:
    server.trust("other_host")
    try:
        said = failure(dut)
    finally:
        server.trust()
    assert f"the host key of [127.0.0.1]:{server.port} is not the one that known_hosts has" in said
    assert f"ssh-keygen -R '[127.0.0.1]:{server.port}'" in said
    assert not list(run_dir.iterdir())


def test_an_unknown_host_is_not_accepted_whatever_the_config_says(server: Sshd, dut: SshTransport) -> None:
    config = server.client_config.read_text()
    (server.folder / "known_hosts").write_text("")
    server.client_config.write_text(config + "StrictHostKeyChecking no\n")
    try:
        said = failure(dut)
        assert (server.folder / "known_hosts").read_text() == ""
    finally:
        server.client_config.write_text(config)
        server.trust()
    assert f"the host key of [127.0.0.1]:{server.port} is not in known_hosts" in said
    assert f"log in once by hand and compare its fingerprint: ssh -F{server.client_config} dut" in said


def test_settings_for_terminals_do_not_get_in_the_way(server: Sshd, run_dir: Path) -> None:
    config = server.folder / "busy_config"
    config.write_text(
        f"{server.client_config.read_text()}RequestTTY force\nRemoteCommand hostname\nLogLevel DEBUG\n"
        "ControlMaster autoask\nControlPath /nonexistent/%h\nPermitLocalCommand yes\nLocalCommand echo talks\n"
        f"LocalForward {server.port} 127.0.0.1:1\n"
    )
    with closing(to(server, run_dir, config)) as dut:
        done = dut.run(["echo", "quiet"], 20)
    assert (done.returncode, done.stdout, done.stderr) == (0, "quiet\n", "")


def test_through_a_jump_host(server: Sshd, run_dir: Path) -> None:
    config = server.folder / "jump_config"
    text = server.client_config.read_text()
    config.write_text(text + "".join(line.replace("Host dut", "Host far") + "\n" for line in text.splitlines()))
    config.write_text(config.read_text() + "ProxyJump dut\n")
    before, stood = server.connections, server.sessions()
    with closing(to(server, run_dir, config, "far")) as far:
        assert [far.run(["echo", str(n)], 20).stdout for n in range(3)] == ["0\n", "1\n", "2\n"]
    assert server.connections == before + 2, "one to the jump host, one through it"
    eventually(lambda: set(server.sessions()) <= set(stood), "both have ended")


def test_a_login_shell_that_talks() -> None:
    with running_sshd('ForceCommand echo Welcome, stranger; eval "$SSH_ORIGINAL_COMMAND"') as server:
        with closing(to(server, server.folder / "run")) as dut:
            assert "prints something before it runs a command ('Welcome, stranger')" in failure(dut)
        assert not list((server.folder / "run").iterdir())
        eventually(lambda: not server.sessions(), "the connection has ended")


def test_a_server_that_lets_in_and_then_says_nothing() -> None:
    with running_sshd("ForceCommand sleep 5") as server:
        run_dir = server.folder / "run"
        with pytest.raises(CannotOpen) as caught:
            open_master(("ssh", f"-F{server.client_config}"), "dut", run_dir, open_s=2)
        assert caught.value.late
        assert not list(run_dir.iterdir())
        eventually(lambda: not masters(run_dir), "the master is gone")


def test_a_refused_session_opens_no_connection_beside(run_dir: Path) -> None:
    with running_sshd("MaxSessions 1") as server, closing(to(server, server.folder / "run")) as dut:
        dut.run(["true"], 20)
        pool = ThreadPoolExecutor(1)
        go_on = server.folder / "go-on"
        waiting = pool.submit(dut.run, ["sh", "-c", f"until [ -e {go_on} ]; do sleep 0.1; done"], 60)
        eventually(lambda: server.log.count("Starting session") >= 3, "it has begun")
        said = failure(dut)
        assert "did not run to its end" in said and "refused" in said
        go_on.touch()
        assert waiting.result().returncode == 0, "what runs is left alone"
        pool.shutdown()
        assert dut.run(["echo", "free again"], 20).stdout == "free again\n"
        assert server.connections == 1


def test_close_leaves_nothing_and_a_later_command_opens_again(server: Sshd, run_dir: Path) -> None:
    dut = to(server, run_dir)
    dut.close()
    dut.run(["true"], 20)
    (folder,) = run_dir.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert masters(run_dir)
    dut.close()
    dut.close()
    assert not list(run_dir.iterdir())
    eventually(lambda: not masters(run_dir), "the master is gone")
    assert dut.run(["echo", "again"], 20).stdout == "again\n"
    del dut
    eventually(lambda: not masters(run_dir), "nobody refers to it")
    assert not list(run_dir.iterdir())


USER = """
import sys
from pathlib import Path
from trexbench.config.endpoints import TransportConfig
from trexbench.transport import open_transport
transport = open_transport(TransportConfig("ssh", host="dut"), Path(sys.argv[1]))
print(transport.run(["echo", "connected"], 20).stdout, end="", flush=True)
transport.run(["sleep", "15"], 20)
"""


def test_kill_9_leaves_nothing_for_long(server: Sshd, run_dir: Path) -> None:
    environ = {**os.environ, "PYTHONPATH": str(ROOT), CONFIG_ENV: str(server.client_config)}
    argv = [sys.executable, "-c", USER, str(run_dir)]
    with subprocess.Popen(argv, env=environ, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None and run.stdout.readline() == "connected\n"
        assert masters(run_dir)
        run.kill()
    eventually(lambda: not masters(run_dir), "the master is gone", 12)
    eventually(lambda: not list(run_dir.iterdir()), "and the socket's directory")


def test_without_its_guard_a_master_ends_soon_after_its_last_command(server: Sshd, run_dir: Path) -> None:
    ssh = ("ssh", f"-F{server.client_config}")
    with closing(open_master(ssh, "dut", run_dir, persist_s=5)) as master:
        master.guard.kill()
        assert master.answers()
        eventually(lambda: not masters(run_dir), "the master is gone", 20)
        assert not master.alive
    assert not list(run_dir.iterdir())


def test_ctrl_c_ends_the_command_and_leaves_a_connection_for_cleaning_up(server: Sshd, run_dir: Path) -> None:
    with closing(to(server, run_dir)) as dut:
        dut.run(["true"], 20)
        before, sessions = server.connections, server.log.count("Starting session")

        def interrupt() -> None:
            eventually(lambda: server.log.count("Starting session") > sessions, "it has begun")
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

        with pytest.raises(KeyboardInterrupt):
            threading.Thread(target=interrupt).start()
            dut.run(["sleep", "8"], 20)
        assert dut.run(["echo", "revert"], 20).stdout == "revert\n"
        assert server.connections == before
