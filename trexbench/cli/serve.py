"""``trexbench lab serve``: the embedded STL server alone, for TRex's console or another client."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from ..config.lookup import load_dut
from ..core.errors import ConfigError
from ..stlserver import __main__ as server
from .options import CONFIGS, RX_QUEUES, complete_duts
from .verbs import verb

EPILOG = """\b
Examples:
  trexbench lab serve --interfaces p0,p1
  trexbench lab serve --sim netgate-vpp --rx-queues 2
"""


@verb(epilog=EPILOG)
@click.option(
    "--sim",
    "twin",
    metavar="DUT",
    shell_complete=complete_duts,
    help="Instead of interfaces: simulated ports and the twin of this DUT (a name in dut_configs/, or a file).",
)
@RX_QUEUES
@click.option("--seed", type=click.IntRange(0), help="With --sim: seed of the twin's noise.")
@CONFIGS
def serve(twin: str | None, rx_queues: int | None, seed: int | None, configs_dir: Path | None, **options: Any) -> int:
    """Run the embedded STL server: TRex's protocol, on Linux interfaces (root) or simulated ports."""
    engine = None
    if twin is None:
        for option, value in (("--seed", seed), ("--rx-queues", rx_queues)):
            if value is not None:
                raise ConfigError(f"{option} means nothing without --sim", "add --sim DUT, or leave it out")
    else:
        from ..session.request import choose_queues
        from ..session.simulate import twin_engine

        dut = load_dut(twin, configs_dir)
        engine, _ = twin_engine(dut, choose_queues(dut, rx_queues), seed, time.monotonic)
    return server.run(engine, **options)


serve.params += server.serve.params
