"""``trexbench serve``: the embedded STL server by itself, for TRex's console or another client."""

from __future__ import annotations

import time
from pathlib import Path

import click

from .params import complete_duts

_HELP_FLAG = {"ignore_unknown_options": True, "help_option_names": []}
_EPILOG = """instead of interfaces:
  --sim DUT             no packets: the twin of this DUT (a name in dut_configs/, or a file) behind simulated ports
  --rx-queues N         with --sim: receive queues per port, of those its config offers
  --seed N              with --sim: of the twin's noise

examples:
  trexbench serve --interfaces p0,p1
  trexbench serve --sim netgate-vpp --rx-queues 2
  trexbench serve --fake-ports 2 --fault die@20s
"""


@click.command(context_settings=_HELP_FLAG, add_help_option=False)
@click.option("--sim", "twin", metavar="DUT", shell_complete=complete_duts)
@click.option("--rx-queues", type=click.IntRange(1, 64))
@click.option("--seed", type=click.IntRange(0))
@click.option("--configs-dir", type=click.Path(path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def serve(
    twin: str | None, rx_queues: int | None, seed: int | None, configs_dir: Path | None, arguments: tuple[str, ...]
) -> int:
    """Run the embedded STL server; its options are the server's own (`trexbench serve --help`)."""
    from ..stlserver.__main__ import main

    engine = None
    if twin is not None:
        from ..config import load_dut
        from .request import choose_queues
        from .simulate import twin_engine

        dut = load_dut(twin, configs_dir)
        engine = twin_engine(dut, choose_queues(dut, rx_queues), seed, time.monotonic)
    try:
        return main(list(arguments), engine, _EPILOG)
    except SystemExit as ended:  # argparse exits by itself, for --help too
        return int(ended.code or 0)
