"""startup.conf: the number changed, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trexbench.core.errors import DutError
from trexbench.dut.vpp.conf import pci_of, with_queues, with_workers

ONE, TWO = "0000:03:00.0", "0000:03:00.1"
OTHER, SET = "dev 0000:04:00.0 {num-rx-queues 9}", "{ num-rx-queues 2 }"


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("TenGigabitEthernet3/0/0", ONE),
        ("HundredGigabitEthernet17/0/1", "0000:17:00.1"),
        ("GigabitEthernet1a/1f/7", "0000:1a:1f.7"),
        ("xe0", None),
        ("host-d0", None),
    ],
)
def test_a_device_by_vpps_name(name: str, device: str | None) -> None:
    assert pci_of(name) == device


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # nothing there
        ("", "dpdk {\n  dev default {\n    num-rx-queues 2\n  }\n}\n"),
        ("unix { nodaemon }\n", "unix { nodaemon }\n\ndpdk {\n  dev default {\n    num-rx-queues 2\n  }\n}\n"),
        # no device is named: VPP takes them all, and would not if one were
        ("dpdk {\n  no-multi-seg\n}\n", "dpdk {\n  dev default { num-rx-queues 2 }\n  no-multi-seg\n}\n"),
        ("dpdk { dev default {num-rx-queues 1} }", "dpdk { dev default {num-rx-queues 2} }"),
        ("dpdk {dev default {\n\tnum-tx-desc 9\n}}", "dpdk {dev default {\n\tnum-rx-queues 2\n\tnum-tx-desc 9\n}}"),
        # named, each in its way
        (f"dpdk {{ dev {ONE} dev {TWO} }}", f"dpdk {{ dev {ONE} {SET} dev {TWO} {SET} }}"),
        (
            f"dpdk {{ dev 0000:3:0.0 {{}} dev {TWO} {{ num-rx-queues 7 }} }}",
            f"dpdk {{ dev 0000:3:0.0 {SET} dev {TWO} {SET} }}",
        ),
        # a third device keeps what it has
        (f"dpdk {{ {OTHER} dev {ONE} dev {TWO} }}", f"dpdk {{ {OTHER} dev {ONE} {SET} dev {TWO} {SET} }}"),
        # the default says so already
        (f"dpdk {{ dev default {{num-rx-queues 2}} dev {ONE} dev {TWO} {{num-tx-desc 9}} }}", None),
        (f"dpdk {{ dev {ONE} {{num-rx-queues 2}} dev {TWO} {{num-rx-queues 2}} }} # dpdk {{", None),
    ],
)
def test_queues(before: str, after: str | None) -> None:
    assert with_queues(before, 2, [ONE, TWO]) == (before if after is None else after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "cpu {\n  workers 2\n}\n"),
        ("cpu { }", "cpu { workers 2 }"),
        ("cpu {\n  main-core 1\n}", "cpu {\n  workers 2\n  main-core 1\n}"),
        ("cpu { workers 1 }", "cpu { workers 2 }"),
        ("cpu { corelist-workers 2-3 }", "cpu { corelist-workers 2-3 }"),
        ("cpu { corelist-workers 2-3,18-19 }", "cpu { corelist-workers 2,3 }"),
        ("# cpu { workers 9 }\ncpu { workers 1 # workers 5\n}", "# cpu { workers 9 }\ncpu { workers 2 # workers 5\n}"),
    ],
)
def test_workers(before: str, after: str) -> None:
    assert with_workers(before, 2) == after


def test_no_workers_is_no_empty_list_of_cores() -> None:
    """VPP does not start with a corelist-workers that names none."""
    text = "cpu { # corelist-workers 9\n  main-core 1\n  corelist-workers 2-3\n  skip-cores 1\n}"
    assert with_workers(text, 0) == text.replace("corelist-workers 2-3", "workers 0")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cpu { corelist-workers 2 }", "corelist-workers 2 names 1 cores, 2 workers are wanted"),
        ("cpu { corelist-workers x }", "corelist-workers x is not a list of cores"),
        ("cpu { workers 1", "its braces do not match"),
        ("cpu } workers 1", "its braces do not match"),
    ],
)
def test_what_nobody_can_edit(text: str, said: str) -> None:
    with pytest.raises(DutError, match=said):
        with_workers(text, 2)


WORDS = st.sampled_from(
    ["{", "}", "dpdk", "dpdk {", "dev", "default", ONE, TWO, "0:4:0.0", "num-rx-queues", "1", "2", "7", "\n", "# a {\n"]
)


@given(st.lists(WORDS, max_size=30).map(" ".join), st.integers(1, 4))
def test_any_text_is_edited_once_or_refused(text: str, queues: int) -> None:
    """An edited text needs no second edit."""
    try:
        once = with_queues(text, queues, [ONE, TWO])
    except DutError:
        return
    assert with_queues(once, queues, [ONE, TWO]) == once
    assert len(once) >= len(text.rstrip()) - 30
