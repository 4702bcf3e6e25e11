"""``trexbench ramp``, ``saturate`` and ``efficiency``: the verbs that measure one DUT with one kind of traffic."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import click

from ..config.model import PlanDefaults
from ..core.errors import BenchError, ConfigError
from ..core.load.profile import RFC2544_SIZES, mode_of_size
from ..core.units import Rate, parse_rate, parse_share
from ..session.request import Case, Setup
from .options import CASE, DURATION, RATE, SETUP, SHARE, SHOWN, VERBOSE, WARMUP, WISHED, Parsed, Shown
from .output import exit_code, note, output_of, print_json, print_run, save_picture, warn

if TYPE_CHECKING:
    from ..core.result import RunResult
    from ..session.keep import Measured

T = TypeVar("T")

RAMP_EXAMPLES = """\b
Examples:
  trexbench ramp --dut netgate-vpp --mode var2-64b --bidir --sim
  trexbench ramp --dut lab-linux --mode var2-64b --bidir
  trexbench ramp --dut netgate-vpp --mode imix --no-apply --server trex1.lab
  trexbench ramp --dut lab-linux --mode 64b --ramp-to 1.2mpps --ramp-duration 120 --stop-on-saturation
  trexbench ramp --dut netgate-linux --mode 64b --latency --sim
  trexbench ramp --dut netgate-linux --mode 64b --label kernel-6.18
  trexbench ramp --dut netgate-linux --mode imix --sim --brief -q
"""

SEARCH_EXAMPLES = """\b
Examples:
  trexbench search --dut netgate-vpp --mode var2-64b --bidir --sim
  trexbench search --dut lab-linux --mode var2-64b --loss 0,0.5%
  trexbench search --dut netgate-vpp --sizes rfc2544 --bidir --sim
  trexbench search --dut netgate-linux --mode imix --loss 0.1% --width 0.2% --no-apply --server trex1.lab
  trexbench search --dut netgate-vpp --mode var2-64b --loss 0,0.5% --method mlrsearch --sim
"""

SATURATE_EXAMPLES = """\b
Examples:
  trexbench saturate --dut lab-linux --mode 1flow-64b
  trexbench saturate --dut netgate-pfsense --mode 1flow --sim
  trexbench saturate --dut netgate-linux --mode 1flow --no-apply --rate 50% --hold 60
"""

EFFICIENCY_EXAMPLES = """\b
Examples:
  trexbench efficiency --dut netgate-vpp --rates 1kpps,1mpps,10mpps
  trexbench efficiency --dut netgate-vpp --rates 1kpps,1mpps,10mpps --sim
  trexbench efficiency --dut lab-linux --rates 1%,5%,20%,50% --mode var2-64b --hold 5
"""


RAMP_TO = click.option(
    "--ramp-to",
    type=RATE,
    help="Target per direction: 97%, 1.2mpps, 5gbpsl1 ... Default 97 % of line rate: "
    "nearer to line rate a generator's own queues overflow, and its losses look like the DUT's.",
)


def _listed(what: str, parse: Callable[[str], T]) -> Callable[[str], tuple[T, ...]]:
    """A parser of values with commas between them, none of them twice."""

    def parse_all(text: str) -> tuple[T, ...]:
        values = tuple(map(parse, text.split(",")))
        if len(set(values)) != len(values):
            raise ConfigError(f"a {what} stands twice in {text}", "name each once")
        return values

    return parse_all


def _size(text: str) -> int:
    word = text.strip()
    if not (word.isascii() and word.isdecimal() and len(word) < 6):
        raise ConfigError(f"frame size {text!r} not understood", "write sizes as 64,512,1518, or rfc2544")
    return int(mode_of_size(int(word)).size)


def _sizes(text: str) -> tuple[int, ...]:
    return RFC2544_SIZES if text.strip().lower() == "rfc2544" else _listed("size", _size)(text)


SIZES = click.option(
    "--sizes",
    type=Parsed("SIZE,...", _sizes),
    help="Instead of a mode: one run per frame size, with FCS, and a table of all. rfc2544: "
    f"{','.join(map(str, RFC2544_SIZES))}.",
)

METHODS = {"continuous": "search", "mlrsearch": "mlrsearch"}
"""The strategy of each method of searching."""


@click.command(epilog=RAMP_EXAMPLES)
@CASE
@SIZES
@RAMP_TO
@click.option("--ramp-duration", type=DURATION, help="From zero to the target (600).")
@click.option(
    "--zoom",
    type=DURATION,
    is_flag=False,
    flag_value="60s",
    help="Then a second, fine ramp of this length across the rate at which the DUT saturates (60s; default: off).",
)
@click.option("--confirm", type=DURATION, help="After saturation, hold the last good rate again this long (10; 0: no).")
@click.option(
    "--latency",
    type=DURATION,
    is_flag=False,
    flag_value="10s",
    help="Then measure latency at 10, 50 and 90 % of the throughput found, for so long each (10s; default: off).",
)
@click.option("--stop-on-saturation", is_flag=True, help="End the ramp once every direction is saturated.")
@WISHED
@SETUP
@SHOWN
@VERBOSE
def ramp(
    case: Case,
    setup: Setup,
    wished: PlanDefaults,
    shown: Shown,
    sizes: tuple[int, ...] | None,
    ramp_to: Rate | None,
    ramp_duration: float | None,
    zoom: float | None,
    confirm: float | None,
    latency: float | None,
    stop_on_saturation: bool,
) -> int:
    """Ramp traffic linearly to the target and see, in each direction, where the DUT saturates.

    Rates: 64kpps, 1.2mpps, 3gbps (L2), 5gbpsl1, 40% (of L1 line rate). Times: 10s, 2m30s, 600.
    The line rate is the ports', or the DUT's `speed:` where that is lower.
    """
    plan = replace(
        wished,
        ramp_to=ramp_to,
        ramp_s=ramp_duration,
        zoom_s=zoom,
        confirm_s=confirm,
        latency_s=latency,
        stop_on_saturation=stop_on_saturation or None,
    )
    return _measure("ramp", case, plan, setup, shown, sizes)


@click.command(epilog=SEARCH_EXAMPLES)
@CASE
@SIZES
@RAMP_TO
@click.option(
    "--loss",
    "goals",
    type=Parsed("SHARE,...", _listed("goal", parse_share)),
    help="Goals: the most that may be lost, each with a throughput of its own. 0,0.5% is NDR and PDR. Default: 0.1%.",
)
@click.option("--width", type=SHARE, help="How narrow each goal's interval is to be, as a share of the rate (0.5%).")
@click.option("--warmup", type=WARMUP, help="Low rate first, to prove that frames return: 1kpps:2s.")
@click.option(
    "--confirm",
    type=DURATION,
    help="At last hold the first goal's rate this long and count what a packet costs the DUT (5; 0: no).",
)
@click.option(
    "--soak",
    type=DURATION,
    is_flag=False,
    flag_value="60s",
    help="Hold it this long instead, for a DUT that slows down when it is hot, or a policer's burst (60s; suites do).",
)
@click.option(
    "--method",
    type=click.Choice(tuple(METHODS)),
    default="continuous",
    show_default=True,
    help="continuous: the traffic never stops. mlrsearch: FD.io's own library with CSIT's settings, in trials with "
    "silence between them; it takes several times as long.",
)
@SETUP
@SHOWN
@VERBOSE
def search(
    case: Case,
    setup: Setup,
    shown: Shown,
    sizes: tuple[int, ...] | None,
    ramp_to: Rate | None,
    goals: tuple[float, ...] | None,
    width: float | None,
    warmup: tuple[Rate, float | None] | None,
    confirm: float | None,
    soak: float | None,
    method: str,
) -> int:
    """Search for the highest rate within each loss, with the traffic never stopped.

    A ramp of some seconds brackets the throughput; then rates about it are looked at for a second each, until the
    interval of every goal is as narrow as asked for and both of its ends have stood. Then the lower end of the first
    goal's is held once more, and the DUT's counters are read.
    """
    if method == "mlrsearch" and (confirm is not None or soak is not None):
        option = "--soak" if confirm is None else "--confirm"
        raise ConfigError(f"{option} and --method mlrsearch exclude each other", "its trials are not confirmed")
    rate, duration = warmup or (None, None)
    plan = PlanDefaults(
        ramp_to=ramp_to,
        goals=goals,
        width=width,
        warmup=rate,
        warmup_s=duration,
        confirm_s=confirm,
        soak_s=soak,
    )
    return _measure(METHODS[method], case, plan, setup, shown, sizes)


@click.command(epilog=SATURATE_EXAMPLES)
@CASE
@click.option("--rate", type=RATE, default="100%", show_default=True, help="Offered load per direction.")
@WISHED
@SETUP
@SHOWN
@VERBOSE
def saturate(case: Case, setup: Setup, wished: PlanDefaults, shown: Shown, rate: Rate) -> int:
    """Offer the full rate at once and measure what is received, for instance of a single core.

    Where more is offered than the DUT can forward, the result is the rate received, not a loss-free throughput.
    """
    return _measure("saturate", case, replace(wished, ramp_to=rate), setup, shown)


def _measure(
    verb: str, case: Case, wished: PlanDefaults, setup: Setup, shown: Shown, sizes: Sequence[int] | None = None
) -> int:
    from ..session.keep import draw_run, measure  # heavy; --help and completion do without
    from ..session.request import make_request

    if sizes:
        return _measure_sizes(verb, case, sizes, wished, setup, shown)
    request = make_request(verb, case, wished, setup)
    done = measure(request, output_of(shown.results, shown.quiet, request.pace))
    print_run(done.result, shown.as_json, done.path if shown.brief else None)
    if not shown.brief:
        note(f"result   {done.path}")
    if shown.picture and done.result.samples and done.path is not None:
        picture = done.path.with_suffix(".png")
        save_picture(lambda: draw_run(done.result, picture))
    return _exit_code(done)


def _exit_code(done: Measured) -> int:
    """That of what ended the run early, or of a run that is no answer, which is reported here."""
    if done.error is None and (error := done.result.no_answer) is not None:
        warn(f"no answer: {error}")
        return error.exit_code
    return exit_code(done.error)


def _measure_sizes(
    verb: str, case: Case, sizes: Sequence[int], wished: PlanDefaults, setup: Setup, shown: Shown
) -> int:
    """One run per frame size, then the table and the picture of all; the exit code is the first failure's."""
    from ..session.keep import draw_sizes_of, measure_modes, size_requests

    requests = size_requests(verb, case, sizes, wished, setup)
    done = measure_modes(requests, output_of(shown.results, shown.quiet, requests[0].pace))
    results = [one.result for one in done.runs]
    if shown.as_json:
        _print_documents(results)
    elif results:
        from ..report.run.sizes import format_sizes

        click.echo(_banner(results) + format_sizes(results), nl=False)
    if shown.picture and results:
        save_picture(lambda: draw_sizes_of(results, shown.results))
    for mode, error in done.failures:
        warn(f"{mode}: {error}")
    codes = [error.exit_code for _, error in done.failures] + [_exit_code(one) for one in done.runs if not one.error]
    return next((code for code in codes if code), 0)


def _banner(results: Sequence[RunResult]) -> str:
    simulated = any(result.simulated for result in results)
    return "*** SIMULATED: no real packet was sent; the numbers are a model's ***\n\n" if simulated else ""


def _print_documents(results: Sequence[RunResult]) -> None:
    print_json([result.without_readings() for result in results])


@click.command(epilog=EFFICIENCY_EXAMPLES)
@CASE
@click.option(
    "--rates", type=Parsed("RATE,...", _listed("rate", parse_rate)), default="1kpps,1%,10%,97%", show_default=True
)
@click.option("--hold", type=DURATION, help="How long each rate is held and counted (30).")
@SETUP
@SHOWN
@VERBOSE
def efficiency(case: Case, setup: Setup, shown: Shown, rates: Sequence[Rate], hold: float | None) -> int:
    """Hold several rates and say what a packet costs the DUT at each: cycles, vectors per call, clocks, energy.

    From VPP's `show runtime` per worker and node, or from a kernel's CPU time and clock. Default mode: 1flow-64b.
    """
    from ..session.keep import draw_costs_of, efficiency_request, measure_rates

    request = efficiency_request(case, hold, setup)
    done = measure_rates(request, rates, output_of(shown.results, shown.quiet, request.pace))
    results, code = [one.result for one in done], print_costs(done, shown.as_json, shown.brief)
    if shown.picture and any(result.costs for result in results):
        save_picture(lambda: draw_costs_of(results, shown.results))
    return code


def print_costs(done: Sequence[Measured], as_json: bool, brief: bool = False) -> int:
    """Print what packets cost at each rate; the exit code. BenchError where all ran to the end and no cost is known."""
    results, error = [one.result for one in done], done[-1].error
    costs = [cost for result in results for cost in result.costs]
    if as_json:
        _print_documents(results)
    elif costs and brief:
        from ..report.run.brief import format_brief_costs
        from ..report.run.text import width_of

        places = [str(one.path) for one in done]
        click.echo(format_brief_costs(results, places, width_of(sys.stdout)), nl=False)
    elif costs:
        from ..report.run.costs import format_costs

        click.echo(_banner(results) + format_costs(costs), nl=False)
    elif error is None:
        texts = dict.fromkeys(warning.text for result in results for warning in result.warnings)
        raise BenchError("the DUT's cost is not known", "; ".join(texts) or "see the stored runs' warnings")
    return exit_code(error)
