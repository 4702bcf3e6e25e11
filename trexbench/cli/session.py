"""From options to a request, and from a request to what the user sees and keeps."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from ..config import PlanDefaults, find_profile, load_dut
from ..core.errors import BenchError, ConfigError
from ..core.names import REMEDY, is_name, shown
from ..core.ports import Sink
from ..core.profile import MODES, resolve_mode
from ..core.result import RunResult
from ..report.curve import draw_curve
from ..report.live import open_live
from ..report.machine import to_json
from ..report.text import print_summary
from ..runner import Interrupted, Outcome
from ..store import RunWriter
from .measure import Fan, measure
from .request import Request
from .run import SPEEDUP


def make_request(verb: str, options: dict[str, Any], wished: PlanDefaults) -> Request:
    """The request behind these options; ConfigError names what is wrong with them."""
    _check_sim(options)
    dut = load_dut(options["dut"], options["configs_dir"])
    if not options["mode"] and not options["profile"]:
        known = ", ".join(mode.name for mode in MODES)
        raise ConfigError("nothing to send is named", f"--mode with one of {known}; or --profile FILE")
    if options["mode"] and options["profile"]:
        raise ConfigError("--mode and --profile exclude each other", "name one of them")
    if options["profile"]:
        file = find_profile(options["profile"])
        name, tunables = file.stem, {}
    else:
        mode = resolve_mode(options["mode"])
        name, file, tunables = mode.name, find_profile(mode.profile), dict(mode.tunables)
    for what, called, where in (("DUT", dut.name, dut.file), ("profile", name, file)):
        if not is_name(called):
            raise ConfigError(f"{shown(str(where))}: {shown(called)} is no name for a {what}", f"rename it: {REMEDY}")
    return Request(
        verb=verb,
        dut=dut,
        mode=name,
        profile_file=file,
        tunables={**tunables, **(options["tunables"] or {})},
        bidir=options["bidir"],
        wished=wished,
        ports=options["ports"] or dut.tester_ports,
        server=options["server"],
        rpc_port=options["rpc_port"],
        pub_port=options["pub_port"],
        trex_dir=options["trex_dir"],
        apply=not options["no_apply"],
        force=options["force"],
        rx_queues=options["rx_queues"],
        sim=options["sim"],
        speedup=options["speedup"] or (SPEEDUP if options["sim"] else 1.0),
        seed=options["seed"],
        telemetry=options["telemetry"],
        labels={"label": options["label"]} if options.get("label") else {},
    )


def _check_sim(options: dict[str, Any]) -> None:
    """ConfigError for options that contradict --sim, or mean nothing without it."""
    if options["sim"]:
        for name in ("server", "rpc_port", "pub_port", "force", "no_apply"):
            if options[name]:
                raise ConfigError(f"--sim and --{name.replace('_', '-')} exclude each other", "leave one of them out")
    else:
        for name in ("speedup", "seed"):
            if options[name] is not None:
                raise ConfigError(f"--{name} means nothing without --sim", "add --sim, or leave it out")


def carry_out(request: Request, options: dict[str, Any]) -> int:
    """Measure, keep and show; the exit code."""
    with Desk(options, request.speedup) as desk:
        result, outcome = measure(request, desk, desk.say)
    print_result(result, options["as_json"])
    if desk.kept is not None:
        note(f"result   {desk.kept}")
        if options["picture"] and result.samples:
            save_picture(result, desk.kept.with_suffix(".png"))
    return exit_code(outcome)


class Desk:
    """Keeps the run's file and shows its progress while it is going on (a measure.Recorder)."""

    def __init__(self, options: dict[str, Any], speedup: float) -> None:
        self._speedup = speedup
        self._quiet = options["quiet"]
        self._stack = ExitStack()
        self._writer = RunWriter(options["results"], note)
        self.kept: Path | None = None

    def __enter__(self) -> Desk:
        self._writer.check()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stack.close()

    def say(self, text: str) -> None:
        if not self._quiet:
            note(text)

    def begin(self, result: RunResult) -> Sink:
        sinks: list[Sink] = [self._writer.begin(result)]
        self.kept = self._writer.path
        if not self._quiet:
            sinks.append(self._stack.enter_context(open_live(result, sys.stderr, self._speedup)))
        return Fan(sinks)

    def end(self, result: RunResult) -> None:
        self._stack.close()
        self.kept = self._writer.end(result)


def save_picture(result: RunResult, path: Path) -> None:
    """Draw it to this file; a picture that fails is a warning, for the run is safe in its document."""
    from ..report.picture import draw  # matplotlib is slow to load, and not needed before the run is over

    try:
        path.write_bytes(draw(result))
        note(f"picture  {path}")
    except OSError as error:
        note(f"no picture: {path}: {error.strerror}")


def print_result(result: RunResult, as_json: bool) -> None:
    if as_json:
        click.echo(to_json(result))
    else:
        print_summary(result, sys.stdout)
        click.echo(f"\n{draw_curve(result)}", nl=False)


def note(text: str) -> None:
    click.echo(text, err=True)


def exit_code(outcome: Outcome) -> int:
    """Of what ended the run, which is said on the way."""
    error = outcome.error
    if error is None:
        return 0
    note(f"trexbench: {' '.join(str(error).split())}")
    return error.exit_code if isinstance(error, (BenchError, Interrupted)) else 1
