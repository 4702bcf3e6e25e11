"""``trexbench lab``: this tester's bench, such as a router in network namespaces that stays until it is taken down."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ..config.lookup import load_dut
from ..core.errors import ConfigError
from ..stlserver import __main__ as server
from .calibrate import calibrate
from .options import CONFIGS, PREFIX, RX_QUEUES, complete_duts, formats, path_option
from .output import OutputForm
from .profile import profile
from .verbs import verb, verbs

_dut = click.option(
    "--dut",
    default="lab-linux",
    show_default=True,
    shell_complete=complete_duts,
    help="A DUT whose config has a lab: section.",
)
_EXAMPLES = """\b
Examples:
  trexbench lab up                      the embedded STL server sends
  trexbench lab up --trex-dir /opt/trex   a real TRex sends, on the same ports
  trexbench lab status --json
  trexbench lab down
"""


@verbs(epilog=_EXAMPLES)
def lab() -> None:
    """This tester's bench: what a mode sends, what the tester carries, the embedded server, and labs.

    A lab is tester and router in two network namespaces of this machine, without uplink or default route (needs root).
    `ramp --dut lab-linux` uses the lab that is up, or brings one up and takes it down afterwards.
    """


@verb(
    epilog="\b\nExamples:\n  trexbench lab serve --interfaces p0,p1\n"
    "  trexbench lab serve --sim netgate-vpp --rx-queues 2\n"
)
@click.option(
    "--sim",
    "twin",
    metavar="DUT",
    shell_complete=complete_duts,
    help="Instead of interfaces: simulated ports and the twin of this DUT (a name in dut_configs/, or a file).",
)
@RX_QUEUES
@click.option("--seed", type=click.IntRange(0), help="With --sim: seed of the twin's noise.")
@CONFIGS
def serve(twin: str | None, rx_queues: int | None, seed: int | None, configs_dir: Path | None, **options: Any) -> int:
    """Run the embedded STL server: TRex's protocol, on Linux interfaces (root) or simulated ports."""
    engine = None
    if twin is None:
        for option, value in (("--seed", seed), ("--rx-queues", rx_queues)):
            if value is not None:
                raise ConfigError(f"{option} means nothing without --sim", "add --sim DUT, or leave it out")
    else:
        from ..session.request import choose_queues
        from ..session.simulate import twin_engine

        dut = load_dut(twin, configs_dir)
        engine, _ = twin_engine(dut, choose_queues(dut, rx_queues), seed, time.monotonic)
    return server.run(engine, **options)


serve.params += server.serve.params
for one in (profile, calibrate, serve):
    lab.add_command(one)


@lab.command("up")
@_dut
@CONFIGS
@PREFIX
@path_option(
    "--trex-dir",
    "Start the TRex of this installation instead of the embedded server.",
    envvar="TREXBENCH_TREX_DIR",
)
def up(dut: str, configs_dir: Path | None, prefix: str | None, trex_dir: Path | None) -> None:
    """Bring the lab up and leave it up."""
    from ..lab import Lab, LabSpec
    from ..session.process import signals_as_exceptions

    with signals_as_exceptions():
        config = load_dut(dut, configs_dir, prefix)
        found = Lab(LabSpec.from_config(config), config.command_name).up(trex_dir)
    click.echo(found)
    for warning in found.warnings:
        click.echo(f"  note: {warning}")


@lab.command("down")
@_dut
@CONFIGS
@PREFIX
@click.option("--force", is_flag=True, help="Even while a run uses it, or has it for itself; that run ends.")
def down(dut: str, configs_dir: Path | None, prefix: str | None, force: bool) -> None:
    """Take the lab down, with everything in it."""
    from ..lab import LabSpec, all_status
    from ..lab import down as take_down

    name = LabSpec.from_config(load_dut(dut, configs_dir, prefix)).prefix
    if take_down(name, force):
        click.echo(f"lab {name}: down")
        return
    others = ", ".join(one.prefix for one in all_status())
    click.echo(f"lab {name}: was not up{others and f'; there is {others}: name it with --prefix'}")


@lab.command("image")
@path_option("--vpp", "Make what lab-vm-vpp starts as well, of the VPP in this folder: / where it is installed.")
def make_image(vpp: Path | None) -> None:
    """Make what lab-vm-linux starts: Debian's kernel for clouds, and an initramfs.

    It is made of packages of this machine, which is a Debian amd64; the kernel's is downloaded. It is kept in the
    user's cache directory.
    """
    from ..lab import image

    click.echo(image.make(vpp))


@lab.command("status")
@formats("text", "json")
def status(form: OutputForm) -> None:
    """Every lab that is up, in part, or left over."""
    from ..lab import all_status

    found = all_status()
    warned = [(str(one), *(f"  note: {warning}" for warning in one.warnings)) for one in found]
    lines = [line for some in warned for line in some] or ["no lab is up"]
    form.write_lines(lines, lambda: [asdict(one) for one in found])
