"""DUT configs: what is accepted, and the one line that refuses everything else."""

from __future__ import annotations

import os
import re
from ipaddress import IPv4Interface, IPv4Network
from pathlib import Path

import pytest
import yaml
from configs import BOX, errors_of
from effort import examples
from hypothesis import given
from hypothesis import strategies as st

from trexbench.config.catalogue import DUTS
from trexbench.config.lookup import find_profile, load_dut
from trexbench.config.schema import read_dut
from trexbench.core.errors import ConfigError
from trexbench.core.units import Rate

pytestmark = pytest.mark.portable

GOOD = """\
description: a router
driver: linux
transport: {type: netns, namespace: r1}
speed: 1gbit
ports:
  - tester: 0
    interface: d0
    address: 100.65.1.1/24
    neighbour: {address: 100.65.1.2, mac: 12:34:56:11:22:33}
  - tester: 1
    interface: d1
    address: 100.65.2.1/24
    neighbour:
      address: 100.65.2.2
      mac: tester
routes:
  - {to: 16.0.0.0/8, via: 100.65.1.2}
  - {to: 48.0.0.0/8, via: 100.65.2.2}
"""

TWIN = "workers: 1, clock: 1ghz, cycles_per_packet: 9"

# what, text to replace, its replacement, line, and words of the message in their order
BROKEN = [
    ("unknown key", "speed: 1gbit", "spede: 1gbit", 4, ["spede", "unknown key", "did you mean speed"]),
    ("unknown key, nothing close", "speed: 1gbit", "xyzzy: 1", 4, ["xyzzy", "known here", "driver"]),
    ("too long", "interface: d1", f"interface: {'d' * 65}", 11, ["ports[1].interface", "use at most 64 characters"]),
    ("missing key", "driver: linux\n", "", 1, ["'driver' is missing", "add 'driver: ...'"]),
    ("missing keys at once", GOOD[GOOD.index("driver") : GOOD.index("speed")], "", 1, ["'driver' and 'transport' are"]),
    ("nothing after the dash", "  - {to: 16.0.0.0/8, via: 100.65.1.2}", "  -", 17, ["routes[0]", "after the dash"]),
    ("meter of another kind", "routes:", "power: {type: rapl, url: http://a}\nroutes:", 16, ["power.url", "type rapl"]),
    ("nothing after the colon", "driver: linux", "driver:", 2, ["driver", "nothing after"]),
    ("unknown driver", "linux", "vyos", 2, ["driver", "'vyos'", "linux, pfsense, vpp"]),
    ("list for a scalar", "driver: linux", "driver: [linux]", 2, ["driver", "a list where one value"]),
    ("scalar for a list", "routes:\n", "routes: none\nnotes:\n", 16, ["routes", "'none' where a list"]),
    ("address without prefix", "100.65.1.1/24", "100.65.1.1", 8, ["ports[0].address", "100.65.1.1/24"]),
    ("the network for a host", "100.65.2.1/24", "100.65.2.0/24", 12, ["not a host's address"]),
    ("bad MAC", "12:34:56:11:22:33", "12:34:56:11:22", 9, ["neighbour.mac", "not a MAC", "68:05:ca:32:45:94"]),
    ("multicast MAC", "12:34:56:11:22:33", "01:34:56:11:22:33", 9, ["neighbour.mac", "multicast"]),
    ("neighbour elsewhere", "{address: 100.65.1.2,", "{address: 100.65.9.2,", 9, ["not in 100.65.1.0/24"]),
    ("neighbour is the DUT", "{address: 100.65.1.2,", "{address: 100.65.1.1,", 9, ["own address"]),
    ("networks overlap", "100.65.2.1/24", "100.65.1.9/16", 12, ["ports[1].address", "overlaps 100.65.1.0/24 of d0"]),
    ("a port twice", "tester: 1", "tester: 0", 10, ["ports[1].tester", "line 6"]),
    ("an interface twice", "interface: d1", "interface: d0", 11, ["ports[1].interface", "line 6"]),
    ("port out of range", "tester: 1", "tester: -1", 10, ["from 0 to 127"]),
    ("host bits in a route", "16.0.0.0/8", "16.0.0.1/8", 17, ["routes[0].to", "write it as 16.0.0.0/8"]),
    ("default route", "16.0.0.0/8", "0.0.0.0/0", 17, ["routes[0].to", "default route"]),
    ("route to nowhere", "via: 100.65.2.2", "via: 100.65.2.3", 18, ["routes[1].via", "100.65.1.2, 100.65.2.2"]),
    ("route twice", "48.0.0.0/8", "16.0.0.0/8", 18, ["routes[1].to", "line 17"]),
    ("key twice", "speed: 1gbit", "driver: vpp", 4, ["driver", "written twice", "line 2"]),
    ("option of another transport", "namespace: r1", "host: r1", 3, ["transport.host", "netns transport"]),
    ("netns without a name", ", namespace: r1", "", 3, ["'namespace' is missing"]),
    ("option for a host", "type: netns, namespace: r1", "type: ssh, host: -oProxyCommand=x", 3, ["host name"]),
    ("tab", "  - tester: 0", "\t- tester: 0", 6, ["malformed YAML", "spaces"]),
    ("anchor", "speed: 1gbit", "speed: &s 1gbit", 4, ["anchor or alias"]),
    ("tag", "speed: 1gbit", "speed: !!python/object/apply:os.system [id]", 4, ["tag", "plain values"]),
    ("second document", "speed: 1gbit", "---\nspeed: 1gbit", 4, ["second document"]),
    ("list as a key", "speed: 1gbit", "? [a]\n: b", 4, ["not a word"]),
    ("plan warm-up", "routes:", "plan: {warmup: 1kpps}\nroutes:", 16, ["plan.warmup", "1kpps:10s"]),
    ("queues", "routes:", "rx_queues: [1, 1]\nroutes:", 16, ["rx_queues[1]", "number 1 is on line 16 already"]),
    ("lab and ssh", "{type: netns, namespace: r1}", "{type: ssh, host: a}\nlab: {}", 3, ["transport.type", "netns"]),
    ("lab threads", "namespace: r1}", "}\nlab: {threaded: true, gro: no}", 4, ["lab.threaded", "gro: true"]),
    ("sysctl", "namespace: r1}", "}\nlab: {sysctls: {net/../x: 1}}", 4, ["lab.sysctls.net/../x", "kernel setting"]),
    ("sysctls in words", "namespace: r1}", "}\nlab: {sysctls: none}", 4, ["lab.sysctls", "'name: value' lines under"]),
    ("noise", "routes:", f"twin: {{{TWIN}, noise: 20.4%}}\nroutes:", 16, ["20.4 %"]),
    ("password", "netns, namespace: r1", "cli, password: hunter2", 3, ["transport.password", "did you mean password_"]),
    *(
        ("secret in an address", "routes:", f'power: {{type: shelly, url: "{url}"}}\nroutes:', 16, ["POWER_PASSWORD"])
        for url in ("http://admin:hunter2@192.0.2.7", "http://192.0.2.7/?token=hunter2", "hunter2@x y")
    ),
]


def write(tmp_path: Path, content: str | bytes, name: str = "r1.yaml") -> Path:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_reads_every_field(tmp_path: Path) -> None:
    dut = read_dut(write(tmp_path, GOOD + "plan: {warmup: 2kpps:5s, loss: 0.5%, hold: 1m}\nrx_queues: 3\n"))
    assert (dut.name, dut.driver, dut.speed_bps, dut.rx_queues) == ("r1", "linux", 1e9, (3,))
    assert dut.ports[0].address == IPv4Interface("100.65.1.1/24")
    assert [port.neighbour.mac for port in dut.ports] == ["12:34:56:11:22:33", None]
    assert [route.to for route in dut.routes] == [IPv4Network("16.0.0.0/8"), IPv4Network("48.0.0.0/8")]
    assert (dut.plan.warmup, dut.plan.warmup_s) == (Rate(2000.0, "pps"), 5.0)
    assert (dut.plan.loss, dut.plan.hold_s, dut.plan.ramp_s) == (0.005, 60.0, None)
    assert (dut.generator.server, dut.generator.rpc_port) == ("127.0.0.1", 4501)


@pytest.mark.parametrize(("old", "new", "line", "words"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_refuses_in_one_line(old: str, new: str, line: int, words: list[str]) -> None:
    first, *_ = errors_of(GOOD, old, new)
    assert first.startswith(f"{BOX}:{line}: ") and re.search(".*".join(map(re.escape, words)), first), first
    assert "hunter2" not in first, "a secret is not repeated"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the file is empty"),
        (b"driver: linux\nnotes: \xe9t\xe9\n", ":2: not UTF-8 text (byte 0xe9)"),
        (b"notes: \x00\n", "not YAML"),
        (b"[" * 100_000, "nested more than"),
        (b"a: " + b"{b: " * 50 + b"}" * 50, "nested more than"),
        (b"x" * 300_000, "too large for a DUT config"),
        (b"- driver: linux\n", "a list where a DUT config should be"),
        (b"ports: []\ndriver: linux\ntransport: {type: local}\n", "0 port(s) make no pairs"),
    ],
)
def test_refuses_the_hostile(tmp_path: Path, content: bytes, words: str) -> None:
    with pytest.raises(ConfigError, match=r"^\S+r1\.yaml:") as caught:
        read_dut(write(tmp_path, content))
    assert words in str(caught.value)


@examples(200)
@given(st.binary(max_size=200) | st.text(alphabet="ab:{}[]-#&*!|>'\"\n \t0.,?%@`", max_size=200).map(str.encode))
def test_anything_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        read_dut(path)
    assert "\n" not in str(caught.value)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@examples(200)
@given(st.sampled_from(["ports", "routes", "plan", "lab", "generator", "transport", "speed", "rx_queues"]), _json)
def test_any_value_at_any_key_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, key: str, value: object
) -> None:
    document = yaml.safe_load(GOOD)
    document[key] = value
    path = tmp_path_factory.getbasetemp() / "tree.yaml"
    path.write_text(yaml.safe_dump(document))
    try:
        read_dut(path)
    except ConfigError as error:
        assert str(error).startswith(f"{path}:")


@pytest.mark.parametrize(
    ("name", "folder", "words"),
    [
        ("alhpa", "two", r"unknown DUT 'alhpa': did you mean alpha\? there are: alpha, beta"),
        ("alpha", ".", "no dut_configs found in"),
        ("alpha", "x" * 300, "the directory given is not there"),
        ("x" * 300 + ".yaml", ".", "unknown DUT"),
        ("nope.yaml", None, r"nope\.yaml: No such file"),
    ],
)
def test_what_is_not_there_is_named(tmp_path: Path, name: str, folder: str | None, words: str) -> None:
    (tmp_path / "two").mkdir()
    for there in ("alpha", "beta"):
        write(tmp_path / "two", GOOD, f"{there}.yaml")
    with pytest.raises(ConfigError, match=words):
        load_dut(*((str(tmp_path / name),) if folder is None else (name, tmp_path / folder)))


def test_the_directory_that_the_environment_names_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREXBENCH_DUT_CONFIGS", "/nope")
    with pytest.raises(ConfigError, match="TREXBENCH_DUT_CONFIGS is not there"):
        DUTS.directories()


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every directory")
def test_a_directory_that_cannot_be_listed_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o300)
    try:
        with pytest.raises(ConfigError, match="Permission denied: make it readable"):
            load_dut("alpha", tmp_path)
    finally:
        tmp_path.chmod(0o700)


def test_lookup_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the last to the first: shipped, the user's, those of the working directory, environment, option."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TREXBENCH_DUT_CONFIGS", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    def add(folder: str) -> None:
        (tmp_path / folder).mkdir(parents=True)
        write(tmp_path / folder, GOOD.replace("a router", folder), "lab-linux.yaml")

    for folder in ("config/trexbench/dut_configs", "dut_configs"):
        add(folder)
        assert load_dut("lab-linux").description == folder
        assert load_dut("netgate-vpp").driver == "vpp", "shipped ones are found beside it"
    add("env")
    monkeypatch.setenv("TREXBENCH_DUT_CONFIGS", "env")
    assert load_dut("lab-linux").description == "env"
    add("option")
    assert load_dut("lab-linux", Path("option")).description == "option"


def test_find_profile(tmp_path: Path) -> None:
    write(tmp_path, "", "bench.py")
    write(tmp_path, "", "_helper.py")
    assert find_profile("bench", tmp_path) == find_profile("bench.py", tmp_path) == tmp_path / "bench.py"
    assert find_profile(str(tmp_path / "bench.py")) == tmp_path / "bench.py"
    with pytest.raises(ConfigError, match="did you mean bench"):
        find_profile("bnech", tmp_path)
    for nope in (str(tmp_path / "nope.py"), f"./{'x' * 300}.py"):
        with pytest.raises(ConfigError, match="no such profile"):
            find_profile(nope)
