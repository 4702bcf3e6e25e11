"""``trexbench ramp`` and ``trexbench saturate``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from ..config import PlanDefaults
from ..core.units import Rate
from .params import DURATION, LABEL, PORTS, RATE, SHARE, TUNABLES, WARMUP, complete_duts, complete_modes

SPEEDUP = 100.0
F = TypeVar("F", bound=Callable[..., Any])

RAMP_EXAMPLES = """\b
Examples:
  trexbench ramp --dut netgate-vpp --mode var2-64b --bidir --sim
  trexbench ramp --dut lab-linux --mode var2-64b --bidir
  trexbench ramp --dut netgate-vpp --mode imix --no-apply --server trex1.lab
  trexbench ramp --dut lab-linux --mode 64b --ramp-to 1.2mpps --ramp-duration 120 --stop-on-saturation
  trexbench ramp --dut netgate-linux --mode 64b --latency --sim
  trexbench ramp --dut netgate-linux --mode 64b --label kernel-6.18
"""

SATURATE_EXAMPLES = """\b
Examples:
  trexbench saturate --dut lab-linux --mode 1flow-64b
  trexbench saturate --dut netgate-pfsense --mode 1flow --sim
  trexbench saturate --dut netgate-linux --mode 1flow --no-apply --rate 50% --hold 60
"""


def options_of(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several decorators as one."""

    def apply(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return apply


WHAT = options_of(
    click.option(
        "--dut",
        required=True,
        metavar="NAME",
        shell_complete=complete_duts,
        help="The device under test: a name in dut_configs/, or a file.",
    ),
    click.option(
        "--mode",
        metavar="MODE",
        shell_complete=complete_modes,
        help="What to send: var2-1514b, var2-imix, var2-64b, 1flow-64b, or an alias ('profile list').",
    ),
    click.option("--profile", metavar="FILE", help="An STL profile of your own instead of a mode."),
    click.option("-t", "--tunables", type=TUNABLES, help="Its tunables, as in size=64,vm=var2."),
    click.option("--bidir", is_flag=True, help="Both ways at once; default is one way, first port to second."),
    click.option("--ports", type=PORTS, help="The tester's ports, in pairs; default: as the DUT's config says."),
    click.option("--configs-dir", type=click.Path(path_type=Path), help="Where DUT configs are."),
    click.option("--no-apply", is_flag=True, help="Leave the DUT as it is; the result is marked as not attested."),
    click.option("--rx-queues", type=click.IntRange(1, 64), help="Receive queues per port, one of its config's."),
    click.option(
        "--telemetry",
        type=click.Choice(["hold", "ramp", "off"]),
        help="When the DUT's own counters are read: before, after and in holds (default), also during the ramp, never.",
    ),
)
SIM = options_of(
    click.option(
        "--sim",
        is_flag=True,
        help="Simulate tester and DUT (the twin of its config); no root, no network, no packet. Marked as simulated.",
    ),
    click.option(
        "--speedup",
        type=click.FloatRange(1, 10000),
        help=f"With --sim: seconds of the run in one of ours ({SPEEDUP:g}).",
    ),
    click.option("--seed", type=click.IntRange(0), help="With --sim: of the twin's noise (its config's)."),
)
WHERE = options_of(
    click.option("--server", metavar="HOST", help="The TRex server; default: as the DUT's config says, or its lab's."),
    click.option("--rpc-port", type=click.IntRange(1, 65535), help="Its RPC port (4501)."),
    click.option("--pub-port", type=click.IntRange(1, 65535), help="Its event port (4500)."),
    click.option(
        "--trex-dir",
        type=click.Path(path_type=Path),
        envvar="TREXBENCH_TREX_DIR",
        help="A TRex installation: its client is used, and in a lab its server.",
    ),
    click.option("--force", is_flag=True, help="Take the ports even if somebody else owns them."),
)
OUTPUT = options_of(
    click.option(
        "--results",
        type=click.Path(path_type=Path),
        default=Path("results"),
        show_default=True,
        help="Where the result goes: <date>/<dut>/<time>-<mode>-<direction>.json, a picture beside it.",
    ),
    click.option("--label", type=LABEL, help="A word kept with the result, to find and compare it by: kernel-6.18."),
    click.option("--picture/--no-picture", default=True, help="Draw the PNG (default), or leave it out."),
    click.option("--json", "as_json", is_flag=True, help="The result as JSON on standard output."),
    click.option("-q", "--quiet", is_flag=True, help="No progress."),
)
THRESHOLDS = options_of(
    click.option("--warmup", type=WARMUP, help="Low rate first, to prove that frames return: 1kpps:10s."),
    click.option("--loss", type=SHARE, help="Loss above this is bad, per direction (0.1%)."),
    click.option(
        "--windows", type=click.IntRange(1, 100), help="Bad windows of 1 s in a row that mean saturation (3)."
    ),
    click.option("--sample", type=DURATION, help="Time between samples, 50ms to 10s (1s)."),
)


@click.command(epilog=RAMP_EXAMPLES)
@WHAT
@click.option(
    "--ramp-to",
    type=RATE,
    help="Target per direction: 97%, 1.2mpps, 5gbpsl1 ... Default 97 % of line rate: "
    "nearer to it a generator's own queues overflow, and its losses look like the DUT's.",
)
@click.option("--ramp-duration", type=DURATION, help="From zero to the target (600).")
@click.option("--hold", type=DURATION, help="Stay at the target for this long (30).")
@click.option("--confirm", type=DURATION, help="After saturation, hold the last good rate again this long; 0 not (10).")
@click.option(
    "--latency",
    type=DURATION,
    is_flag=False,
    flag_value="10s",
    help="Then measure latency at 10, 50 and 90 % of the throughput found, each for so long (10s; off).",
)
@click.option("--stop-on-saturation", is_flag=True, help="End the ramp once every direction is saturated.")
@THRESHOLDS
@SIM
@WHERE
@OUTPUT
def ramp(**options: Any) -> int:
    """Ramp traffic linearly to the target and see, in each direction, where the DUT saturates.

    Rates: 64kpps, 1.2mpps, 3gbps (L2), 5gbpsl1, 40% (of L1 line rate). Times: 10s, 2m, 600.
    The line rate is the ports', or the DUT's `speed:` where that is lower.
    """
    wished = PlanDefaults(
        ramp_to=options["ramp_to"],
        ramp_s=options["ramp_duration"],
        confirm_s=options["confirm"],
        latency_s=options["latency"],
        stop_on_saturation=options["stop_on_saturation"] or None,
        **_common(options),
    )
    return _run("ramp", options, wished)


@click.command(epilog=SATURATE_EXAMPLES)
@WHAT
@click.option("--rate", type=RATE, help="What fills the line, per direction (100%).")
@click.option("--hold", type=DURATION, help="For how long (30).")
@THRESHOLDS
@SIM
@WHERE
@OUTPUT
def saturate(**options: Any) -> int:
    """Fill the line at once and count what emerges: the seed's method 1, for a single core's limit.

    With more offered than the DUT can carry, the answer is the rate received, not a loss-free throughput.
    """
    wished = PlanDefaults(ramp_to=options["rate"] or Rate(100.0, "percent"), **_common(options))
    return _run("saturate", options, wished)


def _common(options: dict[str, Any]) -> dict[str, Any]:
    rate, duration = options["warmup"] or (None, None)
    return {
        "warmup": rate,
        "warmup_s": duration,
        "hold_s": options["hold"],
        "loss": options["loss"],
        "windows": options["windows"],
        "sample_s": options["sample"],
    }


def _run(verb: str, options: dict[str, Any], wished: PlanDefaults) -> int:
    from .session import carry_out, make_request  # heavy; --help and completion do without

    return carry_out(make_request(verb, options, wished), options)
