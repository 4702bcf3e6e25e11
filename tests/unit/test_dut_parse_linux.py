"""What Linux tools print, as facts."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trexbench.core.errors import DutError
from trexbench.dut import parse_linux as parse


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (
            {"dst": "16.0.0.0/8", "gateway": "1.2.3.4", "dev": "d0"},
            ("16.0.0.0/8", ["via 1.2.3.4 dev d0"], "unicast", 0),
        ),
        ({"dst": "10.0.0.7", "dev": "d0", "metric": 5}, ("10.0.0.7/32", ["dev d0"], "unicast", 5)),
        ({"dst": "default", "gateway": "1.2.3.4", "dev": "d0"}, ("0.0.0.0/0", ["via 1.2.3.4 dev d0"], "unicast", 0)),
        ({"type": "blackhole", "dst": "16.0.8.0/24"}, ("16.0.8.0/24", ["blackhole"], "blackhole", 0)),
        (
            {"dst": "16.0.0.0/8", "nexthops": [{"gateway": "1.1.1.1", "dev": "d0"}, {"dev": "d1"}]},
            ("16.0.0.0/8", ["via 1.1.1.1 dev d0", "dev d1"], "unicast", 0),
        ),
    ],
)
def test_routes(entry: dict[str, object], expected: tuple[object, ...]) -> None:
    (route,) = parse.parse_routes(json.dumps([{}, entry]))
    assert tuple(route.values()) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("/proc/sys/net/ipv4/ip_forward:1\n", {"/proc/sys/net/ipv4/ip_forward": "1"}),
        ("/proc/x:a: b\n", {"/proc/x": "a: b"}),
        ("/proc/net/ip_tables_names:filter\n/proc/net/ip_tables_names:nat\n", {"/proc/net/ip_tables_names": "filter"}),
        ("/sys/class/net/d0/speed:-1\n", {"/sys/class/net/d0/speed": "-1"}),
        ("grep: warning\n", {}),
    ],
)
def test_files(text: str, expected: dict[str, str]) -> None:
    assert parse.parse_files(text) == expected


@pytest.mark.parametrize(("text", "expected"), [("7", 7), ("-1", -1), ("", None), (None, None), ("ff", None)])
def test_number_is_none_where_nothing_was_said(text: str | None, expected: int | None) -> None:
    assert parse.number(text) == expected


def test_path_of_a_black_hole_is_none() -> None:
    assert parse.parse_path('[{"type":"blackhole","dst":"16.0.8.1"}]') is None
    assert parse.parse_path("") is None


@pytest.mark.parametrize("text", ["RTNETLINK", "{", '"text"', "[1]", "{}"])
def test_no_json_is_a_dut_error(text: str) -> None:
    with pytest.raises(DutError, match="ip link printed"):
        parse.parse_links(text)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    parse.parse_files(text)
    for reader in (
        parse.parse_links,
        parse.parse_addresses,
        parse.parse_routes,
        parse.parse_path,
        parse.parse_offloads,
    ):
        try:
            reader(text)
        except DutError as error:
            assert "\n" not in str(error)
