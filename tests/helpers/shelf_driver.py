"""A driver that trexbench does not have: a router whose settings are files in a folder, as test_new_driver adds it.

Facts and wishes are texts by the same keys, the files' names; a key's command writes its file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trexbench.core.dut.rss import Spreading
from trexbench.core.dut.telemetry import Observation, PortCount
from trexbench.dut.settings import Attestation, Change, Command, DutDriver, Wanted, attest, unmet
from trexbench.transport import TIMEOUT_S, Transport

Facts = Mapping[str, str]


def wishes(wanted: Wanted) -> Facts:
    addresses = {f"{port.interface}.address": str(port.addresses[0]) for port in wanted.config.ports}
    neighbours = {f"{port.interface}.neighbour": wanted.mac(port) for port in wanted.config.ports}
    return {**addresses, **neighbours, **{f"route.{to.to.network_address}": str(to.via) for to in wanted.config.routes}}


def plan(wanted: Wanted, facts: Facts) -> list[Change]:
    return [
        Change(key, was, wish, (written(key, wish),), (written(key, was) if was else removed(key),))
        for key, wish in wishes(wanted).items()
        if (was := facts.get(key)) != wish
    ]


def written(key: str, value: str) -> Command:
    return Command(("tee", key), f"{key} as wanted", input=f"{value}\n")


def removed(key: str) -> Command:
    return Command(("rm", key), "it was not there", fine_if=("No such file",))


class ShelfDut:
    def __init__(self, wanted: Wanted, transport: Transport) -> None:
        self._wanted, self._transport = wanted, transport

    def identity(self) -> str:
        return "it never forgets"

    def plan(self) -> Sequence[Change]:
        return plan(self._wanted, self._facts())

    def verify(self) -> Attestation:
        facts = self._facts()
        return attest(self._wanted, facts, unmet(plan(self._wanted, facts)), Spreading())

    def observe(self, clear: bool = False) -> Observation:
        counts = self._read([f"{port.interface}.packets" for port in self._wanted.config.ports])
        ports = self._wanted.config.ports
        received = [int(counts[f"{port.interface}.packets"]) for port in ports]
        return Observation(ports=tuple(PortCount(one.tester, n, n) for one, n in zip(ports, received, strict=True)))

    def _facts(self) -> Facts:
        return self._read(list(wishes(self._wanted)))

    def _read(self, names: Sequence[str]) -> Facts:
        said = self._transport.run(("grep", "-sH", "", *names), TIMEOUT_S).stdout
        return {name: value for name, _, value in (line.partition(":") for line in said.splitlines())}


DRIVER = DutDriver(ShelfDut)
