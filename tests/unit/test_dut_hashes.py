"""A config's word on how NICs hash, where the DUT itself has none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from trexbench.config.lookup import load_dut
from trexbench.config.twin import RssSpec
from trexbench.core.dut.rss import MICROSOFT_KEY, PortHash, QueuePlace, Spreading
from trexbench.dut.model import with_config_rss

CONFIG = load_dut(str(Path(__file__).parents[2] / "dut_configs/netgate-pfsense.yaml"))
QUEUES = tuple(QueuePlace(port, queue, f"cpu{queue}") for port in (0, 1) for queue in (0, 1))
OWN = PortHash(0, "aa" * 40, ("src",), (0, 1))
SILENT = PortHash(1, None, reason="not told")


def test_the_config_speaks_only_where_the_dut_is_silent() -> None:
    found = with_config_rss(Spreading(QUEUES, (OWN, SILENT)), replace(CONFIG, rss=RssSpec(table=4)))
    assert found.hashes[0] == OWN and found.queues == QUEUES
    assert found.hashes[1] == PortHash(1, MICROSOFT_KEY.hex(), RssSpec().fields, (0, 1, 0, 1))


@pytest.mark.parametrize("rss", [None, RssSpec(key="random")])
def test_nobody_knows(rss: RssSpec | None) -> None:
    spreading = Spreading(QUEUES, (SILENT,))
    assert with_config_rss(spreading, replace(CONFIG, rss=rss)) is spreading
