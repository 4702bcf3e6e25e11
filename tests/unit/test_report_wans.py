"""Runs over WANs and through tunnels, searches and frame sizes: on the page, as text, and as a picture of buffers."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product

import pytest
from bdp_runs import BEHIND, FOUND, FULL, LONG, MB, SET, SIZES, SLOW, leg_of, run, swept, told
from documents import to_document
from matplotlib.figure import Figure
from nights import over_wan
from report_cases import Elements, lines_of, make_run, report_of
from runs import make_result, sized
from tcp_runs import make_tcp_result, through_a_tunnel

from trexbench.core.history.cell import Cell
from trexbench.core.history.night import Attempt, CellRecord, CellState, Night
from trexbench.core.history.rows import row_of, rows_of_tcp
from trexbench.core.result import from_document
from trexbench.core.tcp.bdp import find_rows
from trexbench.core.tcp.plan import Leg, TcpEnvironment, Way
from trexbench.core.tcp.result import TcpResult
from trexbench.core.tcp.wan import Wan, parse_wan
from trexbench.report.page.report import Report
from trexbench.report.page.sheets_packets import search_sheet
from trexbench.report.page.sheets_tcp import tunnel_sheet
from trexbench.report.sheet import to_markdown
from trexbench.report.tcp.picture import compose_bdp, draw_tcp
from trexbench.report.tcp.table import PublishedCell, format_table
from trexbench.report.tcp.text import bdp_lines, format_tcp, sheets_of_run
from trexbench.report.words import format_plain


def test_a_wans_rows_are_those_of_the_terminal_with_their_verdicts() -> None:
    report = report_of(swept())
    (one,) = report.wans
    assert list(one.rows) == sorted(find_rows(swept()), key=lambda row: row.buffer_bytes or 0)
    text = Elements(report).words
    assert "lab-linux, WAN of 20 ms, 1 Gbit/s, by netem, BDP 2.50 MB" in text
    for row in one.rows:
        assert row.words.replace(">= ", "≥ ") in text and f"{row.ratio:.2f}" in text
    assert "1.00 MB" in text and "5.00 MB" in text and "window-limited" in text


def test_the_plot_has_the_measured_rates_the_windows_line_and_the_lines_rate() -> None:
    data = Elements(report_of(swept())).data
    (wan,) = data["figures"]["wans"]
    window, line, series = lines_of(data, "wans", wan["title"])
    assert series["x"] == list(SIZES) and series["y"] == pytest.approx([300, 940], rel=0.01)
    assert all(words in text for words, text in zip(("1.00 MB", "5.00 MB"), series["texts"], strict=True))
    assert window["name"].startswith("window / round trip") and line["name"].startswith("payload rate of the line")
    slope = window["y"][-1] / window["x"][-1]
    assert window["y"] == pytest.approx([slope * x for x in window["x"]], rel=1e-3)
    assert slope == pytest.approx(8 * find_rows(swept())[0].window_predicted_bytes / SIZES[0] / 0.02 / 1e6, rel=0.01)  # type: ignore[operator]
    assert wan["x"]["span"][0] < SIZES[0] < SIZES[1] < wan["x"]["span"][1] and wan["y"]["span"][1] > 940
    assert [name for _, name in wan["x"]["ticks"]] == ["1 MB", "5 MB"] and "Mbit/s" in wan["y"]["title"]


def test_losses_draw_their_law_and_a_line_that_was_scaled_down_says_so() -> None:
    lossy = replace(BEHIND, wan=replace(LONG, loss=0.0001))
    names = [one["name"] for one in Elements(report_of(swept(lossy))).data["figures"]["wans"][0]["lines"]]
    assert any("at a loss of 0.01 %" in name and "Mathis" in name for name in names)
    scaled = replace(BEHIND, wan_by="cable", wan_asked=Wan(0.02, 10e9))
    assert "by cable, scaled to 10.0 % of 20 ms, 10 Gbit/s" in Elements(report_of(swept(scaled))).words


def test_different_wans_and_tunnels_are_cells_of_their_own_and_never_one_history() -> None:
    other = swept(replace(BEHIND, wan=Wan(0.05, 1e8)), started="2026-11-21T12:00:00Z")
    relayed = TcpEnvironment(tunnel="relay", tunnel_between="client-server", tunnel_by="relay", tunnel_mtu=1400)
    report = report_of(swept(), other, make_tcp_result(), replace(make_tcp_result(), setup=relayed))
    assert {cell.variant for cell in report.tcp} == {None}
    assert {str(cell.over or "") for cell in report.tcp} == {
        "",
        "WAN 20ms,1gbit by netem",
        "WAN 50ms,100mbit by netem",
        "relay client-server by relay, inside an MTU of 1400",
    }
    assert all(len(trend.runs) == 1 for trend in report.trends)
    assert len({str(column) for column in report.columns}) == 4, "and columns of their own"
    wans = [f"lab-linux, WAN of {line}" for line in ("20 ms, 1 Gbit/s", "50 ms, 100 Mbit/s")]
    assert [one.title for one in report.wans] == wans


def test_a_suite_names_its_wans_by_its_own_variants() -> None:
    of_suite = {"verb": "tcp", "suite": "bdp-lab8", "variant": "long"}
    assert {(row.cell.variant, row.cell.over) for row in rows_of_tcp(swept(command=of_suite), "x")} == {("long", None)}


@pytest.mark.parametrize("text", ["20ms,1gbit", "2.5ms,100mbit,queue=2.5mb,loss=0.01%,jitter=1ms", "1s", "loss=1%"])
def test_a_wan_in_a_name_reads_as_it_was_asked_for(text: str) -> None:
    assert parse_wan(text).asked == text


def test_packets_over_a_wan_are_cells_of_their_own_as_well() -> None:
    command, over = make_result().command, over_wan("20ms,1gbit")
    plain, far, of_suite = (
        row_of(make_result(command={**command, "suite": suite}, over=path), "x")
        for suite, path in ((None, None), (None, over), ("nightly", over))
    )
    assert far.cell == replace(plain.cell, over=over) and of_suite.cell == plain.cell
    assert str(far.cell).endswith(" over WAN 20ms,1gbit by netem simulated")
    assert far.traffic == plain.traffic and far.through == of_suite.through == over


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        ("20.0 ms, 1.000 Gbit/s by cable", "WAN 20ms,1gbit by cable"),
        (
            "2.50 ms, 100.0 Mbit/s, queue 2.50 MB, loss 0.01 %, jitter 50.0 us by netem",
            "WAN 2.5ms,100mbit,queue=2.5mb,loss=0.01%,jitter=0.05ms by netem",
        ),
        ("what nobody understands", "what nobody understands"),
    ],
)
def test_a_document_of_an_earlier_version_has_its_wan_in_words(stored: str, words: str) -> None:
    document = to_document(make_result(command={"verb": "ramp", "mode": "64b", "wan": stored})) | {"version": 2}
    del document["over"]
    assert str(from_document(json.loads(json.dumps(document))).over) == words


def test_a_large_figure_has_no_exponent() -> None:
    assert [*map(format_plain, (0.64266, 58.31, 1158.2, 24103.4))] == ["0.643", "58.3", "1158", "24103"]


def test_a_tunnel_has_its_kind_mtu_and_the_processes_of_every_host() -> None:
    report = report_of(through_a_tunnel())
    (row,) = tunnel_sheet(report).lines
    raw = [item.raw for item in row.items]
    assert raw[1:3] == ["openvpn, client and server by OpenVPN 2.6", "1400"] and raw[4:8] == ["70", "20"] * 2
    assert float(raw[8]) == pytest.approx(940e6 / (2 * (0.7 + 0.2)))
    text = Elements(report).words
    for words in ("by OpenVPN 2.6", "70.0 %", "1, 0", "50.0 %", f"{940 / 1.8:.1f} Mbit"):
        assert words in text
    assert text.count("openvpn") >= 3 and not tunnel_sheet(report_of(make_tcp_result())).lines


def test_a_search_has_a_row_for_each_goal_and_direction() -> None:
    cell = Cell("lab-linux", "var2-64b", True, None, "search")
    report = Report([], runs={cell: sized(64, bidir=True)})
    lines = search_sheet(report).lines
    goals = [(way, goal) for way in ("0->1", "1->0") for goal in ("NDR, 0 %", "PDR, 1 %")]
    assert [(line.items[1].text, line.items[2].text) for line in lines] == goals
    assert {line.cell for line in lines} == {cell}, "rows follow the choice"
    rate, looks, length_s = (lines[0].items[at].raw for at in (3, 7, 8))
    assert not rate.startswith(">=") and int(looks) > 3 and float(length_s) > 5
    bound = search_sheet(Report([], runs={cell: sized(1518, bidir=True)})).lines[0]
    assert all(item.raw.startswith(">=") for item in bound.items[3:5]), "rate and share of line rate"
    assert "NDR, 0 %" in Elements(report).words and "Searches" in Elements(report).words
    ramp = Cell("vpp", "64b", False, None)
    assert not search_sheet(Report([], runs={ramp: make_run(ramp)})).lines


def test_several_frame_sizes_make_a_plot_with_the_theoretical_maximum() -> None:
    runs = {Cell("lab-linux", f"var2-{size}b", False, None, "search"): sized(size) for size in (1518, 64, 512)}
    page = Elements(Report([], runs=runs))
    most, first, second = lines_of(page.data, "sizes")
    assert most["x"] == [64, 512, 1518] and most["y"][0] == pytest.approx(1e9 / 8 / 84, rel=0.01)
    assert first["name"].endswith("loss ≤ 0 %") and second["name"].endswith("loss ≤ 1 %")
    assert first["y"][0] == pytest.approx(400e3, rel=0.01) and first["bounds"] == [0, 1, 1]
    assert "lab-linux var2 uni search" in page.words
    two = Elements(Report([], runs=dict(list(runs.items())[:2])))
    assert "Throughput by frame size" not in two.words and "sizes" not in two.data["figures"]


ASKED = replace(LONG, rate_bps=1e10)
PAIR = leg_of(FOUND, SLOW, told(1_600_000)), leg_of(SET, FULL, told(5 * MB))
WIDTH = 100


def series(figure: Figure) -> list[str]:
    return [one.get_text() for one in figure.legends[0].get_texts()]


def test_the_table_of_a_run() -> None:
    text = "\n".join(bdp_lines(run(*PAIR)))
    for words in (
        "WAN     20 ms, 1 Gbit/s, by netem",
        "BDP     2.50 MB: 1.000 Gbit/s x 20.0 ms (the WAN)",
        "ping    20.0 ms round trip of the idle path, the median",
        "client  tcp_rmem 4096 131072 1600000, tcp_wmem 4096 16384 1600000",
        "window  tcp_adv_win_scale is 1: 0.5 of a buffer is window; of a send buffer 0.7 can be on its way",
        "1.60 MB, as found (tcp_rmem of the server): window-limited: 800 kB over 20.0 ms is 320.0 Mbit/s",
        "5.00 MB, set: fills the line: 98.3 % of 956.4 Mbit/s",
    ):
        assert words in text, text
    (row,) = (line for line in text.splitlines() if line.startswith("1.60 MB  "))
    assert " ".join(row.split()) == "1.60 MB 800 kB 800 kB 3.00 MB 320.0 window >= 300.0 0.0 0.94 0 window"
    ways, bdp, *_ = sheets_of_run(run(*PAIR))
    assert f"\n{ways.caption}\nWay  " in format_tcp(run(*PAIR)) and "Mbit/s" in ways.caption
    assert "\nIPv4, idle " in format_tcp(run(*PAIR)), "no leg's buffers were set yet"
    assert "| 1.60 MB | 800 kB | 800 kB | 3.00 MB | 320.0 | window |" in to_markdown(bdp)
    scaled = format_tcp(run(*PAIR, setup=TcpEnvironment(wan=LONG, wan_asked=ASKED, wan_by="the cable")))
    assert "scaled  20 ms, 10 Gbit/s was requested: rate and buffers are 10.0 % of that" in scaled


def test_it_fits_whatever_is_in_it() -> None:
    fast = replace(FULL, bps=99_999.9e6, retransmits=999_999)
    legs = [
        leg_of(Leg(way, version, 1, size, name), fast, told(size, congestion=name))
        for way, version, name, size in product((Way.FORWARD, Way.BIDIR), (4, 6), ("cubic", "bbr"), (4096, 2**31 - 1))
    ]
    lossy = replace(LONG, loss=0.0001, jitter_s=0.001, rate_bps=100e9)
    lines = list(bdp_lines(run(*legs, setup=TcpEnvironment(wan=lossy, wan_asked=ASKED, wan_by="netem"))))
    table = [line for line in lines if " MB  " in line or line.startswith("Buffers")]
    assert len(table) > 16 and max(map(len, table)) <= WIDTH
    assert any(line == "bidir IPv6, server sends, bbr, in Mbit/s" for line in lines)
    assert sum(line.startswith("bidir IPv4, client sends, cubic, ") for line in lines) == 3


def test_a_congestion_control_without_a_bound_at_a_loss_is_told() -> None:
    legs = [leg_of(replace(SET, congestion=n), SLOW, told(5 * MB, congestion=n)) for n in ("cubic", "bbr")]
    text = "\n".join(bdp_lines(run(*legs, setup=TcpEnvironment(wan=replace(LONG, loss=1e-4)))))
    assert "loss    cubic: about 70.94 Mbit/s in the long run, by Mathis" in text
    assert "loss    bbr: no bound: its rate does not follow from the loss" in text


def test_what_hosts_tell_is_cleaned_and_other_runs_have_no_such_table() -> None:
    nasty = leg_of(FOUND, SLOW, told(MB, tcp_rmem="1 2 \x1b[31m3000000", congestion="\x1b]0;x"))
    text = format_tcp(run(nasty))
    assert "\x1b" not in text and "BDP     2.50 MB" in text
    assert "BDP" not in format_tcp(make_tcp_result())
    nothing = format_tcp(replace(run(*PAIR), legs=()))
    assert "BDP     2.50 MB" in nothing and "measured" not in nothing.replace("nothing was measured", "")


def test_the_picture_has_a_series_for_each_congestion_control_and_every_bound() -> None:
    names = ("cubic", "bbr")
    legs = [
        leg_of(replace(leg.leg, congestion=name, buffer_bytes=size), path, told(size, congestion=name))
        for name in names
        for leg, path, size in zip(PAIR, (SLOW, FULL), (1_600_000, 5 * MB), strict=True)
    ]
    result = run(*legs, setup=TcpEnvironment(wan=replace(LONG, loss=1e-4)), simulated=True)
    figure = compose_bdp(result)
    assert figure is not None
    assert series(figure) == [
        "window / round trip: 0.5 of the buffer over 20.0 ms",
        "payload rate of the line: 956.4 Mbit/s",
        "cubic at a loss of 0.01 %: 70.94 Mbit/s, by Mathis",
        "measured, cubic",
        "measured, bbr",
        "hollow: a lower bound",
    ]
    (axes,) = figure.axes
    assert axes.get_xscale() == "log" and [one.get_text() for one in axes.get_xticklabels()] == ["1.6 MB", "5 MB"]
    assert axes.get_xlabel().endswith("the last number of tcp_rmem and tcp_wmem")
    bound = axes.get_lines()[0]
    assert all(abs(y - 8 * 0.5 * x / 0.02 / 1e6) < 1 for x, y in zip(bound.get_xdata(), bound.get_ydata(), strict=True))
    assert "SIMULATED" in [one.get_text() for one in figure.texts]
    measured = compose_bdp(replace(result, simulated=False))
    assert measured is not None and "SIMULATED" not in [one.get_text() for one in measured.texts]
    assert draw_tcp(result)[:4] == b"\x89PNG"
    assert compose_bdp(run(PAIR[0])) is None and compose_bdp(replace(run(*PAIR), legs=())) is None, "of one size"


def line_of(result: TcpResult, scale: float) -> PublishedCell:
    (row,) = rows_of_tcp(result, "a.json")
    tried = (Attempt(result.started, "a.json"),)
    return PublishedCell(CellRecord(row.cell, CellState.DONE, tried), 3160.0, row, scale)


def night_of(result: TcpResult, scale: float) -> str:
    line = line_of(result, scale)
    return format_table(Night("bdp-lab8", "2026-11-20", "2026-11-20T12:00:00Z", False, (line.cell,)), [line])


def test_a_published_figure_is_scaled_as_the_line_was() -> None:
    result = run(PAIR[0])
    assert "night of 2026-11-20: rates in Mbit/s, pings in ms\n" in night_of(result, 1.0)
    assert " >= 0.094 " in night_of(result, 1.0) and "scaled" not in night_of(result, 1.0)
    assert "median ratio >= 0.094\n" in night_of(result, 1.0)
    assert line_of(result, 1.0).to_dict().items() >= {"at_least": True, "limit": "window"}.items()
    scaled = night_of(result, 0.1)
    words = "line and buffers were scaled to 0.1, so its ratio is to 0.1 of the published figure"
    assert "0.949" in scaled and words in scaled
