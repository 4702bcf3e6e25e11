"""A DUT config to begin with: what is known is filled in, what is not is marked, and each line says what it is for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..core.errors import ConfigError
from .editors import modeline
from .model import DRIVERS, DutConfig
from .schema import dut_of
from .yamltree import parse

UNKNOWN = "change-me"
"""In the place of what nobody told; a config with it can be read, and `dut check` refuses it."""


@dataclass(frozen=True)
class Draft:
    """Parts of a draft. interfaces: of the DUT, in the order of the tester's ports. there: all that it has;
    free: those without an address, of which the first are taken where ``interfaces`` names none.

    macs: of the tester's ports, where they are known. queues: receive queues that an interface can have. ipv6: with
    addresses and routes of both families.
    """

    driver: str
    host: str = UNKNOWN
    user: str | None = None
    interfaces: Sequence[str] = ()
    there: Sequence[str] = ()
    free: Sequence[str] = ()
    tester_ports: Sequence[int] = (0, 1)
    macs: Mapping[int, str] = field(default_factory=dict)
    speed: str | None = None
    queues: int | None = None
    server: str | None = None
    rpc_port: int | None = None
    pub_port: int | None = None
    ipv6: bool = False

    def read(self, path: Path) -> DutConfig:
        """The draft as a config; ConfigError where something that was told cannot be in one."""
        return dut_of(path, self.text())

    def text(self) -> str:
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        reached, knows = bool(DRIVERS[self.driver].transports), DRIVERS[self.driver].knows_system
        yield modeline("dut")
        yield "# Made by `trexbench dut new`: look through it, then `trexbench dut check` and `trexbench doctor --dut`."
        about = f"a router at {self.host}" if reached else "a router that is configured by hand"
        yield f"description: {_quoted(about)}"
        yield f"driver: {self.driver}  # {', '.join(DRIVERS)}"
        if reached:
            user = f", user: {_quoted(self.user)}" if self.user else ""
            yield f"transport: {{type: ssh, host: {_quoted(self.host)}{user}}}  # your own ssh, which must not ask"
        yield (
            f"speed: {self.speed}  # line rate (L1) of the test"
            if self.speed
            else ("# speed: 10gbit  # line rate (L1), where it is lower than that of the tester's ports")
        )
        if knows and self.queues and self.queues > 1:
            yield f"rx_queues: [1, 2]  # numbers of receive queues per port to measure with; {self.queues} at most"
        yield ""
        yield "ports:  # one per cable; neighbours in the list make a pair"
        if self.there:
            used = [one for one in self.there if one not in self.free]
            yield f"  # the DUT has: {', '.join(self.there)}" + (
                f"; with an address: {', '.join(used)}" if used else ""
            )
        for at, port in enumerate(self.tester_ports):
            yield from self._port(at, port, knows)
        if knows:
            yield ""
            yield "routes:  # to where the modes' frames of each port come from"
            for at, port in enumerate(self.tester_ports):
                net, pair = 48 if port % 2 else 16, port // 2
                yield f"  - {{to: {net}.{pair}.0.0/16, via: 100.65.{at + 1}.2}}"
                if self.ipv6:
                    yield f'  - {{to: "2001:2:{pair:x}:{net}::/64", via: "2001:2:0:{at + 1}::2"}}'
        if self.driver == "commands":
            yield from ("", "commands:  # docs/duts.md; dut_configs/examples has whole ones")
            yield from ("  apply: []", "  verify: []")
        if self.server:
            named = {"rpc_port": self.rpc_port, "pub_port": self.pub_port}
            ports = "".join(f", {key}: {port}" for key, port in named.items() if port is not None)
            yield from ("", f"generator: {{server: {_quoted(self.server)}{ports}}}  # the host that runs TRex")

    def _port(self, at: int, port: int, knows: bool) -> Iterator[str]:
        chosen = self.interfaces or self.free
        interface = chosen[at] if at < len(chosen) else f"{UNKNOWN}-{at}"
        yield f"  - tester: {port}  # the tester's port"
        if not knows:
            return
        yield f"    interface: {_quoted(interface)}  # the DUT's name for the other end"
        yield f"    address: {self._addresses(at, '1/24', '1/64')}"
        mac = self.macs.get(port)
        named, of = (f'"{mac}"', f"of the tester's port {port}") if mac else ("tester", "the generator names it")
        yield f"    neighbour: {{address: {self._addresses(at, '2', '2')}, mac: {named}}}  # {of}"

    def _addresses(self, at: int, v4: str, v6: str) -> str:
        """With these last parts."""
        return f'[100.65.{at + 1}.{v4}, "2001:2:0:{at + 1}::{v6}"]' if self.ipv6 else f"100.65.{at + 1}.{v4}"


def find_unknown(config: DutConfig) -> list[ConfigError]:
    """One for each value that `dut new` could not find and nobody has filled in since."""
    return [
        one.wrong(f"{one.text()}: `dut new` could not find it out", "write here what it is")
        for one in parse(config.file, config.text).texts()
        if one.text().startswith(UNKNOWN)
    ]


def _quoted(text: str) -> str:
    """Quote text so that YAML accepts it, whatever it contains."""
    return json.dumps(text)
