"""Recorded output, spoiled: what a device prints on a bad day, or somebody else in its place; and documents' places."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from functools import reduce
from operator import getitem
from typing import Any

LONGEST = 20_000
"""Characters of a mutated text; what a call may cost is bounded, and so is what it is given."""
ODD = (
    *("", " ", "\t", "\r", "\n", "\r\n", "\x00", "\x0b", "\x1b[0m", "\x85", "\u2028", "\ufeff", "\ufffd", "\u202e"),
    *("é", "½", "²", "٣", "Ⅷ", "𝟘", "İ", "ß", "💥", "\xa0", "a\u0301"),
)
"""Line ends that only Python knows, digits that are none to others, letters that change in number in lower case."""
NUMBERS = (
    *("0", "-1", "+1", "00", "1.5", ".", "1.", "-0", "1e5", "1e999", "-1e999", "nan", "inf", "0x1f", "1_000", "1,000"),
    *("65536", "4294967296", "18446744073709551615", "18446744073709551616", "9" * 30, "9" * 400, "9" * 5000),
)
LEAVES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1.5, 1e308, 10**30, "", "0", "é", [], {}, [None], [[]], {"": None}, [{}], [0]),
    *({"dev": "d0", "state": 3}, [["UP"]], "UP", float("nan"), float("inf")),
)

Mutation = Callable[[random.Random, str, Sequence[str]], str]


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The keys and indices that lead to each value inside this one, outer ones first."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, one in inner for place in ((*at, key), *places(one, (*at, key)))]


def mutate(source: random.Random, text: str, others: Sequence[str]) -> str:
    """One to five mutations of this text. others: what is spliced into it."""
    for _ in range(source.choice((1, 1, 1, 2, 2, 3, 5))):
        text = source.choice(MUTATIONS)(source, text, others)
    return text[:LONGEST]


def _place(source: random.Random, text: str) -> tuple[int, int]:
    """Where a slice of it begins and ends; most are short."""
    begin = source.randrange(len(text) + 1)
    return begin, min(len(text), begin + int(source.choice((1, 1, 4, 20, 200)) * (1 + source.random())))


def _flip(source: random.Random, text: str, _: Sequence[str]) -> str:
    """Bits of one byte; what is no UTF-8 then, is what the transports make of it."""
    data = bytearray(text.encode("utf-8", "replace"))
    for _unused in range(source.choice((1, 1, 3))):
        if data:
            data[source.randrange(len(data))] ^= 1 << source.randrange(8)
    return data.decode("utf-8", "replace")


def _replace(source: random.Random, text: str, others: Sequence[str]) -> str:
    """A slice that is lost, doubled, led by an odd character or by what another text has."""
    begin, end = _place(source, text)
    first, last = _place(source, other := source.choice(others))
    kept = text[begin:end]
    news = ("", kept * source.choice((2, 2, 3, 41)), source.choice(ODD) + kept, other[first:last] + kept, other[first:])
    return text[:begin] + source.choice(news) + text[end:]


def _truncate(source: random.Random, text: str, _: Sequence[str]) -> str:
    at = source.randrange(len(text) + 1)
    return text[:at] if source.random() < 0.7 else text[at:]


def _run(source: random.Random, text: str, _: Sequence[str]) -> str:
    """One character many times, and another behind it: what makes bad patterns try for ever."""
    at = source.randrange(len(text) + 1)
    repeated = source.choice((text[at : at + 1] or "a", source.choice(("a", "1", " ", "0 ", "f:", ",", "[", "("))))
    return text[:at] + repeated * source.choice((8, 40, 40, 3000)) + source.choice(("", "!", "x", "\n")) + text[at:]


def _word(source: random.Random, text: str, _: Sequence[str]) -> str:
    """A number in another's place; a word in another's, or an odd one."""
    words = [*re.finditer(source.choice((r"\b\d+\b", r"[^\W_]+")), text)]
    if not words:
        return text
    one = source.choice(words)
    if one[0].isdecimal():
        other = source.choice(NUMBERS)
    else:
        other = source.choice(words)[0] if source.random() < 0.7 else source.choice((*ODD, *NUMBERS[:-1]))
    return text[: one.start()] + other + text[one.end() :]


def _lines(source: random.Random, text: str, _: Sequence[str]) -> str:
    """Lines out of order, lost, doubled, joined or led by blanks."""
    lines = text.split("\n")
    how, at = source.randrange(6), source.randrange(len(lines))
    if how == 0:
        source.shuffle(lines)
    elif how == 1:
        del lines[at]
    elif how == 2:
        lines.insert(source.randrange(len(lines) + 1), lines[at])
    elif how == 3:
        lines[at : at + 2] = ["".join(lines[at : at + 2])]
    elif how == 4:
        lines[at] = source.choice((" ", "\t", "  ")) + lines[at]
    else:
        lines[at] = lines[at].strip()
    return "\n".join(lines)


def _json(source: random.Random, text: str, _: Sequence[str]) -> str:
    """One value of another type, one key less or more; texts that are no JSON stay."""
    try:
        tree = json.loads(text)
        found = places(tree)
    except (ValueError, RecursionError):  # Python 3.13 reads what is nested deeper than functions may be
        return text
    if not found or source.random() < 0.03:
        return json.dumps(source.choice(LEAVES))
    *above, key = source.choice(found)
    holder = reduce(getitem, above, tree)
    if isinstance(holder, dict) and source.random() < 0.2:
        value = holder.pop(key)
        if source.random() < 0.5:
            holder[source.choice(("", "dev", "é", str(key) + "x"))] = value
    else:
        holder[key] = source.choice((*LEAVES, reduce(getitem, source.choice(found)[:-1], tree)))
    try:
        return json.dumps(tree)
    except ValueError:  # a value that now holds itself
        return text


def _nest(source: random.Random, text: str, _: Sequence[str]) -> str:
    deep = source.choice((5, 60, 5000))
    opening, closing = source.choice((("[", "]"), ('{"a":', "}")))
    return opening * deep + text + closing * deep


def _nothing(source: random.Random, _text: str, others: Sequence[str]) -> str:
    return source.choice(("", "\n", " ", "\x00", "sh: not found\n", "Operation not supported\n", source.choice(others)))


_OFTEN: tuple[Mutation, ...] = (_flip, *[_replace] * 4, _run, _word, _word, _lines, _json)
MUTATIONS: tuple[Mutation, ...] = (*_OFTEN, *_OFTEN, *_OFTEN, _json, _truncate, _truncate, _nest, _nothing)
