"""A run as a picture: offered against received in each direction, the loss below, and the run's course in time.

The only file that imports matplotlib; figures are drawn without pyplot, so nothing is kept and no display is asked.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from textwrap import fill, wrap
from typing import Any

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.ticker import FuncFormatter, MaxNLocator

from ..core.plan import Direction, Plan
from ..core.result import RunResult, Status
from ..core.sample import Phase
from ..core.units import format_pps
from ..core.verdict import Limit
from ..core.windows import Window, measured_windows
from .live import WORDS
from .summary import Answer, answer_words, answers_of, limit_words, name_of, nominal, traffic_words

# Okabe and Ito's colours: told apart with any kind of colour vision, and in grey by their lightness.
BLUE, ORANGE, GREEN, RED, SKY, PURPLE, GREY = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#56B4E9",
    "#CC79A7",
    "#666666",
)
COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY, RED, "#222222", "#999933")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DPI = 110
TITLE_LETTERS = 44
"""So many fit over one direction's curve."""
LOSS_FLOOR_PERCENT = 0.01
"""Below this the axis of loss is linear, so that no loss has a place on it."""
PER_ROW = 4
BEYOND = {
    Limit.GENERATOR_TX: "more than the generator sends",
    Limit.GENERATOR_RX: "more than the generator receives",
    Limit.LINK: "after the link failed",
    Limit.NONE: "not offered",
}
"""What an area is called of which a run can say nothing."""
_SMALL_RED: dict[str, Any] = {"fontsize": 8, "color": RED, "ha": "right", "va": "bottom"}
_STAR: dict[str, Any] = {"marker": "*", "markersize": 13, "color": "#F0E442", "mec": "black", "mew": 0.6}
_WATERMARK: dict[str, Any] = {"fontsize": 68, "color": RED, "alpha": 0.13, "rotation": 28, "fontweight": "bold"}


def draw(result: RunResult) -> bytes:
    """The PNG's bytes."""
    buffer = io.BytesIO()
    compose(result).savefig(buffer, format="png", metadata={"Software": "trexbench", "Title": name_of(result)})
    return buffer.getvalue()


def compose(result: RunResult) -> Figure:
    """The picture before it is rendered."""
    answers = answers_of(result)
    ramp = result.plan.kind == "ramp"
    columns, rows = min(len(answers), PER_ROW), -(-len(answers) // PER_ROW)
    width, heights = max(8.8, 4.9 * columns), [3.3, 1.3] * rows + [1.7] if ramp else [3.6]
    figure = Figure(figsize=(width, sum(heights) + 0.62 * len(heights) + 1.1), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    lines = _head_lines(result, answers, round(13 * width))
    parts: Any = figure.subfigures(2, 1, height_ratios=[len(lines) * 0.24, sum(heights) + 1.6])
    head, body = parts
    grid = GridSpec(len(heights), columns, body, height_ratios=heights)
    top = _scale(result, answers)
    # A line that was filled at once has one offered rate: all that it shows, it shows in time.
    for number, answer in enumerate(answers if ramp else ()):
        row, column = divmod(number, PER_ROW)
        upper = body.add_subplot(grid[2 * row, column])
        _draw_direction(upper, result, answer, number, top)
        _draw_loss(body.add_subplot(grid[2 * row + 1, column], sharex=upper), result, answer, number)
    _draw_course(body.add_subplot(grid[-1, :]), result, answers)
    for number, (text, style) in enumerate(lines):
        head.text(
            0.5, 1 - (number + 0.75) / (len(lines) + 0.25), text, ha="center", va="center", parse_math=False, **style
        )
    if result.simulated:
        figure.text(0.5, 0.5, "SIMULATED", ha="center", va="center", zorder=100, **_WATERMARK)
    return figure


def _scale(result: RunResult, answers: Sequence[Answer]) -> float:
    """The end of both axes in frames per second: one scale for all directions."""
    seen = [w.sent_pps for a in answers for w in _windows(result, a.direction)]
    received = [a.result.max_received_pps for a in answers]
    return 1.04 * max([result.plan.target_pps, *seen, *received])


def _windows(result: RunResult, direction: Direction) -> list[Window]:
    return [w for w in measured_windows(result.plan, result.samples, direction) if w.sent]


def _draw_direction(axes: Axes, result: RunResult, answer: Answer, number: int, top: float) -> None:
    plan, windows = result.plan, _windows(result, answer.direction)
    axes.plot([0, top], [0, top], color=GREY, linewidth=1, linestyle=(0, (5, 3)), label="no loss", zorder=2)
    axes.plot(
        [w.sent_pps for w in windows],
        [w.received_pps for w in windows],
        color=COLOURS[number % len(COLOURS)],
        marker=MARKERS[number % len(MARKERS)],
        markersize=3.2,
        linewidth=1.2,
        label="received",
        zorder=3,
    )
    _mark_verdict(axes, result, answer, top)
    axes.set_xlim(0, top)
    axes.set_ylim(0, top)
    _in_pps(axes.xaxis, top)
    _in_pps(axes.yaxis, top)
    axes.tick_params(labelbottom=False)
    axes.set_ylabel(f"received, {_unit(top)[1]}pps")
    share = axes.secondary_xaxis("top", functions=_percent_of(plan))
    share.tick_params(labelsize=8)
    share.set_xlabel("offered, % of line rate", fontsize=8, color=GREY)
    title = fill(f"{answer.direction}: {_answer_words(result, answer)}", TITLE_LETTERS)
    axes.set_title(title, fontsize=10.5, fontweight="bold", pad=8)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.legend(loc="upper left", fontsize=8, framealpha=0.9)


def _answer_words(result: RunResult, answer: Answer) -> str:
    if not answer.pps:
        return "no rate without loss" if answer.result.limit is Limit.DUT else "nothing measured"
    return f"{answer.text}, {limit_words(result, answer)}"


def _mark_verdict(axes: Axes, result: RunResult, answer: Answer, top: float) -> None:
    """The knee where there is one; where the DUT was not the limit, what stays unknown."""
    found = answer.result
    if found.limit is Limit.DUT and found.first_bad_pps is not None:
        upper = found.maximum_pps + found.uncertainty_pps
        good = found.maximum_pps
        lower = max(0.0, good - found.uncertainty_pps)
        axes.axvspan(
            lower, upper, 0, min(1.0, upper / top), color=RED, alpha=0.25, linewidth=0, zorder=1, label="knee within"
        )
        axes.vlines(good, 0, good, color=RED, linewidth=1.4, label=f"last good {answer.text}", zorder=2)
        if found.confirmed_pps:
            point = [found.confirmed_pps]
            style: dict[str, Any] = {
                "marker": "*",
                "markersize": 13,
                "markeredgecolor": "black",
                "markeredgewidth": 0.6,
            }
            name = f"confirmed {format_pps(found.confirmed_pps)}"
            axes.plot(point, point, linestyle="none", color="#F0E442", label=name, zorder=5, **style)
    if answer.at_least:
        axes.axvspan(
            answer.pps,
            top,
            facecolor="#f4f4f4",
            edgecolor="#b0b0b0",
            hatch="//",
            linewidth=0,
            label=BEYOND[found.limit],
            zorder=0,
        )


def _draw_loss(axes: Axes, result: RunResult, answer: Answer, number: int) -> None:
    windows, threshold = _windows(result, answer.direction), 100 * result.plan.loss_threshold
    losses = [100 * (w.loss or 0.0) for w in windows]
    axes.axhline(threshold, color=RED, linewidth=1, linestyle="--")
    place = axes.get_yaxis_transform()  # x in shares of the axes, y in data
    axes.text(0.99, threshold, nominal(f"{threshold:g} % "), transform=place, **_SMALL_RED)
    colour = COLOURS[number % len(COLOURS)]
    axes.plot([w.sent_pps for w in windows], losses, color=colour, marker=".", markersize=4, linewidth=0.8)
    axes.set_yscale("symlog", linthresh=LOSS_FLOOR_PERCENT, linscale=0.6)
    axes.set_ylim(min(-LOSS_FLOOR_PERCENT / 2, *losses, 0.0) * 1.1, 100)
    axes.set_yticks([0, 0.01, 0.1, 1, 10, 100])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(MaxNLocator(1))
    axes.grid(color="#dddddd", linewidth=0.6)
    _in_pps(axes.xaxis, axes.get_xlim()[1])
    axes.set_xlabel(f"offered, {_unit(axes.get_xlim()[1])[1]}pps")
    axes.set_ylabel("loss, %")


def _draw_course(axes: Axes, result: RunResult, answers: Sequence[Answer]) -> None:
    """Asked and received against time, with the phases behind them."""
    plan, samples = result.plan, result.samples
    phases = tuple(Phase)
    top = 0.0
    for number, answer in enumerate(answers):
        windows = measured_windows(plan, samples, answer.direction, phases)
        times = [(w.begin_s + w.end_s) / 2 for w in windows]
        if number == 0:
            axes.plot(
                times, [w.asked_pps for w in windows], color=GREY, linestyle="--", linewidth=1, label="asked", zorder=4
            )
        colour, label = COLOURS[number % len(COLOURS)], f"received {answer.direction}"
        if plan.kind == "saturate":
            label += f", mean {answer.text}"
        axes.plot(times, [w.received_pps for w in windows], color=colour, linewidth=1.3, label=label)
        top = max([top, *(w.asked_pps for w in windows), *(w.received_pps for w in windows)])
    top = top or plan.target_pps
    for number, (phase, begin_s, end_s) in enumerate(_spans(result)):
        axes.axvspan(begin_s, end_s, color="#eef3f7" if number % 2 else "#dde7ef", linewidth=0, zorder=0)
        if end_s - begin_s > 0.03 * samples[-1].t_s:
            axes.text((begin_s + end_s) / 2, 1.17 * top, WORDS[phase], ha="center", va="top", fontsize=8, color=GREY)
    axes.set_xlim(samples[0].t_s if samples else 0, max(1e-3, samples[-1].t_s) if samples else 1)
    axes.set_ylim(0, 1.2 * top)
    _in_pps(axes.yaxis, top)
    axes.set_ylabel(f"{_unit(top)[1]}pps")
    axes.set_xlabel("time, s")
    share = axes.secondary_yaxis("right", functions=_percent_of(plan))
    share.tick_params(labelsize=8)
    share.set_ylabel("% of line rate", fontsize=8, color=GREY)
    columns = min(5, len(answers) + 1)
    axes.legend(loc="lower right", bbox_to_anchor=(1.005, 0.98), ncols=columns, fontsize=8, frameon=False)


def _spans(result: RunResult) -> Iterator[tuple[Phase, float, float]]:
    """Phases in the order of time, as (phase, begin, end)."""
    samples, begun = result.samples, 0
    for i in range(1, len(samples)):
        last = i + 1 == len(samples)
        if last or (samples[i + 1].phase, samples[i + 1].trial) != (samples[i].phase, samples[i].trial):
            yield samples[i].phase, samples[begun].t_s, samples[i].t_s
            begun = i


def _head_lines(result: RunResult, answers: Sequence[Answer], width: int) -> list[tuple[str, dict[str, Any]]]:
    """Name, answer, what was sent and when; a run that ended early says so before anything else. Width in letters."""
    lines: list[tuple[str, dict[str, Any]]] = [(name_of(result), {"fontsize": 15, "fontweight": "bold"})]
    if result.status is not Status.COMPLETE:
        style = {"fontsize": 9.5, "color": "white", "backgroundcolor": RED}
        words = f"{result.status.value.upper()}: {result.reason or 'its file was not brought to an end'}"
        lines += [(text, style) for text in wrap(words, width)[:2]]
    words = answer_words(result, answers)
    parts = [words] if len(words) <= width else words.split(": ", 1)
    lines += [(text, {"fontsize": 9}) for part in parts for text in wrap(part, width)]
    lines.append((f"{traffic_words(result.profile)}  ·  {result.started}", {"fontsize": 9, "color": GREY}))
    return lines


def _unit(top_pps: float) -> tuple[float, str]:
    """The divisor and the prefix for an axis that ends here."""
    return (1e6, "M") if top_pps >= 1e6 else (1e3, "k")


def _in_pps(axis: Axis, top_pps: float) -> None:
    divisor = _unit(top_pps)[0]
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / divisor:g}"))


def _percent_of(plan: Plan) -> Any:
    """Frames per second -> % of line rate, and back."""
    return lambda pps: 100 * plan.line_share(pps), lambda percent: percent * plan.line_rate_pps / 100
