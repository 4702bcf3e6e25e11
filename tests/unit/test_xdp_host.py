"""Facts that the engine reads from the host: kernel versions and interface totals."""

from __future__ import annotations

import pytest

from trexbench.stlserver.engine import EngineError
from trexbench.stlserver.kernel import bpf
from trexbench.stlserver.kernel.netdev import LinkCounters, enter_netns, parse_totals


@pytest.mark.parametrize(
    ("release", "version"),
    [("6.18.44-generic", (6, 18)), ("5.4.0-1", (5, 4)), ("6.1-rc3", (6, 1)), ("5.18.0", (5, 18))],
)
def test_kernel_releases_compare_as_numbers(release: str, version: tuple[int, int]) -> None:
    assert bpf.kernel_version(release) == version


def test_totals_of_proc_net_dev() -> None:
    line = " 7000  70    1    2    3     4          5         6    8000  80    9   10    0     0       0          0"
    assert parse_totals(line) == LinkCounters(tx_packets=80, tx_dropped=10, rx_errors=4, rx_dropped=2)


def test_a_namespace_that_is_not_there_is_named() -> None:
    with pytest.raises(EngineError, match="network namespace 'tbe-nowhere'"):
        enter_netns("tbe-nowhere")
