"""``trexbench efficiency``: what a packet costs the DUT at several rates; the seed's interlude."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ..config import PlanDefaults
from ..core.errors import BenchError, ConfigError
from ..core.units import Rate, parse_rate
from .params import DURATION, Parsed
from .run import OUTPUT, SIM, WHAT, WHERE

_EXAMPLES = """\b
Examples:
  trexbench efficiency --dut netgate-vpp --rates 1kpps,1mpps,10mpps
  trexbench efficiency --dut netgate-vpp --rates 1kpps,1mpps,10mpps --sim
  trexbench efficiency --dut lab-linux --rates 1%,5%,20%,50% --mode var2-64b --hold 5
"""
DEFAULT_MODE = "1flow-64b"
SETTLE_S = 3.0


def _rates(text: str) -> tuple[Rate, ...]:
    rates = tuple(parse_rate(part) for part in text.split(","))
    if len(set(rates)) != len(rates):
        raise ConfigError(f"a rate stands twice in {text}", "name each once")
    return rates


@click.command(epilog=_EXAMPLES)
@WHAT
@click.option("--rates", type=Parsed("RATE,...", _rates), default="1kpps,1%,10%,97%", show_default=True)
@click.option("--hold", type=DURATION, help="How long each rate is held and counted (30).")
@SIM
@WHERE
@OUTPUT
def efficiency(rates: Sequence[Rate], **options: Any) -> int:
    """Hold several rates and say what a packet costs the DUT at each: cycles, vectors per call, clocks, energy.

    VPP's own `show runtime` per worker and node, or a kernel's CPU time x clock. Without --mode one flow of 64 B.
    """
    from .session import make_request, note

    options["mode"] = options["mode"] or (None if options["profile"] else DEFAULT_MODE)
    if options["telemetry"] == "off":
        raise ConfigError("--telemetry off leaves nothing to say", "leave it out")
    if options["no_apply"] and options["telemetry"] is None:
        options["telemetry"] = "hold"
    wished = PlanDefaults(hold_s=options["hold"], warmup_s=SETTLE_S, loss=None)
    request = make_request("efficiency", {**options, "telemetry": options["telemetry"]}, wished)
    results, code = _measure(request, rates, options)
    costs = [cost for result in results for cost in result.costs]
    if options["as_json"]:
        from ..core.result import to_document

        click.echo(json.dumps([to_document(result, with_samples=False) for result in results], indent=1, default=str))
    elif costs:
        from ..report.costs import format_costs

        banner = "*** SIMULATED: no real packet was sent; the numbers are a model's ***\n\n"
        click.echo((banner if results[0].simulated else "") + format_costs(costs), nl=False)
    else:
        raise BenchError("nothing was learnt of the DUT", _doubts(results) or "see the warnings of the stored runs")
    if options["picture"] and costs:
        path = _keep_picture(results, costs, options["results"])
        note(f"picture  {path}")
    return code


def _measure(request: Any, rates: Sequence[Rate], options: dict[str, Any]) -> tuple[list[Any], int]:
    """One run per rate in one session; what went before a failure is kept and shown."""
    from .measure import bench
    from .session import Desk, exit_code, note

    results, code = [], 0

    def say(text: str) -> None:
        if not options["quiet"]:
            note(text)

    with bench(request, say) as there:
        for number, rate in enumerate(rates, 1):
            say(f"rate {number} of {len(rates)}: {rate}")
            slow = rate.unit == "pps" and rate.value < 1000
            wished = replace(request.wished, ramp_to=rate, warmup=rate if slow else Rate(1000.0, "pps"))
            with Desk(options, request.speedup) as desk:
                result, outcome = there.measure(desk, replace(request, wished=wished))
            results.append(result)
            say(f"result   {desk.kept}")
            code = exit_code(outcome)
            if code:
                break
    return results, code


def _doubts(results: Sequence[Any]) -> str:
    return "; ".join(dict.fromkeys(caveat.text for result in results for caveat in result.caveats))


def _keep_picture(results: Sequence[Any], costs: Sequence[Any], folder: Path) -> Path:
    from ..report.picture_costs import draw_costs
    from ..store import picture_place

    path = picture_place(folder, results[0], "efficiency")
    path.write_bytes(draw_costs(results[0], costs))
    return path
