"""The ``twin:`` section: what is read, what is refused, and the sections of the shipped files."""

from __future__ import annotations

from pathlib import Path

import pytest
from configs import BOX, ROOT, errors_of

from trexbench.config import twin as specs
from trexbench.config.schema import dut_of, read_dut

BASE = """\
driver: linux
transport: {type: local}
ports:
  - {tester: 0, interface: d0, address: 100.65.1.1/24, neighbour: {address: 100.65.1.2}}
  - {tester: 1, interface: d1, address: 100.65.2.1/24, neighbour: {address: 100.65.2.2}}
twin:
  workers: 3
  clock: 2.2ghz
  cycles_per_packet: 340.5
  batch: 18.9us
  rss: {key: random, fields: [src, dst], table: 512}
  tester: {tx_limit: 1mpps, overload: queue-full}
"""

# what, text to replace, its replacement, line, words of the message
BROKEN = [
    ("clock without unit", "2.2ghz", "2.2", 8, ["twin.clock", "2.2ghz"]),
    ("clock of nothing", "2.2ghz", "0ghz", 8, ["twin.clock"]),
    ("no worker", "workers: 3", "workers: 0", 7, ["twin.workers", "from 1"]),
    ("negative cycles", "340.5", "-1", 9, ["twin.cycles_per_packet", "from 1 to 10000000:", "in plain digits"]),
    ("long batch", "18.9us", "2s", 10, ["twin.batch", "more than a second"]),
    ("short key", "random", "6d5a56da", 11, ["twin.rss.key", "40 bytes"]),
    ("fields out of order", "[src, dst]", "[dst, src]", 11, ["twin.rss.fields", "in this order"]),
    ("odd table", "512", "500", 11, ["twin.rss.table", "power of two"]),
    ("a limit in bits", "1mpps", "8gbps", 12, ["twin.tester.tx_limit", "frames per second"]),
    ("a key of former releases", "batch:", "contention:", 10, ["twin.contention"]),
]


def test_reads_what_is_written() -> None:
    twin = dut_of(BOX, BASE).twin
    assert twin is not None
    assert (twin.workers, twin.clock_hz, twin.packet_cycles) == (3, 2.2e9, 340.5)
    assert twin.batch_s == pytest.approx(18.9e-6)
    assert twin.rss == specs.RssSpec("random", ("src", "dst"), 512)
    assert twin.tester == specs.TesterSpec(tx_limit_pps=1e6, overload="queue-full")
    key = ":".join(["6d", "5a", "56", "da"] * 10)  # as ethtool prints it
    twin = dut_of(BOX, BASE.replace("random", f'"{key}"')).twin
    assert twin is not None and twin.rss.key == key.replace(":", "")
    assert dut_of(BOX, BASE[: BASE.index("twin:")]).twin is None


@pytest.mark.parametrize(("old", "new", "line", "words"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_refuses_in_one_line(old: str, new: str, line: int, words: list[str]) -> None:
    first, *_ = errors_of(BASE, old, new)
    assert first.startswith(f"{BOX}:{line}: ") and all(word in first for word in words), first


@pytest.mark.parametrize("path", sorted((ROOT / "dut_configs").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_shipped_dut_has_a_twin(path: Path) -> None:
    assert read_dut(path).twin is not None
