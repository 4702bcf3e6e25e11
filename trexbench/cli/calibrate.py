"""``trexbench lab calibrate``: what a tester carries without a DUT."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import repeat
from typing import TYPE_CHECKING

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
from .options import DURATION, PORTS, SETUP, SHOWN, SPEED, Parsed, Shown, complete_duts, complete_modes
from .output import OutputForm, exit_code
from .verbs import verb

if TYPE_CHECKING:
    from ..core.calibration import Calibration, TesterLimit

MODES = "var2-64b,var2-imix,var2-1514b"
_EXAMPLES = """\b
Examples:
  trexbench lab calibrate --server trex1.lab --ports 0,1
  trexbench lab calibrate --server trex1.lab --modes 64b,imix
  trexbench lab calibrate --dut lab-linux
  trexbench lab calibrate --sim
"""


def _modes(text: str) -> tuple[str, ...]:
    return tuple(resolve_mode(name.strip()).name for name in text.split(","))


@verb(epilog=_EXAMPLES)
@click.option(
    "--dut",
    "name",
    metavar="NAME",
    shell_complete=complete_duts,
    help="Take tester, ports and speed from this DUT's config; in the place of its lab's router there is a bypass.",
)
@click.option("--ports", type=PORTS, default=None, help="The tester's ports, in pairs (0,1).")
@click.option("--speed", type=SPEED, help="Line rate (L1), where the ports do not know their own: 10gbps.")
@click.option(
    "--modes",
    type=Parsed("MODE,...", _modes),
    default=MODES,
    show_default=True,
    shell_complete=complete_modes,
    help="What to send, one after the other, each unidirectional and bidirectional.",
)
@click.option("--ramp-duration", type=DURATION, default=20.0, help="Of each ramp (20s).")
@click.option("--latency", type=DURATION, default=5.0, help="At each load, for the latency floor (5s; 0: not at all).")
@SETUP
@SHOWN
def calibrate(
    name: str | None,
    ports: tuple[int, ...] | None,
    speed: float | None,
    modes: tuple[str, ...],
    ramp_duration: float,
    latency: float,
    setup: Setup,
    shown: Shown,
) -> int:
    """Measure what the tester itself carries, with its ports cabled back to back and no DUT.

    Per mode and direction: the most that comes back, why no more, how exactly rates are sent, and the latency of
    tester and cable alone. It is kept per tester. From then on a DUT that carries more than 90 % of that is doubted,
    and latencies are shown beside the floor; `trexbench doctor` says how old it is.
    """
    from ..session.calibrate import calibrate_tester, without_dut
    from .loads import output_of

    if setup.prefix is not None and not name:
        raise ConfigError("--prefix means nothing without --dut", "name the DUT whose lab it is")
    base = load_dut(name, setup.configs_dir, setup.prefix) if name else None
    config = without_dut(base, ports or ())
    config = replace(config, speed_bps=speed or config.speed_bps)
    wished = PlanDefaults(ramp_s=ramp_duration, hold_s=2.0, confirm_s=0.0, latency_s=latency)
    output = output_of(shown.results, shown.quiet, setup.speedup or 100.0)
    done, made = calibrate_tester(config, modes, wished, setup, output)
    if made is not None:
        _write(made, shown.form)
    apart = {str(error): error for _, error in done.failures}  # what fails alike in every run is said once
    return max(map(exit_code, apart.values()), default=0)


def _write(made: Calibration, form: OutputForm) -> None:
    heads = ":mode; ::direction; carried [pps]; :limit; sent [pps]^1; rate error [share]^2; latency floor [us]"
    sheet = make_sheet(heads, map(_row, made.limits), "calibration", "What the tester carries without a DUT")
    banner = [SIMULATED] if made.simulated else []
    headline = f"{made.tester} ({made.server}), without a DUT"
    above = [*starred(banner), *([""] if banner else []), headline, ""]
    state = made.tester, "simulated" if made.simulated else "measured"
    form.write(
        lambda out: "\n".join([*above, *format_sheet(sheet, room_of(out))]),
        lambda: asdict(made),
        lambda: [sheet],
        head=lambda: [headline, *banner],
        table=lambda: with_columns(sheet, ":tester; :status", repeat(state)),
    )


def _row(one: TesterLimit) -> Iterator[Item | str]:
    yield one.mode
    yield f"{one.direction} of both" if one.bidir else one.direction
    yield of_pps(one.carried_pps)
    yield {"none": "line rate asked"}.get(one.limit, one.limit)
    yield of_pps(one.sent_pps)
    yield figure(one.error, format_share)
    yield of_time(one.floor_s)
