"""Firewalls of a variant: a word for one that trexbench writes itself, or a file with rules that are read and checked.

A file is what ``nft list table inet trexbench`` prints, or what ``iptables-save`` and ``ip6tables-save`` do, one after
the other. All of its rules end up in a table, or in chains, of trexbench's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from ..core.errors import ConfigError
from . import readers as r
from .yamltree import Value, read_text

TABLE = "trexbench"
"""Name of nft's table, in the family inet, and prefix of the names of iptables' chains."""
NONE, STATELESS, STATEFUL = "none", "stateless", "stateful"
WORDS = (NONE, STATELESS, STATEFUL)
_SHIPPED = Path(__file__).with_name("firewalls")
_FILE = r.pattern(r"[A-Za-z0-9_/][A-Za-z0-9_./+-]*", "a file's name", "firewalls/office.nft", 200)
_TOKENS = re.compile(r'"[^"]*"|#[^\n]*|\\\n|[{};\n]|[^"#{};\n\\]+|.')
_OBJECTS = ("chain", "set", "map", "counter", "quota", "limit", "ct")
_NO_RULES = ("type", "policy", "comment")
_ELSEWHERE = ("include", "define", "redefine", "undefine")
_CHAIN = re.compile(r":(?P<name>[A-Za-z0-9_-]{1,17}) (?P<policy>ACCEPT|DROP|-)(?: \[\d+:\d+\])?")
_RULE = re.compile(r"-A (?P<chain>[A-Za-z0-9_-]{1,17})(?P<rest>(?: .*)?)")
_TABLES = ("filter", "nat", "mangle", "raw")


@dataclass(frozen=True)
class Chain:
    """One of iptables' chains. policy: what becomes of packets no rule took; ``-``: of a chain that is jumped to."""

    policy: str
    rules: tuple[str, ...] = ()


@dataclass(frozen=True)
class RulesFile:
    """A file of rules. nft: what stands in its table, with the number of rules by chain; iptables: by IP version,
    table and chain; None: it is of the other form. digest: SHA-256 of the file.
    """

    file: Path
    digest: str
    nft: tuple[str, Mapping[str, int]] | None = None
    iptables: Mapping[int, Mapping[str, Mapping[str, Chain]]] | None = None


@dataclass(frozen=True)
class Firewall:
    """name: one of WORDS, or as the config names the file. files: of the same rules, in one form or in both."""

    name: str = NONE
    files: tuple[RulesFile, ...] = ()


def shipped() -> tuple[str, ...]:
    """The names of the rule sets that trexbench brings along."""
    return tuple(sorted({path.stem for path in _SHIPPED.glob("*.nft")}))


def firewall(value: Value) -> Firewall:
    """A word, the name of a rule set that is shipped, or a file beside the config."""
    raw = value.text()
    if raw in WORDS:
        return Firewall(raw)
    if raw in shipped():
        return Firewall(raw, tuple(read_rules(_SHIPPED / f"{raw}{end}") for end in (".nft", ".rules")))
    name = _FILE(value)
    if "." not in name and "/" not in name:
        words = ", ".join((*WORDS, *shipped()))
        raise ConfigError(f"{raw[:80]!r} is not known", f"write one of {words}, or a file as firewalls/office.nft")
    return Firewall(name, (read_rules(value.file.parent / name),))


def read_rules(path: Path) -> RulesFile:
    """The rules of a file; ConfigError, with its line, for what would reach beyond trexbench's own table."""
    text = read_text(path, "firewall")
    digest = sha256(text.encode()).hexdigest()
    if re.search(r"^\*[a-z]+\s*$", text, re.MULTILINE):
        return RulesFile(path, digest, iptables=_iptables(path, text))
    return RulesFile(path, digest, nft=_nft(path, text))


@dataclass
class _Table:
    """Part of an nft table that has been read so far. opened: the words before each open brace."""

    path: Path
    line: int = 1
    opened: list[str] = field(default_factory=list)
    words: str = ""
    rules: dict[str, int] = field(default_factory=dict)
    closed: bool = False

    def wrong(self, what: str, remedy: str) -> ConfigError:
        return ConfigError(f"{self.path}:{self.line}: {what}", remedy)

    def take(self, token: str) -> None:
        inside = len(self.opened)
        if token == "{":
            self._open(self.words.split())
            self.opened.append(self.words)
            self.words = self.words + token if inside >= 2 else ""
        elif token == "}":
            self._close()
        elif token in (";", "\n") and inside < 3:
            self._end()
        else:
            self.words += " " if token in ("\n", "\\\n") else token
        self.line += token.count("\n")

    def _open(self, words: list[str]) -> None:
        if self.opened:
            if len(self.opened) == 1 and (not words or words[0] not in _OBJECTS):
                raise self.wrong(f"{' '.join(words)[:60]!r} in a table", f"write {', '.join(_OBJECTS)}")
            if len(self.opened) == 1 and words[0] == "chain":
                self.rules[words[-1]] = 0
        elif self.closed or words != ["table", "inet", TABLE]:
            raise self.wrong(
                f"{' '.join(words)[:60]!r} is not the one table", f"write all in table inet {TABLE} {{ ... }}"
            )

    def _close(self) -> None:
        if not self.opened:
            raise self.wrong("a brace too many is closed", "count the braces")
        if len(self.opened) > 2:
            self.words += "}"
        else:
            self._end()
            self.closed = len(self.opened) == 1
        self.opened.pop()

    def _end(self) -> None:
        """A statement is complete; it is a rule where it stands in a chain."""
        words, self.words = self.words.split(), ""
        if not words:
            return
        if words[0] in _ELSEWHERE or len(self.opened) < (1 if words[0] == "comment" else 2):
            remedy = f"a file holds one table inet {TABLE} {{ ... }} and nothing else"
            raise self.wrong(f"{' '.join(words)[:60]!r} does not belong here", remedy)
        owner = self.opened[1].split() if len(self.opened) > 1 else []
        if owner[:1] == ["chain"] and words[0] not in _NO_RULES:
            self.rules[owner[-1]] += 1


def _nft(path: Path, text: str) -> tuple[str, Mapping[str, int]]:
    table = _Table(path)
    for token in _TOKENS.findall(text):
        if token.startswith("#"):
            continue
        table.take(token)
    if table.opened or table.words.strip() or not table.closed:
        raise table.wrong("a table is not complete", f"write table inet {TABLE} {{ ... }}")
    plain = "".join(token for token in _TOKENS.findall(text) if not token.startswith("#"))
    return plain[plain.index("{") + 1 : plain.rindex("}")].strip("\n"), table.rules


def _iptables(path: Path, text: str) -> Mapping[int, Mapping[str, Mapping[str, Chain]]]:
    found: dict[int, dict[str, dict[str, Chain]]] = {}
    version, table = 4, ""
    for number, line in enumerate(text.splitlines(), 1):
        words = line.strip()
        if words.startswith("# Generated by ip"):
            version = 6 if words.startswith("# Generated by ip6") else 4
        if not words or words.startswith("#"):
            continue
        if words == "COMMIT":
            table = ""
        elif not table and words[:1] == "*" and words[1:] in _TABLES:
            table = words[1:]
            found.setdefault(version, {}).setdefault(table, {})
        elif table and (match := _CHAIN.fullmatch(words)):
            found[version][table][match["name"]] = Chain(match["policy"])
        elif table and (match := _RULE.fullmatch(words)) and (chain := found[version][table].get(match["chain"])):
            found[version][table][match["chain"]] = Chain(chain.policy, (*chain.rules, match["rest"].strip()))
        else:
            remedy = "write *TABLE, :CHAIN POLICY, -A CHAIN ... and COMMIT, as iptables-save does"
            raise ConfigError(f"{path}:{number}: {words[:60]!r} is none of iptables-save's lines", remedy)
    return found


def names(chains: Mapping[str, Chain]) -> Iterator[str]:
    """Yield the names of the chains that are not built into the kernel, which rules may jump to."""
    return (name for name, chain in chains.items() if chain.policy == "-")
