"""Meaning of TRex's own words: each row of the table is found in what was recorded of one."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trexbench.generator.trex.errors import Meaning, meaning_of

RECORDED = Path(__file__).parents[1] / "fixtures" / "trex-v3.08"


def recorded_errors() -> set[str]:
    """Every error text of the recordings."""
    talks = [json.loads(line)["msg"] for line in _text("errors.jsonl.gz").splitlines()]
    return {*_errors(talks), *_errors(json.loads(_text("conversation.json.gz")))}


def _text(name: str) -> str:
    return gzip.decompress((RECORDED / name).read_bytes()).decode()


def _errors(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        error = value.get("error")
        if isinstance(error, dict):
            yield str(error.get("specific_err") or error.get("message"))
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _errors(one)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("port is already taken by 'root'", Meaning.NOT_OURS),
        ("port is not owned by you or your current executing session", Meaning.NOT_OURS),
        ("please acquire the port before modifying port state", Meaning.NOT_OURS),
        ("command 'set_l2_mode' cannot be executed on current state: 'TX'", Meaning.WRONG_STATE),
        ("Expected L1 B/W: '20 Gbps' exceeds port line rate: '10 Gbps'", Meaning.TOO_FAST),
        (
            "Version mismatch: your client version is too new to be supported by the server\n"
            "(API type 'STL':  - server: '5.1', client: '6.0')",
            Meaning.OTHER_VERSION,
        ),
        (
            "RPC configuration mismatch - server RPC configuration: 'STL', client RPC configuration: 'ASTF'",
            Meaning.OTHER_MODE,
        ),
        (" pause is supported when duration is not enable is start command ", None),
    ],
)
def test_what_was_recorded_is_understood(text: str, meaning: Meaning | None) -> None:
    assert text in recorded_errors() and meaning_of(text) is meaning
