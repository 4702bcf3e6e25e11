"""VPP's startup.conf: receive queues and workers changed in place, everything else left as it stands. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..core.errors import DutError

_TOKEN = re.compile(r"#[^\n]*|[{}]|[^\s{}#]+")
_PCI = re.compile(r"[0-9a-fA-F]{1,4}:[0-9a-fA-F]{1,2}:[0-9a-fA-F]{1,2}\.[0-9a-fA-F]{1,2}")
_ETHERNET = re.compile(r"[A-Za-z]*Ethernet([0-9a-f]{1,2})/([0-9a-f]{1,2})/([0-9a-f])")


@dataclass(frozen=True)
class _Word:
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class _Block:
    """``head { ... }``: the words before it since the last block, its own words, its blocks. inside: after its ``{``.

    end: of its ``}``.
    """

    head: tuple[_Word, ...]
    words: tuple[_Word, ...]
    blocks: tuple[_Block, ...]
    inside: int
    end: int


def pci_of(interface: str) -> str | None:
    """DPDK's name of a device, out of VPP's: TenGigabitEthernet3/0/1 is 0000:03:00.1; None for other names."""
    match = _ETHERNET.fullmatch(interface)
    return f"0000:{int(match[1], 16):02x}:{int(match[2], 16):02x}.{int(match[3], 16):x}" if match else None


def with_queues(text: str, queues: int, devices: Sequence[str]) -> str:
    """The text with so many receive queues for each of these PCI devices.

    Where the section names no devices at all, VPP takes all it finds: then ``dev default`` is changed, since naming
    one would leave out the others.
    """
    for device in devices:
        dpdk = _find(_parse(text), "dpdk")
        if dpdk is None:
            text = f"{text.rstrip()}\n\ndpdk {{\n  dev default {{\n    num-rx-queues {queues}\n  }}\n}}\n".lstrip("\n")
            continue
        named = {_canonical(name): (at, block) for name, at, block in _devices(dpdk)}
        target = device if set(named) - {"default"} else "default"
        at, block = named.get(target, (0, None))
        value = _value(block, "num-rx-queues") if block else None
        default = named.get("default", (0, None))[1]
        inherited = _value(default, "num-rx-queues") if default else None
        if _number(value or inherited, 1) == queues:
            continue
        if value is not None:
            text = text[: value.start] + str(queues) + text[value.end :]
        elif block is not None:
            text = _insert(text, block, f"num-rx-queues {queues}")
        elif at:
            text = f"{text[:at]} {{ num-rx-queues {queues} }}{text[at:]}"
        else:
            text = _insert(text, dpdk, f"dev {target} {{ num-rx-queues {queues} }}")
    return text


def with_workers(text: str, workers: int) -> str:
    """The text with so many workers; DutError where it names fewer cores for them, as nobody else can choose more."""
    cpu = _find(_parse(text), "cpu")
    if cpu is None:
        return f"{text.rstrip()}\n\ncpu {{\n  workers {workers}\n}}\n".lstrip("\n")
    cores = _value(cpu, "corelist-workers")
    if cores is not None:
        listed = core_list(cores.text)
        if listed is None:
            raise DutError(f"startup.conf: corelist-workers {cores.text[:60]} is no list of cores", "write it as 1-3")
        if len(listed) < workers:
            raise DutError(
                f"startup.conf: corelist-workers {cores.text} names {len(listed)} cores, {workers} workers are wanted",
                "name as many cores there",
            )
        if len(listed) == workers:
            return text
        return text[: cores.start] + ",".join(map(str, listed[:workers])) + text[cores.end :]
    value = _value(cpu, "workers")
    if value is not None:
        return text[: value.start] + str(workers) + text[value.end :]
    return _insert(text, cpu, f"workers {workers}")


def _insert(text: str, block: _Block, line: str) -> str:
    """As the first line of a block, indented as what stands there."""
    rest = re.match(r"[ \t]*\n([ \t]*)(?=[^\s}])", text[block.inside :])
    if rest:
        return f"{text[: block.inside]}\n{rest[1]}{line}{text[block.inside :]}"
    return f"{text[: block.inside]} {line} {text[block.inside :].lstrip(' ')}"


def _devices(dpdk: _Block) -> Iterator[tuple[str, int, _Block | None]]:
    """Every ``dev NAME`` of the section: its name, where that ends, and its block if it has one."""
    for block in dpdk.blocks:
        if len(block.head) >= 2 and block.head[-2].text == "dev":
            yield block.head[-1].text, block.head[-1].end, block
        yield from _bare(block.head[:-2])
    taken = {word.start for block in dpdk.blocks for word in block.head}
    yield from _bare([word for word in dpdk.words if word.start not in taken])


def _bare(words: Sequence[_Word]) -> Iterator[tuple[str, int, _Block | None]]:
    for word, after in pairwise(words):
        if word.text == "dev":
            yield after.text, after.end, None


def _canonical(name: str) -> str:
    """``0000:3:0.0`` as ``0000:03:00.0``."""
    if not _PCI.fullmatch(name):
        return name
    domain, bus, rest = name.split(":")
    slot, function = rest.split(".")
    return f"{int(domain, 16):04x}:{int(bus, 16):02x}:{int(slot, 16):02x}.{int(function, 16):x}"


def _value(block: _Block, key: str) -> _Word | None:
    """The word after this one; the last one given counts, as for VPP."""
    pairs = pairwise(block.words)
    return next((after for word, after in reversed(list(pairs)) if word.text == key), None)


def _number(word: _Word | None, otherwise: int) -> int:
    return int(word.text) if word is not None and re.fullmatch("[0-9]{1,6}", word.text) else otherwise


def core_list(text: str) -> list[int] | None:
    """``2-3,18`` as [2, 3, 18]; None for what is no list of cores."""
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"([0-9]{1,4})(?:-([0-9]{1,4}))?", part)
        if not match:
            return None
        found += range(int(match[1]), int(match[2] or match[1]) + 1)
    return found


def _find(blocks: Sequence[_Block], name: str) -> _Block | None:
    return next((block for block in blocks if block.head and block.head[-1].text == name), None)


def _parse(text: str) -> tuple[_Block, ...]:
    """The blocks of the file; DutError where its braces do not match."""
    stack: list[tuple[tuple[_Word, ...], int, list[_Word], list[_Block], list[_Word]]] = [((), 0, [], [], [])]
    for match in _TOKEN.finditer(text):
        _, _, words, _, pending = stack[-1]
        if match[0].startswith("#"):
            continue
        if match[0] == "{":
            stack.append((tuple(pending), match.end(), [], [], []))
            pending.clear()
        elif match[0] == "}":
            if len(stack) == 1:
                break
            head, inside, own, inner, _ = stack.pop()
            stack[-1][3].append(_Block(head, tuple(own), tuple(inner), inside, match.end()))
        else:
            words.append(_Word(match[0], match.start(), match.end()))
            pending.append(words[-1])
    else:
        if len(stack) == 1:
            return tuple(stack[0][3])
    raise DutError("startup.conf: its braces do not match", "correct it on the DUT: VPP does not start with it either")
