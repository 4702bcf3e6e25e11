"""``trexbench lab profile``: the traffic of a mode, in words, numbers and packets."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..core.errors import ConfigError, StoreError
from ..core.load.profile import LISTED_MODES
from ..core.units import Rate, format_bits, format_pps, format_share
from ..report.room import room_of
from ..report.sheet import figure, format_sheet, make_sheet, of_pps
from .options import RATE, SPEED, TREX_DIR, TUNABLES_OPTION, complete_traffic, formats, number_option
from .output import OutputForm, note
from .verbs import verbs

if TYPE_CHECKING:
    from ..session.traffic import Traffic

_EXAMPLES = """\b
Examples:
  trexbench lab profile list
  trexbench lab profile show var2-imix --speed 25gbit
  trexbench lab profile show ./mine.py -t size=256 --packets
  trexbench lab profile pcap 64b -o 64b.pcap --count 1000
  trexbench lab profile pcap imix -o - --count 100
"""

_speed = click.option("--speed", type=SPEED, default="10gbit", show_default=True, help="Line speed (L1).")
_port = number_option("--port", 0, 63, 0, "Sending port; odd ports send in the other direction.")
_mode = click.argument("mode", shell_complete=complete_traffic)


@verbs(epilog=_EXAMPLES)
def profile() -> None:
    """Show what a mode puts on the wire: sizes, mean frame, flows, line rate, packets."""


@profile.command("list")
@_speed
@TREX_DIR
@formats("text", "json", "csv", "md")
def list_modes(speed: float, trex_dir: Path | None, form: OutputForm) -> None:
    """List the modes with mean frame size, flows and line rate; `var2-<n>b` is a mode for any frame size."""
    from ..session.traffic import load_traffic

    loaded = [load_traffic(mode.name, None, 0, trex_dir) for mode in LISTED_MODES]
    rows = (
        (
            mode.name,
            ", ".join(mode.aliases),
            figure(traffic.profile.mean_frame_bytes, "{:.1f} B".format),
            str(traffic.profile.flows),
            of_pps(traffic.profile.line_rate_pps(speed)),
        )
        for mode, traffic in zip(LISTED_MODES, loaded, strict=True)
    )
    heads = f":mode; ::aliases^1; mean frame [B]; flows; line rate at {format_bits(speed)} [pps]"
    sheet = make_sheet(heads, rows, "modes", "Modes")
    about = make_sheet(":mode; ::what it sends", ((mode.name, mode.summary) for mode in LISTED_MODES))

    form.write(
        lambda out: "\n".join([*format_sheet(sheet, room_of(out)), "", *format_sheet(about, room_of(out))]),
        lambda: [traffic.facts(speed) for traffic in loaded],
        lambda: [sheet],
    )


@profile.command("show")
@_mode
@_speed
@TUNABLES_OPTION
@_port
@TREX_DIR
@click.option("--packets", is_flag=True, help="Also show the first packet of each stream, decoded and as a hex dump.")
@formats("text", "json")
def show_mode(
    mode: str, speed: float, tunables: dict[str, str] | None, port: int, trex_dir: Path | None, packets: bool,
    form: OutputForm,
) -> None:  # fmt: skip
    """Describe one mode, or the file of a profile (`./mine.py`), with a line per stream."""
    from ..session.traffic import load_traffic

    traffic = load_traffic(mode, tunables, port, trex_dir)
    form.write_lines(_show_lines(traffic, speed, port, packets), lambda: traffic.facts(speed))


def _show_lines(traffic: Traffic, speed: float, port: int, packets: bool) -> Iterator[str]:
    loaded = traffic.profile
    yield f"{traffic.name}: {traffic.summary}"
    tuned = ",".join(f"{k}={v}" for k, v in loaded.tunables.items())
    yield f"  profile     {loaded.name}{tuned and ' -t '}{tuned}, as sent by port {port}"
    yield f"  frames      {loaded.mix}; sizes include the FCS"
    yield f"  flows       {loaded.flows}; varied: {', '.join(loaded.varied) or 'nothing'}"
    line = loaded.line_rate_pps(speed)
    l2 = line * loaded.mean_frame_bytes * 8
    yield f"  line rate   {format_pps(line)} at {format_bits(speed)} L1 ({format_bits(l2)} L2)"
    for number, (stream, text) in enumerate(zip(loaded.streams, traffic.described(), strict=True), 1):
        share = format_share(loaded.share(stream))
        yield f"  stream {number:<4} {stream.frame_bytes} B, {share} of the frames: {text}"
    for number, text in enumerate(traffic.decoded() if packets else (), 1):
        yield from ("", f"stream {number}, its first packet, without FCS:", *(f"  {line}" for line in text.split("\n")))


@profile.command("pcap")
@_mode
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    required=True,
    help="File to write; - for standard output.",
)
@number_option("--count", 1, 10_000_000, 1000, "Number of frames.")
@click.option("--rate", type=RATE, default="1%", show_default=True, help="Offered load, which decides the time stamps.")
@_speed
@TUNABLES_OPTION
@_port
@TREX_DIR
def write_capture(
    mode: str, output: Path, count: int, rate: Rate, speed: float, tunables: dict[str, str] | None, port: int,
    trex_dir: Path | None,
) -> None:  # fmt: skip
    """Write the first frames of a mode as a capture for Wireshark (no FCS, placeholder MAC addresses)."""
    from ..session.traffic import load_traffic

    traffic = load_traffic(mode, tunables, port, trex_dir)
    pps = rate.to_pps(traffic.profile.mean_frame_bytes, speed)
    if (to_stdout := output == Path("-")) and sys.stdout.isatty():
        raise ConfigError("a capture would garble the terminal", "redirect standard output, or name a file with -o")
    try:
        with click.open_file(str(output), "wb") as file:
            traffic.capture(file, count, pps)
    except OSError as error:
        raise StoreError(f"{output}: {error.strerror}", "name a writable file with -o") from error
    summary = f"{count} frames at {format_pps(pps)}"
    note(summary) if to_stdout else click.echo(f"{output}: {summary}")
