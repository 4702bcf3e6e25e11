"""``trexbench ramp``, ``search``, ``saturate`` and ``efficiency``: measuring a DUT with packets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TextIO

from ..config.model import REMOVED, PlanDefaults
from ..config.option import listed
from ..core.errors import BenchError, ConfigError
from ..core.load.profile import RFC2544_SIZES, mode_of_size
from ..report.room import room_of
from ..report.words import mark_banners, starred, text_of
from ..session.options import METHODS, Case, EfficiencyWish, RampWish, SaturateWish, SearchWish, Setup
from .options import CASE, SETUP, SHOWN, VERBOSE, Parsed, Shown, asked
from .output import Words, note, save_picture, warn
from .verbs import Heading, rare, removed, verb

if TYPE_CHECKING:
    from ..core.result import RunResult
    from ..report.sheet import Sheet
    from ..session.series import Series

RAMP_EXAMPLES = """\b
Examples:
  trexbench ramp --dut netgate-vpp --mode var2-64b --bidir --sim
  trexbench ramp --dut lab-linux --mode var2-64b --bidir
  trexbench ramp --dut netgate-vpp --mode imix --no-apply --server trex1.lab
  trexbench ramp --dut lab-linux --mode 64b --ramp-to 1.2mpps --hold 2m
  trexbench ramp --dut netgate-linux --mode 64b --latency --sim
  trexbench ramp --dut netgate-linux --mode 64b --label kernel-6.18
  trexbench ramp --dut netgate-linux --mode imix --sim --format brief -q
"""

SEARCH_EXAMPLES = """\b
Examples:
  trexbench search --dut netgate-vpp --mode var2-64b --bidir --sim
  trexbench search --dut lab-linux --mode var2-64b --loss 0,0.5%
  trexbench search --dut netgate-vpp --sizes rfc2544 --bidir --sim
  trexbench search --dut netgate-linux --mode imix --width 0.2% --no-apply
  trexbench search --dut netgate-vpp --mode var2-64b --method mlrsearch --sim
"""

SATURATE_EXAMPLES = """\b
Examples:
  trexbench saturate --dut lab-linux --mode 1flow-64b
  trexbench saturate --dut netgate-pfsense --mode 1flow --sim
  trexbench saturate --dut netgate-linux --mode 1flow --rate 50% --no-apply
"""

EFFICIENCY_EXAMPLES = """\b
Examples:
  trexbench efficiency --dut netgate-vpp --rates 1kpps,1mpps,10mpps
  trexbench efficiency --dut netgate-vpp --rates 1kpps,1mpps,10mpps --sim
  trexbench efficiency --dut lab-linux --rates 1%,5%,20% --mode 64b --hold 5
"""


def _size(text: str) -> int:
    word = text.strip()
    if not (word.isascii() and word.isdecimal() and len(word) < 6):
        raise ConfigError(f"frame size {text!r} not understood", "write sizes as 64,512,1518, or rfc2544 alone")
    return int(mode_of_size(int(word)).size)


def _sizes(text: str) -> tuple[int, ...]:
    return RFC2544_SIZES if text.strip().lower() == "rfc2544" else listed("size", _size)(text)


SIZES = rare(
    "--sizes",
    heading=Heading.WHAT,
    type=Parsed("SIZE,...", _sizes),
    help="Instead of a mode: one run per frame size (with FCS), and a table of all. rfc2544: "
    f"{','.join(map(str, RFC2544_SIZES))}.",
)


@verb(epilog=RAMP_EXAMPLES)
@CASE
@SIZES
@removed("--zoom", REMOVED["zoom"], "leave it out; trexbench search measures finer")
@removed("--stop-on-saturation", REMOVED["stop_on_saturation"], "lower --ramp-to, or use trexbench search")
@asked("wish", RampWish)
@SETUP
@SHOWN
@VERBOSE
def ramp(case: Case, setup: Setup, wish: RampWish, shown: Shown, sizes: tuple[int, ...] | None) -> int:
    """Ramp traffic linearly to the target and see, in each direction, where the DUT saturates.

    Rates: 64kpps, 1.2mpps, 3gbps (L2), 5gbpsl1, 40% (of L1 line rate). Times: 10s, 2m30s, 600.
    Line rate is that of the ports, or the DUT's `speed:` if lower. `plan:` in its config changes the defaults.
    """
    return _measure("ramp", case, wish.plan(), setup, shown, sizes)


@verb(epilog=SEARCH_EXAMPLES)
@CASE
@SIZES
@asked("wish", SearchWish)
@SETUP
@SHOWN
@VERBOSE
def search(case: Case, setup: Setup, wish: SearchWish, shown: Shown, sizes: tuple[int, ...] | None) -> int:
    """Search for the highest rate within each loss goal, without ever stopping the traffic.

    A ramp of some seconds brackets the throughput. Rates near it are then tried for a second each, until the interval
    of every goal is as narrow as requested and both of its bounds are accepted. Finally the lower bound of the first
    goal is held once more, and the DUT's counters are read. `plan:` in the DUT's config changes the defaults.
    """
    return _measure(METHODS[wish.method], case, wish.plan(), setup, shown, sizes)


@verb(epilog=SATURATE_EXAMPLES)
@CASE
@asked("wish", SaturateWish)
@SETUP
@SHOWN
@VERBOSE
def saturate(case: Case, setup: Setup, wish: SaturateWish, shown: Shown) -> int:
    """Offer the full rate at once and measure what is received, for instance from a single core.

    If more is offered than the DUT can forward, the result is the rate received, not a loss-free throughput. `plan:` in
    the DUT's config changes the defaults.
    """
    return _measure("saturate", case, wish.plan(), setup, shown)


def _measure(
    verb: str, case: Case, wished: PlanDefaults, setup: Setup, shown: Shown, sizes: Sequence[int] | None = None
) -> int:
    from ..session.request import make_request
    from ..session.series import measure  # heavy; --help and completion do without
    from .loads import output_of, present

    if sizes:
        return _measure_sizes(verb, case, sizes, wished, setup, shown)
    request = make_request(verb, case, wished, setup)
    return present(measure(request, output_of(shown.results, shown.quiet, request.pace)), shown)


def _measure_sizes(
    verb: str, case: Case, sizes: Sequence[int], wished: PlanDefaults, setup: Setup, shown: Shown
) -> int:
    """Measure one run per frame size, then make a table and a picture of all."""
    from ..report.run.sizes import format_sizes, size_sheet, throughputs
    from ..session.series import measure_series, size_requests
    from .loads import code_of, output_of

    requests = size_requests(verb, case, sizes, wished, setup)
    done = measure_series(requests, output_of(shown.results, shown.quiet, setup.pace))

    def text(out: TextIO) -> str | None:
        return _banner(done.results) + format_sizes(done.results, room_of(out)) if done.results else None

    def draw() -> bytes:
        from ..report.run.picture_plot import draw_sizes

        return draw_sizes(done.results)

    runs = (size.result for size in throughputs(done.results))
    picture = ("sizes", draw) if done.results else None
    code = _present(done, shown, text, text, lambda: size_sheet(done.results), runs, picture)
    unanswered = [code_of(run) for run in done.runs if run.error is None]
    return code or max(unanswered, default=0)


def _present(
    done: Series,
    shown: Shown,
    text: Words,
    brief: Words,
    sheet: Callable[[], Sheet],
    runs: Iterable[RunResult],
    picture: tuple[str, Callable[[], bytes]] | None,
) -> int:
    """Print and draw several runs that have ended; return the exit code.

    The code is that of the error that ended them, else that of a document which had to be saved elsewhere.
    runs: one for each row of the sheet. picture: its name, beside the first run's document, and its drawing function.
    """
    from ..results.loads import figures_of
    from ..results.store import picture_place
    from .loads import head_of, place_code, table_of, write_picture

    def head() -> list[str]:
        lines = dict.fromkeys(line for result in done.results for line in head_of(result))
        dut = text_of(done.results[0].dut, "name", "?") if done.results else ""
        return [*([f"{sheet().caption}, {dut}"] if len(done.results) > 1 else []), *lines]

    def print_all() -> None:
        shown.form.write(
            text,
            lambda: [figures_of(result) for result in done.results],
            lambda: [sheet()],
            brief,
            head=head,
            table=lambda: table_of(sheet(), runs),
        )

    with shown.form.around(print_all):
        for run in done.runs if shown.quiet else ():  # else each was named when it ended
            note(f"result   {run.path}")
        if shown.picture and picture is not None:
            name, draw = picture
            save_picture(lambda: write_picture(picture_place(shown.results, done.results[0], name), draw()))
        for what, error in done.failures:
            warn(f"{what}: {error}")
    if done.error is not None:
        return done.error.exit_code
    return max((place_code(run, shown.results) for run in done.runs), default=0)


def _banner(results: Sequence[RunResult]) -> str:
    return "".join(f"{line}\n\n" for line in starred(mark_banners(results)))


@verb(epilog=EFFICIENCY_EXAMPLES)
@CASE
@asked("wish", EfficiencyWish)
@SETUP
@SHOWN
@VERBOSE
def efficiency(case: Case, setup: Setup, wish: EfficiencyWish, shown: Shown) -> int:
    """Hold several rates and measure what a packet costs the DUT at each: cycles, vectors per call, clocks, energy.

    Costs come from VPP's `show runtime` per worker and node, or from a kernel's CPU time and clock. Default mode:
    1flow-64b.
    """
    from ..report.run.costs import cost_sheet
    from ..session.series import measure_series, rate_requests
    from .loads import output_of

    requests = rate_requests(case, wish.offered, wish.plan().hold_s, setup)
    done = measure_series(requests, output_of(shown.results, shown.quiet, setup.pace))
    costs = [cost for result in done.results for cost in result.costs]
    runs = (result for result in done.results for _ in result.costs)

    def draw() -> bytes:
        from ..report.run.picture_plot import draw_costs

        return draw_costs(done.results[0], costs)

    long, brief = (partial(cost_words, done, short) for short in (False, True))
    picture = ("efficiency", draw) if costs else None
    return _present(done, shown, long, brief, lambda: cost_sheet(costs), runs, picture)


def cost_words(done: Series, brief: bool, out: TextIO) -> str:
    """Describe what packets cost at each rate; BenchError if all runs ended normally and no cost is known."""
    from ..report.run.costs import format_costs
    from ..report.run.text import format_brief_costs, width_of

    results = done.results
    costs = [cost for result in results for cost in result.costs]
    if costs and brief:
        return format_brief_costs(results, [str(run.path) for run in done.runs], width_of(out))
    if not costs and not done.failures:
        texts = dict.fromkeys(warning.text for result in results for warning in result.warnings)
        raise BenchError("the DUT's cost is unknown", "; ".join(texts) or "see the stored runs' warnings")
    return _banner(results) + format_costs(costs, room_of(out)) if costs else ""
