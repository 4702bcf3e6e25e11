"""``trexbench lab``: a router in network namespaces, for as long as the user wants it."""

from __future__ import annotations

from pathlib import Path

import click

from .options import CONFIGS, complete_duts, path_option

_dut = click.option(
    "--dut",
    default="lab-linux",
    show_default=True,
    shell_complete=complete_duts,
    help="The DUT config with a lab: section.",
)
_EXAMPLES = """\b
Examples:
  trexbench lab up                      the embedded STL server sends
  trexbench lab up --trex-dir /opt/trex   a real TRex sends, on the same ports
  trexbench lab status
  trexbench lab down
"""


@click.group(epilog=_EXAMPLES)
def lab() -> None:
    """Tester and router in two network namespaces of this machine, without uplink or default route (needs root).

    `ramp --dut lab-linux` uses the lab that is up, or brings one up for itself and takes it away again.
    """


@lab.command("up")
@_dut
@CONFIGS
@path_option(
    "--trex-dir",
    "Start the TRex of this installation instead of the embedded server.",
    envvar="TREXBENCH_TREX_DIR",
)
def up(dut: str, configs_dir: Path | None, trex_dir: Path | None) -> None:
    """Bring the lab up, and leave it up."""
    from ..config.lookup import load_dut
    from ..lab import Lab, LabSpec
    from ..session.process import signals_as_exceptions

    with signals_as_exceptions():
        found = Lab(LabSpec.from_config(load_dut(dut, configs_dir))).up(trex_dir)
    click.echo(found)
    for warning in found.warnings:
        click.echo(f"  note: {warning}")


@lab.command("down")
@_dut
@CONFIGS
@click.option("--force", is_flag=True, help="Even while a run uses it.")
def down(dut: str, configs_dir: Path | None, force: bool) -> None:
    """Take the lab away, with everything in it."""
    from ..config.lookup import load_dut
    from ..lab import LabSpec
    from ..lab import down as take_down

    prefix = LabSpec.from_config(load_dut(dut, configs_dir)).prefix
    click.echo(f"lab {prefix}: {'down' if take_down(prefix, force) else 'was not up'}")


@lab.command("status")
def status() -> None:
    """Every lab of which there is a trace."""
    from ..lab import all_status

    for one in all_status():
        click.echo(one)
        for warning in one.warnings:
            click.echo(f"  note: {warning}")
    if not all_status():
        click.echo("no lab is up")
