"""From options to a request, and from a request to what the user sees and keeps."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from ..config import PlanDefaults, find_profile, load_dut
from ..core.errors import BenchError, ConfigError, StoreError
from ..core.ports import Sink
from ..core.profile import resolve_mode
from ..core.result import RunResult, to_document
from ..report.live import open_live
from ..report.picture import draw_run
from ..report.text import print_summary
from ..runner import Interrupted
from ..store import RunWriter
from .measure import Fan, measure
from .request import Request


def make_request(verb: str, options: dict[str, Any], wished: PlanDefaults) -> Request:
    """The request behind these options; ConfigError names what is wrong with them."""
    dut = load_dut(options["dut"], options["configs_dir"])
    if (options["mode"] is None) == (options["profile"] is None):
        resolve_mode(options["mode"] or "")
        raise ConfigError("--mode and --profile exclude each other", "name one of them")
    if options["mode"] is not None:
        mode = resolve_mode(options["mode"])
        name, file, tunables = mode.name, find_profile(mode.profile), dict(mode.tunables)
    else:
        file = find_profile(options["profile"])
        name, tunables = file.stem, {}
    ports = options["ports"] or dut.tester_ports
    return Request(
        verb=verb,
        dut=dut,
        mode=name,
        profile_file=file,
        tunables={**tunables, **(options["tunables"] or {})},
        bidir=options["bidir"],
        wished=wished,
        ports=ports,
        server=options["server"],
        rpc_port=options["rpc_port"],
        pub_port=options["pub_port"],
        trex_dir=options["trex_dir"],
        apply=not options["no_apply"],
        force=options["force"],
    )
