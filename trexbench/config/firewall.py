"""Firewalls of variants: a word for one that trexbench writes itself, or a file of rules that is read and checked.

A file is what ``nft list table inet trexbench`` prints: all of its rules are in a table of trexbench's own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from ..core.errors import ConfigError
from . import readers as r
from .yamltree import Value, read_text

TABLE = "trexbench"
"""Name of nft's table, in the family inet."""
NONE, STATELESS, STATEFUL = "none", "stateless", "stateful"
WORDS = (NONE, STATELESS, STATEFUL)
_SHIPPED = Path(__file__).with_name("firewalls")
_FILE = r.pattern(r"[A-Za-z0-9_/][A-Za-z0-9_./+-]*", "a file's name", "firewalls/office.nft", 200)
_TOKENS = re.compile(r'"[^"]*"|#[^\n]*|\\\n|[{};\n]|[^"#{};\n\\]+|.')
_NO_RULES = ("type", "policy", "comment")
_ELSEWHERE = ("include", "define", "redefine", "undefine")


@dataclass(frozen=True)
class RulesFile:
    """A file of rules."""

    file: Path
    digest: str
    """SHA-256 of its text."""
    body: str
    """Contents of its table, without comments."""
    rules: Mapping[str, int]
    """Number of rules by chain."""


@dataclass(frozen=True)
class Firewall:
    """A firewall that a variant asks for."""

    name: str = NONE
    """One of WORDS, or the file's name in the config."""
    file: RulesFile | None = None
    """Rules; None for a word."""


def shipped() -> tuple[str, ...]:
    """Return the names of the rule sets that trexbench ships."""
    return tuple(sorted({path.stem for path in _SHIPPED.glob("*.nft")}))


@r.takes(anyOf=[{"enum": [*WORDS, *shipped()]}, {"type": "string"}])
def firewall(value: Value) -> Firewall:
    """Read a word, the name of a shipped rule set, or a file beside the config."""
    raw = value.text()
    if raw in WORDS:
        return Firewall(raw)
    if raw in shipped():
        return Firewall(raw, read_rules(_SHIPPED / f"{raw}.nft"))
    name = _FILE(value)
    if "." not in name and "/" not in name:
        words = ", ".join((*WORDS, *shipped()))
        raise ConfigError(f"{raw[:80]!r} is not known", f"write one of {words}, or a file as firewalls/office.nft")
    return Firewall(name, read_rules(value.file.parent / name))


def read_rules(path: Path) -> RulesFile:
    """Read a file of rules; ConfigError, with its line, for any that reaches beyond trexbench's own table."""
    text = read_text(path, "firewall")
    if re.search(r"^\*[a-z]+\s*$", text, re.MULTILINE):
        remedy = f"translate them with iptables-restore-translate -f, and put all into table inet {TABLE} {{ ... }}"
        raise ConfigError(f"{path}: iptables rules are no longer supported", remedy)
    tokens = [token for token in _TOKENS.findall(text) if not token.startswith("#")]
    rules = _count_rules(path, tokens)
    plain = "".join(tokens)
    body = plain[plain.index("{") + 1 : plain.rindex("}")].strip("\n")
    return RulesFile(path, sha256(text.encode()).hexdigest(), body, rules)


def _count_rules(path: Path, tokens: list[str]) -> dict[str, int]:
    """Count the rules of each chain as the kernel will list them; ConfigError for anything outside the table."""
    opened, statement, line, rules, closed = list[str](), "", 1, dict[str, int](), False

    def wrong(what: str) -> ConfigError:
        return ConfigError(f"{path}:{line}: {what}", f"a file holds one table inet {TABLE} {{ ... }} and nothing else")

    for token in tokens:
        words, depth = statement.split(), len(opened)
        if token == "{":
            if depth == 0 and (closed or words != ["table", "inet", TABLE]):
                raise wrong(f"{' '.join(words)[:60]!r} is not the one table")
            if depth == 1 and words[:1] == ["chain"]:
                rules[words[-1]] = 0
            opened.append(statement)
            statement = statement + token if depth >= 2 else ""
        elif depth < 3 and token in ("}", ";", "\n"):
            if words and (words[0] in _ELSEWHERE or depth < (1 if words[0] == "comment" else 2)):
                raise wrong(f"{' '.join(words)[:60]!r} does not belong here")
            owner = opened[1].split() if depth == 2 else []
            if words and owner[:1] == ["chain"] and words[0] not in _NO_RULES:
                rules[owner[-1]] += 1
            statement = ""
            if token == "}":
                if not opened:
                    raise wrong("a closing brace too many")
                opened.pop()
                closed = not opened
        else:
            if token == "}":
                opened.pop()
            statement += " " if token in ("\n", "\\\n") else token
        line += token.count("\n")
    if opened or statement.strip() or not closed:
        raise wrong("the table is incomplete")
    return rules
