"""stl_profiles/bench.py, through the genuine client's loader: what each mode puts on the wire."""

from __future__ import annotations

import ast
import io
import struct
import threading
from ipaddress import IPv6Address
from itertools import islice
from pathlib import Path

import pytest
from effort import by_day, examples
from hypothesis import given
from hypothesis import strategies as st

from trexbench.core.errors import ConfigError
from trexbench.core.load.fieldengine import checksum
from trexbench.core.load.profile import MODES, FlowCount, Profile, resolve_mode
from trexbench.generator.trex import profile_loader
from trexbench.generator.trex.client import load_client
from trexbench.generator.trex.profile_loader import PORT_MACS, decode, load_profile, timed_frames, write_pcap
from trexbench.session.loop import Interrupted
from trexbench.session.process import signals_as_exceptions

BENCH = Path(__file__).parents[2] / "stl_profiles" / "bench.py"


def bench(port: int = 0, **tunables: str) -> Profile:
    return load_profile(load_client(), BENCH, tunables, port)


@pytest.mark.parametrize(
    ("mode", "sizes", "flows", "mean", "mpps"),
    [
        ("var2-imix", [64, 590, 1514], 251, 360.167, 3.2880),
        ("var2-64b", [64], 251, 64.0, 14.8810),
        ("1flow-64b", [64], 1, 64.0, 14.8810),
        ("var2-imix-v6", [78, 590, 1514], 251, 368.333, 3.2189),
        ("var2-64b-v6", [78], 251, 78.0, 12.7551),
        ("var2-128b-v6", [128], 251, 128.0, 8.4459),
    ],
)
def test_modes(mode: str, sizes: list[int], flows: int, mean: float, mpps: float) -> None:
    profile = bench(**dict(resolve_mode(mode).tunables))
    assert [stream.frame_bytes for stream in profile.streams] == sizes
    assert profile.flows == FlowCount(flows, True)
    assert profile.mean_frame_bytes == pytest.approx(mean, abs=1e-3)
    assert profile.line_rate_pps(10e9) / 1e6 == pytest.approx(mpps, abs=1e-4)


FLOWS = {
    "none": FlowCount(1, True),
    "var1": FlowCount(251, True),
    "var2": FlowCount(251, True),
    "random": FlowCount(251, False),
    "tuple": FlowCount(251 * 64267, True),
}


@pytest.mark.parametrize("vm", FLOWS)
@pytest.mark.parametrize("port", by_day(2, [0, 15, 1, 4]))
@pytest.mark.parametrize("version", [4, 6])
def test_field_engines_stay_in_their_ranges_and_checksums_hold(vm: str, port: int, version: int) -> None:
    profile = bench(port, size="64", vm=vm, ip=str(version))
    assert profile.flows == FLOWS[vm]
    there, back = (16, 48) if port % 2 == 0 else (48, 16)
    hosts, seen = {1} if vm == "none" else set(range(4, 255)), set[tuple[bytes, bytes]]()
    for frame in islice(profile.streams[0].frames(), 600):
        if version == 4:
            pair, nets = (frame[26:30], frame[30:34]), [bytes([net, port // 2, 0]) for net in (there, back)]
            assert checksum(frame[14:34]) == 0
            assert frame[36:38] == (12).to_bytes(2, "big") and frame[40:42] == b"\0\0"
        else:
            pair = frame[22:38], frame[38:54]
            nets = [IPv6Address(f"2001:2:{port // 2:x}:{net}::").packed[:-1] for net in (there, back)]
            assert frame[12:14] == b"\x86\xdd" and int.from_bytes(frame[18:20], "big") == len(frame) - 54
            pseudo = frame[22:54] + frame[58:60].rjust(4, b"\0") + (17).to_bytes(4, "big")
            assert checksum(pseudo + frame[54:]) == 0 and frame[60:62] != b"\0\0"
        assert [end[:-1] for end in pair] == nets and {end[-1] for end in pair} <= hosts
        seen.add(pair)
    assert len(seen) == 1 if vm == "none" else len(seen) > 200


@given(st.integers(64, 9216), st.sampled_from([*FLOWS]))
@examples(30)
def test_every_size_counts_its_fcs(size: int, vm: str) -> None:
    (stream,) = bench(size=str(size), vm=vm).streams
    assert len(stream.packet) == size - 4 and stream.frame_bytes == size


@pytest.mark.parametrize(
    ("tunables", "said"),
    [
        ({"size": "63"}, "'63' is neither imix nor a size from 64 to 9216"),
        ({"size": "9217"}, "'9217' is neither"),
        ({"size": "²"}, "'²' is neither"),
        ({"vm": "var3"}, "invalid choice: 'var3'"),
        ({"flow": "fs"}, "unrecognized arguments: --flow fs"),
    ],
)
def test_bad_tunables_are_one_line(tunables: dict[str, str], said: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        bench(**tunables)
    assert said in str(caught.value) and "\n" not in str(caught.value)
    assert capfd.readouterr() == ("", "")


def test_every_generation_of_the_loader_can_call_it() -> None:
    """Today's TRex passes a command line (and, from the console's ``a=b``, the names too); older ones only names."""
    client = load_client()
    with client.namespace():
        load = client.api.STLProfile.load_py
        ways = [
            load(str(BENCH), direction=1, port_id=1, size="imix", vm="var2"),
            load(str(BENCH), direction=1, port_id=1, tunables=["--size", "imix", "--vm", "var2"]),
            load(str(BENCH), direction=1, port_id=1, size="imix", vm="var2", tunables=["--size=imix", "--vm=var2"]),
        ]
        import importlib.util

        spec = importlib.util.spec_from_file_location("older", BENCH)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        older = [one.to_json() for one in module.register().get_streams(direction=1, size="imix", vm="var2", port_id=1)]
    assert [way.to_json() for way in ways] == [older] * 3


def test_profiles_import_the_stl_api_by_its_oldest_name_and_nothing_of_ours() -> None:
    for path in BENCH.parent.glob("*.py"):
        nodes = [*ast.walk(ast.parse(path.read_text()))]
        names = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
        names |= {node.names[0].name for node in nodes if isinstance(node, ast.Import)}
        assert names <= {"argparse", "trex_stl_lib.api"}


ONE = (
    "from trex_stl_lib.api import *\ndef register():\n    return P()\nclass P:\n    def get_streams(self, **kwargs):\n"
)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("broken.py", "def register(:", "SyntaxError"),
        ("broken.py", "import nothing_of_that_name", "nothing_of_that_name"),
        ("broken.py", "x = 1", "register"),
        ("broken.py", f"{ONE}        return [STLStream(mode=STLTXSingleBurst(total_pkts=5))]", "single_burst"),
        ("broken.py", f"{ONE}        return [STLStream(mode=STLTXCont(percentage=50))]", "rate in percentage"),
        ("broken.py", f"{ONE}        return [STLStream(flow_stats=STLFlowLatencyStats(pg_id=1))]", "latency"),
        ("broken.py", f"{ONE}        return []", "no stream"),
        ("none.py", f"{ONE}        return [STLStream(mode=STLTXCont(pps=0))]", "profile none.py: a stream at a rate"),
        ("scapy.py", f"{ONE}        return [STLStream()]", "profile scapy.py: a Python module has that name: rename"),
    ],
)
def test_other_profiles_that_cannot_be_ramped_say_why(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_profile(load_client(), tmp_path / name, {})
    assert said in str(caught.value) and "\n" not in str(caught.value)
    assert "Ether" in decode(load_client(), bench(size="64", vm="none"))[0], "nothing of it is left in the client"


def test_a_profile_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match=r"no profile file nowhere\.py"):
        load_profile(load_client(), Path("nowhere.py"), {})


def test_rates_in_bits_become_packets_and_a_cache_is_known(tmp_path: Path) -> None:
    path, modes = tmp_path / "bits.py", ("bps_L1=672e6", "bps_L2=512e3")
    path.write_text(f"{ONE}        return [{', '.join(f'STLStream(mode=STLTXCont({one}))' for one in modes)}]")
    assert [stream.pps for stream in load_profile(load_client(), path, {}).streams] == [1e6, 1e3]
    packet = "STLPktBuilder(pkt=Ether()/IP(), vm=STLScVmRaw([], cache_size=40))"
    path.write_text(f"{ONE}        return [STLStream(packet={packet})]")
    assert [stream.cache for stream in load_profile(load_client(), path, {}).streams] == [40]


@pytest.mark.parametrize("mode", [mode.name for mode in MODES])
def test_decoded_packets_name_their_layers(mode: str) -> None:
    profile = bench(**dict(resolve_mode(mode).tunables))
    texts = decode(load_client(), profile)
    assert len(texts) == len(profile.streams)
    for text in texts:
        assert all(part in text for part in ("Ethernet", "IP", "UDP", "16.0.0.", "48.0.0.", "0000"))


def test_a_capture_holds_the_frames_with_their_times() -> None:
    profile = bench(size="imix", vm="var2")
    file = io.BytesIO()
    write_pcap(file, profile, 480, 1000.0)
    data = file.getvalue()
    magic, major, minor, _, _, snap, link = struct.unpack("<IHHiIII", data[:24])
    assert (magic, major, minor, snap, link) == (0xA1B23C4D, 2, 4, 65535, 1)
    at, sizes, times = 24, [], []
    while at < len(data):
        seconds, nanoseconds, kept, length = struct.unpack("<IIII", data[at : at + 16])
        assert kept == length and checksum(data[at + 16 + 14 : at + 16 + 34]) == 0
        sizes.append(length)
        times.append(seconds + nanoseconds / 1e9)
        at += 16 + length
    assert [sizes.count(size - 4) for size in (64, 590, 1514)] == [280, 160, 40]
    assert times == sorted(times) and times[-1] == pytest.approx(0.48, abs=0.03)


def test_a_capture_of_an_odd_port_has_the_other_addresses() -> None:
    _, frame = next(timed_frames(bench(1, size="64", vm="none"), 1000.0))
    destination, source = (mac.replace(":", "") for mac in PORT_MACS[1])
    assert frame[:12].hex() == destination + source and frame[26:34] == bytes([48, 0, 0, 1, 16, 0, 0, 1])


def assert_no_profile_loops_on() -> None:
    for thread in [one for one in threading.enumerate() if one.name == "profile"]:
        thread.join(5)
        assert not thread.is_alive()


@pytest.mark.portable
def test_a_profile_that_loops_ends_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile_loader, "LOAD_S", 0.1)
    path = tmp_path / "loops.py"
    path.write_text("while True:\n    pass\n")
    with pytest.raises(ConfigError, match=r"profile loops\.py was not loaded within 0\.1 s"):
        load_profile(load_client(), path, {})
    assert_no_profile_loops_on()


@pytest.mark.portable
def test_a_signal_while_a_profile_loops_ends_its_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile_loader, "ENDING_S", 0.1)
    path = tmp_path / "loops.py"
    path.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nwhile True:\n    pass\n")
    with pytest.raises(Interrupted), signals_as_exceptions():
        load_profile(load_client(), path, {})
    assert_no_profile_loops_on()


def test_ipv6_addresses_are_told_as_such() -> None:
    ends = ["IPv6.src 2001:2:0:16::4 to 2001:2:0:16::fe, inc", "IPv6.dst 2001:2:0:48::4 to 2001:2:0:48::fe, inc"]
    assert list(bench(size="64", vm="var2", ip="6").varied) == ends
