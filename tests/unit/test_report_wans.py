"""WANs, tunnels, published figures, searches and frame sizes on the page: their figures, and what tells them apart."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from bdp_runs import BEHIND, LONG, SIZES, swept
from documents import to_document
from nights import over_wan
from report_cases import HOSTILE, lines_of, make_run, report_of, unpacked
from runs import make_result, sized
from tcp_runs import make_tcp_result, through_a_tunnel
from test_report_page import LIBRARY, Elements

from trexbench.core.history.cell import TCP_KIND, Cell
from trexbench.core.history.night import CellRecord, CellState
from trexbench.core.history.rows import row_of
from trexbench.core.history.rows_tcp import rows_of_tcp
from trexbench.core.result import from_document
from trexbench.core.tcp.bdp import find_rows
from trexbench.core.tcp.model import TcpEnvironment, TcpMode, Way
from trexbench.core.tcp.wan import Wan, parse_wan
from trexbench.report.page.html import render
from trexbench.report.page.report import Report
from trexbench.report.page.sheets_packets import search_sheet
from trexbench.report.tcp.table import ProcessShares as Took
from trexbench.report.tcp.table import PublishedCell


def data_of(report: Report) -> dict[str, Any]:
    found: dict[str, Any] = unpacked(Elements(render(report, LIBRARY)).scripts[0])
    return found


def text_of(report: Report) -> str:
    return " ".join(" ".join(Elements(render(report, LIBRARY)).text).split())


def test_a_wans_rows_are_those_of_the_terminal_with_their_verdicts() -> None:
    result = swept()
    (one,) = report_of(result).wans
    assert list(one.rows) == sorted(find_rows(result), key=lambda row: row.buffer_bytes or 0)
    text = text_of(report_of(result))
    assert "lab-linux, WAN of 20 ms, 1 Gbit/s, by netem, BDP 2.50 MB" in text
    for row in one.rows:
        assert row.words.replace(">= ", "≥ ") in text and f"{row.ratio:.2f}" in text
    assert "1.00 MB" in text and "5.00 MB" in text and "window-limited" in text


def test_the_plot_has_the_measured_rates_the_windows_line_and_the_lines_rate() -> None:
    data = data_of(report_of(swept()))
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


def test_losses_draw_their_law() -> None:
    lossy = replace(BEHIND, wan=replace(LONG, loss=0.0001))
    names = [one["name"] for one in data_of(report_of(swept(lossy)))["figures"]["wans"][0]["lines"]]
    assert any("at a loss of 0.01 %" in name and "Mathis" in name for name in names)


def test_a_line_that_was_scaled_down_says_so() -> None:
    scaled = replace(BEHIND, wan_by="cable", wan_asked=Wan(0.02, 10e9))
    assert "by cable, scaled to 10.0 % of 20.0 ms, 10.00 Gbit/s" in text_of(report_of(swept(scaled)))


def test_different_wans_and_tunnels_are_cells_of_their_own_and_never_one_history() -> None:
    other = swept(replace(BEHIND, wan=Wan(0.05, 1e8)), started="2026-11-21T12:00:00Z")
    plain = make_tcp_result()
    through = replace(
        plain, setup=TcpEnvironment(tunnel="relay", tunnel_between="client-server", tunnel_by="relay", tunnel_mtu=1400)
    )
    report = report_of(swept(), other, plain, through)
    assert {cell.variant for cell in report.tcp} == {None}
    assert {str(cell.over or "") for cell in report.tcp} == {
        "",
        "WAN 20ms,1gbit by netem",
        "WAN 50ms,100mbit by netem",
        "relay client-server by relay, inside an MTU of 1400",
    }
    assert all(len(trend.runs) == 1 for trend in report.trends) and len(report.wans) == 2
    assert len({str(column) for column in report.columns}) == 4, "and columns of their own"
    assert [one.title for one in report.wans] == [
        "lab-linux, WAN of 20 ms, 1 Gbit/s",
        "lab-linux, WAN of 50 ms, 100 Mbit/s",
    ]


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


def test_a_tunnel_has_its_kind_mtu_and_the_processes_of_every_host() -> None:
    report = report_of(through_a_tunnel())
    (one,) = report.tunnels
    assert one.tunnel == "openvpn, client and server" and one.mtu == 1400
    assert one.cpu == pytest.approx({"client_tunnel": 0.7, "client": 0.2, "server_tunnel": 0.7, "server": 0.2})
    text = text_of(report)
    assert "by OpenVPN 2.6" in text and "70.0 %" in text and "1, 0" in text and "50.0 %" in text
    busy = 2 * (0.7 + 0.2)
    assert one.bits_per_cpu_second == pytest.approx(940e6 / busy) and f"{940 / busy:.1f} Mbit" in text
    assert text.count("openvpn") >= 3 and not report_of(make_tcp_result()).tunnels


def test_published_figures_stand_beside_the_measured() -> None:
    result = through_a_tunnel()
    (row,) = rows_of_tcp(result, "x.json")
    record = CellRecord(Cell("lab-linux", TcpMode(Way.FORWARD, 4), False, None, TCP_KIND), CellState.DONE)
    line = PublishedCell(record, 950.0, row, 1.0, {"client_tunnel": 0.68}, Took({"client_tunnel": 0.7}))
    text = text_of(report_of(result, published=[line]))
    assert "lab-linux forward-ipv4" in text and "950" in text and f"{line.ratio:.2f}" in text
    assert "68.0 %" in text and "70.0 %" in text and "Beside published figures" in text
    assert "Beside published figures" not in text_of(report_of(result))


def test_a_search_has_a_row_for_each_goal_and_direction() -> None:
    result = sized(64, bidir=True)
    cell = Cell("lab-linux", "var2-64b", True, None, "search")
    report = Report([], runs={cell: result})
    assert [(one.direction, one.goal_words) for one in report.searches] == [
        (way, goal) for way in ("0->1", "1->0") for goal in ("NDR, 0 %", "PDR, 1 %")
    ]
    assert {line.cell for line in search_sheet(report).lines} == set(report.runs), "rows follow the choice"
    first = report.searches[0]
    assert first.looks > 3 and first.length_s > 5 and not first.at_least
    assert "NDR, 0 %" in text_of(report) and "Searches" in text_of(report)
    ramp = Cell("vpp", "64b", False, None)
    assert not Report([], runs={ramp: make_run(ramp)}).searches


def test_several_frame_sizes_make_a_plot_with_the_theoretical_maximum() -> None:
    runs = {Cell("lab-linux", f"var2-{size}b", False, None, "search"): sized(size) for size in (1518, 64, 512)}
    data = data_of(Report([], runs=runs))
    most, first, second = lines_of(data, "sizes")
    assert most["x"] == [64, 512, 1518] and most["y"][0] == pytest.approx(1e9 / 8 / 84, rel=0.01)
    assert first["name"].endswith("loss ≤ 0 %") and second["name"].endswith("loss ≤ 1 %")
    assert first["y"][0] == pytest.approx(400e3, rel=0.01) and first["bounds"] == [0, 1, 1]
    two = dict(list(runs.items())[:2])
    assert not Report([], runs=two).sized and "Throughput by frame size" not in text_of(Report([], runs=two))
    assert "lab-linux var2 uni search" in text_of(Report([], runs=runs))


def test_hostile_names_are_text_here_too() -> None:
    named = {"name": HOSTILE, "facts": {}, "facts_sha256": "ab"}
    hostile = [replace(one, dut=named, command={"variant": HOSTILE}) for one in (swept(), through_a_tunnel())]
    harmless = [
        replace(one, dut={**named, "name": "a"}, command={"variant": "d"}) for one in (swept(), through_a_tunnel())
    ]
    shapes = [[tag for tag, _ in Elements(render(report_of(*some), LIBRARY)).found] for some in (hostile, harmless)]
    assert shapes[0] == shapes[1] and "select" in shapes[0]
