"""Output of ping, read back; and what answers prove of the path."""

from __future__ import annotations

from typing import Any

import pytest
from boxes import Said, Says
from hypothesis import given
from hypothesis import strategies as st

from trexbench.core.errors import DutError
from trexbench.host.ping import PingSeries, parse_ping, ping
from trexbench.session.tcp.hosts import Endpoint, Endpoints
from trexbench.session.tcp.proof import judge, prove_path

IPUTILS = """PING 100.66.2.2 (100.66.2.2) 56(84) bytes of data.
64 bytes from 100.66.2.2: icmp_seq=1 ttl=63 time=0.112 ms
64 bytes from 100.66.2.2: icmp_seq=2 ttl=63 time=1023 ms
64 bytes from 100.66.2.2: icmp_seq=2 ttl=63 time=1023 ms (DUP!)
From 100.66.1.1: icmp_seq=3 Redirect Host(New nexthop: 100.66.1.9)
From 100.66.1.1 icmp_seq=4 Destination Host Unreachable

--- 100.66.2.2 ping statistics ---
4 packets transmitted, 2 received, +1 duplicates, +1 errors, 50% packet loss, time 405ms
rtt min/avg/max/mdev = 0.112/511.556/1023.000/511.444 ms
"""
SIX = """PING 2001:2:0:662::2(2001:2:0:662::2) 56 data bytes
64 bytes from 2001:2:0:662::2: icmp_seq=1 ttl=63 time=0.159 ms
64 bytes from router.example (2001:2:0:662::2): icmp_seq=2 ttl=63 time=0.096 ms

--- 2001:2:0:662::2 ping statistics ---
2 packets transmitted, 2 received, 0% packet loss, time 407ms
rtt min/avg/max/mdev = 0.096/0.117/0.159/0.029 ms
"""
BUSYBOX = """PING 192.0.2.1 (192.0.2.1): 56 data bytes
64 bytes from 192.0.2.1: seq=0 ttl=64 time=0.431 ms

--- 192.0.2.1 ping statistics ---
2 packets transmitted, 1 packets received, 50% packet loss
round-trip min/avg/max = 0.431/0.431/0.431 ms
"""


@pytest.mark.parametrize(
    ("text", "sent", "times_s", "ttls"),
    [
        (IPUTILS, 4, (0.000112, 1.023), (63, 63)),
        (SIX, 2, (0.000159, 0.000096), (63, 63)),
        (BUSYBOX, 2, (0.000431,), (64,)),
    ],
    ids=["iputils", "IPv6 and names", "busybox"],
)
def test_output_of_every_kind(text: str, sent: int, times_s: tuple[float, ...], ttls: tuple[int, ...]) -> None:
    found = parse_ping(text)
    assert found is not None and (found.sent, found.ttls) == (sent, ttls)
    assert found.times_s == pytest.approx(times_s)


def test_what_else_is_said_of_the_path() -> None:
    found = parse_ping(IPUTILS)
    assert found is not None and found.duplicates == 1
    assert found.told == ("Redirect Host(New nexthop: 100.66.1.9)", "Destination Host Unreachable")


@given(st.lists(st.tuples(st.integers(0, 255), st.integers(0, 10**7)), max_size=20), st.integers(0, 5))
def test_every_answer_that_is_printed_is_read(answers: list[tuple[int, int]], lost: int) -> None:
    lines = [
        f"64 bytes from 10.0.0.1: icmp_seq={at} ttl={ttl} time={us / 1000:.3f} ms"
        for at, (ttl, us) in enumerate(answers, 1)
    ]
    total = f"{len(answers) + lost} packets transmitted, {len(answers)} received, 0% packet loss, time 9ms"
    found = parse_ping("\n".join(["PING 10.0.0.1 (10.0.0.1) 56(84) bytes of data.", *lines, "", total]))
    assert found is not None and found.sent == len(answers) + lost
    assert found.ttls == tuple(ttl for ttl, _ in answers)
    assert found.times_s == pytest.approx([us / 1e6 for _, us in answers])


def test_ping_asks_as_told_and_waits_long_enough() -> None:
    there = Says(Said(BUSYBOX, returncode=1))
    assert len(ping(there, "192.0.2.1", 60, 0.5, 4, "192.0.2.9").ttls) == 1, "what was lost is a result, no error"
    assert there.ran[0] == "ping -4 -n -c 60 -i 0.5 -W 2 -I 192.0.2.9 192.0.2.1" and there.timeout_s > 32


def test_ping_that_cannot_run_says_so() -> None:
    with pytest.raises(DutError, match="failed on the box: ping: connect: Network is unreachable"):
        ping(Says(Said("", "ping: connect: Network is unreachable\n", 2)), "192.0.2.1", 1)
    with pytest.raises(DutError, match="requested address: set the address there, or leave out --no-apply"):
        ping(Says(Said("", "ping: bind: Cannot assign requested address\n", 2)), "192.0.2.1", 1, source="192.0.2.9")


def seen(*ttls: int, **more: object) -> PingSeries:
    return PingSeries(3, ttls, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("series", "sent", "routers", "words"),
    [
        (seen(63, 63, 63), 64, 1, None),
        (seen(63), 64, 1, None),
        (seen(127, 127), 128, 1, None),
        (seen(64, 64), 64, 0, None),
        (seen(64, 64), 64, 1, "no router forwarded them"),
        (seen(62, 62), 64, 1, "2 routers forwarded them"),
        (seen(63), 64, 0, "they cross the DUT"),
        (seen(63, 64), 64, 1, "arrive with 63 and 64"),
        (seen(200), 64, 1, "not with 63"),
        (seen(), 64, 1, "none of 3 echo requests was answered"),
        (seen(told=("Destination Host Unreachable",)), 64, 1, "answered (Destination Host Unreachable)"),
        (seen(63, duplicates=2), 64, 1, "2 answers came twice"),
        (seen(63, told=("Redirect Host(New nexthop: 10.0.0.9)",)), 64, 1, "redirects it (Redirect Host"),
    ],
)
def test_what_answers_prove(series: PingSeries, sent: int, routers: int, words: str | None) -> None:
    found = judge(series, sent, routers, 4)
    assert found is None if words is None else found is not None and words in found[0] and found[1]


def test_a_ttl_that_is_no_number_is_a_line_of_the_host() -> None:
    nothing: Any = None
    says: Any = Says(Said(BUSYBOX))
    both = {"interface": "eth1", "bypass": {}, "bypass_interface": "", "connected": nothing, "attestation": nothing}
    client, server = (Endpoint(name, says, {4: "192.0.2.1"}, **both) for name in ("client", "server"))
    with pytest.raises(DutError, match=r"the TTL on .* is 'PING 192.*: see /proc/sys/net/ipv4/ip_default_ttl there"):
        prove_path(Endpoints(client, server, nothing, nothing), (4,))
