"""Power meters: plugs that answer on loopback, as their makers document it or not at all, and meters in the DUT."""

from __future__ import annotations

import base64
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from boxes import Said, Says

from trexbench.config.settings import PowerConfig
from trexbench.core.errors import DutError
from trexbench.host import power
from trexbench.host.power import PowerReading, RaplMeter, open_meter

SWITCH, STATUS = "/rpc/Switch.GetStatus?id=0", "/cm?cmnd=Status%2010"
SHELLY = {"id": 0, "output": True, "apower": 19.2, "aenergy": {"total": 50.982, "by_minute": [1, 2, 3]}}
GEN1 = {"meters": [{"power": 18.5, "is_valid": True, "total": 120}, {"power": 0.0, "is_valid": False, "total": 0}]}
EM = {"meters": [], "emeters": [{"power": 10.66, "is_valid": True, "total": 5.3}]}
TASMOTA = {"StatusSNS": {"Time": "2022-01-01T00:00:00", "ENERGY": {"Total": 0.520, "Power": 27, "Voltage": 234}}}
TWO = {"StatusSNS": {"ENERGY": {"Total": 1.5, "Power": [11, 22]}}}


@dataclass
class Plug:
    """An HTTP server: what it says to each path. asked: paths and headers that arrived."""

    answers: Mapping[str, Callable[[BaseHTTPRequestHandler], None]]
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    url: str = ""


def says(value: object, status: int = 200, **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    """This status, these headers, and the value: JSON, or bytes as they are."""
    body = value if isinstance(value, bytes) else json.dumps(value).encode()

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, text in {"Content-Length": str(len(body)), **headers}.items():
            handler.send_header(name.replace("_", "-"), text)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


@contextmanager
def plug(answers: Mapping[str, Callable[[BaseHTTPRequestHandler], None]]) -> Iterator[Plug]:
    found = Plug(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found.asked.append((self.path, self.headers.get("Authorization")))
            with suppress(OSError):  # the other side had enough
                found.answers.get(self.path, says({"code": 404, "message": "No handler"}, 404))(self)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    found.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def read(config: PowerConfig, transport: Says | None = None) -> PowerReading:
    return open_meter(config, transport or Says(""))()


def failure(config: PowerConfig, transport: Says | None = None) -> str:
    with pytest.raises(DutError) as caught:
        read(config, transport)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("kind", "path", "channel", "answer", "wanted"),
    [
        ("shelly", SWITCH, 0, SHELLY, PowerReading(19.2)),
        ("shelly", "/rpc/Switch.GetStatus?id=3", 3, {"apower": 0}, PowerReading(0.0)),
        ("shelly", "/rpc/PM1.GetStatus?id=0", 0, SHELLY, PowerReading(19.2)),
        ("shelly-gen1", "/status", 0, GEN1, PowerReading(18.5)),
        ("shelly-gen1", "/status", 0, EM, PowerReading(10.66)),
        ("tasmota", STATUS, 0, TASMOTA, PowerReading(27.0)),
        ("tasmota", STATUS, 1, TWO, PowerReading(22.0)),
    ],
)
def test_plugs(kind: str, path: str, channel: int, answer: object, wanted: PowerReading) -> None:
    with plug({path: says(answer)}) as there:
        found = read(PowerConfig(kind, there.url, channel))
        assert found == wanted
        assert read(PowerConfig(kind, f"{there.url}/", channel)) == found


def endless(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    for _ in range(1000):
        handler.wfile.write(b" " * 65536)


@pytest.mark.parametrize(
    ("kind", "path", "answer", "words"),
    [
        ("shelly", SWITCH, says({"output": True}), "has no power of channel 0 (KeyError"),
        ("shelly", SWITCH, says({"apower": "19"}), "is no number"),
        ("shelly", SWITCH, says({"apower": -4.0}), "(ValueError: -4 W)"),
        ("shelly", SWITCH, says(b'{"apower": 1e999}'), "(ValueError: inf W)"),
        ("shelly", SWITCH, says([1]), "answers with unexpected JSON"),
        ("shelly", SWITCH, says(b"\xff\x00"), "does not answer with JSON"),
        ("shelly", SWITCH, says(b"[" * 100_000), "does not answer with JSON"),
        ("shelly", "/other", says({}), "does not exist (status 404): see power.type"),
        ("shelly", SWITCH, says({}, 503), "answers with status 503"),
        ("shelly", SWITCH, says({}, 401), "asks for a password: set it in the environment as"),
        ("shelly-gen1", "/status", says({"meters": [{"power": 1, "is_valid": False}]}), "reading is not valid"),
        ("shelly-gen1", "/status", endless, f"more than {power.LIMIT_BYTES} bytes"),
        ("shelly-gen1", "/status", lambda handler: handler.wfile.write(b"SSH-2.0-OpenSSH_9.2\r\n"), "cannot be read"),
        ("tasmota", STATUS, says({"WARNING": "Need user=<username>"}), "has no power"),
        ("tasmota", STATUS, says({"StatusSNS": {"Switch1": "OFF"}}), "KeyError: 'ENERGY'"),
    ],
)
def test_what_is_no_power(kind: str, path: str, answer: Any, words: str) -> None:
    with plug({path: answer}) as there:
        assert words in failure(PowerConfig(kind, there.url))


def test_a_channel_that_is_not_there() -> None:
    with plug({STATUS: says(TASMOTA), "/status": says(GEN1)}) as there:
        assert "it has one channel" in failure(PowerConfig("tasmota", there.url, 1))
        assert "has no power of channel 7 (IndexError" in failure(PowerConfig("shelly-gen1", there.url, 7))


def test_nobody_is_followed_to_another_place() -> None:
    elsewhere = plug({"/status": says(GEN1)})
    with elsewhere as other, plug({"/status": says({}, 302, Location=f"{other.url}/status")}) as there:
        assert "redirects elsewhere" in failure(PowerConfig("shelly-gen1", there.url))
        assert other.asked == []


def test_no_proxy_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "")
    with plug({"/status": says(GEN1)}) as there:
        assert read(PowerConfig("shelly-gen1", there.url)).power_w == 18.5


@pytest.mark.parametrize("first", [b"", b"HTTP/1.0 200 OK\r\n\r\n"], ids=["silent", "dripping"])
def test_a_slow_one_is_given_up(first: bytes) -> None:
    over = threading.Event()

    def slow(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(first)
        while not over.wait(0.02):
            if first:
                handler.wfile.write(b" ")
                handler.wfile.flush()

    with plug({"/status": slow}) as there:
        with pytest.raises(DutError, match=r"did not answer within 0\.3 s: see whether the meter is up"):
            power.fetch_json([f"{there.url}/status"], 0.3)  # would not end if each drop had 0.3 s of its own
        over.set()


def test_nobody_there() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        assert "cannot be read" in failure(PowerConfig("tasmota", url)) and url in failure(PowerConfig("tasmota", url))


@pytest.mark.parametrize("user", ["admin", "me"])
def test_the_password_is_the_environments_and_in_no_message(monkeypatch: pytest.MonkeyPatch, user: str) -> None:
    monkeypatch.setenv(power.PASSWORD_ENV, "s3cret")
    if user != "admin":
        monkeypatch.setenv(power.USER_ENV, user)
    wanted = "Basic " + base64.b64encode(f"{user}:s3cret".encode()).decode()

    def guarded(handler: BaseHTTPRequestHandler) -> None:
        let_in = handler.headers.get("Authorization") == wanted
        (says(GEN1) if let_in else says({}, 401, WWW_Authenticate='Basic realm="plug"'))(handler)

    with plug({"/status": guarded}) as there:
        assert read(PowerConfig("shelly-gen1", there.url)).power_w == 18.5
        assert there.asked[0][1] is None, "only who asks for it gets it"
        monkeypatch.setenv(power.PASSWORD_ENV, "wr0ng")
        said = failure(PowerConfig("shelly-gen1", there.url))
        assert "asks for a password" in said and "wr0ng" not in said


def test_digest_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shelly's second generation takes nothing else."""
    monkeypatch.setenv(power.PASSWORD_ENV, "s3cret")
    challenge = 'Digest qop="auth", realm="shellyplus1pm-x", nonce="60dc2c69", algorithm=SHA-256'

    def guarded(handler: BaseHTTPRequestHandler) -> None:
        answer = handler.headers.get("Authorization", "")
        let_in = answer.startswith('Digest username="admin", realm="shellyplus1pm-x"') and "s3cret" not in answer
        (says(SHELLY) if let_in else says({}, 401, WWW_Authenticate=challenge))(handler)

    with plug({SWITCH: guarded}) as there:
        assert read(PowerConfig("shelly", there.url)).power_w == 19.2


IPMI = """
    Instantaneous power reading:                   215 Watts
    Minimum during sampling period:                162 Watts
    IPMI timestamp:                           Wed Feb 15 12:49:51 2017
"""


def test_constant_and_ipmi() -> None:
    assert read(PowerConfig("constant", watts=19.0)) == PowerReading(19.0)
    transport = Says(IPMI)
    assert read(PowerConfig("ipmi"), transport) == PowerReading(215.0)
    assert transport.ran == ["ipmitool dcmi power reading"]
    assert "0 W: it does not measure" in failure(PowerConfig("ipmi"), Says(IPMI.replace("215", "  0")))
    assert "printed no power" in failure(PowerConfig("ipmi"), Says("DCMI request failed\n"))
    refused = Says(Said("", "Could not open device at /dev/ipmi0: No such file or directory\n", 1))
    assert "/dev/ipmi0" in failure(PowerConfig("ipmi"), refused)


def rapl(*energies_uj: int, limit: int = 262143328850) -> str:
    """Two packages at most; in each also a part of it, which must not be counted twice."""
    root, lines = "/sys/class/powercap", []
    for at, energy in enumerate(energies_uj):
        lines += [f"{root}/intel-rapl:{at}/name:package-{at}", f"{root}/intel-rapl:{at}/energy_uj:{energy}"]
        lines += [f"{root}/intel-rapl:{at}/max_energy_range_uj:{limit}"]
        lines += [f"{root}/intel-rapl:{at}:0/name:core", f"{root}/intel-rapl:{at}:0/energy_uj:1"]
    return "\n".join([*lines, f"{root}/intel-rapl:7/name:psys", f"{root}/intel-rapl:7/energy_uj:5", ""])


def test_rapl_counts_on_where_its_counters_begin_again() -> None:
    limit = 65_532_610_987
    texts = [rapl(65_442_610_988, 5_000_000, limit=limit), rapl(65_472_610_988, 35_000_000, limit=limit)]
    texts += [rapl(1, 45_000_000, limit=limit), rapl(61_869_556_053, 45_000_000, limit=limit)]
    texts += [rapl(61_875_556_053, 45_000_000, limit=limit), rapl(61_881_556_053, limit=limit)]
    times = iter([100.0, 103.0, 113.0, 3713.0, 3716.0, 3719.0])
    meter = RaplMeter(Says(*texts), lambda: next(times))
    assert meter.read() == PowerReading(None, 0.0), "one look at a counter is no power"
    assert meter.read() == PowerReading(20.0, 60.0)
    last = meter.read()
    assert last.energy_j == pytest.approx(60 + 60 + 10) and last.power_w == pytest.approx(7.0)
    # An hour at 90 W is 324 kJ, of which such a counter has the last 62 kJ.
    assert meter.read() == PowerReading(None, 0.0)
    assert meter.read() == PowerReading(2.0, 6.0)
    assert meter.read() == PowerReading(None, 0.0), "the other package is not counted any more"


def test_rapl_that_cannot_be_read() -> None:
    assert "has no /sys/class/powercap/intel-rapl:0" in failure(PowerConfig("rapl"), Says(Said(returncode=2)))
    unreadable = "\n".join(line for line in rapl(5).splitlines() if "energy_uj" not in line)
    assert "it needs root" in failure(PowerConfig("rapl"), Says(unreadable))
