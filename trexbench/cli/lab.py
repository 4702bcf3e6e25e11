"""``trexbench lab``: this tester's bench: labs that stay up, the embedded server, and calibration."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..config.lookup import load_dut
from ..config.model import PlanDefaults
from ..core.errors import ConfigError
from ..core.load.profile import resolve_mode
from ..core.units import format_share
from ..report.room import room_of
from ..report.sheet import Item, figure, format_sheet, make_sheet, of_pps, of_time, with_columns
from ..report.words import SIMULATED, starred
from ..session.options import Setup
from ..stlserver import __main__ as server
from . import options as o
from .output import OutputForm, exit_code
from .profile import profile
from .verbs import verb, verbs

if TYPE_CHECKING:
    from ..core.calibration import TesterLimit

_dut = click.option(
    "--dut",
    metavar="NAME",
    default="lab-linux",
    show_default=True,
    shell_complete=o.complete_duts,
    help="DUT whose config has a lab: section.",
)
_EXAMPLES = """\b
Examples:
  trexbench lab up                      the embedded STL server sends
  trexbench lab up --trex-dir /opt/trex   a real TRex sends, on the same ports
  trexbench lab status --format json
  trexbench lab down
"""
MODES = "var2-64b,var2-imix,var2-1514b"
"""Default modes of a calibration."""
_CALIBRATE_EXAMPLES = """\b
Examples:
  trexbench lab calibrate --server trex1.lab --ports 0,1
  trexbench lab calibrate --server trex1.lab --modes 64b,imix
  trexbench lab calibrate --dut lab-linux
  trexbench lab calibrate --sim
"""


@verbs(epilog=_EXAMPLES)
def lab() -> None:
    """Manage labs, the traffic of the modes, the embedded server, and calibration of the tester.

    A lab is a tester and a router in two network namespaces of this machine, without uplink or default route; it needs
    root. `ramp --dut lab-linux` uses the lab that is up, or brings one up and takes it down afterwards.
    """


@verb(
    epilog="\b\nExamples:\n  trexbench lab serve --interfaces p0,p1\n"
    "  trexbench lab serve --sim netgate-vpp --rx-queues 2\n"
)
@click.option(
    "--sim",
    "twin",
    metavar="DUT",
    shell_complete=o.complete_duts,
    help="Instead of interfaces: simulate ports and this DUT, by its twin (a name in dut_configs/, or a file).",
)
@o.RX_QUEUES
@click.option("--seed", metavar="N", type=click.IntRange(0), help="With --sim: seed of the noise. Default: the twin's.")
@o.CONFIGS
def serve(twin: str | None, rx_queues: int | None, seed: int | None, configs_dir: Path | None, **options: Any) -> int:
    """Run the embedded STL server, which speaks TRex's protocol, on Linux interfaces (as root) or simulated ports."""
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


def _modes(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(resolve_mode(name.strip()).name for name in text.split(",")))


@verb(epilog=_CALIBRATE_EXAMPLES)
@click.option(
    "--dut",
    "name",
    metavar="NAME",
    shell_complete=o.complete_duts,
    help="Take tester, ports and speed from this DUT's config; its lab's router is replaced by a direct cable.",
)
@click.option("--ports", type=o.PORTS, default=None, help="The tester's ports, in pairs. Default: 0,1.")
@click.option("--speed", type=o.SPEED, help="Line rate (L1), as 10gbit. Default: that which the ports report.")
@click.option(
    "--modes",
    type=o.Parsed("MODE,...", _modes),
    default=MODES,
    show_default=True,
    shell_complete=o.complete_modes,
    help="Modes to send, one after the other, each unidirectional and bidirectional.",
)
@click.option("--ramp-duration", type=o.DURATION, default=20.0, help="Duration of each ramp. Default: 20s.")
@click.option(
    "--latency", type=o.DURATION, default=5.0, help="Time at each of three loads for latency. Default: 5s; 0: none."
)
@o.SETUP
@o.SHOWN
def calibrate(
    name: str | None, ports: tuple[int, ...] | None, speed: float | None, modes: tuple[str, ...], ramp_duration: float,
    latency: float, setup: Setup, shown: o.Shown,
) -> int:  # fmt: skip
    """Measure what the tester itself carries, with its ports cabled back to back and no DUT.

    Results per mode and direction: the highest rate that comes back, what limits it, the accuracy of sent rates, and
    the latency of tester and cable alone (the floor). They are stored per tester. Later runs whose DUT carries more
    than 90 % of that rate get a warning, and latencies are shown beside the floor; `trexbench doctor` shows how
    old the calibration is.
    """
    from ..session.calibrate import calibrate_tester, without_dut
    from .loads import output_of

    if setup.prefix is not None and not name:
        raise ConfigError("--prefix means nothing without --dut", "name the DUT whose lab it is")
    base = load_dut(name, setup.configs_dir, setup.prefix) if name else None
    config = without_dut(base, ports or ())
    config = replace(config, speed_bps=speed or config.speed_bps)
    wished = PlanDefaults(ramp_s=ramp_duration, hold_s=2.0, confirm_s=0.0, latency_s=latency)
    output = output_of(shown.results, shown.quiet, setup.pace)
    done, made = calibrate_tester(config, modes, wished, setup, output)
    if made is not None:
        heads = ":mode; ::direction; carried [pps]; :limit; sent [pps]^1; rate error [%]^2; latency floor [\u00b5s]"
        sheet = make_sheet(heads, map(_limit_row, made.limits), "calibration", "What the tester carries without a DUT")
        banner = [SIMULATED] if made.simulated else []
        headline = f"{made.tester} ({made.server}), without a DUT"
        above = [*starred(banner), *([""] if banner else []), headline, ""]
        state = made.tester, "simulated" if made.simulated else "measured"
        shown.form.write(
            lambda out: "\n".join([*above, *format_sheet(sheet, room_of(out))]),
            lambda: asdict(made),
            lambda: [sheet],
            head=lambda: [headline, *banner],
            table=lambda: with_columns(sheet, ":tester; :status", repeat(state)),
        )
    failures = {str(error): error for _, error in done.failures}  # an error that every run has is reported once
    return max(map(exit_code, failures.values()), default=0)


def _limit_row(limit: TesterLimit) -> Iterator[Item | str]:
    yield limit.mode
    yield f"{limit.direction} of both" if limit.bidir else limit.direction
    yield of_pps(limit.carried_pps)
    yield {"none": "line rate asked"}.get(limit.limit, limit.limit)
    yield of_pps(limit.sent_pps)
    yield figure(limit.error, format_share, 100)
    yield of_time(limit.floor_s)


serve.params += server.serve.params
for command in (profile, calibrate, serve):
    lab.add_command(command)


@lab.command("up")
@_dut
@o.CONFIGS
@o.PREFIX
@o.path_option(
    "--trex-dir", "Start TRex from this installation instead of the embedded server.", envvar="TREXBENCH_TREX_DIR"
)
def up(dut: str, configs_dir: Path | None, prefix: str | None, trex_dir: Path | None) -> None:
    """Bring the lab up and leave it up."""
    from ..lab import Lab, LabSpec
    from ..session.process import signals_as_exceptions

    with signals_as_exceptions():
        config = load_dut(dut, configs_dir, prefix)
        state = Lab(LabSpec.from_config(config)).up(trex_dir)
    click.echo(state)
    for warning in state.warnings:
        click.echo(f"  note: {warning}")


@lab.command("down")
@_dut
@o.CONFIGS
@o.PREFIX
@click.option("--force", is_flag=True, help="Take it down even if a run is using it; that run is aborted.")
def down(dut: str, configs_dir: Path | None, prefix: str | None, force: bool) -> None:
    """Take the lab down, with everything in it."""
    from ..lab import LabSpec, all_status
    from ..lab import down as take_down

    name = LabSpec.from_config(load_dut(dut, configs_dir, prefix)).prefix
    if take_down(name, force):
        click.echo(f"lab {name}: down")
        return
    others = ", ".join(other.prefix for other in all_status())
    click.echo(f"lab {name}: was not up{others and f'; there is {others}: name it with --prefix'}")


@lab.command("image")
@o.path_option("--vpp", "Also make the image of lab-vm-vpp, from the VPP in this folder: / where it is installed.")
def make_image(vpp: Path | None) -> None:
    """Make the image that lab-vm-linux boots: Debian's cloud kernel, and an initramfs.

    It is made from packages of this machine, which must be a Debian amd64; the kernel's package is downloaded. The
    image is kept in the user's cache directory.
    """
    from ..lab import image

    click.echo(image.make(vpp))


@lab.command("status")
@o.formats("text", "json")
def status(form: OutputForm) -> None:
    """List every lab that is up, partly up, or left over."""
    from ..lab import all_status

    labs = all_status()
    lines = [line for each in labs for line in (str(each), *(f"  note: {warning}" for warning in each.warnings))]
    form.write_lines(lines or ["no lab is up"], lambda: [asdict(each) for each in labs])
