"""The page and its markdown: that all is on them, and that no name of anything can be more than text."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from bdp_runs import swept
from effort import by_day
from hypothesis import given
from hypothesis import strategies as st
from nights import make_rows, noisy
from report_cases import (
    HOSTILE,
    LIBRARY,
    Elements,
    figures,
    judged_report,
    lines_of,
    make_change,
    make_night,
    make_record,
    make_row,
    make_run,
    rendered,
    report_of,
    seen,
)
from tcp_runs import make_tcp_result, through_a_tunnel

from trexbench.core.dut.cycles import Cost
from trexbench.core.history.causes import FindingGroup, groups_of
from trexbench.core.history.cell import EFFICIENCY, Cell
from trexbench.core.history.differences import Difference
from trexbench.core.history.finding import Finding, Kind
from trexbench.core.history.regression import Judgement, find_missing
from trexbench.core.history.rows import COST, RATE, row_of
from trexbench.core.load.plan import LATENCY_LOADS
from trexbench.core.load.sample import Phase
from trexbench.core.result import RunResult
from trexbench.core.tcp.result import TcpResult
from trexbench.core.units import format_time
from trexbench.core.verdict.parts import RunWarning
from trexbench.report.clean import clean
from trexbench.report.events import events_of
from trexbench.report.groups import DIFFERS, NOTHING_DIFFERS
from trexbench.report.page.cards import cards_of
from trexbench.report.page.columns import find_looks
from trexbench.report.page.html import MOST_ROWS
from trexbench.report.page.overlay import Older, find_curves
from trexbench.report.page.plots_packets import cost_figure
from trexbench.report.page.report import Report
from trexbench.report.page.sheets import sheets_of
from trexbench.report.page.templates import escape, to_markdown


def make_report(name: str = "vpp", mode: str = "64b", **changes: Any) -> Report:
    """Two nights of two cells with a change and a failure; ``name`` is wherever a document can name something."""
    simulated = changes.pop("simulated", False)
    rows = [
        make_row(name, mode, at, bidir=bidir, suite=name, simulated=simulated)
        for at in ("2026-11-19", "2026-11-20")
        for bidir in (False, True)
    ]
    lost = make_row(name, f"{mode}2")
    table = make_night(*(make_record(row) for row in rows[2:]), make_record(lost, f"no {name}"), suite=name)
    table = replace(table, simulated=simulated)
    first = rows[0].cell
    groups = changes.pop("groups", make_groups(first, name))
    older = Older(rows[0], ("night", "change"), otherwise=True, curves=find_curves(first, make_run(first)))
    values: dict[str, Any] = {
        "rows": rows,
        "nights": [table],
        "table": table,
        "runs": {row.cell: make_run(row.cell) for row in rows[:2]},
        "older": {first: (older,)},
        "changes": [make_change(first, rows[2].started, 6e6, 5e6, explanation=(name,))],
        "groups": groups,
        "problems": [(name, f"{name}: not JSON")],
        "title": name,
        "below": "",
        "made": "2026-11-20",
        "judged": f"1 regression in {name}",
        "events": events_of(groups, [*find_missing([table], lambda cell: True)], "2026-11-20"),
        "remarks": (name,),
    }
    return Report(**(values | changes))


def make_groups(cell: Cell, name: str = "vpp") -> tuple[FindingGroup, ...]:
    """A regression of two figures, and a known change, each explained; what differs at the first."""
    of = {"reported": "2026-11-20", "noise": 1e4, "explanation": (f"{name} +31 of +48 cycles/packet",)}
    rate = Finding(cell, RATE, Kind.REGRESSION, 2, "2026-11-19", before=6e6, after=5e6, usual=6e6, **of)
    cycles = replace(rate, metric=COST, before=400.0, after=448.0, noise=1.0, usual=400.0)
    known = replace(cycles, kind=Kind.KNOWN, note=name, since="2026-11-17")
    differences = (Difference(("DUT", name), name, None), Difference(("DUT", "mtu"), "1500", "9000"))
    judgement = Judgement((rate, cycles, known), 4, differences={(cell, "2026-11-19"): differences})
    return groups_of(judgement)


def test_everything_is_on_the_page_and_in_markdown() -> None:
    page, text = Elements(make_report()), to_markdown(make_report(title="trexbench: vpp"))
    for words in ("Unidirectional", "Bidirectional", "no vpp", "not JSON", "34 %", "kernel / release", "6.18"):
        assert words in page.words, words
    assert {"plot-ramps", "plot-trends"} <= page.ids and "was not shown to be the limit" in page.words
    for words in ("| 64b | 34 %", "***Bidirectional***", "5.000 Mpps", "vpp 16.7 % slower", "no vpp", "note: "):
        assert words in text, words
    assert "\ntrexbench: vpp, night of 2026-11-20, 4 runs" in text


def test_a_cell_without_a_run_since_its_change_is_measured_as_its_suite_does() -> None:
    for tester, fleet in (("", ""), ("t1", " --fleet fleet.yaml")):
        rows = [make_row("vpp", "64b", "2026-11-18", suite="nightly", tester=tester)]
        command = f"trexbench suite run nightly --only 'vpp 64b uni'{fleet}"
        assert ("measure this cell again", command) in cards_of(make_report(rows=rows))[0].steps


def test_changes_are_told_by_group_with_the_rate_ahead_and_figures_folded() -> None:
    page = Elements(make_report(simulated=True))
    text, headline = page.words, "regression: vpp (1 cell) -16.7 %"
    assert text.index("1 regression in vpp") < text.index(headline) < text.index("2 figures of 1 cell:")
    for words in (
        "-16.7 % 6.000 \u2192 5.000 Mpps",
        "vpp +31 of +48 cycles/packet",
        "vpp: vpp \u2192 absent",
        "mtu: 1500 \u2192 9000",
        "see the latest run: trexbench results show 'results/2026-11-20/vpp 64b uni simulated.json'",
    ):
        assert text.index(headline) < text.index(words) < text.index("2 figures"), words
    for words in ("-16.7 % 6.000 \u2192 5.000 Mpps 0.17 % 2 2026-11-19", "+12.0 % 400 \u2192 448 0.25 %"):
        assert text.index("2 figures") < text.index(words)
    assert text.index(headline) < text.index("known: vpp cycles/packet 12.0 % higher")
    assert [a["class"] for tag, a in page.found if tag == "article"] == ["card bad", "card bad failure", "card known"]
    assert "failed: vpp 64b2 uni: no vpp" in text
    addresses = [a["href"] for tag, a in page.found if tag == "a" and ".json" in str(a.get("href"))]
    assert addresses == ["./2026-11-20/vpp%2064b%20uni%20simulated.json"] * 2, "nothing was measured before the change"
    shown = [json.loads(str(a["data-show"])) for _, a in page.found if "data-show" in a]
    assert shown[:2] == [{"mode": "64b", "traffic": "uni", "metric": "maximum rate"}] * 2
    assert shown[2]["metric"] == "cycles/packet"
    folded = [attributes for tag, attributes in page.found if tag == "details"][:2]
    assert all("open" not in one for one in folded)


@pytest.mark.parametrize("differences", [None, ()])
def test_a_change_at_which_nothing_differs_says_so_on_the_page(differences: tuple[Difference, ...] | None) -> None:
    group = replace(make_groups(Cell("vpp", "64b", False, None))[0], differences=differences)
    report = make_report(groups=(group,))
    for text in (rendered(report), to_markdown(report)):
        assert (NOTHING_DIFFERS in text) is (differences == ()) and DIFFERS not in text


def test_older_nights_can_be_laid_beside_the_latest() -> None:
    page = Elements(make_report())
    lines = lines_of(page.data, "ramps")
    older = [one for one in lines if "older" in one["tags"]]
    assert {one["night"] for one in older} == {"2026-11-19, the night before, before the change"}
    assert older[0]["tags"]["older"] == ["night", "change"] and "configured differently" in older[0]["texts"]
    assert (lines[0]["night"], lines[0]["cells"]) == ("2026-03-01, latest", older[0]["cells"])
    assert lines[0]["marker"] != older[0]["marker"]
    boxes = {a["value"]: "checked" in a for _, a in page.found if a.get("name") == "older"}
    assert boxes == {"change": True, "night": False}
    for words in ("Older nights as a table", "the DUT was configured differently", "\u00b10.0 %"):
        assert words in page.words


def test_an_unlike_night_is_named_and_not_drawn() -> None:
    rows = [make_row(), make_row(at="2026-11-19", line_rate_bps=1e9)]
    older = {rows[0].cell: (Older(rows[1], ("night",), "line rate of 1 Gbit/s"),)}
    page = Elements(Report(rows, runs={rows[0].cell: make_run(rows[0].cell)}, older=older))
    assert "older" not in str(page.data["figures"]) and "older" not in [a.get("name") for _, a in page.found]
    assert "not drawn over the latest: line rate of 1 Gbit/s" in page.words


def test_a_warning_stands_once_with_the_runs_that_have_it() -> None:
    cells = [Cell(f"vpp{number}", "64b", False, None) for number in range(3)]
    texts = ("a worker is at 516 MHz of 2200 MHz", "a worker is at 41.5 MHz of 2200 MHz", "no clock was read")
    runs = {cell: make_run(cell, warnings=(RunWarning("w", text),)) for cell, text in zip(cells, texts, strict=True)}
    report = Report([row_of(run, f"{cell}.json") for cell, run in runs.items()], runs=runs)
    found = [(one.text, [name for name, _, _ in one.runs]) for one in report.warned]
    own = [one for one in found if one[0] in texts]
    assert own == [(texts[0], ["vpp0 64b uni", "vpp1 64b uni"]), (texts[2], ["vpp2 64b uni"])]
    page = Elements(report)
    assert page.words.count(texts[2]) == 1
    assert "2 runs, with other figures vpp0 64b uni : a worker is at 516 MHz" in page.words
    links = {str(a["href"])[1:] for tag, a in page.found if tag == "a" and str(a["href"]).startswith("#")}
    assert links <= page.ids
    assert f"- 2 runs, with other figures: {texts[0]}" in to_markdown(report)


def make_timed(loss: float = 0.0) -> tuple[Report, RunResult]:
    """One run both ways with its latencies; ``loss``: of the first direction at the first load."""
    run = make_run(Cell("vpp", "64b", True, None), latency_s=3.0)
    first, *others = run.latencies
    first = replace(first, loss=loss, lossy=loss > 0.001)
    vars(run)["latencies"] = (first, *others)  # where the cached property keeps it
    return Report([row_of(run, "x.json")], runs={Cell("vpp", "64b", True, None): run}), run


def test_latency_is_a_table_a_plot_of_every_direction_at_every_load_and_a_trend_in_its_unit() -> None:
    report, run = make_timed()
    assert [row.direction for row in report.latencies] == ["0->1", "1->0"]
    page = Elements(report)
    lines = lines_of(page.data, "latency")
    assert [(one["name"], one.get("tags", {})) for one in lines] == [
        (f", {direction}", tags) for direction in ("0->1", "1->0") for tags in ({}, {"p99": []})
    ]
    assert all(one["more"]["share"] == [100 * share for share in LATENCY_LOADS] for one in lines)
    worst = run.latencies[-1]
    assert worst.mean_s and lines[2]["y"][-1] == pytest.approx(1e6 * worst.mean_s, rel=1e-5)
    for words in ("Latency at shares of the throughput", "50 %", format_time(worst.mean_s)):
        assert words.replace("us", "\u00b5s") in page.words
    assert "full queues" not in page.words and "plot-latency" in page.ids
    halves = [one.mean_s for one in run.latencies if one.share == 0.5 and one.mean_s]
    assert figures(page.data, "latency") == [pytest.approx(1e6 * max(halves), rel=1e-5)]


def test_latency_under_loss_is_marked_in_every_form() -> None:
    report, _ = make_timed(loss=0.05)
    page, text = rendered(report), to_markdown(report)
    assert "5.00 % (full queues)" in page
    lines = lines_of(Elements(page).data, "latency")
    assert [bool(lost) for one in lines for lost in one["more"]["lost"]] == [*[True, False, False] * 2, *[False] * 6]
    assert text.count("full queues") == 2 and "| vpp 64b bidir | 1→0 |" in text, "in the table and as a warning"


def test_rows_of_long_tables_are_packed_but_for_the_first() -> None:
    for cells, packed in ((MOST_ROWS, 0), (MOST_ROWS + 2, 2)):
        page = rendered(Report([make_row(f"dut{at:02}") for at in range(cells)]))
        assert [one.count("<tr ") for one in Elements(page).data["rows"]] == [packed] * bool(packed)
        assert page.count(' data-rows="0"') == bool(packed)
        (trends,) = re.findall(r'<table class="trends".*?</table>', page, re.DOTALL)
        assert trends.count("<tr ") == MOST_ROWS, "also without scripts"


def test_a_long_list_of_nights_without_a_figure_is_packed_and_says_so() -> None:
    for nights, packed in ((MOST_ROWS, False), (MOST_ROWS + 1, True)):
        lost = [make_row(at=f"2026-10-{day:02}", status="incomplete", total_pps=None) for day in range(1, nights + 1)]
        page = rendered(Report([*lost, make_row()]))
        (rows,) = Elements(page).data["rows"] or [""]
        assert (page.count("<li>2026-10-"), rows.count("<li>2026-10-")) == ((0, nights) if packed else (nights, 0))
        assert (f"{nights}; their list needs scripts" in page) is packed


def test_only_our_scripts_may_run_and_nothing_is_loaded() -> None:
    page = rendered(make_report())
    elements = Elements(page)
    policy = next(a["content"] for t, a in elements.found if a.get("http-equiv") == "Content-Security-Policy")
    assert policy and policy.startswith("default-src 'none'; script-src 'sha256-") and "unsafe-eval" not in policy
    script_rule = next(rule for rule in policy.split("; ") if rule.startswith("script-src"))
    assert "unsafe-inline" not in script_rule and len(script_rule.split()) == 4
    assert gzip.decompress(base64.b85decode(elements.scripts[1].replace(".", "<"))).decode() == LIBRARY
    assert not re.search(r"https?://", page)
    addresses = [a[key] for _, a in elements.found for key in ("src", "href", "action") if key in a]
    assert all(one and one.startswith(("#", "data:", "./")) for one in addresses)


def with_older(name: str) -> Report:
    """A report with two older nights of its first cell, one laid over the latest and one that is not."""
    report = make_report(name, name)
    cell, run = next(iter(report.runs.items()))
    row = replace(report.rows[-1], cell=cell, night=name)
    some = (Older(row, ("night",), curves=find_curves(cell, run)), Older(row, ("year",), f"line rate of {name}"))
    return replace(report, older={cell: some})


def of_tcp(*runs: TcpResult) -> Callable[[str], Report]:
    def make(name: str) -> Report:
        dut = {"name": name, "facts": {name: name}, "facts_sha256": "ab"}
        return report_of(*(replace(run, dut=dut, command={"variant": name}) for run in runs))

    return make


NAMED: dict[str, Callable[[str], Report]] = {
    "packets": lambda name: make_report(name, name),
    "older nights": with_older,
    "WANs and tunnels": of_tcp(swept(), through_a_tunnel()),
    "TCP": of_tcp(make_tcp_result()),
}


@pytest.mark.parametrize("make", by_day(3, NAMED.values()), ids=by_day(3, NAMED))
def test_hostile_names_are_text_and_nothing_else(make: Callable[[str], Report]) -> None:
    hostile, harmless, text = Elements(make(HOSTILE)), Elements(make("a")), to_markdown(make(HOSTILE))
    assert hostile.tags == harmless.tags
    assert [set(a) for _, a in hostile.found] == [set(a) for _, a in harmless.found]
    assert not [key for _, attributes in hostile.found for key in attributes if key.startswith("on")]
    assert "49" not in " ".join(hostile.text[:8]) and "\0" not in "".join(hostile.text)
    assert "{{7*7}}" in " ".join(hostile.text) and any(clean(HOSTILE) in one["name"] for one in hostile.data["cells"])
    assert "<script" not in text and "<img" not in text


@pytest.mark.parametrize("simulated", by_day(1, [True, False]))
def test_simulated_runs_are_marked_in_every_form(simulated: bool) -> None:
    rows = [make_row(simulated=simulated)]
    report = Report(rows, runs={rows[0].cell: make_run(rows[0].cell)})
    text = to_markdown(report)
    assert ("SIMULATED</strong>" in rendered(report)) is ("**SIMULATED**" in text) is simulated
    assert "(simulated)" not in seen(report) + text, "where all are, or none is, no row says so"
    mixed = replace(report, rows=[*rows, make_row("real")])
    assert ("(simulated)" in seen(mixed)) is ("(simulated)" in to_markdown(mixed)) is simulated
    assert Elements(mixed).data["columns"][0]["mark"] == "simulated" * simulated


ROUTER = "lab simulated router"


def test_the_mark_of_simulated_cells_is_left_out_and_no_name_is_cut() -> None:
    cells = [Cell(dut, "64b", False, 1, simulated=True) for dut in (ROUTER, "lab")]
    values = noisy(20)
    rows = [row for cell in cells for row in make_rows([*values, *(0.9 * value for value in values[:3])], cell)]
    last = make_night(make_record(replace(rows[-1], cell=replace(cells[0], simulated=False)), f"no {ROUTER}"))
    last = replace(last, night=rows[-1].night, simulated=True)
    report = judged_report(rows, [last], remarks=(f"{cells[0]}: line rate since 3 January",))
    assert str(report.judged).startswith("lab (simulated) is 10 % slower since 21 January; 1 more")
    text = Elements(report).words
    slower = "lab is 10 % slower since 21 January; 1 more"
    name = f"{ROUTER} 64b uni 1q"
    for words in (slower, f"{name}: no {ROUTER}", f"{name}: line rate since", "No real packet was"):
        assert words in text, words
    left = text.replace(ROUTER, "").replace("trexbench (simulated)", "")
    assert set(re.findall(r"\S+ \S+ \S+ simulated", left)) == {"64b uni 1q simulated"}, "in commands, which need it"
    assert left.count("simulated") == text.count("--acknowledge") == 2 and "lab router" not in text
    run, cost = make_run(cells[1]), Cost(Phase.HOLD, 1, 0.0, 30.0, 1e6, 1e6, 1e6, 30.0, "VPP's show runtime", 584.1)
    vars(run)["costs"] = (cost,)
    older = {cells[1]: (Older(rows[-2], ("night",), costs=(cost,)),)}
    sheets = sheets_of(replace(report, runs={cells[1]: run}, older=older))
    names = [line.items[0] for sheet in sheets if sheet.name == "cycles" for line in sheet.lines]
    assert len(names) == 2 and all("simulated" in name.raw and "simulated" not in name.text for name in names)


def test_a_real_night_that_failed_is_not_called_simulated() -> None:
    page = rendered(judged_report([make_row(simulated=True)], [make_night(make_record(make_row(), "no link"))]))
    assert "Some runs sent no real packet" in page and "No real packet was sent" not in page


def test_a_night_whose_documents_are_gone_makes_a_page_too() -> None:
    table = make_night(make_record(make_row()), make_record(make_row("gone")))
    page = Elements(judged_report([make_row()], [table]))
    assert "gone" in page.text and any("its document" in str(a.get("title")) for _, a in page.found)


def test_a_card_shows_the_latest_level_after_several_losses() -> None:
    rows = make_rows([*noisy(20), *noisy(6, 4.5e6), *noisy(6, 4.05e6)])
    by_hand = replace(rows[0], path="by-hand.json", started=f"{rows[-1].night}T09:00:00Z", night=None, suite=None)
    for card in cards_of(judged_report([*rows, by_hand])):
        assert "by-hand" not in str(card.steps)
        (line,) = re.findall(r'class="line" d="M([^"]+)"', card.trend)
        heights = [float(point.partition(",")[2]) for point in line.split("L")]
        assert 15 < heights[-8] - heights[0] < heights[-1] - heights[0] - 15, card.event.headline


def test_a_failure_is_measured_again_by_its_own_suite() -> None:
    suites = ("first", "second")
    failed = [make_night(make_record(make_row(), suite), suite=suite) for suite in suites]
    cards = cards_of(judged_report([make_row(at="2026-11-19")], failed, results="my results"))
    commands = [command for card in cards for _, command in card.steps if command.startswith("trexbench suite")]
    assert commands == [f"trexbench suite run {one} --only 'vpp 64b uni' --results 'my results'" for one in suites]


def test_a_night_that_was_not_run_heads_the_page() -> None:
    table = make_night(make_record(make_row()))
    broken = make_night(at="2026-11-21", error="suites/a.yaml: broken")
    text = Elements(judged_report([make_row()], [table, broken], table=table)).words
    assert text.count("he night of 21 November was not run: suites/a.yaml: broken") == 1
    assert "run it again: trexbench suite run nightly" in text


def test_nothing_at_all_makes_a_page_too() -> None:
    page, text = rendered(Report([])), to_markdown(Report([]))
    assert "No run is stored yet." in page and text.count("There is no run to report.") == 1
    assert 'id="plot-latency"' not in page and "Latency" not in text


@given(st.text())
def test_clean_text_is_one_printable_line(text: str) -> None:
    cleaned = clean(text)
    cleaned.encode()
    assert len(cleaned.splitlines()) <= 1
    assert not set(cleaned) & set(map(chr, [*range(32), 0x7F, 0x202E, 0x2028]))
    assert clean(cleaned) == cleaned and len(clean("x" * 10**6)) == 2000


@given(st.text(alphabet="ab<>|*_`[]()#!@:/\\\n-&~", max_size=40))
def test_markdown_has_no_meaning_in_names(text: str) -> None:
    escaped = escape(text)
    assert not set(escaped) & set("<>|\n") and "://" not in escaped
    assert not re.search(r"(?<!\\)(?:\\\\)*[`*\[\]~]", escaped)
    assert not re.search(r"@\w", escaped)


def test_markdown_has_changes_beside_the_figures_and_costs_at_given_rates() -> None:
    rows = [make_row(at=f"2026-11-{at:02}", total_pps=5e6 - 5e5 * (at == 9)) for at in range(1, 10)]
    held = make_row(kind=EFFICIENCY, held_pps=1e6, cycles_per_packet=584.1, at="2026-11-09")
    text = to_markdown(Report([*rows, held]))
    for words in ("| 64b | 34 % \u25bc -10.0 % |", "| 64b | 4.500 Mpps |", "| 64b at 1 Mpps | 584 |"):
        assert words in text
    for bound, trend in ((1, "| 3.000 Mpps (\u2265 2.000 Mpps) |"), (3, "| \u2265 3.000 Mpps (2.000 Mpps) |")):
        rows = [make_row(at=f"2026-11-{at:02}", total_pps=at * 1e6, at_least=at == bound) for at in range(1, 4)]
        assert trend in to_markdown(Report(rows)), "a median is a bound if a run at or below it is one"
    usual = [make_row(at=f"2026-11-{at:02}", total_pps=5e6 + 1e4 * (at % 2)) for at in range(1, 10)]
    assert "| 64b | 34 % |" in to_markdown(Report(usual)), "a change within the noise is left out"
    for bounds, median in (((0, 1), ">= 5.000 Mpps"), ((0,), "5.000 Mpps"), ((1, 2, 3), ">= 5.000 Mpps")):
        nights = [make_row(at=f"2026-11-0{at + 1}", total_pps=(6 - at) * 1e6, at_least=at in bounds) for at in range(3)]
        assert f" 4.000 Mpps ({median}) |" in to_markdown(Report(nights)).replace("\u2265", ">="), bounds


def test_a_run_at_a_given_rate_is_told_by_its_costs_and_has_no_curve_to_a_maximum() -> None:
    run = make_run(Cell("vpp", "64b", False, None, "saturate"), command={"mode": "64b", "verb": "efficiency"})
    cost = Cost(Phase.HOLD, 1, 0.0, 30.0, 1e6, 1e6, 1e6, 30.0, "VPP's show runtime", 584.1)
    vars(run)["costs"] = (cost, replace(cost, cycles_per_packet=700.0))  # where the cached property keeps it
    row = row_of(run, "x.json")
    report = Report([row], runs={row.cell: run})
    lines = cost_figure(report, find_looks(report.columns, {})).lines
    assert [line.x for line in lines] == [[row.get(COST.column)]], "of two holds the index has the first"
    text = Elements(report).words
    assert "Cycles per packet at given rates" in text and f"{row.cell}: 584 cycles/packet" in text
    assert "\u2265 " not in text, "no bound of a maximum"
    assert report.curves == ()
