"""One JSON answer of a plug in the local network: limited in time and size, without redirects or proxies.

A plug that asks for a password gets the one in TREXBENCH_POWER_PASSWORD (user ``admin`` or TREXBENCH_POWER_USER),
which is in no config, message or result.
"""

from __future__ import annotations

import json
import os
import threading
from typing import Any

import requests
from requests.auth import AuthBase, HTTPBasicAuth, HTTPDigestAuth

from ..core.errors import DutError

PASSWORD_ENV, USER_ENV = "TREXBENCH_POWER_PASSWORD", "TREXBENCH_POWER_USER"
LIMIT_BYTES = 256 * 1024
_NOT_THERE = (404, 500, 501)
"""Status codes for a component that is not there: a Shelly answers 500 in old firmware, 404 since."""


def fetch_json(url: str, timeout_s: float, otherwise: tuple[str, ...] = ()) -> Any:
    """The JSON object at the first of these addresses that exists; DutError where none does.

    Each takes timeout_s at most, however slowly the plug sends its answer.
    """
    for one in (url, *otherwise):
        status, body = _within(one, timeout_s)
        if status not in _NOT_THERE:
            return _parsed(status, body, one)
    raise DutError(f"{url} does not exist (status {status})", "see power.type, power.url and power.channel")


def _within(url: str, timeout_s: float) -> tuple[int, bytes]:
    """_fetch in a thread of its own: requests limits the time between two bytes, not that of the whole answer."""
    found: list[tuple[int, bytes] | Exception] = []

    def work() -> None:
        try:
            found.append(_fetch(url, timeout_s))
        except Exception as error:  # handed to the caller's thread
            found.append(error)

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    worker.join(timeout_s)
    if not found or isinstance(found[0], requests.Timeout):
        raise DutError(f"{url} did not answer within {timeout_s:g} s", "see whether the meter is up")
    if isinstance(found[0], (requests.RequestException, OSError, ValueError)):
        raise DutError(f"{url} cannot be read ({_reason(found[0])})", "see power.url and the meter") from None
    if isinstance(found[0], Exception):
        raise found[0]
    return found[0]


def _fetch(url: str, timeout_s: float) -> tuple[int, bytes]:
    """Status and body. The password is sent only when it is asked for, and as a digest where that is asked for."""
    with requests.Session() as session:
        session.trust_env = False  # no proxy, no .netrc
        status, body, asked = _get(session, url, timeout_s, None)
        password = os.environ.get(PASSWORD_ENV)
        if status == 401 and asked and password:
            way = HTTPDigestAuth if "digest " in asked.lower() else HTTPBasicAuth
            status, body, _ = _get(session, url, timeout_s, way(os.environ.get(USER_ENV, "admin"), password))
    return status, body


def _get(session: requests.Session, url: str, timeout_s: float, auth: AuthBase | None) -> tuple[int, bytes, str]:
    with session.get(url, timeout=timeout_s, auth=auth, allow_redirects=False, stream=True) as answer:
        body = b""
        for chunk in answer.iter_content(65536):
            body += chunk
            if len(body) > LIMIT_BYTES:
                raise DutError(f"{url} answers with more than {LIMIT_BYTES} bytes", "it is no power meter")
        return answer.status_code, body, answer.headers.get("WWW-Authenticate", "")


def _parsed(status: int, body: bytes, url: str) -> Any:
    if status in (401, 403):
        raise DutError(f"{url} asks for a password", f"set it in the environment as {PASSWORD_ENV}")
    if 300 <= status < 400:
        raise DutError(f"{url} redirects elsewhere", "write the meter's own address as power.url")
    if status != 200:
        raise DutError(f"{url} answers with status {status}", "see power.type and power.url")
    try:
        answer = json.loads(body.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise DutError(f"{url} answers with no JSON ({body[:40]!r})", "see power.type and power.url") from None
    if not isinstance(answer, dict):
        raise DutError(f"{url} answers with JSON of another form", "see power.type and power.url")
    return answer


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def _reason(error: Exception) -> str:
    """The innermost cause, in one line, without urllib3's object names."""
    inner: Any = error
    while inner.args and isinstance(getattr(inner.args[0], "reason", inner.args[0]), Exception):
        inner = getattr(inner.args[0], "reason", inner.args[0])
    return (
        "".join(c if c.isprintable() else " " for c in str(inner).rpartition("): ")[2])[:80].strip()
        or type(inner).__name__
    )
