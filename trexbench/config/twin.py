"""The ``twin:`` section of a DUT's file: the router that ``--sim`` puts in its place, and the tester before it."""

from __future__ import annotations

from dataclasses import dataclass, field

PLACEMENTS = ("round-robin", "per-port")
DRIVES = ("polling", "interrupt")
HASH_FIELDS = ("src", "dst", "sport", "dport")
RSS_KEYS = ("microsoft", "random")


@dataclass(frozen=True)
class TesterSpec:
    """How the simulated TRex itself falls short; by default it does not. Rates in frames per second.

    tx_limit_pps, rx_limit_pps: of each port. overload: what its sending core does beyond the limit: ``stretch`` (time
    gets longer, as TRex does: fewer frames, no queue_full) or ``queue-full`` (frames are dropped and counted). Frames
    beyond rx_limit_pps are counted in ierrors. skew_s: the counters of different ports are read this far apart at most.
    """

    tx_limit_pps: float | None = None
    rx_limit_pps: float | None = None
    overload: str = "stretch"
    skew_s: float = 0.0


@dataclass(frozen=True)
class RssSpec:
    """How the NIC spreads flows over a port's receive queues: Toeplitz, then an indirection table filled in turn.

    key: ``microsoft`` (the one of the RSS specification, DPDK's default for Intel's NICs), ``random`` (drawn once from
    the twin's seed, as drivers do that draw one at boot) or hexadecimal digits. fields: what is hashed, out of
    HASH_FIELDS; ports only of TCP and UDP. table: its entries, a power of two.
    """

    key: str = "microsoft"
    fields: tuple[str, ...] = HASH_FIELDS
    table: int = 128


@dataclass(frozen=True)
class BusSpec:
    """What receiving costs while the same port sends: ``stall_cycles`` x r / (1 - r) a frame, r the load of the bus.

    limit_pps: frames per second that a port could at most receive while it sends as many; the load is the smaller one
    of both rates over it.
    """

    limit_pps: float
    stall_cycles: float


@dataclass(frozen=True)
class TwinSpec:
    """A simulated router. Cycles are of one worker's clock; frames that arrive share its time as docs/twins.md says.

    workers: cores that forward; queues: receive queues per port unless the run says otherwise. fetch_cycles and
    packet_cycles: per frame, of the node that fetches from the NIC and of all others; vector_cycles: per poll that
    found frames; vector: frames per poll and queue at most; byte_cycles: per byte of a frame with FCS; drop_cycles: per
    frame that found the ring full. idle_poll_cycles: a poll that finds nothing; loop_cycles: around the polls. drive:
    ``polling`` or ``interrupt`` (the latter has no idle polls). batch_s: frames reach a queue in batches this far apart
    (interrupt moderation, descriptor write-back, the sender's own bursts). contention: how much more everything costs
    per other worker that is fully busy. ring: frames a queue holds. latency_s: of a frame that waits for nobody, but
    for the work on it. noise: standard deviation of a worker's speed, drawn anew every 100 ms. placement: of queues on
    workers, ``round-robin`` over all ports' queues in the order of their registration, or ``per-port`` (queue i of
    each port on worker i).
    """

    workers: int
    clock_hz: float
    packet_cycles: float
    fetch_cycles: float = 0.0
    vector_cycles: float = 0.0
    byte_cycles: float = 0.0
    drop_cycles: float = 0.0
    idle_poll_cycles: float = 500.0
    loop_cycles: float = 0.0
    vector: int = 64
    drive: str = "interrupt"
    batch_s: float = 0.0
    contention: float = 0.0
    ring: int = 512
    latency_s: float = 20e-6
    noise: float = 0.0
    seed: int = 1
    queues: int = 1
    placement: str = "per-port"
    rss: RssSpec = field(default_factory=RssSpec)
    bus: BusSpec | None = None
    tester: TesterSpec = field(default_factory=TesterSpec)
