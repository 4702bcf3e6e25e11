"""Reports a night to other machines: a message to a webhook, and a file of gauges for Prometheus' node exporter."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from pathlib import Path
from urllib.parse import urlsplit

import requests
from prometheus_client import CollectorRegistry, Gauge, generate_latest

from ..core.errors import BenchError, ConfigError, StoreError
from ..core.history.cell import Cell
from ..core.history.night import CellState, Night
from ..core.history.rows import COST, RATE, TCP_RATE, RunRow
from ..core.units import seconds_of
from ..files import replace_file

WEBHOOK_ENV = "TREXBENCH_WEBHOOK"
TIMEOUT_S = 10.0
_FOR_CHAT = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "@\u200b"})
"""Characters of markup and mentions, on which a chat server would act."""
MOST_LETTERS = 3500
"""Longest message, in characters; chat servers cut or refuse longer ones."""


def webhook_url() -> str | None:
    """The webhook's URL from the environment; None: no webhook. ConfigErrors do not repeat it: it is a secret."""
    url = os.environ.get(WEBHOOK_ENV, "").strip()
    if not url:
        return None
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and url.isascii() and url.isprintable()
        sound = sound and " " not in url and (parts.port is None or parts.port > 0)
    except ValueError:
        sound = False
    if not sound:
        raise ConfigError(f"{WEBHOOK_ENV} is not an HTTP address", "write it as https://chat.example.net/hooks/...")
    return url


def post(url: str, text: str, timeout_s: float = TIMEOUT_S) -> None:
    """POST ``{"text": ...}``, as Slack and Mattermost read it; BenchErrors do not repeat the URL.

    A redirect is an error and not followed: the text is for the host that was named.
    """
    if len(text) > MOST_LETTERS:
        text = text[: MOST_LETTERS - 4] + "\n..."
    text = _plain(text).translate(_FOR_CHAT)
    body = json.dumps({"text": text}).encode()
    headers = {"Content-Type": "application/json", "User-Agent": "trexbench"}
    try:
        with requests.post(url, body, headers=headers, timeout=timeout_s, allow_redirects=False, stream=True) as answer:
            reason = None if answer.status_code < 300 else f"it answered {answer.status_code}"
    except (requests.RequestException, OSError, ValueError) as error:
        reason = _without_address(error)
    if reason is not None:
        raise BenchError(f"the webhook failed: {reason}", f"check the address in {WEBHOOK_ENV}")


def _without_address(error: BaseException) -> str:
    """Say why posting failed without any part of the address, which is a secret."""
    if isinstance(error, requests.Timeout):
        return "no answer in time"
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, socket.gaierror):
            return "its host name cannot be resolved"
        if isinstance(cause, OSError) and cause.strerror and "http" not in cause.strerror:
            return cause.strerror
        cause = cause.__cause__ or cause.__context__
    return f"no valid HTTP answer ({type(error).__name__})"


def summary(night: Night, findings: Sequence[str], verdict: str = "", emulated: int = 0) -> str:
    """The night in a few lines: the verdict in a sentence, what was measured, what failed, the findings.

    emulated: number of cells whose DUT's processor was emulated.
    """
    done = sum(cell.state is CellState.DONE for cell in night.cells)
    simulated = " (simulated)" if night.simulated else ""
    marked = f", {emulated} of them emulated" if emulated else ""
    count = f"{done or 'none'} of {len(night.cells)} cells measured{marked}" if night.cells else "not run"
    lines = [*filter(None, [verdict]), f"{night.suite}, night of {night.night}{simulated}: {count}"]
    if night.error is not None:
        lines += [night.error] if night.error not in findings else []
    else:
        for reason, cells in night.failures.items():
            if reason not in verdict:
                lines.append(f"failed: {cells[0] if len(cells) == 1 else f'{len(cells)} cells'}: {reason}")
    return "\n".join([*lines, *findings])


_GAUGES = (
    ("maximum_pps", "Highest rate within the loss limit, of all directions together.", RATE.of),
    ("at_least", "1 where maximum_pps or tcp_bits_per_second is a lower bound only.", lambda row: float(row.at_least)),
    ("cycles_per_packet", "CPU cycles of the DUT per packet in the hold, of a search at the throughput.", COST.of),
    (
        "latency_seconds",
        "Mean latency at half of the throughput, of the worse direction.",
        lambda row: row.get("latency_s"),
    ),
    ("power_watts", "Power of the DUT in the hold.", lambda row: row.get("power_w")),
    ("last_run_timestamp_seconds", "When the run began.", lambda row: seconds_of(row.started)),
)


def textfile(night: Night, rows: Iterable[RunRow], code: int) -> str:
    """The night in Prometheus' text format. rows: of its complete runs; code: the night's exit code."""
    registry, cells, suite = CollectorRegistry(), list(rows), {"suite": _plain(night.suite)}
    of_suite = {**suite, "simulated": str(night.simulated).lower()}
    counts = [
        ({**of_suite, "state": state.value}, sum(cell.state is state for cell in night.cells)) for state in CellState
    ]
    varied = any(row.cell.variant is not None for row in cells)
    for name, about, value_of in _GAUGES:
        _gauge(registry, name, about, [({**suite, **_labels(row.cell, varied)}, value_of(row)) for row in cells])
    tcp = [  # way: who sends (forward: the client); ip: version of IP
        ({**suite, **_labels(row.cell, varied), "way": mode.way.value, "ip": str(mode.version)}, TCP_RATE.of(row))
        for row in cells
        if (mode := row.cell.tcp) is not None
    ]
    _gauge(registry, "tcp_bits_per_second", "Mean rate of payload received, of all connections together.", tcp)
    _gauge(registry, "night_cells", "Cells of the last night by their state.", counts)
    _gauge(registry, "night_exit_code", "0: good, 3: regression, else what failed.", [(of_suite, code)])
    for name, text in (("started", night.started), ("finished", night.finished)):
        _gauge(
            registry, f"night_{name}_timestamp_seconds", f"When the last night {name}.", [(of_suite, seconds_of(text))]
        )
    return generate_latest(registry).decode()


def check_textfile(path: Path | None) -> None:
    """ConfigError for a file name that the node exporter ignores."""
    if path is not None and path.suffix != ".prom":
        raise ConfigError(f"{path}: the node exporter reads files that end in .prom", "name it so with --prometheus")


def write_textfile(path: Path, text: str) -> None:
    """Replace the file as a whole, for the node exporter; StoreError where it cannot be written."""
    try:
        replace_file(path, text.encode("utf-8", "replace"))
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}", "name a place that can be written with --prometheus") from None


def _gauge(
    registry: CollectorRegistry, name: str, about: str, values: Sequence[tuple[Mapping[str, str], float | None]]
) -> None:
    known = [(labels, value) for labels, value in values if value is not None and isfinite(value)]
    if known:
        gauge = Gauge(f"trexbench_{name}", about, list(known[0][0]), registry=registry)
        for labels, value in known:
            gauge.labels(**labels).set(value)


def _labels(cell: Cell, varied: bool) -> dict[str, str]:
    """varied: some cell has a variant; then each gets that label, since all values of a gauge have the same labels."""
    return {
        "dut": _plain(cell.dut),
        "mode": _plain(str(cell.mode)),
        "direction": "bidir" if cell.bidir else "uni",
        "queues": "" if cell.rx_queues is None else str(cell.rx_queues),
        "simulated": str(cell.simulated).lower(),
        **({"variant": _plain(cell.variant or "")} if varied else {}),
    }


def _plain(text: str) -> str:
    """Replace control characters, which could act on a reader; not line feeds, which the format escapes."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in text)
