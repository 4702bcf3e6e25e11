"""What a run is going to do: rates, times and thresholds, all resolved to numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from .errors import ConfigError
from .units import l1_bits

# TRex leaves a packet that is already queued in its old slot; from near zero a stream could stall for seconds.
MIN_OFFERED_PPS = 1000.0

LATENCY_LOADS = (0.1, 0.5, 0.9)
"""Shares of the throughput found at which latency is measured."""

_ABOVE_ZERO = (
    "line_rate_bps",
    "mean_frame_bytes",
    "line_rate_pps",
    "target_pps",
    "warmup_pps",
    "warmup_s",
    "sample_s",
    "window_s",
)


@dataclass(frozen=True, order=True)
class Direction:
    """Frames leave the tester at port ``tx`` and are expected back at port ``rx``."""

    tx: int
    rx: int

    def __str__(self) -> str:
        return f"{self.tx}->{self.rx}"


@dataclass(frozen=True)
class Plan:
    """One run. Rates are frames per second of each direction; loss_threshold is a fraction.

    kind: ``ramp`` (linear to target_pps), or ``saturate`` (target_pps at once, for hold_s).
    windows: consecutive windows of window_s above the threshold that make a direction saturated.
    confirm_s: how long the last good rate is held after the ramp to confirm it; 0 leaves that out. latency_s: how long
    each of LATENCY_LOADS is held at the end, with tagged frames; 0 leaves that out.
    """

    directions: tuple[Direction, ...]
    line_rate_bps: float
    mean_frame_bytes: float
    line_rate_pps: float
    target_pps: float
    kind: str = "ramp"
    warmup_pps: float = MIN_OFFERED_PPS
    warmup_s: float = 10.0
    ramp_s: float = 600.0
    hold_s: float = 30.0
    confirm_s: float = 10.0
    latency_s: float = 0.0
    drain_s: float = 1.0
    sample_s: float = 1.0
    window_s: float = 1.0
    loss_threshold: float = 0.001
    windows: int = 3
    stop_on_saturation: bool = False

    def __post_init__(self) -> None:
        if self.kind not in ("ramp", "saturate"):
            raise ValueError(f"unknown kind of plan {self.kind!r}")
        _require(bool(self.directions), "no direction to send in", "name at least one pair of ports")
        self._require_numbers()
        target = "--ramp-to" if self.kind == "ramp" else "--rate"
        _require(
            self.target_pps <= self.line_rate_pps * (1 + 1e-9),
            f"target of {self.target_pps:.0f} pps is over line rate ({self.line_rate_pps:.0f} pps)",
            f"lower {target}",
        )
        _require(
            self.warmup_pps <= self.target_pps,
            f"warm-up of {self.warmup_pps:.0f} pps is over the target of {self.target_pps:.0f} pps",
            f"lower --warmup or raise {target}",
        )
        _require(0.05 <= self.sample_s <= 10, f"sample interval {self.sample_s:g} s", "use 50ms to 10s")
        _require(
            self.warmup_s >= 2 * self.sample_s,
            f"warm-up of {self.warmup_s:g} s is too short to prove anything",
            f"use at least {2 * self.sample_s:g} s",
        )
        _require(
            self.latency_s == 0 or self.latency_s >= 2 * self.sample_s,
            f"--latency of {self.latency_s:g} s is too short for a mean",
            f"use at least {2 * self.sample_s:g} s, or 0",
        )
        needed = (self.windows + 1) * max(self.window_s, self.sample_s)
        length, option = (self.ramp_s, "--ramp-duration") if self.kind == "ramp" else (self.hold_s, "--hold")
        _require(
            length >= needed,
            f"{option} of {length:g} s is too short to see saturation",
            f"it takes {needed:g} s at least ({self.windows} windows and one to start from)",
        )

    def _require_numbers(self) -> None:
        """Every figure is finite and of a size that means something: else the arithmetic of rates has no answer."""
        for name in _ABOVE_ZERO:
            value = getattr(self, name)
            _require(0 < value < inf, f"{name.replace('_', ' ')} of {value:g}", "it must be finite and above 0")
        for name in ("ramp_s", "hold_s", "confirm_s", "latency_s", "drain_s"):
            value = getattr(self, name)
            _require(
                0 <= value < inf, f"{name.replace('_', ' ')} of {value:g}", "durations are finite and count up from 0"
            )
        _require(0 <= self.loss_threshold <= 1, f"--loss of {self.loss_threshold:g}", "a share lies between 0 and 100%")
        _require(self.windows >= 1, f"--windows of {self.windows}", "it takes one at least")

    @property
    def tx_ports(self) -> tuple[int, ...]:
        return tuple(d.tx for d in self.directions)

    @property
    def ports(self) -> tuple[int, ...]:
        return tuple(sorted({p for d in self.directions for p in (d.tx, d.rx)}))

    @property
    def step_pps(self) -> float:
        """How much the ramp rises in one window: no knee can be known better than that."""
        return self.target_pps * max(self.window_s, self.sample_s) / self.ramp_s if self.kind == "ramp" else 0.0

    def line_share(self, pps: float) -> float:
        """The fraction of one direction's line rate that this rate fills."""
        return pps / self.line_rate_pps

    def l1_bps(self, pps: float) -> float:
        """Bits per second that this many of the profile's frames occupy on the wire."""
        return pps * l1_bits(self.mean_frame_bytes)

    @property
    def bidir(self) -> bool:
        """Some pair of ports sends both ways."""
        return any(Direction(d.rx, d.tx) in self.directions for d in self.directions)

    @property
    def duration_s(self) -> float:
        """Expected length of the whole run, confirmation at its first trial and latency included."""
        confirm = self.confirm_s + self.drain_s if self.kind == "ramp" and self.confirm_s else 0.0
        return self.sending_s + self.drain_s + confirm + len(LATENCY_LOADS) * self.load_s

    @property
    def load_s(self) -> float:
        """Expected length of one of the latency's loads; 0 where none is measured."""
        return self.latency_s + self.drain_s if self.kind == "ramp" and self.latency_s else 0.0

    @property
    def sending_s(self) -> float:
        """How long the ports send without a break: warm-up to the end of the hold."""
        return self.warmup_s + (self.ramp_s if self.kind == "ramp" else 0.0) + self.hold_s


def pair_directions(ports: Sequence[int], bidir: bool) -> tuple[Direction, ...]:
    """Directions over pairs of ports, neighbours in the list: 0,1,2,3 is 0->1 and 2->3, and back with ``bidir``."""
    if len(ports) < 2 or len(ports) % 2:
        raise ConfigError(f"{len(ports)} port(s) make no pairs", "name an even number of ports, as in 0,1")
    if len(set(ports)) != len(ports):
        raise ConfigError(f"a port stands twice in {','.join(map(str, ports))}", "name each port once")
    pairs = [(ports[i], ports[i + 1]) for i in range(0, len(ports), 2)]
    forward = [Direction(a, b) for a, b in pairs]
    backward = [Direction(b, a) for a, b in pairs] if bidir else []
    return tuple(forward + backward)


def _require(condition: bool, message: str, remedy: str) -> None:
    if not condition:
        raise ConfigError(message, remedy)
