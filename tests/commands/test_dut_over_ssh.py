"""Drivers through the user's ssh and a real sshd, against boxes that keep state, hang and go away."""

from __future__ import annotations

import copy
import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from box_pfsense import PfsenseBox
from box_vpp import VppBox
from boxshim import Order, Shim, programs_of
from effort import by_day
from sshd import WHY_NOT, Sshd, running_sshd
from tools import ROOT, document, fake_server, trexbench

from trexbench.config.endpoints import TransportConfig
from trexbench.config.lookup import load_dut
from trexbench.core.errors import ConfigError, DutError
from trexbench.dut import Wanted, open_dut
from trexbench.dut.apply import apply
from trexbench.dut.journal import FileJournal
from trexbench.transport import SshTransport
from trexbench.transport.ssh import CONFIG_ENV

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "runs")

HOSTILE = (
    "; touch {}",
    "$(touch {})",
    "`touch {}`",
    "' ; touch {} ; '",
    '"; touch {}; "',
    "\ntouch {}\n",
    "| touch {}",
    "&& touch {}",
    "> {}",
    "!touch {}",
)


@dataclass(frozen=True)
class Kind:
    """A system: its box, its config, and a command in the middle of its apply."""

    name: str
    box: Callable[[], Any]
    middle: str
    rx_queues: int | None = None

    def config_text(self) -> str:
        """That of the checkout, behind the ssh of this test."""
        text = (ROOT / f"dut_configs/{self.name}.yaml").read_text()
        there = "transport: {type: ssh, host: netgate, user: root}"
        assert there in text
        return text.replace(there, "transport: {type: ssh, host: dut}")

    @property
    def options(self) -> tuple[str, ...]:
        return () if self.rx_queues is None else ("--rx-queues", str(self.rx_queues))


def _vpp() -> VppBox:
    """It has been running; started anew it takes its time."""
    box = VppBox(nics=("TenGigabitEthernet3/0/0", "TenGigabitEthernet3/0/1"))
    box.deaf_after_start = 2
    return box


KINDS = [
    Kind("netgate-pfsense", PfsenseBox, "route add -net 16.0.0.0/8"),
    Kind("netgate-vpp", _vpp, "ip route add 16.0.0.0/8", rx_queues=2),
]


BY_DAY_ONE = pytest.mark.parametrize(
    "served",
    [KINDS[0], pytest.param(KINDS[1], marks=pytest.mark.nightly)],
    ids=lambda kind: kind.name,
    indirect=True,
)
"""Failures on the way are the same for every system: by day they are tried on one of them."""


@dataclass
class Place:
    """A sshd, behind it a box, and this machine's own directories."""

    kind: Kind
    server: Sshd
    shim: Shim
    folder: Path

    @property
    def box(self) -> Any:
        return self.shim.box

    @property
    def settings(self) -> object:
        return self.box.settings()

    @property
    def journal(self) -> FileJournal:
        return FileJournal(self.kind.name, self.folder / "state")

    def trexbench(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A whole command, in a process of its own."""
        return trexbench(self.folder, *arguments, "--configs-dir", str(self.folder / "configs"))

    def verb(self, verb: str, *options: str, code: int = 0) -> str:
        """``trexbench dut VERB``: what it said, on both outputs."""
        own = self.kind.options if verb != "revert" else ()
        done = self.trexbench("dut", verb, self.kind.name, *own, *options)
        said = done.stdout + done.stderr
        assert done.returncode == code, said
        assert "Traceback" not in said
        return said


def login(server: Sshd, folder: Path) -> closing[SshTransport]:
    return closing(SshTransport(TransportConfig("ssh", host="dut"), folder / "run", server.client_config))


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: kind.name)
def served(request: pytest.FixtureRequest) -> Iterator[tuple[Kind, Sshd, Shim]]:
    with tempfile.TemporaryDirectory(prefix="tbx-box-") as name:
        shim, box = Shim(Path(name)), request.param.box()
        with running_sshd(path=f"{shim.path}:/usr/bin:/bin") as server:
            shim.install(box, server.process.pid)
            programs, ask = programs_of(box), 'for one do command -v "$one" || echo; done'
            with login(server, Path(name)) as transport:
                found = transport.run(("/bin/sh", "-c", ask, "sh", *programs), 20).stdout.split()
            own = [str(shim.path / program) for program in programs]
            assert found == own, "else this machine's own ifconfig and sysctl would be run"
            yield request.param, server, shim


@pytest.fixture
def place(served: tuple[Kind, Sshd, Shim], monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    kind, server, shim = served
    monkeypatch.setenv(CONFIG_ENV, str(server.client_config))
    shim.install(kind.box(), server.process.pid)
    server.trust()
    # Not pytest's directory: the path of a socket has 107 bytes.
    with tempfile.TemporaryDirectory(prefix="tbx-ssh-") as name:
        folder = Path(name)
        (folder / "configs").mkdir()
        (folder / "configs" / f"{kind.name}.yaml").write_text(kind.config_text())
        yield Place(kind, server, shim, folder)


@BY_DAY_ONE
def test_the_verbs(place: Place) -> None:
    before = place.settings
    assert "NOT what its config says" in place.verb("verify", code=6)
    planned = [line for line in place.verb("plan").splitlines() if line and not line.startswith("#")]
    assert any(place.kind.middle in line for line in planned) and place.settings == before, "plan changes nothing"
    said = place.verb("apply")
    assert "it is what its config says" in said
    for line in planned:
        assert line.strip() in said, "plan prints exactly what apply runs"
    applied = place.settings
    assert "nothing to change" in place.verb("apply") and place.settings == applied
    document = json.loads(place.verb("verify", "--json"))
    assert document["attested"] and document["mismatches"] == [] and document["facts_sha256"]
    assert document["platform"].get("bios_version") == getattr(place.box, "bios", None)
    assert "reverted" in place.verb("revert") and place.settings == before
    assert place.verb("revert").strip() == "nothing to revert"


@pytest.mark.nightly
def test_verbs_that_only_look(place: Place) -> None:
    before = place.settings
    examined = place.trexbench("doctor", "--dut", place.kind.name, *place.kind.options, "--json")
    found = {one["what"]: one for one in json.loads(examined.stdout) if one["area"] == "DUT"}
    assert found["reached"]["state"] == "good" and "settings that a run would change: " in found["settings"]["found"]
    driver = place.kind.name.split("-")[-1]
    drafted = trexbench(place.folder, "dut", "new", "mine", "--driver", driver, "--host", "dut", "-o", "-")
    ports = load_dut(place.kind.name, place.folder / "configs").ports
    assert all(port.interface in drafted.stdout for port in ports), drafted.stdout + drafted.stderr
    assert place.verb("telemetry", "--seconds", "1s")
    recorded = place.folder / "recorded.json"
    assert place.verb("record", "-o", str(recorded)).startswith(f"{recorded}: ") and place.settings == before
    made = json.loads(recorded.read_text())
    assert made["driver"] == driver and made["answers"] and not made["failures"]


@pytest.mark.parametrize("served", KINDS[:1], ids=lambda kind: kind.name, indirect=True)
def test_frames_that_the_dut_would_fragment_are_refused(place: Place) -> None:
    with fake_server() as server:
        options = [one for one in server.options if one != "--no-apply"]
        run = place.trexbench("ramp", "--dut", place.kind.name, "--mode", "9216b", *options)
    (line,) = [line for line in run.stderr.splitlines() if line.startswith("trexbench: ")]
    assert run.returncode == 6 and "has an MTU of 1500, and var2-9216b needs 9198: set it on the DUT by hand" in line
    assert not list(place.folder.glob("results/*/*/*.json"))


QUICK = "--ramp-duration 4s --hold 2s --confirm 0s --warmup 1kpps:2s --sample 0.5s --no-picture"


@pytest.mark.nightly
@pytest.mark.parametrize("served", KINDS[:1], ids=lambda kind: kind.name, indirect=True)
def test_a_run_in_which_pfsense_turned_its_firewall_on_is_void(place: Place) -> None:
    """filter.inc, filter_configure_sync: a reload, for whatever reason, ends with ``pfctl -e``."""
    place.shim.install(PfsenseBox(alarm=True), place.server.process.pid)
    with fake_server() as server:
        options = [one for one in server.options if one != "--no-apply"]
        run = place.trexbench("ramp", "--dut", place.kind.name, "--mode", "var2-64b", *QUICK.split(), *options)
    found = document(place.folder)
    assert len(found["telemetry"]["readings"]) >= 2
    assert run.returncode == 6 and found["status"] == "incomplete", run.stderr
    assert found["reason"].startswith("netgate-pfsense is no longer what its config says: firewall: wanted disabled")
    assert found["reason"] in run.stderr


@BY_DAY_ONE
@pytest.mark.parametrize("after", by_day(1, [True, False]), ids=lambda yes: "after it" if yes else "before it")
def test_connection_lost_mid_apply_then_revert_in_a_new_process(place: Place, after: bool) -> None:
    before = place.settings
    place.shim.order(Order(place.kind.middle, after))
    said = place.verb("apply", code=6)
    assert "the connection to dut was lost while" in said and place.kind.middle.split()[0] in said
    assert place.settings != before
    assert any(place.kind.middle in " ".join(one.argv) for one in place.journal.entries()[-1].change.do)
    place.shim.order()
    place.verb("revert")
    assert place.settings == before and place.journal.entries() == ()


PLACES: dict[str, tuple[str, ...]] = {
    "netgate-pfsense": (
        *("ports 0 interface", "ports 0 address", "ports 0 neighbour address", "ports 0 neighbour mac", "routes 0 to"),
        *("routes 0 via", "driver", "transport host", "transport user", "pfsense firewall", "power url"),
    ),
    "netgate-linux": ("linux governor", "linux offloads"),
    "netgate-vpp": ("vpp restart 0", "vpp startup_conf", "vpp socket", "vpp rx_placement 0"),
}
"""Config -> places of values that reach a shell or a file's name there."""
SEEDED: dict[str, dict[str, Any]] = {
    "netgate-pfsense": {
        "pfsense": {"firewall": "keep"},
        "power": {"type": "shelly", "url": "http://192.0.2.7"},
    },
    "netgate-linux": {"linux": {"governor": "performance", "offloads": {"lro": "off"}}},
    "netgate-vpp": {
        "vpp": {"restart": ["x"], "rx_placement": ["0:0:0"], "startup_conf": "/etc/x", "socket": "/run/x"},
    },
}
"""Config -> sections that are accepted: what is refused is what a value has beyond its good one."""


@pytest.mark.parametrize(("name", "at"), [(name, at) for name, some in PLACES.items() for at in some])
def test_hostile_values_in_the_yaml_are_refused(tmp_path: Path, name: str, at: str) -> None:
    """Each with a message of one line."""
    *above, last = [int(word) if word.isdigit() else word for word in at.split()]
    config = yaml.safe_load((ROOT / f"dut_configs/{name}.yaml").read_text()) | copy.deepcopy(SEEDED[name])
    (tmp_path / "box.yaml").write_text(yaml.safe_dump(config))
    load_dut(str(tmp_path / "box.yaml"))
    here: Any = config
    for step in above:
        here = here[step]
    good = here[last]
    for form in HOSTILE:
        value = form.format(tmp_path / "canary")
        here[last] = {f"lro{value}": "off"} if last == "offloads" else f"{good}{value}"
        (tmp_path / "box.yaml").write_text(yaml.safe_dump(config))
        with pytest.raises(ConfigError) as caught:
            load_dut(str(tmp_path / "box.yaml"))
        assert "\n" not in str(caught.value)


@BY_DAY_ONE
def test_hostile_values_past_the_config_arrive_as_they_are(place: Place) -> None:
    """A second wall: what stands in a config is a word of a command, never a command."""
    canary, whole = place.folder / "canary", load_dut(place.kind.name, place.folder / "configs")
    for name in ("ix0" + "".join(HOSTILE).format(*[canary] * len(HOSTILE)), f"ix0\n; touch {canary} #"):
        config = replace(whole, cables=(replace(whole.ports[0], interface=name), whole.ports[1]))
        place.shim.forget()
        with login(place.server, place.folder) as transport:
            with suppress(DutError):  # the box has no such interface; a driver may refuse the name before it asks
                apply(open_dut(Wanted(config), transport), transport, place.journal)
            # vppctl joins its words to one line itself: nothing of VPP's is a word of a shell.
            words = [word for argv in place.shim.arrived if argv[0] != "vppctl" for word in argv]
            assert not [word for word in words if "touch" in word and name not in word]
            transport.run(("grep", name), 20)
        assert place.shim.arrived[-1] == ["grep", name]
        assert not canary.exists()
