"""``trexbench profile``: what a mode puts on the wire, in words, numbers and packets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from ..core.errors import BenchError
from ..core.profile import MODES, Mode, Profile, resolve_mode
from ..core.units import format_bits, format_pps, format_share, parse_speed
from .params import RATE, TUNABLES, Parsed, complete_modes

SPEED = Parsed("SPEED", parse_speed)
_EXAMPLES = """\b
Examples:
  trexbench profile list
  trexbench profile show var2-imix --speed 25gbit
  trexbench profile pcap 64b -o 64b.pcap --count 1000
"""

_speed = click.option("--speed", type=SPEED, default="10gbit", show_default=True, help="Line rate to reckon with.")
_tunables = click.option("-t", "--tunables", type=TUNABLES, help="Override the mode's tunables: size=128,vm=random.")
_trex_dir = click.option(
    "--trex-dir",
    type=click.Path(path_type=Path),
    envvar="TREXBENCH_TREX_DIR",
    help="Use the client of this TRex installation.",
)
_port = click.option(
    "--port",
    type=click.IntRange(0, 63),
    default=0,
    show_default=True,
    help="As sent by this port; odd ports send the other way.",
)
_json = click.option("--json", "as_json", is_flag=True, help="As JSON.")
_mode = click.argument("mode", shell_complete=complete_modes)


@click.group(epilog=_EXAMPLES)
def profile() -> None:
    """What a mode puts on the wire: sizes, mean frame, flows, line rate, packets."""


@profile.command("list")
@_speed
@_trex_dir
@_json
def list_modes(speed: float, trex_dir: Path | None, as_json: bool) -> None:
    """Every mode, with its mean frame, its flows and its line rate."""
    loaded = [(mode, _load(mode, None, 0, trex_dir)) for mode in MODES]
    if as_json:
        click.echo(json.dumps([_facts(mode, one, speed) for mode, one in loaded], indent=2))
        return
    click.echo(
        f"{'mode':<12} {'aliases':<26} {'mean frame':>10} {'flows':>6} {'line rate at ' + format_bits(speed):>27}"
    )
    for mode, one in loaded:
        rate = format_pps(one.line_rate_pps(speed))
        aliases = ", ".join(mode.aliases)
        click.echo(f"{mode.name:<12} {aliases:<26} {one.mean_frame_bytes:8.1f} B {one.flows!s:>6} {rate:>27}")
    click.echo("")
    for mode in MODES:
        click.echo(f"{mode.name:<12} {mode.summary}")


@profile.command("show")
@_mode
@_speed
@_tunables
@_port
@_trex_dir
@_json
def show_mode(
    mode: str, speed: float, tunables: dict[str, str] | None, port: int, trex_dir: Path | None, as_json: bool
) -> None:
    """One mode in words and numbers, and the first packet of each stream decoded."""
    from ..generator.profile_loader import decode

    known = resolve_mode(mode)
    loaded = _load(known, tunables, port, trex_dir)
    if as_json:
        click.echo(json.dumps(_facts(known, loaded, speed), indent=2))
        return
    click.echo(f"{known.name}: {known.summary}")
    said = ",".join(f"{k}={v}" for k, v in loaded.tunables.items())
    click.echo(f"  profile     {known.profile} -t {said}, as sent by port {port}")
    click.echo(f"  frames      {loaded.mix}, mean {loaded.mean_frame_bytes:.2f} B with FCS")
    click.echo(f"  flows       {loaded.flows}; varied: {', '.join(loaded.varied) or 'nothing'}")
    line = loaded.line_rate_pps(speed)
    l2 = line * loaded.mean_frame_bytes * 8
    click.echo(f"  line rate   {format_pps(line)} at {format_bits(speed)} L1 ({format_bits(l2)} L2)")
    for number, (stream, text) in enumerate(zip(loaded.streams, decode(_client(trex_dir), loaded), strict=True), 1):
        share = format_share(loaded.share(stream))
        click.echo(f"\nstream {number}: {stream.frame_bytes} B, {share} of the frames; its first packet, without FCS:")
        click.echo("  " + text.replace("\n", "\n  "))


@profile.command("pcap")
@_mode
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), required=True, help="File to write.")
@click.option("--count", type=click.IntRange(1, 10_000_000), default=1000, show_default=True, help="Frames.")
@click.option("--rate", type=RATE, default="1%", show_default=True, help="Offered load that the time stamps show.")
@_speed
@_tunables
@_port
@_trex_dir
def write_capture(
    mode: str,
    output: Path,
    count: int,
    rate: Any,
    speed: float,
    tunables: dict[str, str] | None,
    port: int,
    trex_dir: Path | None,
) -> None:
    """The first frames of a mode as a capture for Wireshark (without FCS; MAC addresses are stand-ins)."""
    from ..generator.profile_loader import write_pcap

    loaded = _load(resolve_mode(mode), tunables, port, trex_dir)
    pps = rate.to_pps(loaded.mean_frame_bytes, speed)
    try:
        with output.open("wb") as file:
            write_pcap(file, loaded, count, pps)
    except OSError as error:
        raise BenchError(f"{output}: {error.strerror}", "name a file that can be written with -o") from error
    click.echo(f"{output}: {count} frames at {format_pps(pps)}")


def _client(trex_dir: Path | None) -> Any:
    from ..generator.client import load_client

    return load_client(trex_dir)


def _load(mode: Mode, tunables: dict[str, str] | None, port: int, trex_dir: Path | None) -> Profile:
    from ..config import find_profile
    from ..generator.profile_loader import load_profile

    return load_profile(
        _client(trex_dir), find_profile(mode.profile), {**dict(mode.tunables), **(tunables or {})}, port
    )


def _facts(mode: Mode, loaded: Profile, speed: float) -> dict[str, Any]:
    return {
        "mode": mode.name,
        "aliases": list(mode.aliases),
        "summary": mode.summary,
        "line_rate_bps": speed,
        "line_rate_pps": loaded.line_rate_pps(speed),
        **loaded.to_dict(),
    }
