"""Small promises of the command line that no other file is about."""

from __future__ import annotations

import json
import os
import re
import socket
from pathlib import Path

import click
import pytest
from configs import shipped
from effort import by_day
from runs import make_result
from test_help import COMMANDS
from verbs import empty_directory, python, run  # noqa: F401

from trexbench.cli import main
from trexbench.cli.loads import present
from trexbench.cli.options import Shown
from trexbench.cli.output import OutputForm
from trexbench.config.lookup import load_dut
from trexbench.core.errors import StoreError
from trexbench.dut import Change, Command
from trexbench.dut.journal import STATE_DIR_ENV, Entry, FileJournal, state_dir
from trexbench.lab import host, state
from trexbench.lab.spec import LabSpec
from trexbench.results.store import RunWriter, replace_file
from trexbench.session.keep import Measured

pytestmark = pytest.mark.usefixtures("empty_directory")


def test_dut_verbs_ask_the_tester_at_both_of_its_ports(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text(shipped("netgate-vpp").replace('"68:05:ca:32:45:94"', "tester"))
    with socket.create_server(("127.0.0.1", 0)) as answers, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        rpc, events = answers.getsockname()[1], closed.getsockname()[1]
        ports = ("--rpc-port", str(rpc), "--pub-port", str(events))
        code, _, err = run("dut", "verify", "./r.yaml", "--server", "127.0.0.1", *ports)
    assert code == 5 and f"no TRex server's events at 127.0.0.1:{events}" in err


ARP = """
driver: commands
transport: {type: local}
ports: [{tester: 0}, {tester: 1}]
commands:
  apply:
    - {what: neighbour, check: [echo], matches: "{mac 0}", run: [echo, arp, "{mac 0}"], undo: [echo], lasts: true}
  verify: [{what: version, run: [echo, 7], matches: 7}]
"""


def test_a_zoom_is_refused_on_the_command_line_and_reported_in_a_config(tmp_path: Path) -> None:
    code, _, err = run("ramp", "--dut", "netgate-vpp", "--mode", "64b", "--zoom", "--sim")
    assert code == 2 and err.count("\n") == 1 and "a ramp has no zoom" in err
    assert "--zoom" not in run("ramp", "--help-all").out
    code, _, err = run("ramp", "--dut", "netgate-vpp", "--mode", "64b", "--stop-on-saturation", "--sim")
    assert code == 2 and err.count("\n") == 1 and "a ramp goes on to its target: lower --ramp-to" in err
    (tmp_path / "r.yaml").write_text(f"plan: {{zoom: 60s}}\n{shipped('netgate-vpp')}")
    code, out, _ = run("dut", "check", "./r.yaml")
    assert code == 2 and out == "r.yaml:1: plan.zoom: ignored: a ramp has no zoom: leave it out\n"


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        ("results prune --dry-run", "leave it out"),
        ("fleet status --watch", "use watch -n1 trexbench fleet status"),
        ("fleet worker --tester t1 --scheduler tls://sched:8786", "name it there"),
        ("nightly lab --retry-after 1m", "leave it out"),
    ],
)
def test_former_options_are_refused_with_what_replaced_them(line: str, remedy: str) -> None:
    code, out, err = run(*line.split())
    assert (code, out) == (2, "") and err.count("\n") == 1 and err.endswith(f": {remedy}\n")


def test_a_plan_needs_no_trex_server(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text(ARP)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        where = ("--server", "127.0.0.1", "--rpc-port", str(closed.getsockname()[1]))
        code, out, err = run("dut", "plan", "./r.yaml", *where)
        assert run("dut", "apply", "./r.yaml", *where)[0] == 5
    assert code == 0 and "\necho arp mac-of-port-0  # " in out
    assert "mac-of-port-N stands for the MAC of the tester's port N: no TRex server at 127.0.0.1:" in err


def test_a_plan_undoes_what_former_variants_left_in_each_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STATE_DIR_ENV, str(tmp_path))
    (tmp_path / "r.yaml").write_text(ARP)
    left = Change("a", "0", "1", (Command(("do",), ""),), (Command(("undo",), ""),), variant="nat")
    FileJournal("r", state_dir()).add(Entry("boot", "here", left))
    where = ("dut", "plan", "./r.yaml", "--rpc-port", "1")
    steps = json.loads(run(*where, "--json").out)
    assert [(one["what"], one["back"]) for one in steps] == [("a", True), ("neighbour", False)]
    assert run(*where).out.index("\nundo") < run(*where).out.index("\necho arp")


def test_a_capture_goes_to_standard_output_and_its_name_is_never_a_dash(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(("lab", "profile", "pcap", "64b", "-o", "-", "--count", "3"))
    out, err = capfdbinary.readouterr()
    assert ended.value.code == 0 and b"3 frames" in err
    assert out[:4] == b"\x4d\x3c\xb2\xa1" and len(out) == 24 + 3 * (16 + 60)
    assert not list(tmp_path.iterdir())


def test_a_file_in_a_directory_that_is_not_there_is_refused(tmp_path: Path) -> None:
    RunWriter(Path("results"), print).end(make_result())
    code, _, err = run("report", "-o", "typo/x")
    assert (code, err) == (9, "trexbench: typo/x: No such file or directory: name a place that can be written\n")
    assert not (tmp_path / "typo").exists()


def test_a_picture_is_what_its_name_says() -> None:
    path = RunWriter(Path("results"), print).end(make_result())
    forms = [("x.svg", b"<?xml"), ("x.PNG", b"\x89PNG"), ("x.pdf", b"%PDF"), ("x", b"\x89PNG")]
    for name, begins in by_day(1, forms):
        code, _, err = run("results", "show", str(path), "--picture", name)
        assert code == 0 and Path(name).read_bytes().startswith(begins), err
    code, out, err = run("results", "show", str(path), "--picture", "x.jpeg")
    assert (code, out) == (2, "") and "x.jpeg: pictures cannot be .jpeg" in err and ".png, .svg, .pdf" in err


@pytest.mark.parametrize(("place", "code"), [("results/x.json", 0), ("/tmp/trexbench-1/x.json", 9)])
def test_a_document_that_the_results_could_not_take_has_its_exit_code(place: str, code: int) -> None:
    shown = Shown(Path("results"), picture=False, quiet=True, form=OutputForm("brief"))
    assert present(Measured(make_result(), None, Path(place)), shown) == code


def test_the_remedy_for_a_place_that_cannot_be_written_fits_its_cause() -> None:
    case = ("ramp", "--dut", "netgate-vpp", "--mode", "64b", "--sim")
    for place, remedy in (("/sys/results", "make it writable, or name"), ("/dev/null/results", "directory: name")):
        code, _, err = run(*case, "--results", place)
        assert code == 9 and f"{place} cannot be written" in err and f"{remedy} another place with --results" in err
    with pytest.raises(StoreError, match="No space left on device: free space, or name another place"):
        replace_file(Path("/dev/full"), b"x")


PROFILE = """
from trex_stl_lib.api import *

class Mine:
    def get_streams(self, **others):
        return [self.stream()]

    def stream(self):
        packet = Ether() / IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=1025, dport=12) / ("x" * 100)
        return STLStream(packet=STLPktBuilder(pkt=packet), mode=STLTXCont(pps=1))

def register():
    return Mine()
"""


def test_a_profile_of_the_users_own_is_shown_and_its_errors_name_the_line(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(PROFILE)
    code, out, err = run("lab", "profile", "show", "./mine.py")
    assert code == 0 and out.startswith("mine: a profile's file\n  profile     mine.py, as sent by port 0\n"), err
    assert "  stream 1    146 B, 100.0 % of the frames: Ethernet / IP / UDP / Raw, 10.0.0.1 to 10.0.0.2\n" in out
    assert run("lab", "profile", "pcap", "mine.py", "-o", "m.pcap", "--count", "2")[0] == 0
    assert run("lab", "profile", "pcap", "mine.py", "-o", "nowhere/m.pcap")[0] == 9
    (tmp_path / "mine.py").write_text(PROFILE.replace("STLTXCont(pps=1)", "STLTXCont(pps=rate)"))
    code, _, err = run("lab", "profile", "show", "./mine.py")
    assert code == 2
    assert err == "trexbench: profile mine.py, line 10, does not load: NameError: name 'rate' is not defined\n"
    code, _, err = run("lab", "profile", "show", "./other.py")
    assert code == 2 and "other.py: no such profile" in err
    (tmp_path / "mine.txt").write_text(PROFILE)
    code, _, err = run("lab", "profile", "show", "./mine.txt")
    assert code == 2 and "mine.txt: its name does not end in .py" in err
    mix = run("lab", "profile", "show", "imix", "--packets").out
    assert "  stream 2    590 B, 33.3 % of the frames: " in mix and "###[ UDP ]###" in mix


def test_verbose_says_what_is_called_meanwhile_and_others_say_nothing() -> None:
    short = ("--rates", "1kpps", "--hold", "5s", "--no-picture", "--sim", "--speedup", "1000", "-q")
    case = ("efficiency", "--dut", "netgate-vpp", *short)
    for options, said in (((), False), (("-v",), True), ((), False)):
        code, out, err = run(*case, *options)
        assert code == 0 and "cycles/packet" in out
        calls = re.findall(r"^ +[0-9.]+ s  TRex server 127\.0\.0\.1:[0-9]+: (.*)$", err, re.MULTILINE)
        assert ("get_port_status x2" in calls and "the client's acquire" in calls) is said, err
        assert bool(calls) is said


def test_verbose_says_the_commands_on_a_dut(tmp_path: Path) -> None:
    local = re.sub(r"(?m)^transport:.*(\n[ #].*)*", "transport: {type: local}", shipped("netgate-linux"))
    (tmp_path / "r.yaml").write_text(local)
    _, _, silent = run("dut", "plan", "./r.yaml")
    _, _, err = run("dut", "plan", "./r.yaml", "--verbose")
    assert re.search(r"(?m)^ +[0-9.]+ s  \S.* on this machine$", err) and err.endswith(silent)


@pytest.mark.parametrize("verb", [("search", "--mode", "64b"), ("efficiency", "--rates", "1kpps,10%", "--hold", "5")])
def test_a_run_and_a_series_have_a_short_form(verb: tuple[str, ...]) -> None:
    shared = ("--dut", "netgate-vpp", "--sim", "--speedup", "10000", "-q", "--no-picture")
    code, out, err = run(*verb, *shared, "--brief")
    assert code == 0 and 4 <= out.count("\n") <= 10
    assert all(line.startswith("result   results/2") for line in err.splitlines()), "of a series' documents"
    assert out.startswith("*** SIMULATED ***\nnetgate-vpp ")
    assert out.splitlines()[-1].startswith("result") and "results/2" in out


def test_duts_and_labs_as_json(tmp_path: Path) -> None:
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "bad.yaml").write_text("driver: toaster\n")
    (tmp_path / "configs" / "good.yaml").write_text(shipped("netgate-vpp"))
    code, out, _ = run("dut", "list", "--configs-dir", "configs", "--json")
    bad, good = json.loads(out)
    assert code == 0 and "bad.yaml:1" in bad["error"] and bad["driver"] is None and good["path"] == "configs/good.yaml"
    assert (good["name"], good["driver"], good["error"]) == ("good", "vpp", None)
    _, out, _ = run("dut", "show", "good", "--configs-dir", "configs", "--json")
    shown = json.loads(out)
    assert shown["ports"][0]["address"] == ["100.65.1.1/24"] and shown["rx_queues"] == [1, 2, 3] and "text" not in shown
    assert json.loads(run("lab", "status", "--json")[1]) == []
    here = state.Process.of(os.getpid())
    lab = state.new_state(LabSpec("x"), "persistent")
    state.update(lab, status="up", server=state.Server("embedded", here, "/log"))
    (one,) = json.loads(run("lab", "status", "--json")[1])
    assert (one["prefix"], one["condition"], one["mode"], one["warnings"]) == ("x", "up", "persistent", [])


def test_no_help_cites_a_file_that_a_wheel_lacks() -> None:
    assert not [path for path, command in COMMANDS.items() if "docs/" in command.get_help(click.Context(command))]


CONFIGURE = "import trexbench.report, matplotlib; matplotlib.get_configdir()"
"""Code that makes matplotlib complain of its user's home, without the list of all fonts that a first picture needs."""


def test_a_home_that_cannot_be_written_costs_no_words() -> None:
    done = python(CONFIGURE, HOME="/proc/nohome", XDG_CONFIG_HOME="/proc/nohome", PATH=os.environ["PATH"])
    assert (done.returncode, done.stderr) == (0, "")


def test_a_lab_that_is_missing_or_other_names_the_dut_whose_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.yaml").write_text(shipped("lab-vpp").replace("tbv", "nolab"))
    monkeypatch.setenv("TREXBENCH_STATE_DIR", str(tmp_path / "state"))
    code, _, err = run("dut", "plan", "./mine.yaml")
    assert code == 6 and "namespace nolab" in err and err.endswith("bring it up: trexbench lab up --dut ./mine.yaml\n")
    assert load_dut("lab-vpp").command_name == "lab-vpp"
    server = state.Server("embedded", state.Process.of(os.getpid()), "/log")
    state.update(state.new_state(LabSpec("nolab"), "persistent"), status="up", server=server)
    monkeypatch.setattr(host, "check", lambda embedded: None)
    code, _, err = run("ramp", "--dut", "./mine.yaml", "--mode", "64b")
    other = "trexbench: lab nolab is up with other settings: trexbench lab down --prefix nolab, then try again"
    assert code == 7 and err.splitlines() == ["using the lab of mine", other]
    assert run("lab", "down").out == "lab tbx: was not up; there is nolab: name it with --prefix\n"


def test_a_prefix_names_a_lab_beside_others() -> None:
    for verb in ("plan", "verify", "apply"):
        assert "namespace tbx9-dut does not exist" in run("dut", verb, "lab-linux", "--prefix", "tbx9").err
