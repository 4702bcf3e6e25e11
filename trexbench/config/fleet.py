"""``fleet.yaml``: testers, DUTs, and the cables between them."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Annotated

from ..core.errors import ConfigError
from . import readers as r
from .lookup import load_dut
from .suite import DUT_NAME
from .wiring import FleetSwitch, FleetTester, Join, Link, Wiring, check_links, check_switches, read_link
from .yamltree import Value, parse, raise_any, read_text

_LABEL = "[A-Za-z0-9_-]{1,63}"
_PORT = "(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
_ADDRESS_FORM = rf"(?:tls|tcp)://(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9a-fA-F:.]+\]):{_PORT}"
_ADDRESS = r.pattern(_ADDRESS_FORM, "a scheduler's address", "tls://fleet.example.net:8786", 200)
CERTIFICATES_ENV = "TREXBENCH_FLEET_CERTIFICATES"
CERTIFICATE_FILES = ("ca.pem", "cert.pem", "key.pem")
"""Certificate of the authority that decides who may join, and this machine's certificate and key."""
INSECURE = "whoever reached the scheduler of its fleet could have changed it: --insecure, without certificates"

MOST_LOCAL, LOCAL_LEASE_S = 64, 10.0
"""Largest number of simulated testers on this machine, and the length of their leases."""
HERE = Path("fleet.yaml")


@dataclass(frozen=True)
class Cluster:
    """Address of the fleet's scheduler."""

    address: str
    certificates: Path | None
    """Directory of CERTIFICATE_FILES; None: no TLS."""
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


def make_cluster(address: str, certificates: str | None, insecure: bool) -> Cluster:
    """Make the cluster; ConfigError unless it has certificates, is on this machine, or the user accepts the risk."""
    if address.startswith("tls://"):
        folder = certificates or os.environ.get(CERTIFICATES_ENV)
        if not folder:
            remedy = f"name their directory: certificates: in fleet.yaml, or {CERTIFICATES_ENV}"
            raise ConfigError(f"{address} needs certificates", remedy)
        place = Path(folder).expanduser()
        for name in CERTIFICATE_FILES:
            if not os.access(place / name, os.R_OK):
                raise ConfigError(f"{place / name} cannot be read", f"it takes {', '.join(CERTIFICATE_FILES)}")
        return Cluster(address, place, False)
    cluster = Cluster(address, None, False)
    if cluster.is_loopback:
        return cluster
    if not insecure:
        remedy = "write tls:// and make certificates, or add --insecure"
        raise ConfigError(f"whoever reaches {address} could run anything on every tester", remedy)
    return replace(cluster, is_insecure=True)


@dataclass(frozen=True)
class Fleet:
    """Testers, DUTs and the links between them."""

    testers: Annotated[
        tuple[FleetTester, ...], r.list_of("tester", r.section(FleetTester, "a tester"), lambda tester: tester.name)
    ]
    duts: Annotated[tuple[str, ...], r.list_of("DUT", DUT_NAME, str)]
    """Names of the DUTs' configs in dut_configs."""
    links: Annotated[tuple[Link, ...], r.list_of("link", read_link, str)]
    """Cables, each as its two ends: a tester's port (t1:0), a DUT's interface (netgate-vpp:ix0) or a switch's port
    (sw1:p5); between a DUT and a switch with the DUT's VLAN as the third."""
    lease_s: Annotated[float, r.seconds, "lease"] = 30.0
    """Length of a DUT's lease, within which the traffic of a tester that is cut off ends."""
    scheduler: Annotated[str | None, _ADDRESS] = None
    """Address at which testers and nights meet: tls://HOST:8786; without it, the file serves --sim only."""
    certificates: Annotated[str | None, r.path] = None
    """Directory of ca.pem, cert.pem and key.pem; None: that which TREXBENCH_FLEET_CERTIFICATES names."""
    switches: Annotated[
        tuple[FleetSwitch, ...], r.list_of("switch", r.section(FleetSwitch, "a switch"), lambda switch: switch.name)
    ] = ()
    """Switches that join testers to DUTs by VLANs."""
    digest: str = ""
    """Digest of the file: all testers of a night must have the same."""
    paths: Mapping[tuple[str, str], tuple[Join, ...]] | None = None
    """Tester and DUT that it reaches -> the switch ports in between; None: all testers reach all DUTs, by cables."""

    def reach(self, duts: Iterable[str]) -> dict[str, Sequence[str]]:
        """Map each tester to those of these DUTs that it can measure."""
        every = tuple(dict.fromkeys(duts))
        return {
            tester.name: [dut for dut in every if self.paths is None or (tester.name, dut) in self.paths]
            for tester in self.testers
        }

    def joins(self, tester: str, dut: str) -> tuple[Join, ...]:
        """Return the switch ports that are joined while this tester measures this DUT."""
        return (self.paths or {}).get((tester, dut), ())

    def cluster(self, insecure: bool) -> Cluster:
        """Return its scheduler; ConfigError where there is none, or where it is not safe."""
        if self.scheduler is None:
            raise ConfigError("the fleet has no scheduler", "write scheduler: tls://HOST:8786 in its fleet.yaml")
        return make_cluster(self.scheduler, self.certificates, insecure)


def fleet_of(count: int, lease_s: float) -> Fleet:
    """Return a fleet of ``count`` testers t1, t2 ... that reach every DUT."""
    return Fleet(tuple(FleetTester(f"t{number}", ()) for number in range(1, count + 1)), (), (), lease_s)


def read_fleet(path: Path, configs_dir: Path | None = None) -> Fleet:
    """Read a fleet and look its DUTs up; ConfigError naming file, line, key and remedy."""
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
    raise_any(check_switches(root.at("switches").items("switch") if fleet.switches else (), fleet.switches))
    wiring = Wiring({one.name: one for one in fleet.testers}, duts, {one.name: one for one in fleet.switches})
    raise_any(check_links(root.at("links").items("link"), fleet.links, wiring))
    pairs = [(tester.name, dut) for tester in fleet.testers for dut in duts]
    paths = {pair: joins for pair in pairs if (joins := wiring.path(*pair)) is not None}
    raise_any(_check_reach(items, wiring, {dut for _, dut in paths}))
    return replace(fleet, paths=paths, digest=sha256(text.encode()).hexdigest())


def _check_reach(items: Sequence[Value], wiring: Wiring, known: Iterable[str]) -> Iterator[ConfigError]:
    for item, (name, dut) in zip(items, wiring.duts.items(), strict=True):
        if name not in known:
            ports = ", ".join(cable.interface or f"one for port {cable.tester}" for cable in dut.cables)
            what = wiring.unreached(name) if ports else "its config has no ports that could be wired"
            yield item.wrong(
                f"nobody reaches {name}: {what}", f"link {ports or 'ports'} to ports of one tester, or remove it"
            )


def find_fleet(text: str, configs_dir: Path | None, sim: bool) -> Fleet:
    """Return the fleet of an option: ``local:3``, simulated testers that reach every DUT; or a file.

    ConfigError as read_fleet, and for any other text.
    """
    kind, colon, count = text.partition(":")
    if "://" in text:
        remedy = "name it as scheduler: in a fleet.yaml, and that file here"
        raise ConfigError(f"--fleet {text[:40]!r} is an address", remedy)
    if not text.strip() or text == "local":
        raise ConfigError(f"--fleet {text[:40]!r} is no fleet", "write local:3, or name a fleet.yaml")
    if not (colon and kind == "local"):
        if not os.path.lexists(text):
            raise ConfigError(f"--fleet {text}: no such file", "write it (docs/fleet.md), or simulate with local:3")
        return read_fleet(Path(text), configs_dir)
    if not (count.isascii() and count.isdigit() and len(count) < 9 and 1 <= int(count) <= MOST_LOCAL):
        raise ConfigError(f"--fleet {text[:40]}: not a number of testers from 1 to {MOST_LOCAL}", "write it as local:3")
    if not sim:
        raise ConfigError(f"--fleet {text} has simulated testers only", "add --sim, or name a fleet.yaml")
    return fleet_of(int(count), LOCAL_LEASE_S)
