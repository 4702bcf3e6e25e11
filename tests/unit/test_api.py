"""trexbench from Python: light to import, usable from any thread and again and again, as docs/python.md shows it."""

from __future__ import annotations

import inspect
import re
import signal
import threading
import warnings
from dataclasses import fields, is_dataclass
from datetime import date
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest
from effort import NIGHTLY
from tools import server_apart
from verbs import ROOT, empty_directory, python  # noqa: F401

import trexbench
from trexbench import api
from trexbench.cli.main import main
from trexbench.cli.run import efficiency, ramp, saturate, search
from trexbench.cli.suite import run as suite_run
from trexbench.cli.tcp import tcp
from trexbench.config.option import declared
from trexbench.core.errors import BenchError
from trexbench.core.history.rows import row_of
from trexbench.core.units import format_pps
from trexbench.report.run.text import format_brief
from trexbench.session import options as packet_options
from trexbench.session.options import PlanWish, RunRequest
from trexbench.session.series import Series
from trexbench.session.tcp import options as tcp_options
from trexbench.signals import Interrupted

pytestmark = [pytest.mark.portable, pytest.mark.usefixtures("empty_directory")]

QUICK = {"sim": True, "speedup": 10000.0, "ramp_duration": 20, "hold": 4, "confirm": 0, "warmup_duration": 2}
HEAVY = "numpy click matplotlib zmq yaml rich scapy msgspec requests jinja2 lbr_trex_client"
SHOWN = "dut results format output json csv brief quiet picture no_picture verbose help sizes"
"""Options that choose what a verb prints, or have another name in Python."""


def python_blocks(kind: str = "") -> list[str]:
    """The fenced examples of docs/python.md below a comment of this kind, or below none, in their order."""
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    mark = f"<!-- {kind} -->\n" if kind else r"(?<!-->\n)"
    return re.findall(rf"^{mark}```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def run_examples(kind: str = "") -> None:
    """Run them one after the other in one process, as in a notebook."""
    for block in python_blocks(kind):
        exec(compile(block, "docs/python.md", "exec"), {"__name__": "notebook"})


@pytest.mark.parametrize(("module", "loaded"), [("trexbench", []), ("trexbench.cli.main", ["click"])])
def test_importing_it_loads_nothing_heavy(module: str, loaded: list[str]) -> None:
    names = f"[name for name in {HEAVY.split()!r} if name in sys.modules], len(dir(trexbench))"
    script = f"import sys, trexbench, {module}; print({names})"
    done = python(script)
    assert done.returncode == 0 and done.stdout.startswith(f"{loaded} "), done.stdout + done.stderr


def test_every_name_is_there_and_no_other() -> None:
    for name in trexbench.__all__:
        assert callable(getattr(trexbench, name)) and name in dir(trexbench)
    with pytest.raises(AttributeError, match="no attribute 'rampp'"):
        trexbench.rampp  # noqa: B018


def test_the_examples_of_the_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The ramps of the suite are shorter outside of nights."""
    suite = (ROOT / "suites" / "lab.yaml").read_text(encoding="utf-8")
    (tmp_path / "lab.yaml").write_text(suite if NIGHTLY else suite.replace("2m", "20s").replace("30s", "10s"))
    monkeypatch.setenv("TREXBENCH_SUITES", str(tmp_path))
    run_examples()
    out, err = capsys.readouterr()
    assert "could be 1 % or 100 %" in out and "netgate-vpp" not in err and err == ""
    assert "('lab-linux', 'var2-64b', 'done')" in out and "'total_pps'" in out


def test_the_examples_of_tcp(capsys: pytest.CaptureFixture[str]) -> None:
    run_examples("tcp")
    out, err = capsys.readouterr()
    assert out.startswith("forward IPv4 ") and "(5000000, " in out and err == ""


def test_it_works_in_another_thread_and_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    found: list[trexbench.RunResult] = []
    phases: list[str] = []

    def measure() -> None:
        found.append(trexbench.saturate("netgate-vpp", "1flow", sim=True, speedup=10000, hold=5))
        found.append(
            trexbench.ramp("netgate-vpp", "64b", bidir=True, progress=lambda now: phases.append(now.phase), **QUICK)
        )

    thread = threading.Thread(target=measure)
    thread.start()
    thread.join(100)
    assert [run.plan.kind for run in found] == ["saturate", "ramp"] and capfd.readouterr() == ("", "")
    assert list(dict.fromkeys(phases)) == ["warmup", "ramp", "hold", "drain"] and not Path("results").exists()
    flat = trexbench.row(found[1])
    assert flat["mode"] == "var2-64b" and all(isinstance(one, (str, int, float, type(None))) for one in flat.values())


def test_progress_that_fails_ends_no_measurement() -> None:
    calls: list[trexbench.Progress] = []

    def fail(now: trexbench.Progress) -> None:
        calls.append(now)
        raise ZeroDivisionError("of nothing")

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        run = trexbench.ramp("netgate-vpp", "64b", progress=fail, **QUICK)
    assert run.status.value == "complete" and len(calls) == 1
    assert [str(one.message).split(":")[0] for one in told] == ["progress failed and is not called again"]


def test_a_run_that_is_interrupted_while_it_begins_is_brought_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its document was there, and said for ever that the run goes on."""
    show = api._ProgressCaller

    def interrupt(*arguments: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return show(*arguments)

    monkeypatch.setattr(api, "_ProgressCaller", interrupt)
    with pytest.raises(KeyboardInterrupt, match="Ctrl-C"):
        trexbench.ramp("netgate-vpp", "64b", results="here", progress=print, **QUICK)
    (kept,) = trexbench.load_results("here")
    assert (kept.status.value, kept.reason, kept.samples) == ("incomplete", "interrupted by Ctrl-C", ())


def test_each_rate_is_measured_though_it_was_named_before() -> None:
    runs = trexbench.efficiency("netgate-vpp", rates=["1%", "1%"], hold=4, sim=True)
    assert len(runs) == 2 and all(run.costs for run in runs)


def test_of_several_runs_an_interruption_is_what_ended_them() -> None:
    failed, interrupted = BenchError("no TRex server answers", "start it"), Interrupted("Ctrl-C", 130)
    assert Series([], [("rate 1%", failed), ("rate 2%", interrupted)]).error is interrupted
    assert Series([], [("rate 1%", failed)]).error is failed
    assert Series([], []).error is None


def test_what_is_kept_can_be_loaded() -> None:
    kept = trexbench.ramp("netgate-vpp", "64b", results="here", tunables={"size": "128"}, label="mine", **QUICK)
    (loaded,) = trexbench.load_results("here", mode="64b,size=128")
    (flat,) = trexbench.load_rows("here")
    assert loaded.id == kept.id and loaded.analysis == kept.analysis
    assert (flat["mode"], flat["label"], flat["total_pps"]) == ("var2-64b,size=128", "mine", kept.analysis.total_pps)
    assert trexbench.load_run(Path("here") / flat["path"]).id == kept.id
    assert trexbench.load_rows("here", mode="64b") == [] == trexbench.load_rows("here", since=date(2100, 1, 1))
    with pytest.raises(trexbench.ConfigError, match="no run in here is of suite lab: it has none"):
        trexbench.judge("here", suite="lab")


TCP_QUICK: Any = {"sim": True, "speedup": 10000.0, "time": "4s", "ping": 0}


def test_tcp_has_the_words_of_the_command_line_and_measures_the_same() -> None:
    words = ("--time", "4s", "--ping", "0", "--repeat", "2", "--cc", "reno", "--buffers", "1mb", "--forward")
    with pytest.raises(SystemExit, match="0"):
        main(("tcp", "--dut", "raspberry-pi", "--sim", "--speedup", "10000", *words, "-q", "--no-picture"))
    (kept,) = Path("results").glob("*/*/*.json")
    theirs = trexbench.load_tcp(kept)
    ours = trexbench.tcp(
        "raspberry-pi", "forward", ip=4, repeat=2, omit=None, cc="reno", buffers=["1mb"], results="here", **TCP_QUICK
    )
    (path,) = Path("here").glob("*/*/*.json")
    loaded = trexbench.load_tcp(path)
    assert (loaded.plan, loaded.setup, loaded.command) == (theirs.plan, theirs.setup, theirs.command)
    assert (loaded.id, loaded.summaries) == (ours.id, theirs.summaries) and ours.status.value == "complete"
    with pytest.raises(trexbench.ConfigError, match="unknown way 'up': name one of both, forward, reverse, bidir"):
        trexbench.tcp("raspberry-pi", "up", **TCP_QUICK)
    with pytest.raises(TypeError, match="streamss"):
        trexbench.tcp("raspberry-pi", streamss=2, **TCP_QUICK)


def test_one_text_of_several_is_not_taken_for_its_letters() -> None:
    found = trexbench.bdp("lab-linux", wan="20ms,1gbit", cc="reno", buffers="1mb", **TCP_QUICK)
    legs = {(one.kind.congestion, one.kind.buffer_bytes) for one in found.summaries}
    assert legs == {("reno", None), ("reno", 1_000_000)} and found.command["verb"] == "bdp"
    with pytest.raises(trexbench.ConfigError, match="no-such-router"):
        trexbench.run_suite("lab", dut="no-such-router", sim=True)
    with pytest.raises(trexbench.ConfigError, match=r"\*no-such-cell\*"):
        trexbench.run_suite("lab", only="*no-such-cell*", sim=True)


VERBS = [(ramp, trexbench.ramp), (search, trexbench.search), (saturate, trexbench.saturate)]
VERBS += [(efficiency, trexbench.efficiency), (suite_run, trexbench.run_suite), (tcp, trexbench.tcp)]


@pytest.mark.parametrize(("verb", "function"), VERBS, ids=lambda one: getattr(one, "name", ""))
def test_no_option_is_missing_from_python(verb: click.Command, function: Any) -> None:
    ways = {"both", "forward", "bidir", "reverse"} if verb is tcp else set()  # of one parameter
    longest = {
        max(one.opts, key=len).lstrip("-").replace("-", "_").removeprefix("no_")
        for one in verb.params
        if one.expose_value  # else it was removed
    }
    assert longest - ways - {*SHOWN.split()} <= {*inspect.signature(function).parameters}


@pytest.mark.parametrize("room", [packet_options, tcp_options], ids=lambda room: room.__name__)
def test_every_option_has_a_text_for_help_and_every_text_an_option(room: ModuleType) -> None:
    tables = [one for one in vars(room).values() if is_dataclass(one) and room.__name__ == one.__module__]
    tables = [one for one in tables if one not in (PlanWish, RunRequest)]  # without fields that a user writes
    for table in tables:
        lines = re.findall(r"^ +(\w+): ", table.__doc__ or "", re.MULTILINE)
        assert {line.removeprefix("no_") for line in lines} <= {one.name for one in fields(table)}, table
        assert all(bool(one.help) != one.form.python_only for one in declared(table).values()), table
    assert len(tables) >= 2


def test_paths_may_be_paths_or_text() -> None:
    duts = ROOT / "dut_configs"
    quick = {"sim": True, "speedup": 1e5, "warmup_duration": 2, "hold": 4, "rate": "1%"}
    by_file = trexbench.saturate(duts / "netgate-vpp.yaml", "64b", **quick)
    by_name = trexbench.saturate("netgate-vpp", "64b", configs_dir=str(duts), **quick)
    assert by_file.dut["name"] == by_name.dut["name"] == "netgate-vpp"


def test_what_is_wrong_is_an_exception_of_its_kind() -> None:
    with pytest.raises(trexbench.ConfigError, match="unknown DUT 'nope'"):
        trexbench.ramp("nope", "64b")
    with pytest.raises(trexbench.StoreError, match="no such directory"):
        trexbench.load_rows("nowhere")
    with pytest.raises(trexbench.ConfigError, match=r"--speedup of -1: name a number above 0"):
        trexbench.ramp("netgate-vpp", "64b", sim=True, speedup=-1.0)
    with pytest.raises(trexbench.ConfigError, match=r"--speedup of -1: name a number above 0"):
        trexbench.tcp("lab-linux", **{**TCP_QUICK, "speedup": -1.0})
    with pytest.raises(trexbench.ConfigError, match="unknown --telemetry 'never': name hold, ramp or off"):
        trexbench.ramp("netgate-vpp", "64b", sim=True, telemetry="never")
    for odd in ("2", 2.5, True):
        with pytest.raises(trexbench.ConfigError, match=rf"--streams of '?{odd}'?: use a whole number"):
            trexbench.tcp("lab-linux", **{**TCP_QUICK, "streams": odd})
    with pytest.raises(trexbench.ConfigError, match="--hold: duration 'True' not understood"):
        trexbench.ramp("netgate-vpp", "64b", sim=True, hold=True)
    with pytest.raises(trexbench.ConfigError, match=r"--ramp-to of \[1\]: use text or a number"):
        trexbench.ramp("netgate-vpp", "64b", sim=True, ramp_to=[1])  # type: ignore[arg-type]
    with pytest.raises(trexbench.ConfigError, match="--dut of 5: use text"):
        trexbench.ramp(5, "64b", sim=True)  # type: ignore[arg-type]
    with pytest.raises(trexbench.ConfigError, match=r"--rates of \[\]: name at least one"):
        trexbench.efficiency("netgate-vpp", rates=(), sim=True)
    with pytest.raises(trexbench.ConfigError, match=r"--loss of \[\]: name at least one"):
        trexbench.search("netgate-vpp", "64b", loss=[], sim=True)
    with pytest.raises(trexbench.ConfigError, match="--speedup means nothing without --sim"):
        trexbench.bdp("lab-linux", wan="20ms,1gbit", speedup=10)
    with pytest.raises(TypeError, match="speedupp"):
        trexbench.ramp("netgate-vpp", "64b", sim=True, speedupp=7)  # type: ignore[call-arg]


def test_an_error_that_ends_a_run_has_what_was_measured() -> None:
    quick: dict[str, Any] = {"warmup_duration": 1, "ramp_duration": 20, "sample": "200ms", "results": "here"}
    with server_apart("die@3s") as (server, _), pytest.raises(trexbench.GeneratorError) as caught:
        where = {"server": "127.0.0.1", "rpc_port": server.rpc_port, "pub_port": server.pub_port}
        trexbench.ramp("netgate-vpp", "64b", **where, apply=False, **quick)
    assert isinstance(caught.value.result, trexbench.RunResult) and caught.value.result.samples
    (flat,) = trexbench.load_rows("here")
    assert flat["status"] == "incomplete"


def test_a_search_counts_what_a_packet_costs_at_the_rate_that_it_confirmed() -> None:
    costs = {}
    for method, options in (("search", {}), ("ramp", {"ramp_duration": 20, "hold": 4, "confirm": 5})):
        result = getattr(trexbench, method)("netgate-vpp", "var2-64b", sim=True, speedup=10000.0, **options)
        (one,) = result.analysis.directions
        costs[method] = {cost.phase.value: cost.cycles_per_packet for cost in result.costs}
        held = result.held_cost
        row = row_of(result, "x.json")
        assert held.phase.value == ("confirm" if method == "search" else "hold")
        assert f" at {format_pps(held.forwarded_pps)}, " in format_brief(result, None, 200)
        assert row.get("cycles_per_packet") == held.cycles_per_packet and row.nodes and row.get("vectors_per_call")
    assert list(costs["search"]) == ["confirm"] and one.confirmed_pps
    assert costs["search"]["confirm"] == pytest.approx(costs["ramp"]["hold"], rel=0.1)
    assert not trexbench.search("netgate-vpp", "var2-64b", confirm=0, sim=True, speedup=10000.0).costs
