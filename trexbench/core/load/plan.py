"""Load of a run, and the rates, times and thresholds by which it is sampled and judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from math import inf
from typing import ClassVar, NamedTuple

from ..errors import ConfigError
from ..units import l1_bits

# TRex keeps the time slot of a packet that is already queued: a stream raised from near zero could stall for seconds.
MIN_OFFERED_PPS = 1000.0
LATENCY_LOADS = (0.1, 0.5, 0.9)
"""Shares of the throughput found at which latency is measured."""


class Direction(NamedTuple):
    """Frames leave the tester at port ``tx`` and are expected back at port ``rx``."""

    tx: int
    rx: int

    def __str__(self) -> str:
        return f"{self.tx}->{self.rx}"

    @staticmethod
    @lru_cache
    def parse(text: str) -> Direction:
        """Read a direction such as ``0->1``; ValueError for other text."""
        tx, rx = text.split("->")
        return Direction(int(tx), int(rx))


@dataclass(frozen=True)
class Offer:
    """The load offered in one direction: frames per second of its own profile, on its own line."""

    direction: Direction  # ``0->1``: from the tester's port 0, through the DUT, to its port 1
    line_rate_bps: float  # lowest L1 speed of both ports, the DUT's ``speed:`` and a WAN
    mean_frame_bytes: float  # FCS included
    line_rate_pps: float  # frames of this mean size that fill the line
    target_pps: float  # the highest rate of the run
    warmup_pps: float = MIN_OFFERED_PPS  # rate of the warm-up

    def line_share(self, pps: float) -> float:
        """Fraction of the line rate that this rate fills."""
        return pps / self.line_rate_pps

    def l1_bps(self, pps: float) -> float:
        """Bits per second that this many of the profile's frames occupy on the wire."""
        return pps * l1_bits(self.mean_frame_bytes)

    def within(self, pps: float) -> float:
        """The nearest rate that can be offered evenly and is not above the target."""
        return min(max(MIN_OFFERED_PPS, pps), self.target_pps)

    def check(self, target_option: str) -> None:
        """Raise ConfigError for rates that cannot be offered."""
        for field in fields(self)[1:]:
            value = getattr(self, field.name)
            require(0 < value < inf, f"{field.name.replace('_', ' ')} of {value:g}", "it must be finite and above 0")
        require(
            self.target_pps <= self.line_rate_pps * (1 + 1e-9),
            f"target of {self.target_pps:.0f} pps is over line rate ({self.line_rate_pps:.0f} pps)",
            f"lower {target_option}",
        )
        require(
            self.warmup_pps <= self.target_pps,
            f"warm-up of {self.warmup_pps:.0f} pps is over the target of {self.target_pps:.0f} pps",
            f"lower --warmup or raise {target_option}",
        )


@dataclass(frozen=True)
class Plan:
    """Parameters that every run has; its strategy (core.strategy) adds the course of the load."""

    offers: tuple[Offer, ...]
    warmup_s: float = 10.0  # at warmup_pps, to prove that frames return
    hold_s: float = 30.0  # at the target; without effect on searches
    drain_s: float = 1.0  # silence in which frames come back and DUTs read their NICs' counters (FreeBSD: every 0.5 s)
    sample_s: float = 1.0  # between readings of the tester's counters
    window_s: float = 1.0  # over which loss is judged; one sample at least
    loss_threshold: float = 0.001  # share of the frames that may be lost
    windows: int = 3  # consecutive windows of window_s above the threshold that make a direction saturated

    seeks_knee: ClassVar[bool] = False  # the result is the highest rate without loss, else the rate received
    settling_windows: ClassVar[int] = 0  # windows at the beginning that are left out of the verdict
    target_option: ClassVar[str] = "--ramp-to"  # command-line option of the target

    def __post_init__(self) -> None:
        require(bool(self.offers), "no direction to send in", "name at least one pair of ports")
        for name, value in vars(self).items():
            if name == "window_s":
                require(0 < value < inf, f"a plan's `window:` of {value:g} s", "it must be finite and above 0")
            elif name.endswith("_s"):
                require(0 <= value < inf, f"{name[:-2]} of {value:g} s", "a duration is finite and not negative")
        require(0 <= self.loss_threshold <= 1, f"--loss of {self.loss_threshold:g}", "a share lies between 0 and 100%")
        require(self.windows >= 1, f"--windows of {self.windows}", "use at least 1")
        for offer in self.offers:
            offer.check(self.target_option)
        require(
            0.05 <= self.sample_s <= 10, f"--sample (or a plan's `sample:`) of {self.sample_s:g} s", "use 50ms to 10s"
        )
        require(
            self.warmup_s >= 2 * self.sample_s,
            f"--warmup of {self.warmup_s:g} s is shorter than two samples",
            f"use at least {2 * self.sample_s:g} s",
        )

    def require_length(self, length_s: float, option: str) -> None:
        """Raise ConfigError for a phase too short for sustained loss, with a window beside it."""
        needed = (self.windows + 1) * max(self.window_s, self.sample_s)
        require(
            length_s >= needed,
            f"{option} of {length_s:g} s is too short to see saturation",
            f"use at least {needed:g} s ({self.windows} windows of loss, and 1 beside them)",
        )

    @cached_property
    def directions(self) -> tuple[Direction, ...]:
        return tuple(offer.direction for offer in self.offers)

    def line_share(self, rates_pps: Mapping[Direction, float]) -> float:
        """Sum of these rates as fractions of their directions' line rates: up to 2 for two directions."""
        return sum(self.offer(direction).line_share(pps) for direction, pps in rates_pps.items())

    def l1_bps(self, rates_pps: Mapping[Direction, float]) -> float:
        """Bits per second on all wires together."""
        return sum(self.offer(direction).l1_bps(pps) for direction, pps in rates_pps.items())

    @property
    def line_rates_bps(self) -> tuple[float, ...]:
        """The directions' L1 speeds, each once."""
        return tuple(dict.fromkeys(offer.line_rate_bps for offer in self.offers))

    def offer(self, direction: Direction) -> Offer:
        """The offer of this direction; KeyError for one that the plan does not have."""
        for offer in self.offers:
            if offer.direction == direction:
                return offer
        raise KeyError(direction)

    @cached_property
    def tx_ports(self) -> tuple[int, ...]:
        return tuple(d.tx for d in self.directions)

    @cached_property
    def ports(self) -> tuple[int, ...]:
        return tuple(sorted({p for d in self.directions for p in (d.tx, d.rx)}))

    def step_pps(self, direction: Direction) -> float:
        """Rise of the load in one window, which limits how precisely a knee can be known."""
        return 0.0

    @property
    def gap_s(self) -> float:
        """Between two samples further apart than this is a gap."""
        return 2 * self.sample_s + 1.0

    @property
    def bidir(self) -> bool:
        """True if a pair of ports sends both ways."""
        return any(Direction(d.rx, d.tx) in self.directions for d in self.directions)


def pair_directions(ports: Sequence[int], bidir: bool) -> tuple[Direction, ...]:
    """Directions over pairs of ports, neighbours in the list: 0,1,2,3 is 0->1 and 2->3, and back with ``bidir``."""
    if len(ports) < 2 or len(ports) % 2:
        raise ConfigError(f"{len(ports)} port(s) make no pairs", "name an even number of ports, as in 0,1")
    if len(set(ports)) != len(ports):
        raise ConfigError(f"a port is named twice in {','.join(map(str, ports))}", "name each port once")
    forward = [Direction(tx, rx) for tx, rx in zip(ports[::2], ports[1::2], strict=True)]
    return tuple(forward + ([Direction(d.rx, d.tx) for d in forward] if bidir else []))


def require(condition: bool, message: str, remedy: str) -> None:
    """Raise ConfigError unless the condition holds."""
    if not condition:
        raise ConfigError(message, remedy)
