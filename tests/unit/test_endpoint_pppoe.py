"""PPPoE by pppd: what it is told, where no secret is seen, and what its recorded logs say however they arrive."""

from __future__ import annotations

import json
import re
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st

from trexbench.endpoint.programs import pppoe
from trexbench.endpoint.programs.common import ProgramFailure
from trexbench.endpoint.programs.pppoe import STARTER, PppdLog, PppoeLine, command, files_of, quoted

LOGS = Path(__file__).parents[1] / "fixtures" / "pppd-2.4.9"
SERVER = {
    "interface": "v0",
    "tun": "tbppp0",
    "own": "100.66.2.2",
    "peer": "100.66.2.1",
    "user": "router",
    "secret": "s3cret",
}
CLIENT = {"interface": "v0", "tun": "tbppp0", "user": "router", "secret": "s3cret"}
SERVED = {"own": "100.66.2.2", "peer": "100.66.2.1", "auth": "CHAP", "user": "router"}
DIALLED = {"own": "100.66.2.1", "peer": "100.66.2.2", "auth": "CHAP"}
SESSIONS: dict[str, tuple[dict[str, str], list[tuple[str, str]]]] = {
    "chap-server": (SERVED, [("up", ""), ("down", "LCP terminated by peer (User request)")]),
    "chap-client": (DIALLED, [("up", "")]),
    "pap-server": ({**SERVED, "auth": "PAP"}, [("up", ""), ("down", "LCP terminated by peer (User request)")]),
    "pap-client": ({**DIALLED, "auth": "PAP"}, [("up", "")]),
    "refused-server": ({"user": "router"}, [("down", "Peer router failed CHAP authentication")]),
    "refused-client": ({}, [("down", "CHAP authentication failed: Access denied")]),
}
"""By log: what is known of its session, and its changes with their reasons."""


def taken(name: str, cuts: list[int], six: bool = True) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Feed a log in parts, and return what is known at its end, and the changes."""
    data = (LOGS / f"{name}.log").read_bytes()
    log, seen, known = PppdLog(six and name.startswith("chap")), list[tuple[str, str]](), dict[str, str]()
    edges = [0, *sorted(cut % len(data) for cut in cuts), len(data)]
    for start, end in pairwise(edges):
        for line in log.lines_of(data[start:end]):
            if change := log.take(line):
                seen.append((change, log.why))
            known.update(log.said)
    return known, seen


@pytest.mark.parametrize("name", SESSIONS)
def test_a_log_is_read_wherever_it_is_cut(name: str) -> None:
    whole = taken(name, [])
    assert whole[1] == SESSIONS[name][1] and SESSIONS[name][0].items() <= whole[0].items()

    @given(st.lists(st.integers(0, 1 << 20), max_size=30))
    @examples(100)
    def cut(cuts: list[int]) -> None:
        assert taken(name, cuts) == whole

    cut()


@given(st.binary(max_size=300), st.booleans())
@examples(200)
def test_what_is_no_log_is_read_without_an_error(data: bytes, six: bool) -> None:
    log = PppdLog(six)
    assert [log.take(line) for line in log.lines_of(data)] == [""] * data.count(b"\n")


def test_ipv6_is_waited_for_where_it_is_asked_for() -> None:
    lines = ["local IP address 10.0.0.1", "remote IP address 10.0.0.2", "remote LL address fe80::1"]
    for six, said in ((True, ["", "", "up"]), (False, ["", "up", ""])):
        log = PppdLog(six)
        assert [log.take(line) for line in lines] == said


def test_a_killed_pppd_gives_way_to_the_next() -> None:
    log = PppdLog(six=False)
    lines = ["pppd 7, PPP session is 1", "local IP address 10.0.0.1", "remote IP address 10.0.0.2"]
    assert [log.take(line) for line in (*lines, lines[0].replace("7", "8"), *lines[1:])] == ["", "", "up"] * 2
    assert log.said["pid"] == "8"


def test_a_session_is_up_whatever_its_log_leaves_out(capfd: pytest.CaptureFixture[str]) -> None:
    line = PppoeLine(CLIENT, serves=False)
    for text in ("local IP address 10.0.0.1", "remote IP address 10.0.0.2"):
        line.take(text)
    up = json.loads(capfd.readouterr().out)["up"]
    assert up == {"interface": "tbppp0", "own": "10.0.0.1", "peer": "10.0.0.2", "user": "", "auth": "none", "mtu": 0}


@pytest.mark.parametrize("six", [True, False])
def test_ipv6_is_let_in_by_its_own_interface_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, six: bool) -> None:
    """Nothing that a killed program would leave, since the setting goes with the interface."""
    monkeypatch.setattr(pppoe, "CONF6", str(tmp_path))
    for name in ("default", "tbppp0"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "disable_ipv6").write_text("1\n")
    line = PppoeLine({**CLIENT, "ipv6": ["fd00::1", "fd00::2"]} if six else CLIENT, serves=False)
    text, _, _ = (LOGS / "chap-client.log").read_text().partition("sent [LCP")
    for one in text.splitlines():
        line.take(one)
    assert (tmp_path / "tbppp0" / "disable_ipv6").read_text().strip() == ("0" if six else "1")
    assert (tmp_path / "default" / "disable_ipv6").read_text() == "1\n"


@pytest.mark.parametrize("secret", ["s3cret", "a b", "'\"\\#@/x", "ü€", "$(id) %n"])
def test_a_secret_is_in_the_files_of_secrets_alone(secret: str) -> None:
    """pppd reads each byte from its octal number."""
    read_back = re.sub(rb"\\([0-7]{3})", lambda match: bytes([int(match[1], 8)]), quoted(secret).encode())
    assert read_back == b'"' + secret.encode() + b'"'
    for serves, options in ((True, SERVER), (False, CLIENT)):
        asked = {**options, "secret": secret, "service": "internet"}
        files = files_of(asked, serves)
        assert not any(secret in word for word in command(asked, serves))
        for name, text in files.items():
            assert secret not in text and (quoted(secret) in text) == name.endswith("-secrets")


@pytest.mark.parametrize(("role", "package"), [("client", "ppp"), ("server", "pppoe")])
def test_a_package_that_is_missing_is_named_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, role: str, package: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    if role == "server":
        (tmp_path / "pppd").symlink_to("/bin/true")
    with pytest.raises(ProgramFailure, match="is not installed") as raised:
        pppoe.run({"role": role})
    assert raised.value.remedy == f"install it (Debian: {package})"


def test_what_each_end_is_told() -> None:
    assert command(CLIENT, False) == ["pppd"]
    *_, last = command({**SERVER, "service": "internet"}, True)
    assert last == "internet" and "-S" not in command(SERVER, True)
    served, dialled = files_of(SERVER, True)["options"].split("\n"), files_of(CLIENT, False)["options"].split("\n")
    assert {"auth", "require-chap", "require-pap", "100.66.2.2:100.66.2.1", "noipv6"} <= set(served)
    assert {"noauth", "user router", "nic-v0", "ifname tbppp0", "noipv6"} <= set(dialled)
    assert not [line for line in dialled if line.startswith(("re", "+ipv6"))]
    by_pap = {**SERVER, "auth": ["pap"], "ipv6": ["fd00::1", "fd00::2"]}
    assert {"+ipv6", "require-pap"} <= set(files_of(by_pap, True)["options"].split("\n"))
    assert "require-chap" not in files_of(by_pap, True)["options"]
    assert "refuse-chap\n" in files_of({**CLIENT, "auth": ["pap"]}, False)["options"]


@pytest.mark.parametrize(
    "words",
    [
        ["pty", "/usr/sbin/pppoe -n -I v0 -e 7:02:00:00:00:00:0b -S ''", "file", "/etc/ppp/x", "10.0.0.1:10.0.0.2"],
        ["plugin", "rp-pppoe.so", "nic-v0", "rp_pppoe_sess", "7:02:00:00:00:00:0b", "rp_pppoe_service", "", "nodetach"],
    ],
)
def test_the_kernel_takes_the_session_that_pppoe_server_names(tmp_path: Path, words: list[str]) -> None:
    """By the words of version 3.15, and by those of one that passes the session on."""
    start, pppd = tmp_path / "start", tmp_path / "pppd"
    start.write_text(STARTER)
    pppd.write_text('#!/bin/sh\necho "$$ $*"\n')
    pppd.chmod(0o700)
    outer = '(exec sh "$@" >/dev/null); :'  # whose standard output is where pppd's log goes
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    argv = ["sh", "-c", outer, "sh", str(start), *words]
    said = subprocess.run(argv, stdout=subprocess.PIPE, text=True, timeout=20, env=environment).stdout
    match = re.fullmatch(r"pppd (\d+), PPP session is 7\n(\d+) rp_pppoe_sess 7:02:00:00:00:00:0b\n", said)
    assert match and match[1] == match[2]
