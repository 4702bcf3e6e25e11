"""``trexbench dut``: the configs there are, what one says, and the DUT itself: planned, changed, read, taken back."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..core.errors import ConfigError, DutError
from ..core.units import format_bits
from .params import DURATION, complete_duts

if TYPE_CHECKING:
    from ..dut import Command, Step
    from .box import Opened

F = TypeVar("F", bound=Callable[..., Any])
_configs = click.option("--configs-dir", type=click.Path(path_type=Path), help="Where DUT configs are.")
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

    `plan` shows what `apply` would run, `revert` takes it back, `verify` reads everything back: `ramp` does the first
    and the last of these before each run.
    """


@dut.command("list")
@_configs
def list_duts(configs_dir: Path | None) -> None:
    """Every DUT config found, with what is wrong with it if anything is."""
    from ..config import find_configs, read_dut

    found = find_configs(configs_dir)
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
@_configs
def show_dut(name: str, configs_dir: Path | None) -> None:
    """What a config says: driver, transport, ports, routes, line rate."""
    from ..config import load_dut

    config = load_dut(name, configs_dir)
    where = config.transport.namespace or config.transport.host or "this machine"
    click.echo(f"{config.name}: {config.description}")
    click.echo(f"  file        {config.file}")
    click.echo(f"  driver      {config.driver}")
    click.echo(f"  transport   {config.transport.type} to {where}")
    click.echo(f"  line rate   {format_bits(config.speed_bps) if config.speed_bps else 'as the ports say'}")
    click.echo(f"  generator   {config.generator.server}:{config.generator.rpc_port}")
    for port in config.ports:
        mac = port.neighbour.mac or "the tester's"
        there = f"{port.interface} {port.address}"
        click.echo(f"  port {port.tester}      {there}, neighbour {port.neighbour.address} at {mac}")
    for route in config.routes:
        click.echo(f"  route       {route.to} via {route.via}")
    if config.notes:
        click.echo("  notes       " + config.notes.strip().replace("\n", "\n              "))


def _box(function: F) -> F:
    """What the verbs that go to the DUT take."""
    options = (
        click.argument("name", shell_complete=complete_duts),
        _configs,
        click.option("--rx-queues", type=click.IntRange(1, 64), help="Receive queues per port, one of its config's."),
        click.option("--server", metavar="HOST", help="The TRex server that knows the MACs that the config does not."),
        click.option("--rpc-port", type=click.IntRange(1, 65535), help="Its RPC port (4501)."),
    )
    for option in reversed(options):
        function = option(function)
    return function


@contextmanager
def _opened(options: dict[str, Any], verb: str) -> Iterator[Opened]:
    from ..config import load_dut
    from ..dut import Wanted
    from ..generator.connect import Endpoint
    from .box import known_macs, lab_facts, opened
    from .process import signals_as_exceptions
    from .request import choose_queues

    config = load_dut(options["name"], options["configs_dir"])
    queues = choose_queues(config, options["rx_queues"])
    there = config.generator
    endpoint = Endpoint(options["server"] or there.server, options["rpc_port"] or there.rpc_port, there.pub_port)
    macs = known_macs(config, endpoint) if verb != "revert" else {}
    with signals_as_exceptions(), opened(Wanted(config, macs, queues, lab_facts(config)), f"dut {verb}") as found:
        yield found


@dut.command("plan")
@_box
@click.option("--json", "as_json", is_flag=True, help="JSON on standard output.")
def plan_dut(as_json: bool, **options: Any) -> None:
    """Print exactly what `apply` would run now, and change nothing."""
    with _opened(options, "plan") as found:
        steps = found.dut.plan()
    if as_json:
        click.echo(json.dumps([asdict(step) for step in steps], indent=1))
        return
    for step in steps:
        _tell(step, step.do)
    if not steps:
        click.echo("nothing to change")


@dut.command("apply")
@_box
def apply_dut(**options: Any) -> None:
    """Make the DUT what its config says, then read it back. What was so already is left alone."""
    from ..dut.apply import apply, changes

    with _opened(options, "apply") as found:
        changed = apply(found.dut, found.transport, found.journal, lambda step: _tell(step, step.do))
        click.echo(changes(changed))
        found.dut.verify().require_match()
    click.echo("it is what its config says")


@dut.command("verify")
@_box
@click.option("--json", "as_json", is_flag=True, help="Everything that was read, as JSON on standard output.")
def verify_dut(as_json: bool, **options: Any) -> int:
    """Read the DUT back and say what is not as its config says; changes nothing."""
    with _opened(options, "verify") as found:
        attested = found.dut.verify()
    if as_json:
        click.echo(json.dumps(attested.to_document(), indent=1))
    else:
        for mismatch in attested.mismatches:
            click.echo(str(mismatch))
        click.echo(f"{'NOT ' if attested.mismatches else ''}what its config says (facts {attested.digest[:16]})")
    return DutError.exit_code if attested.mismatches else 0


@dut.command("telemetry")
@_box
@click.option("--seconds", type=DURATION, default=5.0, help="Between the two looks (5).")
@click.option("--json", "as_json", is_flag=True, help="JSON on standard output.")
def telemetry_dut(seconds: float, as_json: bool, **options: Any) -> None:
    """Read the DUT's counters twice and show what moved: rates, drops, CPUs, cycles per packet."""
    from ..report.counters import format_counters

    if not 1 <= seconds <= 3600:
        raise ConfigError(f"--seconds of {seconds:g}", "two looks are 1 s to an hour apart")
    with _opened(options, "telemetry") as found:
        begun = time.monotonic()
        before = found.observed.observe(clear=True)
        time.sleep(seconds)
        middle = time.monotonic()
        after = found.observed.observe()
    if as_json:
        document = {"before": asdict(before), "after": asdict(after), "apart_s": middle - begun}
        click.echo(json.dumps(document, indent=1))
    else:
        click.echo(format_counters(before, after, middle - begun), nl=False)


@dut.command("revert")
@_box
def revert_dut(**options: Any) -> None:
    """Take back what `apply` and the runs since have changed, also after a crash."""
    from ..dut.apply import revert

    with _opened(options, "revert") as found:
        done = revert(found.dut, found.transport, found.journal, lambda step: _tell(step, step.undo, back=True))
    for step in done.gone:
        click.echo(f"# {step.what}: the DUT has been started anew since, and has forgotten it")
    click.echo(f"{len(done.taken_back)} taken back" if done.taken_back or done.gone else "nothing to take back")


def _tell(step: Step, commands: tuple[Command, ...], back: bool = False) -> None:
    """A step as a person could type it."""
    click.echo(f"# {'back: ' if back else ''}{step}")
    for command in commands:
        fed = "" if command.input is None else f" <<'END'  # {command.why}\n{command.input.rstrip()}\nEND"
        click.echo(f"{shlex.join(command.argv)}{fed or f'  # {command.why}'}")
    sys.stdout.flush()
