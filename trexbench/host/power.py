"""Read the power that a DUT draws, from the meter that its config names.

Answers of each meter, and their units, after its maker's documents:

    shelly       /rpc/Switch.GetStatus?id=N (generation 2 and later): apower in W;
                 a meter without a switch answers /rpc/PM1.GetStatus?id=N alike
    shelly-gen1  /status: meters[N].power or emeters[N].power in W
    tasmota      /cm?cmnd=Status%2010: StatusSNS.ENERGY.Power in W (a list where there are several)
    ipmi         ipmitool dcmi power reading, on the DUT itself
    rapl         /sys/class/powercap/intel-rapl:N/energy_uj of each processor package, on the DUT itself (Linux)
    constant     what the config says

Plugs are in the local network: each answer is limited in time and size, without redirects or proxies. One that asks for
a password gets that in TREXBENCH_POWER_PASSWORD (user ``admin`` or TREXBENCH_POWER_USER), which is in no config,
message or result.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from dataclasses import dataclass
from typing import Any

import requests
from requests.auth import AuthBase, HTTPBasicAuth, HTTPDigestAuth

from ..config.settings import PowerConfig
from ..core.errors import DutError
from ..transport import Transport, run_checked

TIMEOUT_S = 5.0
PASSWORD_ENV, USER_ENV = "TREXBENCH_POWER_PASSWORD", "TREXBENCH_POWER_USER"
LIMIT_BYTES = 256 * 1024
_NOT_THERE = (404, 500, 501)
"""Status codes for a component that does not exist: a Shelly answers 500 in old firmware, 404 since."""
NOT_AN_ANSWER = (LookupError, TypeError, ValueError, AttributeError, OverflowError)
"""Exceptions that a parser raises where the JSON is not what the maker documents."""
MOST_W = 500.0
"""Most that a processor package is made for (Xeon 6900P, EPYC 9005)."""
_RAPL = "/sys/class/powercap"
_LEAVES = ("name", "energy_uj", "max_energy_range_uj")
_RAPL_LINE = re.compile(rf"{_RAPL}/(intel-rapl:[0-9]{{1,3}})/(name|energy_uj|max_energy_range_uj):(\S{{1,40}})\s*")


@dataclass(frozen=True)
class PowerReading:
    """One reading of a meter."""

    power_w: float | None
    """At that moment, or since the last reading where the meter only counts energy; None: unknown."""
    energy_j: float | None = None
    """Running total, where it is fine enough to subtract readings seconds apart; a plug's is not, which grows in steps
    of a minute or of up to 3600 J."""


PowerMeter = Callable[[], PowerReading]
"""Takes one reading; DutError where the meter gives no plausible answer."""


def open_meter(config: PowerConfig, transport: Transport) -> PowerMeter:
    """Open the meter of this config; transport: to the DUT, which some meters are a part of."""
    if config.type == "constant":
        return lambda: PowerReading(config.watts)
    if config.type == "ipmi":
        argv = ("ipmitool", "dcmi", "power", "reading")
        return lambda: parse_ipmi(run_checked(transport, argv, TIMEOUT_S))
    return RaplMeter(transport).read if config.type == "rapl" else lambda: _read_plug(config)


def _read_plug(config: PowerConfig) -> PowerReading:
    parse, paths = _PLUGS[config.type]
    urls = [f"{(config.url or '').rstrip('/')}{path.format(config.channel)}" for path in paths]
    answer = fetch_json(urls, TIMEOUT_S)
    try:
        return parse(answer, config.channel)
    except NOT_AN_ANSWER as error:
        reason = f"{type(error).__name__}: {error}"[:100]
        raise DutError(
            f"{urls[0]} has no power of channel {config.channel} ({reason})",
            f"see whether it is a {config.type}, and power.channel",
        ) from None


class RaplMeter:
    """Energy counters of the DUT's processors, corrected for wrapping around once between readings."""

    def __init__(self, transport: Transport, clock: Callable[[], float] = time.monotonic) -> None:
        self._transport = transport
        self._clock = clock
        self._last: Mapping[str, Package] = {}
        self._at_s = 0.0
        self._energy_j = 0.0

    def read(self) -> PowerReading:
        """Read all packages; power is that since the last reading.

        The total begins anew if that was too long ago, or of other packages.
        """
        argv = ("grep", "-rsH", "", *(f"{_RAPL}/intel-rapl:{n}/{leaf}" for n in range(8) for leaf in _LEAVES))
        now, before = parse_rapl(self._transport.run(argv, TIMEOUT_S).stdout, self._transport.place), self._last
        at_s, before_s = self._clock(), self._at_s
        self._last, self._at_s = now, at_s
        elapsed_s = at_s - before_s
        gains_j = [now[name].since(before[name], elapsed_s) for name in now if name in before]
        if now.keys() != before.keys() or None in gains_j:
            self._energy_j = 0.0
            return PowerReading(None, self._energy_j)
        gained_j = sum(gain_j or 0.0 for gain_j in gains_j)
        self._energy_j += gained_j
        return PowerReading(gained_j / elapsed_s if elapsed_s > 0 else None, self._energy_j)


@dataclass(frozen=True)
class Package:
    """Counter of one processor package, and the value after which it wraps around."""

    energy_uj: int
    range_uj: int

    def since(self, before: Package, elapsed_s: float) -> float | None:
        """Energy in J since that reading; None if the counter may have wrapped around more than once."""
        gained = self.energy_uj - before.energy_uj
        gained += self.range_uj if gained < 0 else 0
        return None if gained + self.range_uj <= MOST_W * 1e6 * elapsed_s else gained / 1e6


def parse_shelly(answer: Any, channel: int) -> PowerReading:
    """Parse ``Switch.GetStatus``. A relay that cannot measure has no apower."""
    return PowerReading(_watts(answer["apower"]))


def parse_shelly_gen1(answer: Any, channel: int) -> PowerReading:
    """Parse ``/status``: a plug has meters, a 3EM has emeters."""
    meter = answer["meters" if answer.get("meters") else "emeters"][channel]
    if meter.get("is_valid") is False:
        raise ValueError("its reading is not valid")
    return PowerReading(_watts(meter["power"]))


def parse_tasmota(answer: Any, channel: int) -> PowerReading:
    """Parse ``Status 10``: a plug has one number, a device with several channels a list."""
    power = answer["StatusSNS"]["ENERGY"]["Power"]
    if channel and not isinstance(power, list):
        raise IndexError("it has one channel")
    return PowerReading(_watts(power[channel] if isinstance(power, list) else power))


def parse_ipmi(text: str) -> PowerReading:
    """Parse ``ipmitool dcmi power reading``. Controllers that do not measure print 0."""
    match = re.search(r"Instantaneous power reading:\s*([0-9]{1,6}) Watts", text)
    if not match:
        raise DutError(f"ipmitool printed no power ({text.strip()[:60]!r})", "run it on the DUT to see why")
    if not int(match[1]):
        raise DutError("the DUT's management controller reports 0 W", "it does not measure: use another meter")
    return PowerReading(float(match[1]))


def parse_rapl(text: str, place: str) -> dict[str, Package]:
    """Parse ``grep -H`` over the counters: packages by domain, with their cores and without memory."""
    matches = filter(None, map(_RAPL_LINE.fullmatch, text.splitlines()))
    values = {(match[1], match[2]): match[3] for match in matches}
    packages = {}
    for (domain, leaf), name in values.items():
        energy, limit = (values.get((domain, other), "") for other in ("energy_uj", "max_energy_range_uj"))
        if leaf != "name" or not name.startswith("package"):
            continue
        if not (re.fullmatch("[0-9]{1,19}", energy) and re.fullmatch("[0-9]{1,19}", limit)):
            raise DutError(
                f"{_RAPL}/{domain}/energy_uj on {place} cannot be read", "it needs root, and an Intel or AMD CPU"
            )
        packages[domain] = Package(int(energy), int(limit))
    if not packages:
        raise DutError(f"{place} has no {_RAPL}/intel-rapl:0", "its processor or system does not count energy")
    return packages


def _watts(value: Any) -> float:
    """Check that a power is plausible: 1 MW at most."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{str(value)[:40]!r} is no number")
    if not 0 <= value <= 1e6:
        raise ValueError(f"{value:g} W")
    return float(value)


_PLUGS: Mapping[str, tuple[Callable[[Any, int], PowerReading], tuple[str, ...]]] = {
    "shelly": (parse_shelly, ("/rpc/Switch.GetStatus?id={}", "/rpc/PM1.GetStatus?id={}")),
    "shelly-gen1": (parse_shelly_gen1, ("/status",)),
    "tasmota": (parse_tasmota, ("/cm?cmnd=Status%2010",)),
}
"""Parser of the answer and the paths to ask, by kind of plug; {} stands for the channel."""


def fetch_json(urls: Sequence[str], timeout_s: float) -> Any:
    """Fetch the JSON object at the first of these addresses that exists; DutError where none does.

    Each takes timeout_s at most, however slowly the plug sends its answer.
    """
    for url in urls:
        status, body = _fetch_within(url, timeout_s)
        if status not in _NOT_THERE:
            return _parse_object(status, body, url)
    raise DutError(f"{urls[0]} does not exist (status {status})", "see power.type, power.url and power.channel")


def _fetch_within(url: str, timeout_s: float) -> tuple[int, bytes]:
    # in a thread of its own: requests limits the time between two bytes, not that of the whole answer
    answer: Future[tuple[int, bytes]] = Future()

    def work() -> None:
        try:
            answer.set_result(_fetch(url, timeout_s))
        except Exception as error:  # handed to the caller's thread
            answer.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    try:
        return answer.result(timeout_s)
    except (NotInTime, requests.Timeout):
        raise DutError(f"{url} did not answer within {timeout_s:g} s", "see whether the meter is up") from None
    except (requests.RequestException, OSError, ValueError) as error:
        raise DutError(f"{url} cannot be read ({_reason(error)})", "see power.url and the meter") from None


def _fetch(url: str, timeout_s: float) -> tuple[int, bytes]:
    """Return status and body. The password is sent only when the meter asks for it, as a digest if it asks for that."""
    with requests.Session() as session:
        session.trust_env = False  # no proxy, no .netrc
        status, body, asked = _get(session, url, timeout_s, None)
        password = os.environ.get(PASSWORD_ENV)
        if status == 401 and asked and password:
            scheme = HTTPDigestAuth if "digest " in asked.lower() else HTTPBasicAuth
            status, body, _ = _get(session, url, timeout_s, scheme(os.environ.get(USER_ENV, "admin"), password))
    return status, body


def _get(session: requests.Session, url: str, timeout_s: float, auth: AuthBase | None) -> tuple[int, bytes, str]:
    with session.get(url, timeout=timeout_s, auth=auth, allow_redirects=False, stream=True) as answer:
        body = b""
        for chunk in answer.iter_content(65536):
            body += chunk
            if len(body) > LIMIT_BYTES:
                raise DutError(f"{url} answers with more than {LIMIT_BYTES} bytes", "it is not a power meter")
        return answer.status_code, body, answer.headers.get("WWW-Authenticate", "")


def _parse_object(status: int, body: bytes, url: str) -> Any:
    if status in (401, 403):
        raise DutError(f"{url} asks for a password", f"set it in the environment as {PASSWORD_ENV}")
    if 300 <= status < 400:
        raise DutError(f"{url} redirects elsewhere", "write the meter's own address as power.url")
    if status != 200:
        raise DutError(f"{url} answers with status {status}", "see power.type and power.url")
    try:
        answer = json.loads(body.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise DutError(f"{url} does not answer with JSON ({body[:40]!r})", "see power.type and power.url") from None
    if not isinstance(answer, dict):
        raise DutError(f"{url} answers with unexpected JSON", "see power.type and power.url")
    return answer


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def _reason(error: Exception) -> str:
    """Describe the innermost cause in one line, without urllib3's object names."""
    inner: Any = error
    while inner.args and isinstance(getattr(inner.args[0], "reason", inner.args[0]), Exception):
        inner = getattr(inner.args[0], "reason", inner.args[0])
    text = "".join(c if c.isprintable() else " " for c in str(inner).rpartition("): ")[2])
    return text[:80].strip() or type(inner).__name__
