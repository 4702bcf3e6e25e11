"""Rates, durations, shares and speeds as people write them; frames on a wire."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trexbench.core.errors import ConfigError
from trexbench.core.units import (
    Rate,
    format_bits,
    format_duration,
    format_length,
    format_pps,
    format_rate,
    format_scaled,
    format_share,
    format_step,
    line_rate_pps,
    parse_duration,
    parse_rate,
    parse_share,
    parse_speed,
    round_bound,
    seconds_of,
)


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("64kpps", 64e3, "pps"),
        ("1.2mpps", 1.2e6, "pps"),
        (".5Mpps", 0.5e6, "pps"),
        ("100 pps", 100.0, "pps"),
        ("3gbps", 3e9, "bps"),
        ("5gbpsl1", 5e9, "bpsl1"),
        ("1tbps", 1e12, "bps"),
        ("40%", 40.0, "percent"),
        (" 97 % ", 97.0, "percent"),
        ("100%", 100.0, "percent"),
    ],
)
def test_rates(text: str, value: float, unit: str) -> None:
    assert parse_rate(text) == Rate(value, unit)


NONSENSE_RATES = ["", "fast", "0pps", "0%", "-1kpps", "1e6pps", "120%", "nan", "nanpps", "inf", "infpps", "1kbit", "5"]
NONSENSE_RATES += ["%", "pps", "1,5kpps", "1..5kpps", "1.kpps", "1kkpps", "٣kpps"]
NONSENSE_RATES += ["", "1 .5kpps", "k pps", "1kpps 2kpps", "9" * 400 + "pps"]


@pytest.mark.parametrize("text", NONSENSE_RATES)
def test_what_is_no_rate_is_refused_in_one_line_that_quotes_it(text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_rate(text)
    assert repr(text) in str(raised.value) and "\n" not in str(raised.value)


@given(st.text(max_size=20) | st.from_regex(r"[0-9.]{1,8} ?(pps|kpps|mpps|%)", fullmatch=True))
def test_any_text_is_a_finite_rate_above_zero_or_a_config_error(text: str) -> None:
    try:
        rate = parse_rate(text)
    except ConfigError:
        return
    assert 0 < rate.value < math.inf


@given(st.one_of(st.text(max_size=20), st.from_regex(r"[0-9.]{1,8} ?(ms|s|sec|m|min|h|mbit|gbps|%)?", fullmatch=True)))
def test_any_text_is_a_duration_share_and_speed_or_a_config_error(text: str) -> None:
    for parse, low, high in ((parse_duration, 0.0, 1e24), (parse_share, 0.0, 1.0), (parse_speed, 0.0, 1e30)):
        try:
            assert low <= parse(text) <= high
        except ConfigError as error:
            assert "\n" not in str(error)


@given(st.floats(1e-3, 1e13), st.sampled_from(["pps", "bps", "bpsl1"]))
def test_a_rate_reads_back_what_it_prints(value: float, unit: str) -> None:
    again = parse_rate(str(Rate(value, unit)))
    assert again.unit == unit and again.value == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("text", ["1.2mpps", "64kpps", "999pps", "3gbps", "40%", "5gbpsl1", "1.5tbps"])
def test_rates_print_as_they_are_written(text: str) -> None:
    assert str(parse_rate(text)) == text


DURATIONS = {"600": 600, "10s": 10, "500ms": 0.5, "2m": 120, "1.5min": 90, "1h": 3600, "0": 0, "3 sec": 3, "30m": 1800}
DURATIONS |= {"2m30s": 150, "1h30m": 5400, "1h 1min 1.5s": 3661.5, "1s500ms": 1.5, "720h": 2592000}
SHARES = {"0.1%": 0.001, "0.001": 0.001, "100%": 1.0, "0": 0.0, "1%": 0.01}
SPEEDS = {"1gbit": 1e9, "2.5gbit": 2.5e9, "100mbit": 1e8, "10gbps": 1e10, "10Gbit/s": 1e10}
KNOWN = ((parse_duration, DURATIONS), (parse_share, SHARES), (parse_speed, SPEEDS))
NO_DURATIONS = ["", "-1s", "ten", "1d", "1:30", "inf", "nan", "1e3", "s", "9" * 400, "30s2m", "2m30", "1m1m", "1ms1s"]
NO_DURATIONS += ["99999999999", "721h"]
NO_SHARES = ["", "%", "nan", "nan%", "inf", "-1%", "101%", "1.5", "a lot", "1", "1.0"]
NO_SPEEDS = ["", "fast", "0gbit", "-1gbit", "10", "10kbit"]
NONSENSE = ((parse_duration, NO_DURATIONS), (parse_share, NO_SHARES), (parse_speed, NO_SPEEDS))


@pytest.mark.parametrize(
    ("parse", "text", "value"), [(parse, text, value) for parse, known in KNOWN for text, value in known.items()]
)
def test_durations_shares_and_speeds(parse: Callable[[str], float], text: str, value: float) -> None:
    assert parse(text) == pytest.approx(value)


@pytest.mark.parametrize(("parse", "text"), [(parse, text) for parse, texts in NONSENSE for text in texts])
def test_what_is_none_of_them(parse: Callable[[str], float], text: str) -> None:
    with pytest.raises(ConfigError):
        parse(text)


@pytest.mark.parametrize(
    ("frame_bytes", "bps", "pps"),
    [(64, 10e9, 14_880_952), (64, 1e9, 1_488_095), (1514, 10e9, 814_863), (1518, 1e9, 81_274)],
)
def test_line_rates(frame_bytes: float, bps: float, pps: int) -> None:
    assert round(line_rate_pps(frame_bytes, bps)) == pps


@given(st.sampled_from(["bps", "bpsl1", "percent", "pps"]), st.floats(0.1, 100), st.floats(64, 9018))
def test_units_of_rate_agree_about_the_same_load(unit: str, percent: float, frame_bytes: float) -> None:
    line = 1e10
    pps = Rate(percent, "percent").to_pps(frame_bytes, line)
    bits = {"bps": pps * frame_bytes * 8, "bpsl1": pps * (frame_bytes + 20) * 8}
    value = {"percent": percent, "pps": pps, **bits}[unit]
    assert Rate(value, unit).to_pps(frame_bytes, line) == pytest.approx(pps)


@pytest.mark.parametrize(
    ("formatted", "expected"),
    [
        (format_pps(1_488_095), "1.488 Mpps"),
        (format_pps(999_999), "1.000 Mpps"),
        (format_pps(622_980), "623.0 kpps"),
        (format_pps(0), "0.000 pps"),
        (format_pps(999.96), "1.000 kpps"),
        (format_pps(99_999_999), "100.0 Mpps"),
        (format_pps(-1500), "-1.500 kpps"),
        (format_pps(math.nan), "? pps"),
        (format_bits(418.65e6), "418.6 Mbit/s"),
        (format_scaled(12.5e9, "bit/s"), "12.50 Gbit/s"),
        (format_share(0.337), "33.7 %"),
        (format_share(0.00021), "0.021 %"),
        (format_share(0.05), "5.00 %"),
        (format_share(-4e-12), "0.000 %"),
        (format_share(0.9996, bound=True), ">= 99.9 %"),
        (format_share(0.99998, bound=True), ">= 100.0 %"),
        (format_share(-4e-6), "-0.0004 %"),
        (format_step(-0.47776, "<="), "<= -47.7 %"),
        (format_step(0.47776, ">="), ">= +47.7 %"),
        (format_step(-0.03041, ">="), ">= -3.05 %"),
        (format_step(0.03041), "+3.04 %"),
        (format_share(3e-9), "0.0000003 %"),
        (format_share(-0.0123), "-1.23 %"),
        (format_duration(45), "45 s"),
        (format_duration(125), "2:05 min"),
        (format_duration(3723), "1:02:03 h"),
        (format_duration(-3), "0 s"),
        (format_length(0.5), "0.5 s"),
        (format_length(2.5), "2.5 s"),
        (format_length(600), "10:00 min"),
    ],
)
def test_formats(formatted: str, expected: str) -> None:
    assert formatted == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-02T00:01:01Z", 86461.0),
        ("2028-02-29T23:59:59Z", 1835481599.0),
        *((text, None) for text in (None, "", "2026-02-30T00:00:00Z", "2026-13-01T00:00:00Z", "2026-01-01T24:00:00Z")),
    ],
)
def test_times_of_documents(text: str | None, expected: float | None) -> None:
    assert seconds_of(text) == expected


@given(st.floats(0, 1e13))
def test_figures_have_no_exponent_and_four_digits(value: float) -> None:
    number = format_pps(value).split()[0]
    assert "e" not in number and len(number.replace(".", "").lstrip("0")) <= 5


@given(st.floats(-1e6, 1e6), st.sampled_from([">=", "<="]))
def test_a_bound_stays_one_to_four_digits_and_is_off_by_one_place_at_most(value: float, bound: str) -> None:
    away = (round_bound(value, 1, bound) - value) * (1 if bound == ">=" else -1)
    assert -0.1 - 1e-9 <= away <= 1e-4 * abs(value) + 1e-9


@given(st.floats(1.0, 1e9))
def test_a_rate_is_written_as_it_is_read_and_never_rounded_down(pps: float) -> None:
    read = parse_rate(format_rate(pps))
    assert read.unit == "pps" and pps * (1 - 1e-6) <= read.value <= 1.1 * pps + 1e-6
