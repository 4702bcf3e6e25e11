"""One JSON answer of a plug in the local network: bounded in time and size, led nowhere else, never by a proxy.

A plug that asks for a password gets that of TREXBENCH_POWER_PASSWORD (user ``admin`` or TREXBENCH_POWER_USER), which
stands in no config, no message and no result.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import socket
import threading
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

from ..core.errors import DutError

PASSWORD_ENV, USER_ENV = "TREXBENCH_POWER_PASSWORD", "TREXBENCH_POWER_USER"
LIMIT_BYTES = 256 * 1024
_NOT_THERE = (404, 500, 501)
"""What a Shelly says to a component it does not have: 500 in old firmware, 404 since."""


class _NotThere(Exception):
    """The path means nothing to this plug."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        """urllib then raises the answer itself as an error."""


class _Digest(urllib.request.HTTPDigestAuthHandler):
    """With SHA-256, which a Shelly of the second generation asks for and Python's does not know."""

    def get_algorithm_impls(self, algorithm: str) -> Any:
        if algorithm.upper() != "SHA-256":
            return super().get_algorithm_impls(algorithm)

        def digest(text: str) -> str:
            return hashlib.sha256(text.encode("utf-8")).hexdigest()

        return digest, lambda secret, data: digest(f"{secret}:{data}")


def fetch_json(url: str, timeout_s: float, otherwise: tuple[str, ...] = ()) -> Any:
    """What this address answers, or the first of the others where it says that there is nothing; DutError if none.

    The whole takes timeout_s at most: a plug may not drip its answer.
    """
    reason = "no answer"
    for one in (url, *otherwise):
        try:
            return _parsed(_fetch(one, timeout_s), one)
        except _NotThere as error:
            reason = str(error)
    raise DutError(f"{url} is not there ({reason})", "see power.type, power.url and power.channel")


def _fetch(url: str, timeout_s: float) -> bytes:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect(), *_password(url))
    said: list[bytes | BaseException] = []

    def work() -> None:
        try:
            with opener.open(url, timeout=timeout_s) as answer:
                said.append(answer.read(LIMIT_BYTES + 1))
        except BaseException as error:  # handed to the caller's thread, which raises it
            said.append(error)

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    worker.join(timeout_s)
    if not said:
        raise DutError(f"{url} did not answer within {timeout_s:g} s", "see whether the meter is up")
    found = said[0]
    if isinstance(found, bytes):
        if len(found) > LIMIT_BYTES:
            raise DutError(f"{url} answers with more than {LIMIT_BYTES} bytes", "it is no power meter")
        return found
    raise _translated(found, url, timeout_s) from None


def _translated(error: BaseException, url: str, timeout_s: float) -> BaseException:
    """urllib's failures in words a user can act on."""
    if isinstance(error, urllib.error.HTTPError):
        if error.code in _NOT_THERE:
            return _NotThere(f"status {error.code}")
        if error.code in (401, 403):
            return DutError(f"{url} asks for a password", f"set it in the environment as {PASSWORD_ENV}")
        if 300 <= error.code < 400:
            return DutError(f"{url} leads to another place", "write the meter's own address as power.url")
        return DutError(f"{url} answers with status {error.code}", "see power.type and power.url")
    reason = getattr(error, "reason", error)
    if isinstance(reason, (TimeoutError, socket.timeout)):
        return DutError(f"{url} did not answer within {timeout_s:g} s", "see whether the meter is up")
    if isinstance(error, (OSError, ValueError, http.client.HTTPException)):
        told = "".join(c if c.isprintable() else " " for c in str(reason))[:80].strip() or type(error).__name__
        return DutError(f"{url} cannot be read ({told})", "see power.url and the meter")
    return error


def _parsed(body: bytes, url: str) -> Any:
    try:
        answer = json.loads(body.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise DutError(f"{url} answers with no JSON ({body[:40]!r})", "see power.type and power.url") from None
    if not isinstance(answer, dict):
        raise DutError(f"{url} answers with JSON of another form", "see power.type and power.url")
    return answer


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def _password(url: str) -> tuple[urllib.request.BaseHandler, ...]:
    password = os.environ.get(PASSWORD_ENV)
    if not password:
        return ()
    known = urllib.request.HTTPPasswordMgrWithDefaultRealm()
    place = urlsplit(url)
    known.add_password(None, f"{place.scheme}://{place.netloc}/", os.environ.get(USER_ENV, "admin"), password)
    return urllib.request.HTTPBasicAuthHandler(known), _Digest(known)
