"""``trexbench dut``: the configs there are, and what one says."""

from __future__ import annotations

from pathlib import Path

import click

from ..core.errors import ConfigError
from ..core.units import format_bits
from .params import complete_duts

_configs = click.option("--configs-dir", type=click.Path(path_type=Path), help="Where DUT configs are.")


@click.group(epilog="\b\nExamples:\n  trexbench dut list\n  trexbench dut show netgate-vpp\n")
def dut() -> None:
    """Devices under test, as dut_configs/ describes them."""


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
    from ..dut import DRIVERS

    config = load_dut(name, configs_dir)
    built = "" if config.driver in DRIVERS else " (not in this version: measure with --no-apply)"
    where = config.transport.namespace or config.transport.host or "this machine"
    click.echo(f"{config.name}: {config.description}")
    click.echo(f"  file        {config.file}")
    click.echo(f"  driver      {config.driver}{built}")
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
