"""What a night tells other machines: a message to a webhook, and gauges in a file for Prometheus' node exporter."""

from __future__ import annotations

import http.client
import json
import os
import socket
import urllib.error
import urllib.request
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from math import isfinite
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

from .core.errors import BenchError, ConfigError, StoreError
from .core.history import RunRow
from .core.night import CellRecord, Night, State
from .store import replace_file

WEBHOOK_ENV = "TREXBENCH_WEBHOOK"
TIMEOUT_S = 10.0
MOST_LETTERS = 3500
"""Chat servers cut longer messages, or refuse them."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A webhook that has moved is told, not followed: the text is for the host that was named."""

    def redirect_request(self, *_: object) -> None:
        return None


def webhook_url() -> str | None:
    """Where to post, from the environment; None: nowhere. ConfigError, which does not repeat the secret."""
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
        raise ConfigError(f"{WEBHOOK_ENV} is no HTTP address", "write it as https://chat.example.net/hooks/...")
    return url


def post(url: str, text: str, timeout_s: float = TIMEOUT_S) -> None:
    """POST ``{"text": ...}``, as Slack and Mattermost read it; BenchError, which does not repeat the URL."""
    body = json.dumps({"text": _for_chat(text)}).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json", "User-Agent": "trexbench"})
    try:
        with urllib.request.build_opener(_NoRedirect()).open(request, timeout=timeout_s) as answer:
            answer.read(1024)
    except urllib.error.HTTPError as error:
        error.close()
        _refused(f"it answered {error.code}")
    except urllib.error.URLError as error:
        _refused(_reason(error.reason))
    except OSError as error:
        _refused(_reason(error))
    except (http.client.HTTPException, ValueError) as error:
        _refused(f"it is no web server ({type(error).__name__})")


def _refused(reason: str) -> NoReturn:
    raise BenchError(f"the webhook was not told: {reason}", f"look at the address in {WEBHOOK_ENV}") from None


def _reason(error: object) -> str:
    """Of a failure, in words that hold nothing of the address."""
    if isinstance(error, (TimeoutError, socket.timeout)):
        return "no answer in time"
    if isinstance(error, socket.gaierror):
        return "its name is not known"
    if isinstance(error, OSError) and error.strerror and "http" not in error.strerror:
        return error.strerror
    return f"no connection ({type(error).__name__})"


def _for_chat(text: str) -> str:
    """The text with nothing in it that a chat server would act on: no markup, no mention."""
    cut = text if len(text) <= MOST_LETTERS else text[: MOST_LETTERS - 4] + "\n..."
    plain = "".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in cut)
    for letter, shown in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("@", "@\u200b")):
        plain = plain.replace(letter, shown)
    return plain


def summary(night: Night, findings: Sequence[str]) -> str:
    """The night in a few lines: what was measured, what failed, what was found."""
    done = sum(cell.state is State.DONE for cell in night.cells)
    simulated = " (simulated)" if night.simulated else ""
    lines = [f"{night.suite}, night of {night.night}{simulated}: {done} of {len(night.cells)} cells measured"]
    if night.error is not None:
        lines.append(night.error)
    else:
        lines += [f"failed: {_name(cell)}: {cell.attempts[-1].error}" for cell in night.failed if cell.attempts]
    return "\n".join([*lines, *findings])


def _name(cell: CellRecord) -> str:
    queues = f" {cell.rx_queues}q" if cell.rx_queues is not None else ""
    return f"{cell.dut} {cell.mode} {'bidir' if cell.bidir else 'uni'}{queues}"


_GAUGES = (
    (
        "maximum_pps",
        "Frames per second of all directions at the end of which the DUT saturated.",
        lambda row: row.total_pps,
    ),
    ("at_least", "1 where maximum_pps is a lower bound only.", lambda row: float(row.at_least)),
    ("cycles_per_packet", "What a packet cost the DUT in the hold.", lambda row: row.cycles_per_packet),
    ("latency_seconds", "Mean at half of the throughput, of the worse direction.", lambda row: row.latency_s),
    ("power_watts", "What the DUT drew in the hold.", lambda row: row.power_w),
    ("last_run_timestamp_seconds", "When the run began.", lambda row: _seconds(row.started)),
)


def textfile(night: Night, rows: Iterable[RunRow], code: int) -> str:
    """The night in Prometheus' text format. rows: of its complete runs; code: what the night exits with."""
    lines, cells = [], list(rows)
    for name, about, value_of in _GAUGES:
        values = [
            (_labels(night, row), value) for row in cells if (value := value_of(row)) is not None and isfinite(value)
        ]
        lines += _gauge(name, about, values)
    of_suite = _label_text({"suite": night.suite, "simulated": _word(night.simulated)})
    counts = [(state, sum(cell.state is state for cell in night.cells)) for state in State]
    lines += _gauge(
        "night_cells",
        "Cells of the last night by what became of them.",
        [(_label_text({"suite": night.suite, "state": state.value}), float(count)) for state, count in counts],
    )
    lines += _gauge("night_exit_code", "0 good, 3 regression, else what failed.", [(of_suite, float(code))])
    times = [("night_started_timestamp_seconds", night.started), ("night_finished_timestamp_seconds", night.finished)]
    for name, text in times:
        seconds = _seconds(text)
        lines += _gauge(name, "Of the last night.", [(of_suite, seconds)] if seconds is not None else [])
    return "\n".join(lines) + "\n"


def check_textfile(path: Path | None) -> None:
    """ConfigError for a name that the node exporter would pass over."""
    if path is not None and path.suffix != ".prom":
        raise ConfigError(f"{path}: the node exporter reads files that end in .prom", "name it so with --prometheus")


def write_textfile(path: Path, text: str) -> None:
    """At once: the node exporter finds the former file or this one. BenchError where it cannot be written."""
    try:
        replace_file(path, text.encode("utf-8", "replace"))
    except StoreError as error:
        reason = getattr(error.__cause__, "strerror", None) or " ".join(str(error).split())
        raise StoreError(f"{path}: {reason}", "name a place that can be written with --prometheus") from None


def _gauge(name: str, about: str, values: Sequence[tuple[str, float]]) -> list[str]:
    full = f"trexbench_{name}"
    if not values:
        return []
    return [
        f"# HELP {full} {about}",
        f"# TYPE {full} gauge",
        *(f"{full}{labels} {value!r}" for labels, value in values),
    ]


def _labels(night: Night, row: RunRow) -> str:
    cell = row.cell
    return _label_text(
        {
            "suite": night.suite,
            "dut": cell.dut,
            "mode": cell.mode,
            "direction": "bidir" if cell.bidir else "uni",
            "queues": "" if cell.rx_queues is None else str(cell.rx_queues),
            "simulated": _word(cell.simulated),
        }
    )


def _label_text(labels: dict[str, str]) -> str:
    def escaped(text: str) -> str:
        plain = "".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in text)
        return plain.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    return "{" + ",".join(f'{name}="{escaped(value)}"' for name, value in labels.items()) + "}"


def _word(value: bool) -> str:
    return "true" if value else "false"


def _seconds(text: str | None) -> float | None:
    """Since 1970, of a time as documents have it."""
    if text is None:
        return None
    try:
        found = datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ")
    except ValueError:
        return None
    return found.replace(tzinfo=timezone.utc).timestamp()
