"""``trexbench dut``: the DUT configs, and the DUTs themselves: planned, configured, read back, reverted."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..config.lookup import DUTS, load_dut
from ..config.schema import read_dut
from ..core.errors import ConfigError, DutError
from ..core.units import format_bits
from ..session.request import Target
from .options import CONFIGS, DURATION, JSON, RX_QUEUES, complete_duts, gathered
from .output import print_json

if TYPE_CHECKING:
    from ..dut import Change, Command
    from ..session.dut import ConnectedDut

_EXAMPLES = """\b
Examples:
  trexbench dut list
  trexbench dut show netgate-vpp
  trexbench dut plan netgate-vpp --rx-queues 2
  trexbench dut apply netgate-vpp && trexbench dut verify netgate-vpp
  trexbench dut telemetry netgate-vpp --seconds 10
  trexbench dut revert netgate-vpp
"""


@click.group(epilog=_EXAMPLES)
def dut() -> None:
    """Devices under test, as dut_configs/ describes them.

    `plan` shows what `apply` would run, `verify` reads everything back, `revert` undoes what was applied.
    `ramp` applies and verifies before each run.
    """


@dut.command("list")
@CONFIGS
def list_duts(configs_dir: Path | None) -> None:
    """Every DUT config found, or what is wrong with it."""
    found = DUTS.files(configs_dir)
    if not found:
        raise ConfigError("no dut_configs found", "run in a checkout, or name a directory with --configs-dir")
    for name, path in sorted(found.items()):
        try:
            config = read_dut(path)
            click.echo(f"{name:<18} {config.driver:<8} {config.description}")
        except ConfigError as error:
            click.echo(f"{name:<18} invalid: {error}")


@dut.command("show")
@click.argument("name", shell_complete=complete_duts)
@CONFIGS
def show_dut(name: str, configs_dir: Path | None) -> None:
    """What a config says: driver, transport, ports, routes, line rate."""
    config = load_dut(name, configs_dir)
    way = config.transport
    where = f"namespace {way.namespace}" if way.namespace else f"ssh to {way.host}" if way.host else "this machine"
    click.echo(f"{config.name}: {config.description}")
    click.echo(f"  file        {config.file}")
    click.echo(f"  driver      {config.driver}")
    click.echo(f"  transport   {where}")
    click.echo(f"  line rate   {format_bits(config.speed_bps) if config.speed_bps else 'as the ports say'}")
    click.echo(f"  generator   {config.generator.server}:{config.generator.rpc_port}")
    for port in config.ports:
        mac = port.neighbour.mac or "the tester's port"
        for own, other in port.ends:
            click.echo(f"  port {port.tester}      {port.interface} {own}, neighbour {other}, MAC: {mac}")
    for route in config.routes:
        click.echo(f"  route       {route.to} via {route.via}")
    if config.notes:
        click.echo("  notes       " + config.notes.strip().replace("\n", "\n              "))


_TARGET = gathered(
    "target",
    Target,
    click.argument("name", shell_complete=complete_duts),
    CONFIGS,
    RX_QUEUES,
    click.option("--server", metavar="HOST", help="The TRex server to ask for MACs that the config does not name."),
    click.option("--rpc-port", type=click.IntRange(1, 65535), help="Its RPC port (4501)."),
)


@contextmanager
def _connected(target: Target, verb: str) -> Iterator[ConnectedDut]:
    from ..session.dut import connect_target
    from ..session.process import signals_as_exceptions

    with signals_as_exceptions(), connect_target(target, f"dut {verb}", with_macs=verb != "revert") as found:
        yield found


@dut.command("plan")
@_TARGET
@JSON
def plan_dut(as_json: bool, target: Target) -> None:
    """Print exactly what `apply` would run now, and change nothing."""
    with _connected(target, "plan") as found:
        steps = found.dut.plan()
    if as_json:
        print_json([asdict(step) for step in steps])
        return
    for step in steps:
        _print_step(step, step.do)
    if not steps:
        click.echo("nothing to change")


@dut.command("apply")
@_TARGET
def apply_dut(target: Target) -> None:
    """Configure the DUT as its config says, then read it back. Only what differs is changed."""
    from ..dut.apply import apply, summary

    with _connected(target, "apply") as found:
        changed = apply(found.dut, found.transport, found.journal, lambda step: _print_step(step, step.do))
        click.echo(summary(changed))
        found.dut.verify().require_match()
    click.echo("it is what its config says")


@dut.command("verify")
@_TARGET
@click.option("--json", "as_json", is_flag=True, help="Everything that was read, as JSON on standard output.")
def verify_dut(as_json: bool, target: Target) -> int:
    """Read the DUT back and say what differs from its config; change nothing."""
    with _connected(target, "verify") as found:
        attested = found.dut.verify()
    if as_json:
        print_json(attested.to_document())
    else:
        for mismatch in attested.mismatches:
            click.echo(str(mismatch))
        click.echo(f"{'NOT ' if attested.mismatches else ''}what its config says (facts {attested.digest[:16]})")
    return DutError.exit_code if attested.mismatches else 0


@dut.command("telemetry")
@_TARGET
@click.option("--seconds", type=DURATION, default=5.0, help="Time between the two readings (5).")
@JSON
def telemetry_dut(seconds: float, as_json: bool, target: Target) -> None:
    """Read the DUT's counters twice and show what changed: rates, drops, CPUs, cycles per packet."""
    from ..report.run.counters import format_counters
    from ..session.dut import observe_twice

    if not 1 <= seconds <= 3600:
        raise ConfigError(f"--seconds of {seconds:g}", "take 1 s to an hour")
    with _connected(target, "telemetry") as found:
        before, after, apart_s = observe_twice(found, seconds)
    if as_json:
        print_json({"before": asdict(before), "after": asdict(after), "apart_s": apart_s})
    else:
        click.echo(format_counters(before, after, apart_s), nl=False)


@dut.command("revert")
@_TARGET
def revert_dut(target: Target) -> None:
    """Undo what `apply` and later runs have changed, also after a crash."""
    from ..dut.apply import revert

    with _connected(target, "revert") as found:
        done = revert(found.dut, found.transport, found.journal, lambda step: _print_step(step, step.undo, back=True))
    for step in done.forgotten:
        click.echo(f"# {step.what}: the DUT was restarted since, and has forgotten it")
    click.echo(f"{len(done.reverted)} reverted" if done.reverted or done.forgotten else "nothing to revert")


def _print_step(step: Change, commands: tuple[Command, ...], back: bool = False) -> None:
    """A step as a person could type it."""
    click.echo(f"# {'undo: ' if back else ''}{step}")
    for command in commands:
        fed = "" if command.input is None else f" <<'END'  # {command.why}\n{command.input.rstrip()}\nEND"
        click.echo(f"{shlex.join(command.argv)}{fed or f'  # {command.why}'}")
    sys.stdout.flush()
