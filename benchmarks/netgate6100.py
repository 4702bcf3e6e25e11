"""The Netgate 6100's three twins beside the 40 figures that were measured of the box itself.

    python benchmarks/netgate6100.py [--placement-only] [--step 0.2] [--seed 2]

Every cell is a ramp of its own against the twin of dut_configs/, without server or tester: the offered rate rises to
97 % of 10 Gbit/s, one step a second; the maximum is the last rate before three seconds in a row with more than 0.1 %
loss in a direction. Figures are % of line rate; both ways, the sum of both. Source of the article's:
https://ipng.ch/s/articles/2021/11/26/netgate-6100.html. --placement-only leaves out what workers cost one another
(contention, bus), to see what queue placement explains by itself.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

from _ratios import ROOT, SEEDED, note, options

from trexbench.config.lookup import find_profile
from trexbench.config.schema import read_dut
from trexbench.config.twin import TwinSpec
from trexbench.core.dut.rss import headers_of
from trexbench.core.dut.runtime import of_threads
from trexbench.core.load.profile import Profile, resolve_mode
from trexbench.generator.trex.client import load_client
from trexbench.generator.trex.profile_loader import load_profile
from trexbench.stlserver.engine import StreamSpec
from trexbench.twin.router import TwinRouter
from trexbench.twin.vpp_runtime import Runtime
from trexbench.twin.world import Arrival

LINE_BPS, TOP, LOSS, IN_A_ROW, NEAR = 10e9, 0.97, 0.001, 3, 2.0
COLUMNS = (("pfsense", 4), ("linux", 4), ("vpp", 1), ("vpp", 2), ("vpp", 3))
ARTICLE = {
    ("var2-1514b", False): (97, 97, 97, 97, 97),
    ("var2-imix", False): (61, 75, 96, 95, 95),
    ("var2-64b", False): (15, 17, 33, 66, 96),
    ("1flow-64b", False): (4.4, 4.7, 33, 33, 33),
    ("var2-1514b", True): (192, 193, 193, 193, 194),
    ("var2-imix", True): (63, 71, 190, 190, 191),
    ("var2-64b", True): (15, 16, 61, 63, 81),
    ("1flow-64b", True): (8.6, 9.0, 61, 61, 33),
}
CYCLES = {1e3: (4943, None), 0.98183e6: (620, 1770), 14.4e6: (358, 438)}
"""VPP with one queue: frames per second offered -> clocks per packet without dpdk-input, and with (None: not given)."""


@dataclass(frozen=True)
class Sender:
    """One stream of one port, as the router sees it. pps: at line rate."""

    port: int
    tag: int
    pps: float
    frame_bytes: float
    spread: tuple[float, ...]

    def during(self, share: float, span_s: float) -> Arrival:
        return Arrival(self.port, self.tag, self.spread, self.pps * share * span_s, self.frame_bytes)


def senders(router: TwinRouter, port: int, profile: Profile) -> list[Sender]:
    """The profile's streams on this port at line rate."""
    scale = profile.line_rate_pps(LINE_BPS) / profile.pps
    found = []
    for tag, stream in enumerate(profile.streams):
        spec = StreamSpec(tag, stream.packet, stream.pps, instructions=tuple(dict(one) for one in stream.instructions))
        spread = router.spread(port, headers_of(spec.packet, spec.instructions))
        found.append(Sender(port, tag, stream.pps * scale, stream.frame_bytes, spread))
    return found


def maximum(router: TwinRouter, ports: Sequence[Sequence[Sender]], step: float) -> float:
    """The share of line rate that every port could send before frames got lost."""
    everyone = [one for port in ports for one in port]
    good, bad = 0.0, 0
    for second in range(1, ceil(TOP / step) + 1):
        offered = min(second * step, TOP)
        arrivals = [one.during(offered, 1.0) for one in everyone]
        left = dict(zip(everyone, router.carry(1.0, arrivals), strict=True))
        losses = [1 - sum(left[one] for one in port) / sum(one.pps * offered for one in port) for port in ports]
        if max(losses) <= LOSS:
            good, bad = offered, 0
        elif (bad := bad + 1) == IN_A_ROW:
            break
    return good


def cycles(spec: TwinSpec, profile: Profile) -> None:
    """VPP's clocks per packet at three rates, beside the article's: as a person gets them, from ``show runtime``."""
    print("\nVPP, 1 queue, 1 flow: clear runtime, 10 s, show runtime; clocks per packet without and with dpdk-input")
    for pps, (article, polling) in CYCLES.items():
        router = TwinRouter(spec, ports=2, rx_queues=1)
        runtime = Runtime(router.workers, ("TenGigabitEthernet6/0/0", "TenGigabitEthernet6/0/1"), spec.fetch_cycles)
        one = senders(router, 0, profile)[0]
        router.carry(1.0, [one.during(pps / one.pps, 1.0)])
        runtime.clear()
        router.carry(10.0, [one.during(pps / one.pps, 10.0)])
        found = of_threads(runtime.show())[0]
        assert found.cycles_per_packet and found.cycles_with_polling and found.pps and found.vectors_per_call
        each, both = found.cycles_per_packet, found.cycles_with_polling
        print(
            f"  offered {pps / 1e6:7.3f} Mpps: forwarded {found.pps / 1e6:6.3f} Mpps, "
            f"vector {found.vectors_per_call:6.2f}, {each:6.0f} and {both:7.0f} clocks "
            f"(article {article}{f', {polling}' if polling else ''}; {each / article - 1:+.1%})"
        )


def table(duts: Mapping[str, TwinSpec], load: Callable[[str, int], Profile], step: float, seed: int | None) -> None:
    """Every cell, and how many are near."""
    near, apart = 0, 0.0
    heads = ("pfSense", "Linux", "VPP 1Q", "VPP 2Q", "VPP 3Q")
    print(f"{'% of line rate':<22}" + "".join(f"{head:^22}" for head in heads))
    for (mode, bidir), article in ARTICLE.items():
        profiles, texts = [load(mode, port) for port in (0, 1)], []
        for (dut, queues), figure in zip(COLUMNS, article, strict=True):
            router = TwinRouter(duts[dut], ports=2, rx_queues=queues, seed=seed)
            ports = [senders(router, port, profiles[port]) for port in range(1 + bidir)]
            found = 100 * maximum(router, ports, step) * len(ports)
            close = abs(found - figure) <= NEAR + 1e-9
            near += close
            apart += abs(found - figure) / figure
            texts.append(f"{found:6.1f} ({figure:5g}, {found - figure:+5.1f}){' ' if close else '*'}")
        print(f"{mode:<12}{'bidir' if bidir else 'uni':<10}" + " ".join(texts).rstrip())
    cells = len(ARTICLE) * len(COLUMNS)
    note(f"cells within {NEAR:g} points", near / cells, noise=0, better="higher")
    note("off the article, mean", apart / cells, noise=SEEDED)
    print("twin (article, deviation)")
    print(f"{near} of {cells} cells within {NEAR:g} points of line rate (* is not)")


def main() -> int:
    asked = options(__doc__, step=0.2, placement_only=False, seed=int)
    begun, duts = time.monotonic(), {}
    for name in ("pfsense", "linux", "vpp"):
        spec = read_dut(ROOT / "dut_configs" / f"netgate-{name}.yaml").twin
        assert spec is not None
        duts[name] = replace(spec, contention=0.0, bus=None) if asked.placement_only else spec
    client = load_client()

    def load(name: str, port: int) -> Profile:
        mode = resolve_mode(name)
        return load_profile(client, find_profile(mode.profile), dict(mode.tunables), port)

    table(duts, load, asked.step / 100, asked.seed)
    cycles(duts["vpp"], load("1flow-64b", 0))
    print(f"{time.monotonic() - begun:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
