"""How much power a DUT takes, from the meter its config names.

What the meters say, and in which unit, after their makers' documents:

    shelly       /rpc/Switch.GetStatus?id=N (generation 2 and later): apower in W, aenergy.total in Wh;
                 a meter without a switch answers /rpc/PM1.GetStatus?id=N alike
    shelly-gen1  /status: meters[N].power in W, .total in watt-minutes; emeters[N].power in W, .total in Wh
    tasmota      /cm?cmnd=Status%2010: StatusSNS.ENERGY.Power in W (a list where there are several), .Total in kWh
    ipmi         ipmitool dcmi power reading, on the DUT itself
    rapl         /sys/class/powercap/intel-rapl:N/energy_uj of each processor package, on the DUT itself (Linux)
    constant     what the config says
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ..config import PowerConfig
from ..core.errors import ConfigError, DutError
from ..transport import Transport
from .power_http import fetch_json

TIMEOUT_S = 5.0
_WH_J = 3600.0
_WATT_MINUTE_J = 60.0
_KWH_J = 3.6e6
NOT_AN_ANSWER = (LookupError, TypeError, ValueError, AttributeError, OverflowError)
"""What a parser of JSON raises where it is not what the maker documents."""
_RAPL = "/sys/class/powercap"
_RAPL_LINE = re.compile(rf"{_RAPL}/(intel-rapl:[0-9]{{1,3}})/(name|energy_uj|max_energy_range_uj):(\S{{1,40}})\s*")


@dataclass(frozen=True)
class PowerReading:
    """power_w: at that moment, or since the last reading where the meter only counts energy; None: not known.

    energy_j: a total since some moment, fine enough that two of one meter can be subtracted after seconds; else None.
    counter_j: the total of a plug, which grows in steps of a minute or of up to 3600 J.
    """

    power_w: float | None
    energy_j: float | None = None
    counter_j: float | None = None


class PowerMeter(Protocol):
    def read(self) -> PowerReading:
        """DutError, with what helps, where the meter gives no plausible answer."""


def open_meter(config: PowerConfig, transport: Transport) -> PowerMeter:
    """The meter of this config; transport leads to the DUT, which some meters are a part of."""
    return METERS[config.type](config, transport)


@dataclass(frozen=True)
class HttpMeter:
    """A plug: the paths to ask, the first that is known there counts, and what its answer means."""

    config: PowerConfig
    paths: tuple[str, ...]
    parse: Callable[[Any, int], PowerReading]

    def read(self) -> PowerReading:
        if not self.config.url:
            raise ConfigError(f"a power meter of type {self.config.type} has no address", "write power.url")
        url = f"{self.config.url.rstrip('/')}{self.paths[0]}"
        answer = fetch_json(url, TIMEOUT_S, tuple(f"{self.config.url.rstrip('/')}{path}" for path in self.paths[1:]))
        try:
            return self.parse(answer, self.config.channel)
        except NOT_AN_ANSWER as error:
            told = f"{type(error).__name__}: {error}"[:100]
            raise DutError(
                f"{url} tells no power of channel {self.config.channel} ({told})",
                f"see whether it is a {self.config.type}, and power.channel",
            ) from None


@dataclass(frozen=True)
class ConstantMeter:
    watts: float

    def read(self) -> PowerReading:
        return PowerReading(self.watts)


@dataclass(frozen=True)
class IpmiMeter:
    """The DUT's own management controller."""

    transport: Transport

    def read(self) -> PowerReading:
        done = self.transport.run(("ipmitool", "dcmi", "power", "reading"), TIMEOUT_S)
        if done.returncode:
            raise DutError(f"ipmitool dcmi power reading failed on {self.transport.place}", done.complaint)
        return parse_ipmi(done.stdout)


class RaplMeter:
    """The energy counters of the DUT's processors. They run over; that is put right from one reading to the next."""

    def __init__(self, transport: Transport, clock: Callable[[], float] = time.monotonic) -> None:
        self._transport = transport
        self._clock = clock
        self._last: Mapping[str, Package] = {}
        self._at_s = 0.0
        self._energy_j = 0.0

    def read(self) -> PowerReading:
        argv = ("grep", "-rsH", "", *(f"{_RAPL}/intel-rapl:{n}/{leaf}" for n in range(8) for leaf in _LEAVES))
        now = parse_rapl(self._transport.run(argv, TIMEOUT_S).stdout, self._transport.place)
        at_s = self._clock()
        if now.keys() != self._last.keys():
            self._last, self._at_s = now, at_s
            return PowerReading(None, self._energy_j)
        gained_j = sum(now[name].since(self._last[name]) for name in now)
        power_w = gained_j / (at_s - self._at_s) if at_s > self._at_s else None
        self._energy_j += gained_j
        self._last, self._at_s = now, at_s
        return PowerReading(power_w, self._energy_j)


_LEAVES = ("name", "energy_uj", "max_energy_range_uj")


@dataclass(frozen=True)
class Package:
    """One processor package's counter, and the value after which it begins again."""

    energy_uj: int
    range_uj: int

    def since(self, before: Package) -> float:
        """J since that reading, if it ran over once at most."""
        gained = self.energy_uj - before.energy_uj
        return (gained if gained >= 0 else gained + self.range_uj) / 1e6


def parse_shelly(answer: Any, channel: int) -> PowerReading:
    """``Switch.GetStatus``. A relay that cannot measure has no apower."""
    energy = answer.get("aenergy")
    return PowerReading(_watts(answer["apower"]), counter_j=_joules(energy["total"], _WH_J) if energy else None)


def parse_shelly_gen1(answer: Any, channel: int) -> PowerReading:
    """``/status``: a plug has meters, a 3EM has emeters, which count in another unit."""
    kind, unit_j = ("meters", _WATT_MINUTE_J) if answer.get("meters") else ("emeters", _WH_J)
    meter = answer[kind][channel]
    if meter.get("is_valid") is False:
        raise ValueError("it says that its reading is not valid")
    total = meter.get("total")
    return PowerReading(_watts(meter["power"]), counter_j=None if total is None else _joules(total, unit_j))


def parse_tasmota(answer: Any, channel: int) -> PowerReading:
    """``Status 10``: a plug has one number, a device with several channels lists, of the total often but one."""
    energy = answer["StatusSNS"]["ENERGY"]
    power, total = energy["Power"], energy.get("Total")
    if isinstance(power, list):
        power = power[channel]
        total = total[channel] if isinstance(total, list) else None
    elif channel:
        raise IndexError("it has one channel")
    return PowerReading(_watts(power), counter_j=None if total is None else _joules(total, _KWH_J))


def parse_ipmi(text: str) -> PowerReading:
    """``ipmitool dcmi power reading``. Controllers that do not measure say 0."""
    found = re.search(r"Instantaneous power reading:\s*([0-9]{1,6}) Watts", text)
    if not found:
        raise DutError(f"ipmitool printed no power ({text.strip()[:60]!r})", "see what it says on the DUT")
    if not int(found[1]):
        raise DutError("the DUT's management controller says 0 W", "it does not measure: take another meter")
    return PowerReading(float(found[1]))


def parse_rapl(text: str, place: str) -> dict[str, Package]:
    """``grep -H`` over the counters: the packages, whose names begin so; cores and memory are inside or left out."""
    values: dict[tuple[str, str], str] = {}
    for match in map(_RAPL_LINE.fullmatch, text.splitlines()):
        if match:
            values[match[1], match[2]] = match[3]
    found = {}
    for (domain, leaf), name in values.items():
        energy, limit = (values.get((domain, other), "") for other in ("energy_uj", "max_energy_range_uj"))
        if leaf != "name" or not name.startswith("package"):
            continue
        if not (re.fullmatch("[0-9]{1,19}", energy) and re.fullmatch("[0-9]{1,19}", limit)):
            raise DutError(
                f"{_RAPL}/{domain}/energy_uj on {place} cannot be read", "it takes root, and an Intel or AMD"
            )
        found[domain] = Package(int(energy), int(limit))
    if not found:
        raise DutError(f"{place} has no {_RAPL}/intel-rapl:0", "its processor or system does not count energy")
    return found


def _watts(value: Any) -> float:
    """A plausible power; no meter of these feeds a bigger box."""
    watts = _number(value)
    if not 0 <= watts <= 1e6:
        raise ValueError(f"{watts:g} W")
    return watts


def _joules(value: Any, unit_j: float) -> float:
    total = _number(value)
    if not 0 <= total <= 1e12:
        raise ValueError(f"an energy of {total:g}")
    return total * unit_j


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{str(value)[:40]!r} is no number")
    return float(value)


def _shelly(config: PowerConfig, _: Transport) -> PowerMeter:
    paths = tuple(f"/rpc/{kind}.GetStatus?id={config.channel}" for kind in ("Switch", "PM1"))
    return HttpMeter(config, paths, parse_shelly)


def _shelly_gen1(config: PowerConfig, _: Transport) -> PowerMeter:
    return HttpMeter(config, ("/status",), parse_shelly_gen1)


def _tasmota(config: PowerConfig, _: Transport) -> PowerMeter:
    return HttpMeter(config, ("/cm?cmnd=Status%2010",), parse_tasmota)


def _ipmi(_: PowerConfig, transport: Transport) -> PowerMeter:
    return IpmiMeter(transport)


def _rapl(_: PowerConfig, transport: Transport) -> PowerMeter:
    return RaplMeter(transport)


def _constant(config: PowerConfig, _: Transport) -> PowerMeter:
    if config.watts is None:
        raise ConfigError("a power meter of type constant says no watts", "write power.watts")
    return ConstantMeter(config.watts)


METERS: Mapping[str, Callable[[PowerConfig, Transport], PowerMeter]] = {
    "shelly": _shelly,
    "shelly-gen1": _shelly_gen1,
    "tasmota": _tasmota,
    "ipmi": _ipmi,
    "rapl": _rapl,
    "constant": _constant,
}
