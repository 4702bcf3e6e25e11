"""Reports of a night: a message that no name in it can turn into more, gauges, and no word of the secret."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nights import changed
from prometheus_client.parser import text_string_to_metric_families
from runs import make_result
from tcp_runs import Path as TcpPath
from tcp_runs import make_tcp_result

from suites import chat
from trexbench.core.errors import BenchError, ConfigError
from trexbench.core.history.cell import Cell
from trexbench.core.history.night import Attempt, CellRecord, CellState, Night
from trexbench.core.history.rows import RunRow, row_of, rows_of_tcp
from trexbench.core.tcp.plan import Leg, Way
from trexbench.suite.notify import MOST_LETTERS, post, summary, textfile, webhook_url, write_textfile

SECRET = "T0psecret"
SOUND, LOST = (Cell("lab-linux", mode, mode == "var2-64b", 2) for mode in ("var2-64b", "var2-imix"))
ROW = row_of(make_result(), "2026-03-01/lab-linux/a.json")
ROW = changed(ROW, cell=SOUND, cycles_per_packet=358.5, latency_s=31e-6, power_w=19.0)
BEGUN = "2026-03-01T12:00:00Z"
FAILED = CellRecord(LOST, CellState.FAILED, (Attempt("x", None, "TRex went away", 5),))
DONE = CellRecord(ROW.cell, CellState.DONE, (Attempt(BEGUN, ROW.path),))
NIGHT = Night("lab", "2026-03-01", BEGUN, False, (DONE, FAILED), "2026-03-01T12:30:00Z")


def test_a_summary_is_posted() -> None:
    with chat() as (url, told):
        post(url, summary(NIGHT, ["1 regression in 1 cell"]))
    (body,) = told
    assert set(body) == {"text"}
    assert body["text"].splitlines() == [
        "lab, night of 2026-03-01: 1 of 2 cells measured",
        "failed: lab-linux var2-imix uni 2q: TRex went away",
        "1 regression in 1 cell",
    ]


def test_that_a_night_was_not_run_and_why_is_posted_once() -> None:
    broken = replace(NIGHT, cells=(), error="suites/lab.yaml:5: unknown mode")
    first = "lab, night of 2026-03-01: not run"
    for findings in ([], [broken.error or ""]):
        assert summary(broken, findings).splitlines() == [first, broken.error]


@pytest.mark.parametrize("answer", [301, 302, 307, 308, 404, 500])
def test_what_is_no_success_is_told_and_nothing_followed(answer: int) -> None:
    with chat(answer) as (url, told), pytest.raises(BenchError, match=str(answer)) as caught:
        post(url, "x")
    assert len(told) == 1 and SECRET not in str(caught.value)


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/", "http://no.such.host.invalid/"])
def test_nobody_there(url: str) -> None:
    with pytest.raises(BenchError, match="the webhook failed") as caught:
        post(url + SECRET, "x", 2.0)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    ["ftp://x/T0psecret", "file:///T0psecret", "T0psecret", "http://", "http://a b/T0psecret", "http://x:99999/T0psecret",
     "http://[::1/T0psecret", "http://x/\u00e4T0psecret", "http://x/\x01T0psecret"],
)  # fmt: skip
def test_what_is_no_address_is_refused_and_not_repeated(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("TREXBENCH_WEBHOOK", url)
    with pytest.raises(ConfigError, match="TREXBENCH_WEBHOOK") as caught:
        webhook_url()
    assert SECRET not in str(caught.value)
    monkeypatch.setenv("TREXBENCH_WEBHOOK", " ")
    assert webhook_url() is None, "none is wanted"


def test_names_and_errors_do_nothing_in_a_chat() -> None:
    attempt = Attempt("x", None, "<script> & @all", 6)
    cell = CellRecord(Cell("<!channel>", "@here\x1b[31m", False, None), CellState.FAILED, (attempt,))
    with chat() as (url, told):
        post(url, summary(replace(NIGHT, cells=(cell,)), ["x" * 10_000]))
    text = told[0]["text"]
    assert "<" not in text and ">" not in text and "\x1b" not in text and not re.search(r"@\w", text)
    assert len(text) < MOST_LETTERS + 100


LINE = re.compile(r'trexbench_[a-z_]+(?:\{(?:[a-z]+="(?:[^"\\\n]|\\["\\n])*",?)*\})? -?[0-9][0-9.e+-]*')


def test_gauges(tmp_path: Path) -> None:
    text = textfile(NIGHT, [ROW], 5)
    gauges = [family for family in text_string_to_metric_families(text) if family.type == "gauge"]
    samples = [one for family in gauges for one in family.samples]
    found = {(one.name, frozenset(one.labels.items())): one.value for one in samples}

    def value_of(name: str, **labels: str) -> float:
        return found[f"trexbench_{name}", frozenset(labels.items())]

    cell = {"suite": "lab", "dut": "lab-linux", "mode": "var2-64b", "direction": "bidir", "queues": "2"}
    for name, value in (
        ("maximum_pps", ROW.get("total_pps")),
        ("at_least", float(ROW.at_least)),
        ("cycles_per_packet", 358.5),
        ("latency_seconds", 31e-6),
        ("power_watts", 19.0),
        ("last_run_timestamp_seconds", 1772366400.0),
    ):
        assert value_of(name, **cell, simulated="false") == value
    assert value_of("night_cells", suite="lab", simulated="false", state="failed") == 1.0
    assert value_of("night_exit_code", suite="lab", simulated="false") == 5.0
    write_textfile(tmp_path / "x.prom", text)
    write_textfile(tmp_path / "x.prom", text)
    assert [path.name for path in tmp_path.iterdir()] == ["x.prom"] and (tmp_path / "x.prom").read_text() == text


def test_gauges_of_tcp_name_the_way_and_the_version() -> None:
    both = [Leg(Way.FORWARD), Leg(Way.REVERSE, 6)]
    rows = rows_of_tcp(make_tcp_result(TcpPath(bps=88e6), both), "2026-03-01/pi/t.json")
    text = textfile(NIGHT, [ROW, *rows], 0)
    found = [one for family in text_string_to_metric_families(text) for one in family.samples]
    rates = [one for one in found if one.name == "trexbench_tcp_bits_per_second"]
    ways = {(one.labels["mode"], one.labels["way"], one.labels["ip"]) for one in rates}
    assert ways == {("forward-ipv4", "forward", "4"), ("reverse-ipv6", "reverse", "6")}
    assert [one.value for one in rates] == [pytest.approx(88e6)] * 2
    packets = [one.labels["mode"] for one in found if one.name == "trexbench_maximum_pps"]
    assert packets == ["var2-64b"] and "tcp_bits" not in textfile(NIGHT, [ROW], 0).replace("or tcp_bits", "")


@given(st.text(), st.text(), st.floats())
def test_no_name_and_no_number_breaks_the_text_format(dut: str, suite: str, cycles: float) -> None:
    row: RunRow = changed(ROW, cell=replace(ROW.cell, dut=dut), cycles_per_packet=cycles)
    text = textfile(replace(NIGHT, suite=suite), [row], 0)
    assert text.endswith("\n")
    for line in text[:-1].split("\n"):
        assert line.startswith("# ") or LINE.fullmatch(line), line
