"""The table and the picture of a run whose legs differ in buffers."""

from __future__ import annotations

from dataclasses import replace

from bdp_runs import FOUND, FULL, LONG, MB, SET, SLOW, leg_of, run, told
from matplotlib.figure import Figure
from tcp_runs import make_tcp_result

from trexbench.core.history.night import Attempt, CellRecord, CellState, Night
from trexbench.core.history.rows import rows_of_tcp
from trexbench.core.tcp.plan import TcpEnvironment, Way
from trexbench.core.tcp.result import TcpResult
from trexbench.report.tcp.picture import compose_bdp, draw_tcp
from trexbench.report.tcp.table import PublishedCell, format_table
from trexbench.report.tcp.text import bdp_lines, format_tcp

ASKED = replace(LONG, rate_bps=1e10)
PAIR = leg_of(FOUND, SLOW, told(1_600_000)), leg_of(SET, FULL, told(5 * MB))
WIDTH = 100


def series(figure: Figure) -> list[str]:
    return [one.get_text() for one in figure.legends[0].get_texts()]


def test_the_table_of_a_run() -> None:
    text = "\n".join(bdp_lines(run(*PAIR)))
    for words in (
        "WAN     20.0 ms, 1.000 Gbit/s, by netem",
        "BDP     2.50 MB: 1.000 Gbit/s x 20.0 ms (the WAN)",
        "ping    20.0 ms round trip of the idle path, the median",
        "client  tcp_rmem 4096 131072 1600000, tcp_wmem 4096 16384 1600000",
        "window  tcp_adv_win_scale is 1: 0.5 of a buffer is window; of a send buffer 0.7 can be on its way",
        "1.60 MB, as found (tcp_rmem of the server): window-limited: 800 kB over 20.0 ms is 320.0 Mbit/s at most",
        "5.00 MB, set: fills the line: 98.3 % of 956.4 Mbit/s",
    ):
        assert words in text, text
    (row,) = (line for line in text.splitlines() if line.startswith("1.60 MB  "))
    assert " ".join(row.split()) == "1.60 MB 800 kB 800 kB 3.00 MB 320.0 window >= 300.0 0.0 0.94 0 window"


def test_it_fits_whatever_is_in_it() -> None:
    fast = replace(FULL, bps=99_999.9e6, retransmits=999_999)
    legs = [
        leg_of(
            replace(SET, way=way, version=version, congestion=name, buffer_bytes=size),
            fast,
            told(size, congestion=name),
        )
        for way in (Way.FORWARD, Way.BIDIR)
        for version in (4, 6)
        for name in ("cubic", "bbr")
        for size in (4096, 2**31 - 1)
    ]
    lossy = replace(LONG, loss=0.0001, jitter_s=0.001, rate_bps=100e9)
    lines = list(bdp_lines(run(*legs, setup=TcpEnvironment(wan=lossy, wan_asked=ASKED, wan_by="netem"))))
    table = [line for line in lines if " MB  " in line or line.startswith("buffers")]
    assert len(table) > 16 and max(map(len, table)) <= WIDTH
    assert any(line == "bidir IPv6, server sends, bbr, in Mbit/s" for line in lines)
    assert sum(line.startswith("bidir IPv4, client sends, cubic, ") for line in lines) == 3


def test_a_line_that_was_scaled_down_is_said() -> None:
    result = run(*PAIR, setup=TcpEnvironment(wan=LONG, wan_asked=ASKED, wan_by="the cable"))
    assert "scaled  20.0 ms, 10.00 Gbit/s was requested: rate and buffers are 10.0 % of that" in format_tcp(result)


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
    assert draw_tcp(result) != draw_tcp(replace(result, simulated=False)) and draw_tcp(result)[:4] == b"\x89PNG"


def test_runs_of_one_size_have_the_usual_picture() -> None:
    assert compose_bdp(run(PAIR[0])) is None and compose_bdp(replace(run(*PAIR), legs=())) is None


def night_of(result: TcpResult, scale: float) -> str:
    (row,) = rows_of_tcp(result, "a.json")
    tried = (Attempt(result.started, "a.json"),)
    cell = CellRecord(row.cell, CellState.DONE, tried)
    night = Night("bdp-lab8", "2026-11-20", "2026-11-20T12:00:00Z", False, (cell,))
    return format_table(night, [PublishedCell(cell, 3160.0, row, scale)])


def test_a_published_figure_is_scaled_as_the_line_was() -> None:
    result = run(PAIR[0])
    assert "night of 2026-11-20: rates in Mbit/s, pings in ms\n" in night_of(result, 1.0)
    assert "0.095" in night_of(result, 1.0) and "scaled" not in night_of(result, 1.0)
    scaled = night_of(result, 0.1)
    words = "line and buffers were scaled to 0.1, so its ratio is to 0.1 of the published figure"
    assert "0.949" in scaled and words in scaled
