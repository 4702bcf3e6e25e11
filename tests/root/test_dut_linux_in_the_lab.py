"""The Linux driver and a real kernel: queues of veths, and where a saturated lab loses its frames."""

from __future__ import annotations

import os
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from effort import by_day

from trexbench.config.lookup import find_profile, load_dut
from trexbench.config.model import DutConfig
from trexbench.core.dut.telemetry import Observation
from trexbench.core.errors import DutError
from trexbench.core.load.profile import resolve_mode
from trexbench.core.load.sample import Reading
from trexbench.dut import Wanted
from trexbench.dut.apply import apply, revert
from trexbench.dut.journal import FileJournal
from trexbench.dut.linux.driver import LinuxDut
from trexbench.generator.trex.connect import ServerAddress, connect
from trexbench.lab import Lab, LabSpec, RunningLab, down
from trexbench.transport import open_transport

ROOT = Path(__file__).parents[2]
PREFIX = f"tbl{os.getpid()}"


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DutConfig]:
    """lab-linux under names of its own."""
    monkeypatch.setenv("TREXBENCH_RUN_DIR", str(tmp_path / "run"))
    yield load_dut(str(ROOT / "dut_configs/lab-linux.yaml")).with_lab_prefix(PREFIX)
    down(PREFIX, force=True)


def with_lab(config: DutConfig, **settings: Any) -> DutConfig:
    assert config.lab is not None
    return replace(config, lab=replace(config.lab, **settings))


def open_lab_dut(config: DutConfig, lab: RunningLab, rx_queues: int | None = None) -> LinuxDut:
    transport = open_transport(config.transport)
    return LinuxDut(Wanted(config, lab.spec.tester_macs, rx_queues, lab.host_facts), transport)


def state() -> str:
    """Return the settings of the DUT's namespace, without what only time changes."""
    seen = ""
    for command in (
        "ip address show",
        "ip route show",
        "ip neigh show",
        "grep -rsH --include=forwarding --include=accept_redirects --include=ip_forward . /proc/sys/net/ipv4",
        "grep -rsH --include=rps_cpus . /sys/class/net/d0/queues /sys/class/net/d1/queues",
        "ethtool -l d0",
        "ethtool -l d1",
    ):
        done = subprocess.run(
            ["ip", "netns", "exec", f"{PREFIX}-dut", *command.split()], capture_output=True, text=True
        )
        seen += done.stdout
    return re.sub(r"state [A-Z]+ |NO-CARRIER,", "", seen)  # which lag behind


@pytest.mark.parametrize(
    "steer", ["cpumap", *(pytest.param(one, marks=pytest.mark.nightly) for one in ("rps", "none"))]
)
def test_queues_are_set_and_put_back(config: DutConfig, tmp_path: Path, steer: str) -> None:
    config = with_lab(config, steer=steer)
    journal = FileJournal(PREFIX, tmp_path)
    transport = open_transport(config.transport)
    with Lab(LabSpec.from_config(config)).running() as lab:
        before = state()
        for queues in (2, 1, 2):
            dut = open_lab_dut(config, lab, queues)
            assert apply(dut, transport, journal) or queues == 1
            assert apply(dut, transport, journal) == ()
            spreading = dut.verify().require_match().spreading
            assert spreading is not None
            cpu = lab.placement.sender if steer == "none" else lab.placement.router[0]
            assert [(one.port, one.queue) for one in spreading.queues] == [
                (p, q) for p in (0, 1) for q in range(queues)
            ]
            assert {one.worker for one in spreading.queues} == {f"cpu{cpu}"}
        with pytest.raises(DutError, match=r"3 receive queues are asked for, d0 has at most 2"):
            open_lab_dut(config, lab, 3).plan()
        revert(dut, transport, journal)
        assert state() == before


def in_the_tester(lab: RunningLab, work: Callable[[], None]) -> None:
    """In a thread of its own, which stays in the tester's namespace, so that the test does not."""
    failures: list[BaseException] = []

    def body() -> None:
        try:
            lab.enter()
            work()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join(300)
    assert not thread.is_alive()
    if failures:
        raise failures[0]


class SystemClock:
    def now(self) -> float:
        return time.monotonic()

    def sleep_until(self, t_s: float) -> None:
        time.sleep(max(0.0, t_s - self.now()))


def missing(first: Reading, last: Reading) -> dict[int, int]:
    """Frames by the port at which they did not arrive."""
    sent = {port: one.opackets - first.ports[port].opackets for port, one in last.ports.items()}
    return {port: sent[1 - port] - (one.ipackets - first.ports[port].ipackets) for port, one in last.ports.items()}


def grown(before: Observation, after: Observation) -> dict[str, int]:
    old = {(one.name, one.port): one.count for one in before.drops}
    return {
        one.name if one.port is None else f"{one.name} {one.port}": one.count - old[one.name, one.port]
        for one in after.drops
        if one.count != old[one.name, one.port]
    }


# how the lab is steered, threaded NAPI, and the counters that have what it loses: in sum, or by port
LOSSES = [
    ("cpumap", False, {"cpumap queue (redirected, not received)"}),
    ("none", True, {"rx_dropped 0", "rx_dropped 1"}),
    ("rps", False, {"rx_dropped 0", "rx_dropped 1"}),
]


@pytest.mark.measures
@pytest.mark.parametrize(("steer", "threaded", "counters"), by_day(2, LOSSES))
def test_every_lost_frame_is_in_one_counter(config: DutConfig, steer: str, threaded: bool, counters: set[str]) -> None:
    """It floods the router for a second; a busy machine makes it lose more, or less, but not in another place.

    The flood ends by itself, as the server may have no time to answer meanwhile. What is on its way then arrives later.
    """
    config = with_lab(config, steer=steer, threaded=threaded)
    transport = open_transport(config.transport)
    found: dict[str, Any] = {}
    with Lab(LabSpec.from_config(config)).running() as lab:
        dut = open_lab_dut(config, lab)
        apply(dut, transport, FileJournal(PREFIX, Path(os.environ["TREXBENCH_RUN_DIR"])))
        dut.verify().require_match()

        def flood() -> None:
            mode = resolve_mode("var2-64b")
            with connect(ServerAddress(), (0, 1), SystemClock()) as generator:
                generator.load(find_profile(mode.profile), dict(mode.tunables), (0, 1))
                first, seen = generator.read(), dut.observe(clear=True)
                generator.start({0: 1.4e6, 1: 1.4e6}, 1)
                time.sleep(1)
                for _ in range(100):
                    time.sleep(0.2)
                    before = dict(found)
                    found.update(lost=missing(first, generator.read()), drops=grown(seen, dut.observe()))
                    if found == before and sum(found["drops"].values()) == sum(found["lost"].values()):
                        break

        in_the_tester(lab, flood)
    lost, drops = found["lost"], found["drops"]
    assert sum(lost.values()) > 10_000, "it was not saturated: is this machine that fast?"
    assert set(drops) <= counters and sum(drops.values()) == sum(lost.values())
    for name, count in drops.items():
        if port := re.fullmatch(r"rx_dropped (\d)", name):
            assert count == lost[1 - int(port[1])]
