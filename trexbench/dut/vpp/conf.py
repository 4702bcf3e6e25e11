"""Change receive queues and workers in VPP's startup.conf, and keep everything else as it is. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from ...core.errors import DutError
from ...host.files import parse_cpus

_TOKEN = re.compile(r"#[^\n]*|[{}]|[^\s{}#]+")
_PCI = re.compile(r"[0-9a-fA-F]{1,4}:[0-9a-fA-F]{1,2}:[0-9a-fA-F]{1,2}\.[0-9a-fA-F]{1,2}")
_ETHERNET = re.compile(r"[A-Za-z]*Ethernet([0-9a-f]{1,2})/([0-9a-f]{1,2})/([0-9a-f])")


@dataclass(frozen=True)
class _Word:
    """One word of the file and its position."""

    text: str
    start: int
    end: int
    inside: int | None = None
    """Position after the ``{`` of its block; None where it has none."""
    block: list[_Word] = field(default_factory=list)
    """Words of the block."""

    def section(self, name: str) -> _Word | None:
        return next((word for word in self.block if word.text == name and word.inside is not None), None)

    def value(self, key: str) -> _Word | None:
        # of several keys the last one counts, as for VPP
        return next((after for word, after in reversed(list(pairwise(self.block))) if word.text == key), None)


def pci_of(interface: str) -> str | None:
    """Translate VPP's name of a device to DPDK's: TenGigabitEthernet3/0/1 to 0000:03:00.1; None for other names."""
    match = _ETHERNET.fullmatch(interface)
    return f"0000:{int(match[1], 16):02x}:{int(match[2], 16):02x}.{int(match[3], 16):x}" if match else None


def with_queues(text: str, queues: int, devices: Sequence[str]) -> str:
    """Set the number of receive queues of each of these PCI devices.

    Where the section names no devices, VPP uses all it finds: then ``dev default`` is changed, since naming one device
    would exclude the others.
    """
    for device in devices:
        dpdk = _parse(text).section("dpdk")
        if dpdk is None:
            text = f"{text.rstrip()}\n\ndpdk {{\n  dev default {{\n    num-rx-queues {queues}\n  }}\n}}\n".lstrip("\n")
            continue
        named = {_canonical(name.text): name for word, name in pairwise(dpdk.block) if word.text == "dev"}
        target = device if set(named) - {"default"} else "default"
        own, default = (
            name.value("num-rx-queues") if name else None for name in (named.get(target), named.get("default"))
        )
        inherited = own or default
        if (int(inherited.text) if inherited and re.fullmatch("[0-9]{1,6}", inherited.text) else 1) == queues:
            continue
        if own is not None:
            text = text[: own.start] + str(queues) + text[own.end :]
        elif target not in named:
            text = _insert(text, dpdk, f"dev {target} {{ num-rx-queues {queues} }}")
        elif named[target].inside is not None:
            text = _insert(text, named[target], f"num-rx-queues {queues}")
        else:
            at = named[target].end
            text = f"{text[:at]} {{ num-rx-queues {queues} }}{text[at:]}"
    return text


def with_workers(text: str, workers: int) -> str:
    """Set the number of workers; DutError where corelist-workers has fewer cores."""
    cpu = _parse(text).section("cpu")
    if cpu is None:
        return f"{text.rstrip()}\n\ncpu {{\n  workers {workers}\n}}\n".lstrip("\n")
    cores = cpu.value("corelist-workers")
    if cores is not None:
        listed = parse_cpus(cores.text)
        if listed is None:
            what = f"startup.conf: corelist-workers {cores.text[:60]} is not a list of cores"
            raise DutError(what, "write it as 1-3")
        if len(listed) < workers:
            raise DutError(
                f"startup.conf: corelist-workers {cores.text} names {len(listed)} cores, {workers} workers are wanted",
                "name more cores there",
            )
        if len(listed) == workers:
            return text
        setting = f"corelist-workers {','.join(map(str, listed[:workers]))}" if workers else "workers 0"
        return text[: text.rindex("corelist-workers", 0, cores.start)] + setting + text[cores.end :]
    value = cpu.value("workers")
    if value is not None:
        return text[: value.start] + str(workers) + text[value.end :]
    return _insert(text, cpu, f"workers {workers}")


def _insert(text: str, word: _Word, line: str) -> str:
    """Add a line at the start of a word's block, indented like the next one."""
    before, behind = text[: word.inside], text[word.inside :]
    if rest := re.match(r"[ \t]*\n([ \t]*)(?=[^\s}])", behind):
        return f"{before}\n{rest[1]}{line}{behind}"
    return f"{before} {line} {behind.lstrip(' ')}"


def _canonical(name: str) -> str:
    """Write a PCI address, ``0000:3:0.0``, with all digits: ``0000:03:00.0``."""
    if not _PCI.fullmatch(name):
        return name
    domain, bus, rest = name.split(":")
    slot, function = rest.split(".")
    return f"{int(domain, 16):04x}:{int(bus, 16):02x}:{int(slot, 16):02x}.{int(function, 16):x}"


def _parse(text: str) -> _Word:
    """Parse the file as the block of an unnamed word; DutError where its braces do not match."""
    nested = [_Word("", 0, 0, 0)]
    for match in _TOKEN.finditer(text):
        words = nested[-1].block
        if match[0] == "{":
            nested.append(replace(words.pop() if words else _Word("", 0, 0), inside=match.end(), block=[]))
            words.append(nested[-1])
        elif match[0] == "}":
            nested.pop()
            if not nested:
                break
        elif not match[0].startswith("#"):
            words.append(_Word(match[0], match.start(), match.end()))
    if len(nested) != 1:
        remedy = "correct it on the DUT: VPP does not start with it either"
        raise DutError("startup.conf: its braces do not match", remedy)
    return nested[0]
