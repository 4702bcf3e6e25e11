"""A DUT config to begin with: what is known is filled in, what is not is marked, and each line says what it is for."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..core.errors import ConfigError
from .editors import modeline
from .model import DRIVERS, DutConfig
from .schema import dut_of
from .yamltree import parse

TEMPLATE = Path(__file__).with_name("draft.yaml.jinja")
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
        import jinja2  # slow to load

        chosen = self.interfaces or self.free
        unnamed = [f"{UNKNOWN}-{at}" for at in range(len(self.tester_ports))]
        page = jinja2.Environment(
            trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, undefined=jinja2.StrictUndefined
        )
        page.filters["quoted"] = json.dumps  # YAML takes it as text, whatever it contains
        facts = {"name": self.driver, "driver": DRIVERS[self.driver], "drivers": DRIVERS, "modeline": modeline("dut")}
        interfaces = [*chosen, *unnamed[len(chosen) :]]
        return page.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
            {**vars(self), **facts, "interfaces": interfaces}
        )


def find_unknown(config: DutConfig) -> list[ConfigError]:
    """One for each value that `dut new` could not find and nobody has filled in since."""
    return [
        one.wrong(f"{one.text()}: `dut new` could not find it out", "write here what it is")
        for one in parse(config.file, config.text).texts()
        if one.text().startswith(UNKNOWN)
    ]
