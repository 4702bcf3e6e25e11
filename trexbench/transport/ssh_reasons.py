"""Complaints of ssh when it cannot connect -> what is wrong and what helps, in one line."""

from __future__ import annotations

import re
from collections.abc import Sequence

_REASONS: Sequence[tuple[str, str, str]] = (
    (
        r"Host key for (?P<name>\S+) has changed",
        "the host key of {name} is not the one that known_hosts has",
        "this may be an attack; if the DUT was reinstalled: ssh-keygen -R '{name}', then log in by hand: {login}",
    ),
    (
        r"host key is known for (?P<name>\S+) and you have requested strict checking",
        "the host key of {name} is not in known_hosts",
        "log in once by hand and compare its fingerprint: {login}",
    ),
    (
        r"Host key verification failed",
        "the host key of {name} was refused",
        "log in once by hand and read what it says: {login}",
    ),
    (
        r"Permission denied \((?P<detail>[^)]*)\)|Too many authentication failures",
        "{name} accepts none of your keys",
        "load the key (ssh-add) or name it in your ssh config, until this asks for nothing: {login}",
    ),
    (
        r"Could not resolve hostname (?P<name>[^:]+):",
        "no address is known for {name}",
        "correct transport.host, or name it in your ssh config",
    ),
    (
        r"connect to host (?P<name>\S+) port (?P<port>\d+): Connection refused",
        "nothing listens on port {port} of {name}",
        "start sshd there, or correct transport.port",
    ),
    (
        r"connect to host (?P<name>\S+) port \d+: (?P<detail>.+)|(?P<slow>Connection timed out)",
        "{name} cannot be reached",
        "see whether it is up, and whether a route leads there",
    ),
    (
        r"Unable to negotiate with (?P<name>\S+)",
        "{name} and this ssh have no algorithm in common",
        "allow one in your ssh config until this works: {login}",
    ),
    (
        r'Cannot open network namespace "(?P<name>[^"]+)"',
        "namespace {name} does not exist",
        "bring the lab up: trexbench lab up",
    ),
    (
        r"Bad configuration option|Bad owner or permissions|no argument after keyword|terminating, \d+ bad config"
        r"|Can't open user config file",
        "your ssh config is not accepted",
        "correct it until this works: {login}",
    ),
)
"""A pattern of what ssh prints (``name``: the host meant, perhaps a jump host); what is wrong; what helps."""


def explain(said: str, host: str, login: str) -> tuple[str, str]:
    """Return what is wrong and what helps. said: ssh's stderr; login: the command that logs in there by hand."""
    for words, wrong, remedy in _REASONS:
        if found := re.search(words, said):
            names = {"name": host, "login": login, **{k: v for k, v in found.groupdict().items() if v}}
            return f"{wrong.format(**names)} ({_last_line(said)})", remedy.format(**names)
    wrong = f"ssh to {host} failed ({_last_line(said) or 'it said nothing'})"
    return wrong, f"see what this says: {login}"


def _last_line(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return "".join(c if c.isprintable() else "?" for c in lines[-1])[:200] if lines else ""
