"""``fleet.yaml``: testers, DUTs, and what is wired to what."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Annotated

from ..core.errors import ConfigError
from ..core.names import nearest
from ..core.units import format_bits
from . import readers as r
from .lookup import load_dut
from .model import DutConfig
from .yamltree import Value, parse, raise_any, read_text

_TESTER = r.pattern(r"[A-Za-z0-9][A-Za-z0-9_-]*", "the name of a tester", "t1", 40)
_DUT = r.pattern(r"[A-Za-z0-9][A-Za-z0-9._-]*", "the name of a DUT", "netgate-vpp, for dut_configs/netgate-vpp.yaml")
_END = r.pattern(
    r"[A-Za-z0-9][A-Za-z0-9._-]*:[A-Za-z0-9_.:/-]+", "an end of a link", "t1:0 or netgate-vpp:ix0: a name and a port"
)

_LABEL = "[A-Za-z0-9_-]{1,63}"
_PORT = "(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
_ADDRESS_FORM = rf"(?:tls|tcp)://(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9a-fA-F:.]+\]):{_PORT}"
_ADDRESS = r.pattern(_ADDRESS_FORM, "a scheduler's address", "tls://fleet.example.net:8786", 200)
CERTIFICATES_ENV = "TREXBENCH_FLEET_CERTIFICATES"
CERTIFICATE_FILES = ("ca.pem", "cert.pem", "key.pem")
"""Files of certificates: of who may join, and this machine's own with its key."""
INSECURE = "whoever reached the scheduler of its fleet could have changed it: --insecure, without certificates"

MOST_LOCAL, LOCAL_LEASE_S = 64, 10.0
"""Simulated testers on this machine at most, and the length of their leases."""
HERE = Path("fleet.yaml")


@dataclass(frozen=True)
class FleetTester:
    """A tester. ports: their numbers. speed_bps: of each port (L1 bit/s); None: as the DUTs'."""

    name: Annotated[str, _TESTER]
    ports: Annotated[tuple[int, ...], r.integers(0, 127)]
    speed_bps: Annotated[float | None, r.speed, "speed"] = None


@dataclass(frozen=True)
class Cluster:
    """Address of the fleet's scheduler. certificates: the directory of CERTIFICATE_FILES; None: no TLS."""

    address: str
    certificates: Path | None
    is_insecure: bool

    @property
    def host(self) -> str:
        return self.address.partition("://")[2].rpartition(":")[0].strip("[]")

    @property
    def is_loopback(self) -> bool:
        try:
            return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def address_of(option: str, text: str) -> str:
    """Return the scheduler's address that this option names; ConfigError for what is none."""
    if len(text) > 200 or not re.fullmatch(_ADDRESS_FORM, text):
        raise ConfigError(f"{option} {text[:40]!r} is no scheduler's address", "write it as tls://HOST:8786")
    return text


def make_cluster(address: str, certificates: str | None, insecure: bool) -> Cluster:
    """ConfigError unless there are certificates, it is on this machine, or the user wants it insecure."""
    encrypted, folder = address.startswith("tls://"), certificates or os.environ.get(CERTIFICATES_ENV)
    found = Cluster(address, Path(folder).expanduser() if encrypted and folder else None, False)
    if encrypted:
        if found.certificates is None:
            where = f"name their directory: certificates: in fleet.yaml, or {CERTIFICATES_ENV}"
            raise ConfigError(f"{address} needs certificates", where)
        for name in CERTIFICATE_FILES:
            if not os.access(found.certificates / name, os.R_OK):
                raise ConfigError(
                    f"{found.certificates / name} cannot be read", f"it takes {', '.join(CERTIFICATE_FILES)}"
                )
        return found
    if found.is_loopback:
        return found
    if not insecure:
        remedy = "write tls:// and make certificates, or add --insecure"
        raise ConfigError(f"whoever reaches {address} could run anything on every tester", remedy)
    return replace(found, is_insecure=True)


@r.takes(type="array", items=_END, minItems=2, maxItems=2)
def _link(value: Value) -> tuple[str, str]:
    ends = r.each_of(value.items("end"), _END)
    if len(ends) != 2:
        raise ConfigError(f"{len(ends)} ends", "a link has two: write it as [t1:0, netgate-vpp:ix0]")
    return ends[0], ends[1]


@dataclass(frozen=True)
class Fleet:
    """Testers and DUTs. duts: by the names of their configs; links: each from a tester's port to a DUT's interface.

    lease_s: length of a DUT's lease, within which the traffic of a tester that is cut off ends. scheduler: address at
    which testers and nights meet; without it testers are processes of one machine. certificates: the directory of
    ca.pem, cert.pem and key.pem.
    """

    testers: Annotated[
        tuple[FleetTester, ...], r.list_of("tester", r.section(FleetTester, "a tester"), lambda one: one.name)
    ]
    duts: Annotated[tuple[str, ...], r.list_of("DUT", _DUT, str)]
    links: Annotated[tuple[tuple[str, str], ...], r.list_of("link", _link, " - ".join)]
    lease_s: Annotated[float, r.seconds, "lease"] = 30.0
    scheduler: Annotated[str | None, _ADDRESS] = None
    certificates: Annotated[str | None, r.path] = None
    digest: str = ""
    """Digest of the file: all testers of a night must have the same."""
    wiring: Mapping[str, Sequence[str]] | None = None
    """Tester -> DUTs that it reaches; None: all reach all."""

    def reach(self, duts: Iterable[str]) -> dict[str, Sequence[str]]:
        """Tester -> those of these DUTs that it can measure."""
        every = tuple(dict.fromkeys(duts))
        return {
            one.name: [dut for dut in every if self.wiring is None or dut in self.wiring[one.name]]
            for one in self.testers
        }

    def cluster(self, insecure: bool) -> Cluster:
        """Find its scheduler; ConfigError where there is none, or it is not safe."""
        if self.scheduler is None:
            raise ConfigError("the fleet has no scheduler", "write scheduler: tls://HOST:8786 in its fleet.yaml")
        return make_cluster(self.scheduler, self.certificates, insecure)


def fleet_of(count: int, lease_s: float) -> Fleet:
    """Return a fleet of so many testers t1, t2 ... that reach every DUT."""
    return Fleet(tuple(FleetTester(f"t{number}", ()) for number in range(1, count + 1)), (), (), lease_s)


def read_fleet(path: Path, configs_dir: Path | None = None) -> Fleet:
    """The fleet in this file, its DUTs looked up; ConfigError naming file, line, key and remedy."""
    text = read_text(path, "fleet")
    root = parse(path, text)
    fleet = r.section(Fleet, "a fleet")(root)
    lease = root.at("lease")
    if not 2 <= fleet.lease_s <= 600:
        raise lease.wrong(f"a lease of {fleet.lease_s:g} s", "write 2s to 10min; 30s does for most")
    items = root.at("duts").items("DUT")
    duts = {
        name: item.read(lambda _, name=name: load_dut(name, configs_dir))  # type: ignore[misc]
        for item, name in zip(items, fleet.duts, strict=True)
    }
    wired = set[tuple[str, str]]()
    raise_any(_check_links(root.at("links").items("link"), fleet, duts, wired))
    wiring = {one.name: _reached(one.name, duts, wired) for one in fleet.testers}
    known = [name for reached in wiring.values() for name in reached]
    raise_any(_check_reach(items, duts, known))
    return replace(fleet, wiring=wiring, digest=sha256(text.encode()).hexdigest())


def _reached(tester: str, duts: Mapping[str, DutConfig], wired: Container[tuple[str, str]]) -> Sequence[str]:
    """DUTs of which every port is wired to this tester."""
    return [
        name
        for name, dut in duts.items()
        if dut.cables and all((tester, f"{name}:{cable.interface}") in wired for cable in dut.cables)
    ]


def _check_links(
    items: Sequence[Value], fleet: Fleet, duts: Mapping[str, DutConfig], wired: set[tuple[str, str]]
) -> Iterator[ConfigError]:
    """Yield what is wrong with each link; wired gets each tester with the end at the DUT."""
    testers, taken = {one.name: one for one in fleet.testers}, dict[str, int]()
    for item, ends in zip(items, fleet.links, strict=True):
        pairs = list(zip(item.items("end"), ends, strict=True))
        wrong = [error for value, end in pairs for error in _check_end(value, end, testers, duts)]
        wrong = wrong or list(_check_pair(item, ends, testers, duts))
        for value, end in pairs:
            if end in taken and not wrong:
                what = f"port {end} has a link on line {taken[end]} already"
                wrong.append(value.wrong(what, "a port has one cable: take one out"))
        yield from wrong
        taken |= dict.fromkeys(ends, item.line)
        own, other = ends if ends[0].partition(":")[0] in testers else ends[::-1]
        if not wrong and (error := _wrong_port(item, own, other, duts)) is not None:
            wrong = [error]
            yield error
        if not wrong:
            wired.add((own.partition(":")[0], other))


def _wrong_port(item: Value, own: str, other: str, duts: Mapping[str, DutConfig]) -> ConfigError | None:
    """A link of this tester's port to another interface than the DUT's config says; None: to the right one."""
    tester, _, port = own.partition(":")
    box, _, interface = other.partition(":")
    (stated,) = (cable.tester for cable in duts[box].cables if cable.interface == interface)
    if port == str(stated):
        return None
    what = f"port {port} of {tester}, where {duts[box].file} has tester: {stated} for {interface}"
    return item.wrong(what, f"link {tester}:{stated}, or correct the DUT's config")


def _check_pair(
    item: Value, ends: tuple[str, str], testers: Mapping[str, FleetTester], duts: Mapping[str, DutConfig]
) -> Iterator[ConfigError]:
    """A link joins a tester and a DUT, of which each end is known, at one speed."""
    first, second = (end.partition(":")[0] for end in ends)
    remedy = "a link joins a tester and a DUT: name one end of each"
    if first == second:
        yield item.wrong(f"a loop: both ends are at {first}", remedy)
    elif (first in testers) == (second in testers):
        yield item.wrong(f"joins two {'testers' if first in testers else 'DUTs'}", remedy)
    else:
        own, other = (first, second) if first in testers else (second, first)
        tester, dut = testers[own], duts[other]
        if tester.speed_bps and dut.speed_bps and tester.speed_bps != dut.speed_bps:
            speeds = f"{format_bits(tester.speed_bps)} of {own}, {format_bits(dut.speed_bps)} of {other}"
            remedy = f"wire ports of one speed, or correct speed: here or in {dut.file}"
            yield item.wrong(f"speeds differ: {speeds}", remedy)


def _check_end(
    value: Value, end: str, testers: Mapping[str, FleetTester], duts: Mapping[str, DutConfig]
) -> Iterator[ConfigError]:
    box, _, port = end.partition(":")
    if box in testers and box in duts:
        yield value.wrong(f"{box} is a tester and a DUT", "rename the tester")
    elif box in testers:
        ports = [str(one) for one in testers[box].ports]
        if port not in ports:
            yield value.wrong(
                f"{box} has no port {port}", f"it has {', '.join(ports)}: name one, or add it to its ports"
            )
    elif box in duts:
        ports = [cable.interface for cable in duts[box].cables if cable.interface]
        if port not in ports:
            has = f"its config has {', '.join(ports) or 'none that is named'}"
            yield value.wrong(f"{box} has no port {port}", f"{has}: name one, or add it to {duts[box].file}")
    else:
        known = [*testers, *duts]
        yield value.wrong(f"nothing is called {box}", f"{nearest(box, known)}there are: {', '.join(known)}")


def _check_reach(items: Sequence[Value], duts: Mapping[str, DutConfig], known: Sequence[str]) -> Iterator[ConfigError]:
    for item, (name, dut) in zip(items, duts.items(), strict=True):
        if name not in known:
            ports = ", ".join(cable.interface or f"one for port {cable.tester}" for cable in dut.cables)
            what = "no tester is wired to all its ports" if ports else "its config has no ports that could be wired"
            yield item.wrong(
                f"nobody reaches {name}: {what}", f"link {ports or 'ports'} to ports of one tester, or take it out"
            )


def find_fleet(text: str, configs_dir: Path | None, sim: bool) -> Fleet:
    """The fleet of this option: ``local:3``, simulated testers that reach every DUT; a file; or a scheduler's address.

    Of an address, ./fleet.yaml says what is wired to what. ConfigError as read_fleet, and for what is none of these.
    """
    kind, colon, count = text.partition(":")
    if "://" in text:
        address = address_of("--fleet", text)
        return replace(read_fleet(HERE, configs_dir), scheduler=address)
    if not text.strip() or text == "local":
        raise ConfigError(f"--fleet {text[:40]!r} is no fleet", "write local:3, or name a fleet.yaml")
    if not (colon and kind == "local"):
        return read_fleet(Path(text), configs_dir)
    if not (count.isascii() and count.isdigit() and len(count) < 9 and 1 <= int(count) <= MOST_LOCAL):
        raise ConfigError(f"--fleet {text[:40]}: no number of testers from 1 to {MOST_LOCAL}", "write it as local:3")
    if not sim:
        raise ConfigError(f"--fleet {text} has simulated testers only", "add --sim, or name a fleet.yaml")
    return fleet_of(int(count), LOCAL_LEASE_S)
