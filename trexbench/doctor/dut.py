"""The DUT and its lab: whether they are reached, whether its driver can do its work there, what it would change."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from functools import partial

from ..config.model import DutConfig
from ..core.checks import Area, Check, State, attempt, failed, judge
from ..core.errors import BenchError
from ..core.tcp.wan import Wan
from ..lab import LabSpec, host, vm
from ..lab.lab import status
from ..lab.spec import place
from ..session.dut import ConnectedDut, connect_target
from ..session.options import Target
from ..session.wan import made_by, require_wan

MOST_OFFSET_S = 2.0
"""Between the clocks of the DUT and of this machine: more makes logs hard to compare."""


def check_lab(config: DutConfig, embedded: bool) -> Iterator[Check]:
    """Check whether this machine can host the DUT's lab. embedded: with the embedded server."""
    spec = LabSpec.from_config(config)
    try:
        host.check(embedded)
        if spec.is_vm:
            vm.check(spec)
        cpus = host.usable_cpus()
        placement = place(spec.settings, cpus, host.siblings(cpus))
    except BenchError as error:
        yield failed(Area.LAB, "machine", error)
        return
    yield Check(Area.LAB, "machine", State.GOOD, "root, iproute2, and a kernel that sends live frames")
    routers = ", ".join(map(str, placement.router))
    yield Check(Area.LAB, "cores", State.GOOD, f"core {placement.sender} sends, {routers} forward")
    for warning in placement.warnings:
        yield Check(Area.LAB, "cores", State.DOUBTFUL, warning, "use a machine with more cores")
    yield Check(Area.LAB, "state", State.GOOD, str(status(spec.prefix)))


def _wan_of(config: DutConfig, wan: Wan) -> str:
    require_wan(config)
    return f"{wan}, by {made_by(wan)}"


def check_dut(target: Target, config: DutConfig) -> Iterator[Check]:
    """Reaches the DUT as a run would, and reads all that its driver needs; changes nothing."""
    if config.wan is not None:
        yield attempt(Area.DUT, "WAN", partial(_wan_of, config, config.wan))
    if config.lab is not None and status(config.lab.prefix).condition != "up":
        found = "its lab is down: a run brings it up for itself"
        yield Check(Area.DUT, config.name, State.GOOD, found, f"to check it too: trexbench lab up --dut {config.name}")
        return
    if not config.is_reached:
        yield Check(Area.DUT, config.name, State.GOOD, f"driver: {config.driver}: it is not reached, nothing is read")
        return
    try:
        with connect_target(target, "doctor") as there:
            yield from _look(there, config)
    except BenchError as error:
        yield failed(Area.DUT, config.name, error)


def _look(there: ConnectedDut, config: DutConfig) -> Iterator[Check]:
    begun = time.monotonic()
    now = there.transport.run(["date", "+%s.%N"], 10.0)
    took_s = time.monotonic() - begun
    yield Check(Area.DUT, "reached", State.GOOD, f"{there.transport.place}, in {1000 * took_s:.0f} ms")
    yield _judge_clock(now.stdout, time.time(), took_s)
    changes = there.dut.plan()
    what = f"{len(changes)} settings would be changed by a run" if changes else "as its config says"
    yield Check(Area.DUT, "settings", State.GOOD, f"rights, tools and interfaces are there; {what}")
    if not changes:
        attested = there.dut.verify()
        for mismatch in attested.mismatches:
            yield Check(Area.DUT, "settings", State.BAD, str(mismatch))
        for doubt in attested.doubts:
            yield Check(Area.DUT, "settings", State.DOUBTFUL, doubt)
        if not attested.attested:
            yield Check(Area.DUT, "settings", State.DOUBTFUL, attested.reason, "results will say so")
    if not config.is_observed:
        yield Check(Area.DUT, "counters", State.DOUBTFUL, "its config names none", "commands.counters: docs/duts.md")
        return
    missing = "; ".join(dict.fromkeys(one.reason for one in there.observed.observe().missing))
    yield judge(Area.DUT, "counters", not missing, missing or "all that its driver knows can be read", "")


def _judge_clock(said: str, now_s: float, took_s: float) -> Check:
    match = re.match(r"[0-9]{1,12}(\.[0-9]+)?", said.strip())
    if match is None:
        return Check(Area.DUT, "time", State.DOUBTFUL, "the DUT does not tell its time")
    offset_s = float(match[0]) - now_s
    found = f"its clock is {abs(offset_s):.0f} s {'ahead of' if offset_s > 0 else 'behind'} this machine's"
    near = abs(offset_s) <= MOST_OFFSET_S + took_s
    return judge(Area.DUT, "time", near, found, "synchronise both with a time server")
