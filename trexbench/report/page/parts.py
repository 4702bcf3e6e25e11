"""Sections of the page by load: each a heading, a plot if it has one, and tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...core import result as packets
from ...core.tcp import result as tcp
from ..plots import PlotFigure
from ..run.sizes import size_figure
from ..sheet import Sheet
from .report import Report
from .sheets_packets import find_sized, search_sheet, size_sheet
from .sheets_tcp import process_sheet, published_sheet, tunnel_sheet, wan_sheet


@dataclass(frozen=True)
class Part:
    """A section of the page."""

    name: str
    """Fragment of the section's address."""
    link: str
    """Text of links to the section."""
    sheets: tuple[Sheet, ...]
    """The first table gives the section its heading, the others are folded away."""
    words: str = ""
    figures: tuple[PlotFigure, ...] = ()
    """The section's plot, or several to choose one from."""
    caption: str = ""
    """Sentences below the plot."""


def parts_of(report: Report) -> tuple[Part, ...]:
    """Return the sections whose first table has a row, in the page's order."""
    return tuple(part for make in PARTS.values() for part in make(report) if part.sheets[0].lines)


def tcp_parts(report: Report) -> Sequence[Part]:
    cpu = "; CPU of processes in % of one core" if any(one.published_cpu for one in report.published) else ""
    return (
        Part(
            "wans",
            "WANs",
            (wan_sheet(report),),
            figures=tuple(run.plot for run in report.wans if run.plot is not None),
            caption="The mean rate of payload over the buffers of both hosts (the last number of tcp_rmem and "
            "tcp_wmem), with its 95 % interval; the solid line is what a window of that size allows over the round "
            "trip of the idle path. Open markers: the DUT was not the limit, or nothing shows that it was.",
        ),
        Part(
            "tunnels",
            "Tunnels",
            (tunnel_sheet(report), process_sheet(report)),
            "Each DUT's latest run: the mean rate of payload, what the processes that carry it took of one core "
            "(100 % is a core without time left), and the payload for each second of CPU that they took on all hosts "
            "together. The far end of the tunnel is the server, or the DUT.",
        ),
        Part(
            "published",
            "Published figures",
            (published_sheet(report),),
            f"What others have published of the same tests, and what was measured here, in Mbit/s{cpu}. A ratio of a "
            "line that was scaled down is to the same share of the published figure.",
        ),
    )


def packet_parts(report: Report) -> Sequence[Part]:
    sized = find_sized(report.runs)
    return (
        Part(
            "searches",
            "Searches",
            (search_sheet(report),),
            "The highest rate at which no more than a goal's share of the frames is lost: NDR (non-drop rate) of none "
            "at all, PDR (partial drop rate) of the share behind it. The interval: rates that were offered, the lower "
            "within the goal, the upper beyond it; wider where the DUT varies.",
        ),
        Part(
            "sizes",
            "Frame sizes",
            (size_sheet(sized),),
            figures=(size_figure(sized),) if sized else (),
            caption="Frames per second of all directions together over the frame size with FCS (RFC 2544, section "
            "26.1). Dashed: line rate, the theoretical maximum. Open markers: at least so much. The vertical axis has "
            "a log scale. In the table the share is of one direction's line rate, so up to 200\u00a0% of both.",
        ),
    )


PARTS: dict[str, Callable[[Report], Sequence[Part]]] = {tcp.SCHEMA: tcp_parts, packets.SCHEMA: packet_parts}
"""Schema of a load's documents, as in results.loads -> function that makes the load's sections."""
