"""A DUT that is known by commands only: its config, its plan, its facts and its counters."""

from __future__ import annotations

import tempfile
from pathlib import Path

import msgspec
import pytest
from boxes import Says
from effort import scaled
from hypothesis import given, settings
from hypothesis import strategies as st

from trexbench.config.model import DutConfig
from trexbench.config.schema import read_dut
from trexbench.core.dut.telemetry import CpuTime, DropCount, PortCount
from trexbench.core.errors import ConfigError, DutError
from trexbench.core.patterns import LONGEST_TEXT, find
from trexbench.dut import Wanted, open_dut
from trexbench.dut.apply import apply, revert
from trexbench.dut.commands.driver import observation
from trexbench.dut.journal import FileJournal
from trexbench.transport import LocalTransport

HEAD = "driver: commands\ntransport: {type: local}\nports: [{tester: 0}, {tester: 1}]\n"


def config(folder: Path, text: str) -> DutConfig:
    path = folder / "box.yaml"
    path.write_text(HEAD + text)
    return read_dut(path)


def in_files(folder: Path) -> DutConfig:
    """A "router" whose settings are files in a folder, so that real commands set, show and undo them."""
    return config(
        folder,
        f"""\
commands:
  apply:
    - what: forwarding
      run: [[touch, "{folder}/forwarding"], [touch, "{folder}/it's; $(touch evil)"]]
      check: [ls, "{folder}"]
      matches: ^forwarding$
      undo: [rm, "{folder}/forwarding"]
      undone_if: No such file
    - what: the neighbour
      run: [cp, "{folder}/box.yaml", "{folder}/{{mac 1}}"]
      check: [find, "{folder}", -name, "{{mac 1}}"]
      matches: "{{mac 1}}$"
      undo: [rm, "{folder}/{{mac 1}}"]
  verify:
    - {{what: which router, run: [head, "-n", "1", "{folder}/box.yaml"], matches: "driver: (.*)"}}
""",
    )


MACS = {0: "02:00:00:00:00:0A", 1: "02:00:00:00:00:0B"}


def test_applied_twice_verified_and_reverted(tmp_path: Path) -> None:
    dut_config, transport = in_files(tmp_path), LocalTransport()
    dut, journal = open_dut(Wanted(dut_config, MACS), transport), FileJournal("box", tmp_path / "state")
    assert [(one.what, one.was is not None) for one in dut.plan()] == [("forwarding", True), ("the neighbour", True)]
    found = dut.verify()
    assert [one.what for one in found.mismatches] == ["forwarding", "the neighbour"]
    assert found.mismatches[1].wanted == "/02:00:00:00:00:0b$/" and found.mismatches[1].found == "nothing"
    assert len(apply(dut, transport, journal)) == 2
    assert (tmp_path / "it's; $(touch evil)").exists()  # what looks like a shell's program text is a word
    assert not Path("evil").exists() and (tmp_path / "02:00:00:00:00:0b").exists()
    assert apply(dut, transport, journal) == ()
    found = dut.verify().require_match()
    assert found.attested and found.facts["which router"] == "commands" and found.facts["forwarding"] == "forwarding"
    assert found.digest == dut.verify().digest and found.spreading is not None and not found.spreading.queues
    (tmp_path / "forwarding").unlink()  # somebody else undid it: undone_if
    assert [one.what for one in revert(dut, transport, journal).reverted] == ["the neighbour", "forwarding"]
    assert not journal.entries() and not (tmp_path / "02:00:00:00:00:0b").exists()


def test_a_half_failed_apply_is_reverted(tmp_path: Path) -> None:
    dut_config, transport = in_files(tmp_path), LocalTransport()
    dut, journal = open_dut(Wanted(dut_config, MACS), transport), FileJournal("box", tmp_path / "state")
    (tmp_path / "box.yaml").unlink()  # so that cp fails
    with pytest.raises(DutError, match=r"the neighbour: cp .* failed.*dut revert"):
        apply(dut, transport, journal)
    assert (tmp_path / "forwarding").exists() and len(journal.entries()) == 2
    with pytest.raises(DutError, match="not everything could be reverted: the neighbour"):
        revert(dut, transport, journal)
    assert not (tmp_path / "forwarding").exists()


def test_a_mac_that_nobody_names(tmp_path: Path) -> None:
    dut = open_dut(Wanted(in_files(tmp_path)), LocalTransport())
    with pytest.raises(ConfigError, match=r"\{mac 1\}: the generator did not name"):
        dut.plan()


def test_a_check_that_cannot_be_run_is_no_answer(tmp_path: Path) -> None:
    step = "{what: a, run: [touch, x], check: [sh, -c, exit 126], matches: c, undo: [true]}"
    dut = open_dut(Wanted(config(tmp_path, f"commands: {{apply: [{step}]}}\n")), LocalTransport())
    with pytest.raises(DutError, match=r"sh -c 'exit 126' failed on this machine"):
        dut.plan()


def test_a_restart_is_told_by_the_identity(tmp_path: Path) -> None:
    boot = tmp_path / "boot"
    more = f'commands: {{identity: {{what: boot, run: [cat, "{boot}"], matches: "boot (.+)"}}}}\n'
    dut = open_dut(Wanted(config(tmp_path, more)), LocalTransport())
    boot.write_text("boot 1\n")
    assert dut.identity() == "1"
    boot.write_text("down\n")
    with pytest.raises(DutError, match=r"box: cat .*/boot prints 'down', and no /boot \(\.\+\)/"):
        dut.identity()
    dut = open_dut(Wanted(config(tmp_path, "")), LocalTransport())
    assert dut.identity() == ""
    assert not dut.verify().attested and "names nothing to read back" in dut.verify().reason


STEP = "{what: a, run: [a], check: [b], matches: c, undo: [d]}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"apply: [{STEP.replace('matches: c', 'matches: (a')}]", ":4: commands.apply[0].matches: '(a' is no regular"),
        (f"apply: [{STEP}, {STEP}]", "what is set or read: a is on line 4 already"),
        (f"apply: [{STEP.replace('run: [a]', 'run: a b')}]", "run: a line, which transport local does not take"),
        (f"apply: [{STEP.replace('run: [a]', 'run: [a, [b]]')}]", "neither a command nor a list of commands"),
        (f"apply: [{STEP.replace('check: [b]', 'check: [[b], [c]]')}]", "check: more than one command"),
        ("apply: [" + STEP.replace("[d]", "[d, '{mac 7}']") + "]", "undo[1]: port 7 is not under ports"),
        ("counters: [{run: [a], packets: [{port: 2}]}]", "packets[0].port: port 2 is not under ports"),
        ("counters: [{run: [a], drops: [{name: x, matches: no}]}]", "'no' has 0 groups"),
        ("counters: [{run: [a], cpus: '(\\d+)'}]", "no group busy or none idle"),
        ("clock: 1ghz", "clock: no counters have cpus:"),
        (f"apply: [{STEP.replace('matches: c', 'matches: ' + 'x' * 1001)}]", "a pattern of 1001 characters"),
    ],
)
def test_a_wrong_config_is_told_in_one_line(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config(tmp_path, f"commands: {{{text}}}\n")
    message = str(caught.value)
    assert words in message and message.startswith(f"{tmp_path}/box.yaml:4: ") and "\n" not in message


COUNTERS = r"""
commands:
  clock: 880mhz
  counters:
    - run: [cat, /proc/net/dev]
      packets:
        - {port: 0, rx: 'eth1:\s+\d+\s+(\d+)', tx: 'eth1:(?:\s+\d+){9}\s+(\d+)'}
        - {port: 1, rx: 'eth2:\s+\d+\s+(\d+)', tx: 'eth2:(?:\s+\d+){9}\s+(\S+)'}
      drops:
        - {name: rx_dropped, port: 0, matches: 'eth1:(?:\s+\d+){3}\s+(\d+)'}
        - {name: tx_dropped, matches: 'no such line (\d+)'}
    - run: [cat, /proc/stat]
      cpus: '^cpu(?P<cpu>\d+) (?P<busy1>\d+) \d+ (?P<busy2>\d+) (?P<idle1>\d+) (?P<idle2>\d+) \d+ (?P<packet>\d+)'
    - run: [cat, /proc/uptime]
      time: '^([\d.]+)'
"""
NET_DEV = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop
  eth1: 6400 100 0 7 0 0 0 0 3200 50 0 0 0 0 0 0
  eth2: 3200 50 0 0 0 0 0 0 6400 1'093 0 0 0 0 0 0
"""
STAT = "cpu  9 9 9 9 9 9 9 9\ncpu0 100 0 100 500 0 0 300 0 0 0\ncpu1 0 0 0 1000 0 0 0 0 0 0\nintr 1\n"


def test_counters_of_what_is_printed(tmp_path: Path) -> None:
    settings = config(tmp_path, COUNTERS).commands
    found = observation(settings, [NET_DEV, STAT, "12.5 3.0\n"])
    assert found.ports == (PortCount(0, 100, 50), PortCount(1, 50, 1093))
    assert found.drops == (DropCount("rx_dropped", 7, 0),)
    assert found.cpus == (CpuTime(0, 10.0, 5.0, 3.0, 880e6), CpuTime(1, 10.0, 0.0, 0.0, 880e6))
    assert found.at_s == 12.5
    assert [(one.what, one.reason) for one in found.missing] == [("tx_dropped", r"/no such line (\d+)/ found nothing")]


@settings(max_examples=scaled(100, 12))
@given(st.text(alphabet="eth1: 0123456789einfa.-\n cpu", max_size=80), st.data())
def test_damaged_output_is_counted_or_missing(text: str, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        settings = config(Path(folder), COUNTERS.replace(r"(\d+)", r"(\S+)").replace(r"\d+)", r"\S+)")).commands
    whole = data.draw(st.sampled_from([NET_DEV, STAT, "12.5\n"]))
    at = data.draw(st.integers(0, len(whole)))
    damaged = whole[:at] + text + whole[at:]
    seen = observation(settings, [damaged, damaged, damaged])
    assert msgspec.json.decode(msgspec.json.encode(seen))["cpus"] is not None
    assert len(seen.ports) == 2 and all(one.total_s < 1e20 for one in seen.cpus)


def test_a_command_that_fails_costs_its_own_counters_only(tmp_path: Path) -> None:
    dut = open_dut(Wanted(config(tmp_path, COUNTERS.replace("/proc/stat", "/proc/nothing"))), LocalTransport())
    seen = dut.observe()
    assert not seen.cpus and seen.at_s is not None
    assert any("cat /proc/nothing" in one.what and "No such file" in one.reason for one in seen.missing)
    lost = config(tmp_path, COUNTERS.replace("cat,", "false,"))
    with pytest.raises(DutError, match="false /proc/net/dev failed"):
        open_dut(Wanted(lost), LocalTransport()).observe()


def test_a_long_output_is_cut_off(tmp_path: Path) -> None:
    step = "{what: a, run: [a], check: [b], matches: forwarding, undo: [d]}"
    chatty = Says("x" * LONGEST_TEXT + "\nforwarding\n")
    (only,) = open_dut(Wanted(config(tmp_path, f"commands: {{apply: [{step}]}}\n")), chatty).plan()
    assert only.was is not None and len(only.was) == 80


def test_a_pattern_that_goes_back_and_forth_is_given_up() -> None:
    with pytest.raises(DutError, match=r"looking for '\(a\+\)\+b' took more than 0.25 s"):
        find("(a+)+b", "a" * 5000)


@pytest.mark.parametrize("pattern", ["a(b", "*", "(?P<x>a)(?P<x", "[z-a]", "(?<=a*b", "\\", "a{99999999999}", "(?1"])
def test_no_pattern_is_worse_than_refused(pattern: str) -> None:
    with pytest.raises(ConfigError) as caught:
        find(pattern, "")
    assert "\n" not in str(caught.value)
