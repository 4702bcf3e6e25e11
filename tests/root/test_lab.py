"""The lab on this machine: built, used, and gone again however its user ends."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sshd import eventually

from trexbench.config.lookup import load_dut
from trexbench.config.model import DutConfig
from trexbench.core import errors
from trexbench.core.errors import ConfigError, DutError, LabError
from trexbench.dut import Change, Dut, Wanted, open_dut
from trexbench.dut.apply import apply
from trexbench.dut.journal import NoJournal
from trexbench.lab import Lab, LabSpec, RunningLab, all_status, down, status
from trexbench.lock import locked
from trexbench.transport import NetnsTransport, open_transport

ROOT = Path(__file__).parents[2]
TREX_DIR = os.environ.get("TREXBENCH_TREX_DIR")

USER = """
import sys, time
from pathlib import Path
from trexbench.config.lookup import load_dut
from trexbench.lab import Lab, LabSpec
config = load_dut(sys.argv[1]).with_lab_prefix(sys.argv[2])
trex_dir = Path(sys.argv[3]) if sys.argv[3:] else None
print("starting", flush=True)
with Lab(LabSpec.from_config(config)).running(trex_dir) as lab:
    lab.enter()
    print("up", flush=True)
    time.sleep(60)
"""


@pytest.fixture(params=["embedded", "trex"])
def trex_dir(request: pytest.FixtureRequest) -> Path | None:
    if request.param == "embedded":
        return None
    if not TREX_DIR:
        pytest.skip("TREXBENCH_TREX_DIR names no TRex installation")
    return Path(TREX_DIR)


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DutConfig]:
    """lab-linux under names of its own; whatever a test leaves is taken away, and that nothing stays is checked."""
    monkeypatch.setenv("TREXBENCH_RUN_DIR", str(tmp_path / "run"))
    prefix = f"tlab{os.getpid()}"
    path = tmp_path / "lab-linux.yaml"
    shipped = (ROOT / "dut_configs/lab-linux.yaml").read_text()
    # a setting of the host that is nobody else's business; the shipped one is every lab's
    path.write_text(re.sub(r"net\.core\.netdev_max_backlog: 4096.*", "net.core.message_burst: 11", shipped))
    yield load_dut(str(path)).with_lab_prefix(prefix)
    down(prefix, force=True)
    assert remains(prefix) == []


@pytest.fixture
def spec(config: DutConfig) -> LabSpec:
    return LabSpec.from_config(config)


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[DutConfig, Path]]:
    """lab-linux with the embedded server, up for all tests that leave it so; and the directory that knows it."""
    run_dir, config = tmp_path_factory.mktemp("run"), load_dut("lab-linux").with_lab_prefix(f"tlas{os.getpid()}")
    spec = LabSpec.from_config(config)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("TREXBENCH_RUN_DIR", str(run_dir))
        Lab(spec).up()
        environment.undo()
        yield config, run_dir
        environment.setenv("TREXBENCH_RUN_DIR", str(run_dir))
        assert status(spec.prefix).condition == "up"
        down(spec.prefix)
    assert remains(spec.prefix) == []


@pytest.fixture
def up(standing: tuple[DutConfig, Path], monkeypatch: pytest.MonkeyPatch) -> DutConfig:
    config, run_dir = standing
    monkeypatch.setenv("TREXBENCH_RUN_DIR", str(run_dir))
    return config


def remains(prefix: str) -> list[str]:
    """Namespaces of this prefix, and processes that live in them or name them."""
    found = [path.name for path in Path("/run/netns").glob(f"{prefix}-*")]
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if prefix in words:
                found.append(f"{entry.name} {words}")
    return found


def becomes(spec: LabSpec, condition: str) -> None:
    eventually(lambda: status(spec.prefix).condition == condition, f"the lab is {condition}", 30)


@contextlib.contextmanager
def user_of(config: DutConfig, trex_dir: Path | None = None) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the lab for itself."""
    argv = [sys.executable, "-c", USER, str(config.file), config.lab.prefix if config.lab else ""]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"}
    argv += [str(trex_dir)] if trex_dir else []
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=environment) as user:
        try:
            yield user
        finally:
            user.kill()


def until(user: subprocess.Popen[str], word: str) -> None:
    assert user.stdout is not None
    for line in user.stdout:
        if line.strip() == word:
            return
    raise AssertionError(f"the user ended with {user.wait()} before it said {word}")


def host_setting() -> str:
    return Path("/proc/sys/net/core/message_burst").read_text().strip()


def open_lab_dut(config: DutConfig, lab: RunningLab) -> Dut:
    transport = open_transport(config.transport)
    return open_dut(Wanted(config, lab.spec.tester_macs, None, lab.host_facts), transport)


def applied(config: DutConfig, dut: Dut) -> tuple[Change, ...]:
    return apply(dut, open_transport(config.transport), NoJournal())


def run_in(namespace: str, command: str) -> str:
    words, _, fed = command.partition(" <<< ")
    done = NetnsTransport(namespace).run(words.split(), 10, fed)
    assert done.returncode == 0, done.complaint
    return done.stdout


def test_up_status_down(spec: LabSpec, trex_dir: Path | None) -> None:
    before = host_setting()
    lab = Lab(spec)
    assert status(spec.prefix).condition == "down" and down(spec.prefix) is False
    up = lab.up(trex_dir)
    assert (up.condition, up.mode, set(up.namespaces)) == ("up", "persistent", set(spec.namespaces))
    assert lab.up(trex_dir).server == up.server, "up again leaves it as it is"
    assert [s.prefix for s in all_status()] == [spec.prefix]
    assert host_setting() == "11"
    assert down(spec.prefix) is True and status(spec.prefix).condition == "down"
    assert host_setting() == before
    assert remains(spec.prefix) == []


def test_the_wire_is_quiet_and_leads_nowhere(spec: LabSpec) -> None:
    with Lab(spec).running():
        there = (["p0", "p1"], ["d0", "d1", "e0", "e1"], ["b0", "c0"], ["b0", "s0"])
        for namespace, names in zip(spec.namespaces, there, strict=True):
            links = json.loads(run_in(namespace, "ip -json -details link show"))
            assert sorted(link["ifname"] for link in links) == sorted([*names, "lo"])
            assert run_in(namespace, "ip route show default") == ""
            assert "inet6" not in run_in(namespace, "ip address show")
        assert run_in(spec.dut, "cat /sys/class/net/d0/address").strip() == spec.dut_macs[0]
        assert run_in(spec.tester, "cat /sys/class/net/p1/address").strip() == spec.tester_macs[1]


def test_settings_reach_the_kernel(config: DutConfig, spec: LabSpec) -> None:
    lab = replace(spec.settings, threaded=True, steer="none", queues=2, mtu=2000, txqueuelen=77, router_cpus=(0,))
    other = replace(spec, dut_interfaces=("d0", "d1", "eth2", "eth3"), settings=lab)
    with Lab(other).running() as running:
        assert running.placement.router == (0,)
        (link,) = json.loads(run_in(spec.dut, "ip -json -details link show dev eth3"))
        assert (link["mtu"], link["txqlen"], link["num_rx_queues"], link["address"]) == (2000, 77, 2, other.dut_macs[3])
        assert run_in(spec.dut, "cat /sys/class/net/eth3/threaded").strip() == "1"
        assert int(run_in(spec.dut, "cat /sys/class/net/eth3/queues/rx-1/rps_cpus").replace(",", ""), 16) == 0
        names = [link["ifname"] for link in json.loads(run_in(spec.tester, "ip -json link show"))]
        assert sorted(names) == ["lo", "p0", "p1", "p2", "p3"]


def test_nothing_outlives_a_user_that_is_killed(config: DutConfig, spec: LabSpec, trex_dir: Path | None) -> None:
    before = host_setting()
    with user_of(config, trex_dir) as user:
        until(user, "up")
        assert remains(spec.prefix)
        user.kill()
    eventually(lambda: not remains(spec.prefix), "nothing remains", 30)
    becomes(spec, "down")
    assert host_setting() == before


def test_what_a_killed_keeper_leaves_is_cleaned_by_the_next_run(config: DutConfig, spec: LabSpec) -> None:
    with user_of(config) as user:
        until(user, "up")
        state = json.loads((Path(os.environ["TREXBENCH_RUN_DIR"]) / f"{spec.prefix}.lab.json").read_text())
        os.kill(state["owner"]["pid"], signal.SIGKILL)
        becomes(spec, "leftover")
        eventually(lambda: "dead" in status(spec.prefix).server, "its server is dead")
    with Lab(spec).running() as lab:
        assert not lab.ended
    assert remains(spec.prefix) == []


def test_a_run_uses_the_lab_that_is_up(up: DutConfig) -> None:
    spec = LabSpec.from_config(up)
    with Lab(spec).running() as running:
        assert not running.ephemeral
        with pytest.raises(errors.TesterBusy, match=r"is in use by"):
            down(spec.prefix)
        with pytest.raises(errors.TesterBusy), Lab(spec).running():
            pass
    assert status(spec.prefix).condition == "up"


def test_no_sender_keeps_those_waiting_who_answer(up: DutConfig) -> None:
    """The server's own thread and those of ZMQ, which each request and reply passes, run before its sender."""

    def before_all_others(pid: int) -> set[str]:
        names = set()
        for one in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):  # it may have ended by now
                if os.sched_getscheduler(int(one.name)) & 1:
                    names.add("main" if one.name == str(pid) else (one / "comm").read_text().strip())
        return names

    first = {"main", "ZMQbg/Reaper", "ZMQbg/IO/0"}
    with Lab(LabSpec.from_config(up)).running() as running:
        eventually(lambda: before_all_others(running.server.process.pid) == first, "they run first")


def test_one_run_at_a_time_until_force_takes_it_its_own_lab(config: DutConfig, spec: LabSpec) -> None:
    with user_of(config) as user:
        until(user, "up")
        with pytest.raises(errors.TesterBusy, match=f"belongs to the run of process {user.pid}"), Lab(spec).running():
            pass
        with pytest.raises(errors.TesterBusy):
            down(spec.prefix)
        assert status(spec.prefix).condition == "up"
        assert down(spec.prefix, force=True) is True
        assert status(spec.prefix).condition == "down"
        assert not list(Path("/run/netns").glob(f"{spec.prefix}-*"))


def test_other_settings_are_not_taken_for_these(up: DutConfig) -> None:
    spec = LabSpec.from_config(up)
    other = LabSpec(spec.prefix, ("d0", "d1"), 1e9)
    assert other != spec
    with pytest.raises(LabError, match="other settings: trexbench lab down"):
        Lab(other).up()
    with pytest.raises(LabError, match="other settings: trexbench lab down"), Lab(other).running():
        pass
    with locked(f"{spec.prefix}.use"), pytest.raises(errors.TesterBusy), Lab(other).running():
        pytest.fail("a lab is judged by whoever has it")


def test_two_labs_side_by_side(config: DutConfig, spec: LabSpec) -> None:
    before = host_setting()
    second = LabSpec.from_config(config.with_lab_prefix(f"{spec.prefix}b"))
    with Lab(spec).running():
        with Lab(second).running():
            assert {s.prefix for s in all_status()} == {spec.prefix, second.prefix}
        assert host_setting() == "11", "the first still needs it"
    assert host_setting() == before


def test_a_namespace_of_others_is_left_alone(spec: LabSpec) -> None:
    subprocess.run(["ip", "netns", "add", spec.dut], check=True)
    try:
        with pytest.raises(LabError, match=f"namespace {spec.dut} exists already, and belongs to no lab of trexbench"):
            Lab(spec).up()
        assert down(spec.prefix) is False
        assert Path("/run/netns", spec.dut).exists()
        assert not Path("/run/netns", spec.tester).exists()
    finally:
        subprocess.run(["ip", "netns", "del", spec.dut], check=True)


def test_a_number_used_again_is_not_killed(spec: LabSpec) -> None:
    """The state of a dead lab names a pid, and a namespace, that are somebody else's by now."""
    Lab(spec).up()
    path = Path(os.environ["TREXBENCH_RUN_DIR"]) / f"{spec.prefix}.lab.json"
    document = json.loads(path.read_text())
    down(spec.prefix)
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as bystander:
        document["server"]["process"] = {"pid": bystander.pid, "start": 1}
        document["owner"] = {"pid": bystander.pid, "start": 1}
        path.write_text(json.dumps(document))
        subprocess.run(["ip", "netns", "add", spec.tester], check=True)
        try:
            assert status(spec.prefix).condition == "leftover"
            if Path("/run/netns", spec.tester).stat().st_ino != document["namespaces"][spec.tester]:
                assert down(spec.prefix) is True
                assert Path("/run/netns", spec.tester).exists()
            assert bystander.poll() is None
        finally:
            path.unlink(missing_ok=True)
            subprocess.run(["ip", "netns", "del", spec.tester], check=True)
            bystander.kill()


def fake_trex(folder: Path, script: str) -> Path:
    """An installation of TRex whose program is this script."""
    folder.mkdir()
    for name in ("_t-rex-64", "_t-rex-64-o"):
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    return folder


def test_a_server_that_does_not_come_up_is_quoted(config: DutConfig, tmp_path: Path) -> None:
    broken = fake_trex(tmp_path / "trex", "echo Starting\necho 'ERROR no huge pages today'\nexit 3")
    spec = LabSpec.from_config(config)
    with pytest.raises(LabError, match="the trex server ended with code 3: ERROR no huge pages today: its log is"):
        Lab(spec).up(broken)
    assert remains(spec.prefix) == []
    with pytest.raises(ConfigError, match="no TRex there"):
        Lab(spec).up(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=lambda number: number.name)
def test_an_up_that_is_interrupted(config: DutConfig, spec: LabSpec, tmp_path: Path, number: signal.Signals) -> None:
    """Ctrl-C cleans up at once, and after kill -9 the keeper does."""
    trex = fake_trex(tmp_path / "trex", "sleep 60")
    source = USER.replace("with Lab(LabSpec.from_config(config)).running(", "Lab(LabSpec.from_config(config)).up(")
    source = source[: source.index(" as lab:")]
    argv = [sys.executable, "-c", source, str(config.file), spec.prefix, str(trex)]
    with subprocess.Popen(argv, env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.DEVNULL) as user:
        eventually(lambda: "trex server" in status(spec.prefix).server, "it waits for the server")
        user.send_signal(number)
        user.wait(60)
    if number is signal.SIGINT:
        assert status(spec.prefix).condition == "down"
    becomes(spec, "down")
    assert remains(spec.prefix) == []


# what, the command that spoils, what is found, and what apply cannot undo by itself
MEND = {"half dead": "ip route del 48.0.0.0/8 metric 9", "policy routing": "ip rule del to 48.0.0.0/8 blackhole"}
TAMPERED = [
    (
        "neighbour changed",
        "ip neigh replace 100.65.2.2 lladdr 02:00:00:00:00:99 nud permanent dev d1",
        r"neighbour 100\.65\.2\.2 on d1: wanted 02:7b:78:00:00:01 PERMANENT, found 02:00:00:00:00:99 PERMANENT",
    ),
    (
        "half dead",
        "ip route append 48.0.0.0/8 via 100.65.2.9 dev d1 metric 9",
        r"found via 100\.65\.2\.2 dev d1 and via",
    ),
    (
        "policy routing",
        "ip rule add to 48.0.0.0/8 blackhole",
        r"path of 16\.0\.0\.1 to 48\.0\.0\.1 arriving at d0: wanted via 100\.65\.2\.2 dev d1, found",
    ),
]


def test_a_tampered_dut_is_refused(up: DutConfig) -> None:
    spec = LabSpec.from_config(up)
    with Lab(spec).running() as lab:
        for name, command, message in TAMPERED:
            dut = open_lab_dut(up, lab)
            applied(up, dut)
            dut.verify().require_match()
            run_in(spec.dut, command)
            with pytest.raises(DutError) as caught:
                dut.verify().require_match()
            assert re.search(message, str(caught.value)), (name, str(caught.value))
            if name in MEND:
                run_in(spec.dut, MEND[name])
