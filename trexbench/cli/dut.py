"""``trexbench dut``: DUT configs, and DUTs to plan, configure, read back and revert."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from ..config.catalogue import DUTS
from ..config.draft import UNKNOWN, Draft, find_unknown
from ..config.lookup import load_dut
from ..config.model import DRIVERS, GeneratorConfig
from ..config.readers import as_written
from ..config.schema import read_dut
from ..core.errors import ConfigError, DutError
from ..core.names import REMEDY, is_name, shown
from ..files import replace_file
from ..report.sheet import make_sheet
from ..report.words import NONE
from ..session.options import Target, TesterChoice
from . import options as o
from .output import OutputForm, note
from .verbs import verbs

if TYPE_CHECKING:
    from ..dut import Change, Command
    from ..dut.apply import Reverted
    from ..session.dut import ConnectedDut

_EXAMPLES = """\b
Examples:
  trexbench dut list
  trexbench dut new my-router --driver linux --host router.example.net
  trexbench dut check my-router.yaml
  trexbench dut show netgate-vpp
  trexbench dut plan netgate-vpp --rx-queues 2
  trexbench dut apply netgate-vpp && trexbench dut verify netgate-vpp
  trexbench dut telemetry netgate-vpp --seconds 10
  trexbench dut record netgate-pfsense -o pfsense.json
  trexbench dut revert netgate-vpp
"""
_NAME = click.argument("name", shell_complete=o.complete_duts)


@verbs(epilog=_EXAMPLES)
def dut() -> None:
    """Manage the devices under test described in dut_configs/.

    `plan` shows what `apply` would run, `verify` reads everything back, and `revert` undoes what was applied.
    `ramp` applies and verifies before each run.
    """


@dut.command("list")
@o.CONFIGS
@o.formats("text", "json", "csv", "md")
def list_duts(configs_dir: Path | None, form: OutputForm) -> None:
    """List every DUT config, or the error in it."""
    paths = DUTS.files(configs_dir)
    if not paths:
        raise ConfigError("no dut_configs found", "run in a checkout, or name a directory with --configs-dir")
    values: list[dict[str, Any]] = []
    rows: list[tuple[str, str, str]] = []
    for name, path in sorted(paths.items()):
        try:
            config = read_dut(path)
            driver, description, reason = config.driver, config.description, None
        except ConfigError as error:
            driver, description, reason = None, None, str(error)
        facts = {"driver": driver, "description": description, "error": reason}
        values.append({"name": name, "path": str(path), **facts})
        rows.append((name, driver or NONE, f"invalid: {reason}" if reason else description or ""))
    sheet = make_sheet(":DUT; :driver; ::about", rows, "duts", "DUTs")
    form.write_sheet(sheet, lambda: values)


@dut.command("new")
@click.argument("name")
@click.option("--driver", type=click.Choice(tuple(DRIVERS)), help="System of the DUT; none: it is configured by hand.")
@click.option("--host", metavar="HOST", help="Host of the DUT, as ssh knows it; it is asked for its interfaces.")
@click.option("--user", metavar="USER", help="Login of ssh. Default: your ssh config's.")
@click.option(
    "--interfaces",
    metavar="A,B",
    help="Interfaces of the DUT, in the order of the tester's ports. Default: the first without an address.",
)
@click.option("--ports", type=o.PORTS, default="0,1", help="The tester's ports. Default: 0,1.")
@o.asked("choice", TesterChoice, server="; it is asked for the MACs and speed of its ports")
@click.option("--speed", metavar="SPEED", help="Line rate (L1), as 10gbit. Default: that of the tester's ports.")
@click.option("--ipv6", is_flag=True, help="Also write IPv6 addresses and routes.")
@click.option(
    "-o", "--output", metavar="FILE", help="File to write; - is standard output. Default: dut_configs/NAME.yaml."
)
def new_dut(
    name: str, driver: str | None, host: str | None, user: str | None, interfaces: str | None, ports: tuple[int, ...],
    choice: TesterChoice, speed: str | None, ipv6: bool, output: str | None,
) -> None:  # fmt: skip
    """Write a commented config for a new DUT, filled in with answers of the DUT and the tester.

    Missing values are asked for on a terminal, and otherwise marked in the file, to be changed by hand.
    """
    from ..session.draft import ask_dut, ask_tester, filled
    from ..session.dut import endpoint_of

    if not is_name(name):
        raise ConfigError(f"{shown(name)} cannot be the name of a DUT", REMEDY)
    name = Path(name).stem if name.endswith(DUTS.endings) else name  # as wherever a DUT is named
    asks = sys.stdin is not None and sys.stdin.isatty()  # None: it is closed
    driver = driver or (click.prompt("driver", "linux", type=click.Choice(tuple(DRIVERS))) if asks else "none")
    if asks and DRIVERS[driver].transports and host is None:
        host = click.prompt("the DUT's host, as ssh knows it")
    draft = Draft(driver, host or UNKNOWN, user, tester_ports=ports, speed=speed, server=choice.server, ipv6=ipv6)
    draft = replace(draft, rpc_port=choice.rpc_port, pub_port=choice.pub_port)
    draft = filled(draft, ask_dut, note)
    if choice.server is not None:
        server = endpoint_of(GeneratorConfig(), choice)
        draft = filled(draft, lambda draft: ask_tester(draft, server, ports, choice.trex_dir), note)
    if interfaces is None and asks and DRIVERS[driver].knows_system:
        interfaces = click.prompt("the DUT's interfaces", ",".join(draft.free[: len(ports)]) or None)
    if interfaces:
        draft = replace(draft, interfaces=[*map(str.strip, interfaces.split(","))])
    if len(draft.interfaces) > len(ports):
        raise ConfigError(f"{len(draft.interfaces)} interfaces, {len(ports)} ports of the tester", "correct --ports")
    path = Path(output or f"dut_configs/{name}.yaml")
    config = draft.read(path if output != "-" else Path(f"{name}.yaml"))
    if output == "-":
        click.echo(draft.text(), nl=False)
        return
    _write_new(path, draft.text())
    click.echo(str(path))
    for unknown in find_unknown(config):
        note(str(unknown))
    word = quote(str(path))
    note(f"look through it, then: trexbench dut check {word} && trexbench doctor --dut {word}")


def _write_new(path: Path, text: str) -> None:
    """Write a new file; ConfigError if it exists, or cannot be written."""
    try:
        path.parent.mkdir(exist_ok=True)
        replace_file(path, text.encode(), exclusive=True)
    except FileExistsError:
        raise ConfigError(f"{path} exists already", "choose another name with -o") from None
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}", "name another file with -o") from None


@dut.command("check")
@click.argument("names", nargs=-1, shell_complete=o.complete_duts)
@o.CONFIGS
def check_duts(names: tuple[str, ...], configs_dir: Path | None) -> int:
    """List all errors in these configs, or in all that are found, without contacting a DUT."""
    wrong = 0
    for name in names or sorted(DUTS.files(configs_dir)):
        try:
            config = load_dut(name, configs_dir)
            errors = [*map(str, find_unknown(config)), *(config.plan.ignored or ())]
        except ConfigError as error:
            errors = [*map(str, error.each)]
        wrong += len(errors)
        click.echo("\n".join(errors) or f"{name}: nothing is wrong")
    return ConfigError.exit_code if wrong else 0


@dut.command("show")
@_NAME
@o.CONFIGS
@o.formats("text", "json")
def show_dut(name: str, configs_dir: Path | None, form: OutputForm) -> None:
    """Print a config below the name of its file; as JSON with all defaults, as it is read."""
    config = load_dut(name, configs_dir)
    values = as_written(config)
    del values["text"]
    form.write(lambda out: f"# {config.file}\n{config.text}", lambda: values)


_TARGET = o.asked("target", Target, _NAME, server=" to ask for MACs that the config does not name")


@contextmanager
def _connected(target: Target, verb: str) -> Iterator[ConnectedDut]:
    from ..session.dut import connect_target, macs_or_names
    from ..session.process import signals_as_exceptions

    macs_of = {"plan": macs_or_names(note), "revert": lambda *_: {}}.get(verb)  # these need no TRex server
    with signals_as_exceptions(), connect_target(target, f"dut {verb}", macs_of) as connected:
        yield connected


@dut.command("plan")
@_TARGET
@o.VERBOSE
@o.formats("text", "json")
def plan_dut(form: OutputForm, target: Target) -> None:
    """Print exactly what `apply` would run now, and change nothing.

    In JSON, `back` marks a step of a former variant, whose `undo` would be run; for the others, `do` would be run.
    """
    from ..dut.apply import of_others

    with _connected(target, "plan") as connected:
        former = of_others(connected.journal, connected.variant)
        steps = connected.dut.plan()
    lines = [line for step in former for line in _step_lines(step, step.undo, back=True)]
    lines += [line for step in steps for line in _step_lines(step, step.do)]
    text = "\n".join(lines or ["nothing to change"])  # to be typed: not wrapped
    every = [*((step, True) for step in former), *((step, False) for step in steps)]
    form.write(lambda out: text, lambda: [{**asdict(step), "back": back} for step, back in every])


@dut.command("apply")
@_TARGET
@o.VERBOSE
def apply_dut(target: Target) -> None:
    """Configure the DUT as its config says, changing only what differs, and read it back."""
    from ..dut.apply import apply_and_verify, summary

    with _connected(target, "apply") as connected:
        dut = connected.dut, connected.transport, connected.journal
        options = connected.variant, connected.unsteady
        attested = apply_and_verify(*dut, lambda step: _print_step(step, step.do), *options)
        click.echo(summary(attested.changed))
        attested.require_match()
    for doubt in attested.doubts:
        click.echo(doubt)
    click.echo("it is what its config says" if attested.attested else f"not attested: {attested.reason}")


@dut.command("verify")
@_TARGET
@o.VERBOSE
@o.formats("text", "json")
def verify_dut(form: OutputForm, target: Target) -> int:
    """Read the DUT back, without changes, and show what differs from its config; as JSON, all that was read."""
    with _connected(target, "verify") as connected:
        attested = connected.dut.verify()
    lines = [f"not attested: {attested.reason}"]
    if attested.attested:
        differs = "NOT " if attested.mismatches else ""
        lines = [*map(str, (*attested.mismatches, *attested.doubts))]
        lines.append(f"{differs}what its config says (facts {attested.digest[:16]})")
    form.write_lines(lines, lambda: {**attested.to_document(), "doubts": list(attested.doubts)})
    return DutError.exit_code if attested.mismatches else 0


@dut.command("telemetry")
@_TARGET
@o.VERBOSE
@click.option("--seconds", type=o.DURATION, default=5.0, help="Time between both readings. Default: 5s.")
@o.formats("text", "json")
def telemetry_dut(seconds: float, form: OutputForm, target: Target) -> None:
    """Read the DUT's counters twice and show what changed: rates, drops, CPUs, cycles per packet."""
    from ..report.run.counters import format_counters
    from ..session.dut import observe_twice

    if not 1 <= seconds <= 3600:
        raise ConfigError(f"--seconds of {seconds:g}", "choose 1 s to 1 h")
    with _connected(target, "telemetry") as connected:
        before, after, apart_s = observe_twice(connected, seconds)
    form.write(
        lambda out: format_counters(before, after, apart_s),
        lambda: {"before": asdict(before), "after": asdict(after), "apart_s": apart_s},
    )


@dut.command("record")
@_TARGET
@o.VERBOSE
@click.option("-o", "--output", metavar="FILE", help="File to write. Default: NAME-recording.json.")
def record_answers(output: str | None, target: Target) -> None:
    """Run every command that only reads the DUT, and store all answers in one file, with secrets masked.

    The file can be played back without such a DUT: attach it to a report about a DUT that is read wrongly.
    """
    from ..dut.recording import recording_to_dict
    from ..session.dut import macs_or_names, record_dut
    from ..session.process import signals_as_exceptions

    if output == "-":
        raise ConfigError("a recording is written to a file only", "name one with -o, or leave -o out")
    path = Path(output or f"{Path(target.name).stem}-recording.json")
    with signals_as_exceptions():
        recording = record_dut(target, macs_or_names(note))
    _write_new(path, json.dumps(recording_to_dict(recording), indent=1))
    click.echo(f"{path}: {len(recording.answers)} answers")
    for name, why in recording.failures.items():
        note(f"{name}: {why}")
    note("possible secrets and serial numbers are masked; look through the file before you send it")


@dut.command("revert")
@o.gathered("target", lambda **values: o.given(Target, values), _NAME, o.CONFIGS, o.PREFIX)
@o.results_option("Results of a fleet, whose testers may also have left changes.")
@o.VERBOSE
def revert_dut(target: Target, results: Path) -> None:
    """Undo the changes of `apply` and later runs, even after a crash, on the DUT, its endpoints and its WAN host."""
    from ..results.nights import TESTERS
    from ..results.remote import address_of
    from ..results.shared import shared_files

    if not (below := results / TESTERS).is_dir() and address_of(results) is None:
        done = _revert(target)
    else:
        from ..fleet.reverting import changes_of_fleet, lease_to_revert

        with lease_to_revert(below, load_dut(target.name, target.configs_dir, target.prefix).name, note):
            done = _revert(target)
            if shared_files(below / "changes").names():
                with changes_of_fleet(below):
                    done += _revert(target)
    for name, outcome in done:
        for step in outcome.forgotten:
            click.echo(f"# {step.what}: {name} was restarted since, and has forgotten it")
    reverted = sum(len(outcome.reverted) for _, outcome in done)
    changed = any(outcome.reverted or outcome.forgotten for _, outcome in done)
    click.echo(f"{reverted} reverted" if changed else "nothing to revert")


def _revert(target: Target) -> list[tuple[str, Reverted]]:
    """Undo all changes in the journals of the DUT and its other hosts; return the outcome of each by its name."""
    from ..dut.apply import revert
    from ..session.tcp.hosts import revert_endpoints

    def show(step: Change) -> None:
        _print_step(step, step.undo, back=True)

    with _connected(target, "revert") as connected:
        done = [("the DUT", revert(connected.dut, connected.transport, connected.journal, show))]
    return [*done, *revert_endpoints(load_dut(target.name, target.configs_dir, target.prefix), show)]


def _print_step(step: Change, commands: tuple[Command, ...], back: bool = False) -> None:
    click.echo("\n".join(_step_lines(step, commands, back)))
    sys.stdout.flush()


def _step_lines(step: Change, commands: tuple[Command, ...], back: bool = False) -> Iterator[str]:
    """Yield a step as a person could type it."""
    yield f"# {'undo: ' if back else ''}{step}"
    for command in commands:
        fed = "" if command.input is None else f" <<'END'  # {command.why}\n{command.input.rstrip()}\nEND"
        yield f"{command}{fed or f'  # {command.why}'}"
