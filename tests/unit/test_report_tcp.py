"""TCP on the report: the figures of the bars and series in every form; beside packets, alone, and not at all."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from report_cases import Elements, lines_of, make_change, make_night, make_record, make_row, make_run, rendered
from report_cases import report_of as make_tcp_report
from tcp_runs import Path, make_tcp_result

from trexbench.core.history.causes import groups_of
from trexbench.core.history.cell import TCP_KIND, Cell
from trexbench.core.history.night import CellState
from trexbench.core.history.regression import Judgement
from trexbench.core.history.rows import TCP_RATE, rows_of_tcp
from trexbench.core.tcp.plan import Leg, TcpEnvironment, TcpMode, Way
from trexbench.report.events import events_of
from trexbench.report.page.grid import build_grid
from trexbench.report.page.report import Report
from trexbench.report.page.sheets import sheets_of
from trexbench.report.page.tcp import mode_words, pool_intervals
from trexbench.report.page.templates import to_markdown

LINE = TcpEnvironment(line_bps=1e9, cpus={"dut": (0, 1)})
BUSY = Path(bps=400e6, cores={"dut": (0.99, 0.25)}, retransmits=30, power_w=4.5)
ONE_WAY = [Leg(Way.FORWARD)]


def test_a_bar_has_the_runs_own_figures() -> None:
    result = make_tcp_result(BUSY, setup=LINE)
    lines = lines_of(Elements(make_tcp_report(result)).data, "tcp")
    forward = {line.get("panel", 0): line for line in lines if line["cells"] == [0]}
    rate, cpu, share, ping, power = (forward[panel] for panel in range(5))
    assert rate["x"] == [pytest.approx(result.summaries[0].rate_bps / 1e6)] == [pytest.approx(400)]
    assert rate["marker"] == "circle" and "the DUT was the limit" in rate["texts"][0] and "CPU 0" in rate["texts"][0]
    assert (cpu["x"], cpu["bounds"], cpu["words"]) == ([99, 62], [1, 0], ["62 (99)"]), "hollow: the hottest core"
    assert share["x"] == [pytest.approx(400 / 124, rel=1e-3)], "per % of one core, of both cores together"
    assert (ping["x"], ping["bounds"]) == ([pytest.approx(5), pytest.approx(1.2)], [1, 0]), "hollow: loaded"
    assert power["x"] == [4.5] and "Power: 4.5 W" in power["texts"][0]
    (reverse,) = (line for line in lines if line["cells"] == [1] and line.get("panel") == 3)
    assert len(reverse["x"]) == 1, "only the forward leg was pinged"


def test_a_bound_is_marked_wherever_the_rate_stands() -> None:
    report = make_tcp_report(make_tcp_result(Path(bps=941e6), ONE_WAY, setup=LINE))
    rate = lines_of(Elements(report).data, "tcp")[0]
    assert (rate["marker"], rate["words"]) == ("triangle-right-open", ["≥ 941"])
    assert "the line was full" in rate["texts"][0]
    assert ">≥ 941.0 Mbit/s</td>" in rendered(report) and "| ≥ 941.0 Mbit/s |" in to_markdown(report)
    assert next(one for one in sheets_of(report, ()) if one.name == "tcp").lines[0].items[1].raw == ">=9.41e+08"


def test_series_are_the_intervals_with_gaps_where_nothing_was_read() -> None:
    result = make_tcp_result(Path(bps=[100e6 * (1 + at) for at in range(10)], retransmits=20), ONE_WAY)
    silent = replace(result.legs[0], client=tuple(replace(one, streams=()) for one in result.legs[0].client))
    rate, again, trip = lines_of(Elements(make_tcp_report(result)).data, "series")
    assert rate["x"] == [at + 0.5 for at in range(10)]
    assert rate["y"] == pytest.approx([100 * (1 + at) for at in range(10)])
    assert again["y"] == [2.0] * 10 and trip["y"] == [1.0] * 10
    (rate,) = lines_of(Elements(make_tcp_report(replace(result, legs=(silent,)))).data, "series")
    assert len(rate["y"]) == 10


def test_a_long_series_is_pooled_and_loses_nothing() -> None:
    rates = [100e6 + 1e6 * (at % 7) for at in range(10)]
    points = [*pool_intervals(make_tcp_result(Path(bps=rates, retransmits=50), ONE_WAY).flows[0], most=4)]
    assert [point.length_s for point in points] == [3, 3, 3, 1]
    assert sum(p.received_bps * p.length_s for p in points) == pytest.approx(sum(rates))
    assert sum(p.retransmits or 0 for p in points) == 50


def test_repetitions_and_both_ways_at_once_have_lines_of_their_own() -> None:
    legs = [Leg(Way.FORWARD), Leg(Way.FORWARD, 4, 2), Leg(Way.BIDIR, 6)]
    data = Elements(make_tcp_report(make_tcp_result(legs=legs))).data
    names = [(one["cells"][0], one["name"]) for one in lines_of(data, "series") if "panel" not in one]
    assert names == [(0, ""), (0, ", repetition 2"), (1, ", client sends"), (1, ", server sends")]
    both = next(one for one in lines_of(data, "tcp") if one["cells"] == [1])
    assert both["x"] == [pytest.approx(2 * 940, rel=1e-3)]


def test_bars_of_a_dut_stand_together_its_ways_in_one_order() -> None:
    plain = make_tcp_result(legs=[Leg(Way.REVERSE, 6), Leg(Way.REVERSE), Leg(Way.FORWARD)])
    walled = replace(plain, command={**plain.command, "variant": "wall"})
    unread = replace(plain, command={**plain.command, "telemetry": False})
    cells = make_tcp_report(unread, walled, plain).tcp_cells
    assert [one.cell.variant for one in cells] == [None] * 6 + ["wall"] * 3
    assert [mode_words(one.cell) for one in cells[:6]] == [
        f"{way}{how}" for way in ("forward IPv4", "reverse IPv4", "reverse IPv6") for how in ("", ", unmonitored")
    ]


def test_a_page_of_tcp_alone_says_nothing_of_packets() -> None:
    page = Elements(make_tcp_report(make_tcp_result(BUSY, setup=LINE)))
    assert {"plot-tcp", "plot-series", "tcp-mode"} <= page.ids
    assert "Figures" in page.words and "Trends" not in page.words, "of a single night"
    assert not {"plot-ramps", "plot-trends", "mode", "traffic", "unit"} & page.ids
    for words in ("generator", "frames per second", "Mpps"):
        assert words not in page.words, words
    for words in ("42 %", "400.0 Mbit/s", "4.5 W", "62.0 % of 2"):
        assert words in page.words, words


def test_a_page_without_tcp_says_nothing_of_it_and_both_kinds_stand_on_one() -> None:
    row = make_row()
    packets = Report([row], runs={row.cell: make_run(row.cell)})
    both = make_tcp_report(make_tcp_result(BUSY, started="2026-11-19T02:00:00Z"))
    page = Elements(packets)
    assert "TCP" not in page.words + to_markdown(packets) and "tcp-mode" not in page.ids
    page = Elements(replace(both, rows=[row, *both.rows], runs=packets.runs, table=make_night(make_record(row))))
    assert [cell.get("tcp") for cell in page.data["cells"]] == [None, "forward IPv4", "reverse IPv4"]
    titles = [one["title"] for one in page.data["figures"]["trends"]]
    assert titles[:2] == ["maximum rate", "TCP rate"], "the rates come first"
    assert {"plot-tcp", "plot-ramps", "mode", "tcp-mode"} <= page.ids
    for words in ("Not in this table: runs by hand (2 cells)", " lab-linux forward IPv4, 2026-11-19 "):
        assert words in page.words, words
    assert "Direction all unidirectional Rates in" in page.words, "none is of two directions"


def test_a_rate_through_no_line_stands_in_the_first_table() -> None:
    (cell,) = build_grid(rows_of_tcp(make_tcp_result(Path(bps=5e9), ONE_WAY), "x"), None).blocks[0].rows[0].cells
    assert cell.share is None and cell.percent == cell.rate == ">= 5.000 Gbit/s"


def test_a_failed_cell_of_tcp_is_one_with_its_history() -> None:
    (row,) = rows_of_tcp(make_tcp_result(legs=ONE_WAY), "x.json")
    night = make_night(make_record(row, "no route", CellState.FAILED))
    report = Report([row], nights=[night], table=night)
    assert [trend.cell for trend in report.trends] == [row.cell] and report.trends[0].failed[0][1] == "no route"
    assert [block.name for block in report.grid.blocks] == ["TCP"]
    (line,) = report.grid.blocks[0].rows
    assert (str(line.of[0]), line.cells[0].about) == ("lab-linux forward-ipv4 uni tcp", "no route")


def test_what_casts_doubt_on_a_run_of_tcp_is_told_once() -> None:
    report = make_tcp_report(make_tcp_result(Path(threads={"server": (0.1, 0.2, 0.2)})))
    assert len(report.tcp_cells) == 2 and len(report.tcp_runs) == 1
    doubt = next(text for text in report.tcp_runs[0][1] if "waited for a CPU" in text)
    assert " ".join(Elements(report).text).count(doubt) == 1
    assert to_markdown(report).count("waited for a CPU") == 2, "one of each leg"


def test_a_change_of_tcp_chooses_its_way_and_figure_and_leaves_packets_alone() -> None:
    report = make_tcp_report(make_tcp_result(BUSY, [Leg(Way.FORWARD), Leg(Way.REVERSE)], setup=LINE))
    _, reverse = report.rows
    slower = make_change(reverse.cell, "2026-11-20", 5e8, 4e8, TCP_RATE)
    packets, groups = make_row(), groups_of(Judgement((slower,), 1))
    about = {"changes": [slower], "groups": groups, "events": events_of(groups, (), "2026-11-20")}
    page = Elements(replace(report, rows=[packets, *report.rows], runs={packets.cell: make_run(packets.cell)}, **about))
    shown = [a["data-show"] for _, a in page.found if "data-show" in a]
    assert json.loads(str(shown[0])) == {"tcp-mode": "reverse-ipv4", "metric": "TCP rate"}
    chosen = [a["value"] for tag, a in page.found if tag == "option" and "selected" in a and "value" in a]
    assert "reverse-ipv4" in chosen and "forward-ipv4" not in chosen
    trend = next(one for one in lines_of(page.data, "trends", "TCP rate") if "marks" in one)
    assert trend["marks"][0]["words"] == "\u25bc -20.0 %" and trend["scales"]["own"][1] == pytest.approx(400)


def test_a_cell_without_a_figure_has_no_bar() -> None:
    result = make_tcp_result(legs=ONE_WAY)
    cell = Cell("lab-linux", TcpMode(Way.REVERSE, 4), False, None, TCP_KIND)
    report = make_tcp_report(result, tcp={cell: result})
    assert report.tcp_cells == () and "plot-tcp" not in Elements(report).ids
