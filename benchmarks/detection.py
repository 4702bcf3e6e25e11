"""Judge simulated nights whose changes are known, by the rule of histories and by change-point libraries.

    python benchmarks/detection.py [--quick] [--seed 1] [--ours] [--slow]

Histories of 200 nights: noise of 0.2 to 2 %, steps down of 0.5 to 10 % at a random night, single bad nights, drift, a
DUT with two modes. Every method judges each history after every night, as a cron job does, and what it then says is
new is an alarm. A false alarm is a regression of 1 % or more that is reported of a history, or of the nights of it,
without one; found is a step reported within three nights, its first included. jumpavg (FD.io CSIT's) and Apache Otava
take part where they are installed, with their defaults (a change for the worse at a group's border in the last 20
nights), asked for the last 60 nights, on fewer histories.

Noise is independent and normal but where a line says otherwise (Student's t; nights that are like the one before). A
cell of five noisy figures makes the false alarms of all five.

Recoveries and slow cells (``_cells.py``) are judged as ``regress`` judges rows, with what a run leaves open. A slow
cell's night is a whole ramp through the simulating engine, against a router of that capacity.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, product

import numpy as np
from _cells import BEFORE, CHANGES, LONGEST, RUN_NOISES, SLOW, exact, ramps, recoveries
from _cells import found as found_cells
from _ratios import SEEDED, note, options
from numpy.typing import NDArray

from trexbench.core.history.detect import FIRST_NIGHTS, Shape, Smallest, find_changes
from trexbench.core.history.levels import NEEDED_NIGHTS
from trexbench.core.history.regression import judge_rows
from trexbench.core.history.rows import RunRow

try:
    import jumpavg
except ImportError:
    jumpavg = None
try:
    from otava.analysis import compute_change_points
except ImportError:
    compute_change_points = None

NIGHTS, LEVEL, MINIMUM = 200, 5e6, 0.01
LATELY, WINDOW, WITHIN = 20, 60, 3
AIM_NOISE, AIM_STEP, AIM_ALARMS = 0.01, 0.02, 1.0
EVENT_BEFORE, EVENT_NIGHTS = 40, 10
YEAR, FIGURES = 365, 5
"""A cell's maximum rate, cycles/packet, loss in the hold, power and latency."""
History = NDArray[np.float64]
Alarms = list[tuple[int, int, str]]
"""Index of the night that the change is said to begin with, how many nights were known when it was told, its shape."""


def ours(history: History) -> Alarms:
    """Our rule; what it says after each night depends on the nights until then alone, so that one pass is enough."""
    changes = find_changes(history.tolist(), Smallest(MINIMUM))
    return [(one.at, one.reported, one.shape.value) for one in changes if one.after < one.before]


def nightly(find: Callable[[Sequence[float]], list[tuple[int, float]]], history: History) -> Alarms:
    """A library by itself, asked after each night; a border within a night of one that is known is no news."""
    alarms: Alarms = []
    known: list[int] = []
    for end in range(FIRST_NIGHTS + 2, len(history) + 1):
        begin = max(0, end - WINDOW)
        for place, change in find(history[begin:end].tolist()):
            at = begin + place
            if end - at <= LATELY and not any(abs(at - one) <= 1 for one in known):
                known.append(at)
                if change <= -MINIMUM:
                    alarms.append((at, end, Shape.STEP.value))
    return alarms


def jumpavg_borders(values: Sequence[float]) -> list[tuple[int, float]]:
    """jumpavg's groups, with its defaults."""
    groups = jumpavg.classify(list(values))
    found, at = [], len(groups[0])
    for before, after in pairwise(groups):
        found.append((at, after.stats.avg / before.stats.avg - 1))
        at += len(after)
    return found


def otava_borders(values: Sequence[float]) -> list[tuple[int, float]]:
    """Apache Otava's change points, with its defaults (windows of 50, p 0.001)."""
    points, _ = compute_change_points(list(values))
    return [(int(one.index), float(one.stats.forward_rel_change())) for one in points]


@dataclass(frozen=True)
class Method:
    """share: of the histories that it is asked about, so that the slow ones end."""

    name: str
    alarms: Callable[[History], Alarms]
    share: float


def methods() -> list[Method]:
    found = [Method("our rule", ours, 1.0)]
    if jumpavg is not None:
        found.append(Method("jumpavg by itself", partial(nightly, jumpavg_borders), 0.02))
    if compute_change_points is not None:
        found.append(Method("Otava by itself", partial(nightly, otava_borders), 0.1))
    return found


def noisy(rng: np.random.Generator, noise: float) -> History:
    return LEVEL * (1 + noise * rng.standard_normal(NIGHTS))


def unsettled(rng: np.random.Generator, noise: float) -> History:
    """A history whose noise trebles at a random night, for ever."""
    return LEVEL * (1 + noise * np.where(np.arange(NIGHTS) < rng.integers(30, 150), 1, 3) * rng.standard_normal(NIGHTS))


def stepped(rng: np.random.Generator, noise: float, step: float) -> tuple[History, int]:
    """A history that ends 20 nights after its step."""
    at = int(rng.integers(30, NIGHTS - LATELY))
    history = noisy(rng, noise)
    history[at:] -= step * LEVEL
    return history[: at + LATELY], at


def heavy_tailed(rng: np.random.Generator, noise: float, freedom: int) -> History:
    """Noise of Student's t, of this standard deviation."""
    nights: History = rng.standard_t(freedom, NIGHTS) * ((freedom - 2) / freedom) ** 0.5
    return LEVEL * (1 + noise * nights)


def alike(rng: np.random.Generator, noise: float, share: float) -> History:
    """Noise of which each night keeps a share of the one before (autoregressive), of this standard deviation."""
    nights = rng.standard_normal(NIGHTS)
    for at in range(1, NIGHTS):
        nights[at] = share * nights[at - 1] + (1 - share**2) ** 0.5 * nights[at]
    return LEVEL * (1 + noise * nights)


def with_outliers(rng: np.random.Generator, noise: float) -> History:
    """Single bad nights, 3 to 30 % low, about one in forty, never two in a row."""
    history = noisy(rng, noise)
    bad = np.flatnonzero(rng.random(NIGHTS) < 0.025)
    bad = bad[np.concatenate([[True], np.diff(bad) > 1])] if len(bad) else bad
    history[bad] *= 1 - rng.uniform(0.03, 0.3, len(bad))
    return history


def rounded(rng: np.random.Generator, noise: float) -> History:
    """Noise in whole percents, as of a figure of few digits: the first nights often read the same."""
    return LEVEL * (1 + np.round(noise * rng.standard_normal(NIGHTS), 2))


def drifting(rng: np.random.Generator, noise: float, lost: float) -> History:
    """This share lost evenly over the 200 nights."""
    return noisy(rng, noise) * (1 - lost * np.arange(NIGHTS) / NIGHTS)


def bimodal(rng: np.random.Generator, noise: float, low: float) -> History:
    """The lower mode, 4 % below, in this share of the nights, each by itself."""
    return noisy(rng, noise) * np.where(rng.random(NIGHTS) < low, 0.96, 1.0)


def dwelling(rng: np.random.Generator, noise: float) -> History:
    """Two modes 4 % apart, each left after five nights on average."""
    return noisy(rng, noise) * np.where(np.cumsum(rng.random(NIGHTS) < 0.2) % 2, 0.96, 1.0)


def per_year(
    method: Method, make: Callable[[np.random.Generator], History], count: int, seed: int, figures: int = 1
) -> float:
    """Alarms a year of cells with so many figures, each of its own noise."""
    rng, asked = np.random.default_rng(seed), max(4, round(count * method.share))
    return sum(len(method.alarms(make(rng))) for _ in range(asked * figures)) / asked / NIGHTS * YEAR


def print_cells(all_methods: Sequence[Method], count: int, seed: int) -> bool:
    """Print them; return true if our rule keeps to the aim."""
    ours_at = {}
    print(
        f"\nfalse alarms per cell and year: {count} cells of {FIGURES} noisy figures, {NIGHTS} nights (aim at 1 %: < 1)"
    )
    print_row("", [method.name for method in all_methods])
    for noise in (0.002, 0.005, 0.01, 0.02):
        make = partial(noisy, noise=noise)
        alarms = [per_year(one, make, count, seed, FIGURES) for one in all_methods]
        ours_at[noise] = alarms[0]
        print_row(f"noise {noise:.1%}", [f"{one:.2f}" for one in alarms])
    note(
        f"false alarms of a cell in a year / aim, noise {AIM_NOISE:.1%}", ours_at[AIM_NOISE] / AIM_ALARMS, noise=SEEDED
    )
    return ours_at[AIM_NOISE] < AIM_ALARMS


def found(method: Method, noise: float, step: float, count: int, seed: int) -> tuple[float, float, float]:
    """Shares found within three nights and within twenty; median delay in nights, of those found."""
    rng, asked = np.random.default_rng(seed), max(8, round(count * method.share))
    delays = []
    for _ in range(asked):
        history, at = stepped(rng, noise, step)
        told = [end - at for place, end, _ in method.alarms(history) if end > at and place >= at - LATELY // 2]
        delays += [min(told)] if told else []
    early = sum(delay <= WITHIN for delay in delays)
    return early / asked, len(delays) / asked, float(np.median(delays)) if delays else float("nan")


def print_false(all_methods: Sequence[Method], count: int, seed: int) -> None:
    print(f"\nfalse alarms per figure and year, {count} histories of {NIGHTS} nights")
    makes: list[tuple[str, Callable[[np.random.Generator], History]]] = [
        *((f"noise {noise:.1%}", partial(noisy, noise=noise)) for noise in (0.002, 0.005, 0.01, 0.02)),
        ("noise 0.5%, in steps of 1 %", partial(rounded, noise=0.005)),
        ("1 %, Student's t of 3", partial(heavy_tailed, noise=0.01, freedom=3)),
        ("1 %, Student's t of 5", partial(heavy_tailed, noise=0.01, freedom=5)),
        *((f"1 %, {share:.0%} of the night before", partial(alike, noise=0.01, share=share)) for share in (0.3, 0.6)),
        *((f"single bad nights, noise {noise:.1%}", partial(with_outliers, noise=noise)) for noise in (0.002, 0.01)),
        *((f"two modes, {low:.0%} low", partial(bimodal, noise=0.005, low=low)) for low in (0.1, 0.2, 0.5)),
        ("two modes, 5 nights each", partial(dwelling, noise=0.005)),
        *((f"noise {noise:.1%}, then three times that", partial(unsettled, noise=noise)) for noise in (0.003, 0.01)),
    ]
    print_row("", [method.name for method in all_methods])
    for name, make in makes:
        print_row(name, [f"{per_year(method, make, count, seed):.2f}" for method in all_methods])


def print_found(all_methods: Sequence[Method], count: int, seed: int) -> None:
    print(f"\nsteps down found within {WITHIN} nights / within {LATELY} (median delay in nights), {count} histories")
    print_row("noise, step", [method.name for method in all_methods])
    for noise in (0.002, 0.005, 0.01, 0.02):
        steps = sorted({0.005, 0.01, 0.02, 0.05, 0.1, 3 * noise})
        for step in steps:
            cells = [found(method, noise, step, count, seed) for method in all_methods]
            if step == 3 * noise and step > MINIMUM:
                note(f"found within {WITHIN} nights: {noise:.1%}, 3 sigma", cells[0][0], noise=SEEDED, better="higher")
            mark = "  <- 3 sigma" if step == 3 * noise else ""
            texts = [f"{early:4.0%} /{late:4.0%} ({delay:.0f})" for early, late, delay in cells]
            print_row(f"{noise:.1%}, {step:.1%} ({step / noise:.1f} sigma)", texts, mark)


def print_drift(count: int, seed: int) -> None:
    print(f"\ndrift over {NIGHTS} nights, our rule: histories in which it is reported, and as what first")
    for lost, noise in product((0.03, 0.05), (0.002, 0.005, 0.01)):
        rng = np.random.default_rng(seed)
        firsts = [alarms[0][2] if (alarms := ours(drifting(rng, noise, lost))) else "nothing" for _ in range(count)]
        shares = [f"{name} {firsts.count(name) / count:.0%}" for name in sorted(set(firsts))]
        print_row(f"{lost:.0%}, noise {noise:.1%}", shares)


def print_events(count: int, seed: int) -> None:
    """A step down, ten nights later exactly back: the morning after which each is suspected, and told; false ones."""
    print(
        f"\nevents, {EVENT_BEFORE} nights before: nights until they are suspected, and told, median / nine in ten, of "
        f"{count} histories"
    )
    print_row("", ["drop suspected", "drop told", "return suspected", "return told"])
    for noise, step in ((0.01, 0.02), (0.01, 0.05), (0.001, 0.09), (0.003, 0.05)):
        rng = np.random.default_rng(seed)
        kinds = [mornings(rng, noise, step) for _ in range(count)]
        cells = []
        for at, kind in product((EVENT_BEFORE, EVENT_BEFORE + EVENT_NIGHTS), ("SUSPICION", "TOLD")):
            waits = [first_morning(one, at, kind) for one in kinds]
            cells.append(" / ".join(f"{np.quantile(waits, share, method='higher'):.0f}" for share in (0.5, 0.9)))
        print_row(f"-{step:.0%}, noise {noise:.1%}", cells)
    for noise in (0.003, 0.01, 0.02):
        rng = np.random.default_rng(seed)
        found = [told for _ in range(count) for told in false_mornings(noisy(rng, noise)[: EVENT_BEFORE * 2])]
        nights = count * (EVENT_BEFORE * 2 - NEEDED_NIGHTS + 1)
        shares = [1000 * sum(kind in told for told in found) / nights for kind in ("REGRESSION", "SUSPICION")]
        print_row(f"noise {noise:.1%}", [f"{share:.2f} false per 1000" for share in shares])
        note(f"false suspicions per 1000 nights, noise {noise:.1%}", shares[1], noise=0.5)


def print_least(count: int, seed: int) -> None:
    """The false alarms of a test of three nights' mean, and of nothing else, that finds half of such steps."""
    sigmas = AIM_STEP / AIM_NOISE
    print(f"\na test of {WITHIN} nights' mean that finds half of the steps of {sigmas:g} sigma, {40 * count} histories")
    for before in (EVENT_BEFORE, WINDOW):
        rng = np.random.default_rng(seed)
        enough = np.median(
            drops(rng.standard_normal((100 * count, before + WITHIN)) - sigmas * np.repeat([0, 1], [before, WITHIN]))
        )
        alarms = nights = 0
        for _ in range(40 * count):
            windows = np.lib.stride_tricks.sliding_window_view(rng.standard_normal(NIGHTS), before + WITHIN)
            late = np.flatnonzero(drops(windows) >= enough)
            alarms += len(late[np.diff(late, prepend=-NIGHTS) > WITHIN])
            nights += len(windows)
        print_row(f"{before} nights before", [f"{1000 * alarms / nights:.2f} false per 1000"])


def drops(nights: History) -> History:
    """The last nights' mean below that of those before, in their standard deviations; a history in each row."""
    before, since = nights[:, :-WITHIN], nights[:, -WITHIN:]
    below: History = (before.mean(axis=1) - since.mean(axis=1)) / before.std(axis=1, ddof=1)
    return below


def mornings(rng: np.random.Generator, noise: float, step: float) -> list[set[str]]:
    """The kinds of what each morning tells: SUSPICION, REGRESSION, RECOVERY."""
    count = EVENT_BEFORE + 2 * EVENT_NIGHTS
    history = LEVEL * (1 + noise * rng.standard_normal(count))
    history[EVENT_BEFORE : EVENT_BEFORE + EVENT_NIGHTS] *= 1 - step
    return [kinds_of(history[:end]) for end in range(1, count + 1)]


def kinds_of(history: History) -> set[str]:
    judged = judge_rows([exact(number, float(pps)) for number, pps in enumerate(history)])
    return {one.kind.name for one in judged.findings}


def false_mornings(history: History) -> Iterator[set[str]]:
    """Mornings of a history without a change; a regression that was told is one, however long it stands."""
    before: set[str] = set()
    for end in range(NEEDED_NIGHTS, len(history) + 1):
        kinds = kinds_of(history[:end])
        yield kinds - (before & {"REGRESSION"})
        before = kinds


def first_morning(kinds: Sequence[set[str]], at: int, kind: str) -> int:
    """Nights from index ``at`` on until it is told: of a drop a regression, of a return that none stands any more."""
    drops = at == EVENT_BEFORE
    for night, told in enumerate(kinds[at : at + EVENT_NIGHTS], 1):
        is_told = ("REGRESSION" in told) is drops
        if is_told or (kind == "SUSPICION" and kind in told):
            return night
    return EVENT_NIGHTS + 1


def print_recoveries(count: int, seed: int) -> None:
    print(f"\n-5 % for some nights, then exactly back: nights until regress reports no regression, {count} histories")
    print_row("", ["median", "nine in ten", f"later than {WITHIN}", f"not in {LONGEST}", "drop not told"])
    within = []
    for noise in (0.002, 0.005, 0.01):
        for nights in (5, 10, 20):
            delays, untold = recoveries(nights, noise, count, seed)
            within.append(sum(delay <= WITHIN for delay in delays) / len(delays))
            figures = [f"{np.quantile(delays, share, method='higher'):.0f}" for share in (0.5, 0.9)]
            late, never = (sum(delay > most for delay in delays) for most in (WITHIN, LONGEST))
            print_row(f"noise {noise:.1%}, {nights} nights", [*figures, str(late), str(never), str(untold)])
    note(f"recoveries told within {WITHIN} nights, mean", sum(within) / len(within), noise=SEEDED, better="higher")


def print_slow(count: int, runs: int, seed: int) -> None:
    names = [f"{change:.0%}" if not change else f"-{change:.0%}" for change in CHANGES]
    low, high = (pps / 1e6 for pps in SLOW)
    print(f"\nslow cells, {low:g} to {high:g} Mpps at 10 Gbit/s: told within {WITHIN} nights, {BEFORE} nights before")
    print(f"{count} histories; a night is one of {runs} simulated ramps, or the capacity itself")
    nights: list[tuple[str, Callable[[int, float], RunRow]]] = []
    for noise in RUN_NOISES:
        words = f"ramp, {noise:.1%} within a run"
        measured = ramps(runs, noise)
        print(f"{words}: {measured.errors}", flush=True)
        nights.append((words, measured.night))
    told: dict[float, list[float]] = {0.0: [], 0.03: []}
    for between in (0.003, 0.01):
        print_row(f"{between:.1%} from night to night", names)
        for words, night in (*nights, ("the capacity itself", exact)):
            shares = [found_cells(night, change, between, count, seed) for change in CHANGES]
            print_row(f"  {words}", [f"{share:.0%}" for share in shares])
            for change, share in zip(CHANGES, shares, strict=True):
                if words != "the capacity itself" and change in (0.0, 0.03):
                    told[change].append(share)
    note(f"slow cells: false alarms within {WITHIN} nights", float(np.mean(told[0.0])), noise=SEEDED)
    note(f"slow cells: -3% told within {WITHIN} nights", float(np.mean(told[0.03])), noise=SEEDED, better="higher")


def print_times(all_methods: Sequence[Method], seed: int) -> None:
    print(f"\nCPU time per history of {NIGHTS} nights, judged after every night")
    for method in all_methods:
        rng = np.random.default_rng(seed)
        histories = [noisy(rng, 0.01) for _ in range(max(2, round(40 * method.share)))]
        begin_s = time.process_time()
        for history in histories:
            method.alarms(history)
        print_row(method.name, [f"{(time.process_time() - begin_s) / len(histories) * 1e3:.1f} ms"])


def print_row(name: str, cells: Sequence[str], mark: str = "") -> None:
    print(f"{name:34}{''.join(f'{cell:>24}' for cell in cells)}{mark}", flush=True)


def main() -> int:
    arguments = options(__doc__, quick=False, seed=1, slow=False, ours=False)
    asked = methods()[:1] if arguments.ours else methods()
    count = 60 if arguments.quick else 300
    if arguments.slow:
        print_slow(count // 3, count // 2, arguments.seed)
        return 0
    for name, library in (("jumpavg", jumpavg), ("Apache Otava", compute_change_points)):
        if library is None:
            print(f"{name} is not installed: it is left out")
    print_false(asked, count, arguments.seed)
    kept = print_cells(asked, count // 2, arguments.seed)
    print_found(asked, count, arguments.seed)
    print_drift(count, arguments.seed)
    print_recoveries(count // 2, arguments.seed)
    print_events(count // 3, arguments.seed)
    print_least(count, arguments.seed)
    print_slow(count // 3, count // 2, arguments.seed)
    print_times(asked, arguments.seed)
    return int(not kept)


if __name__ == "__main__":
    sys.exit(main())
