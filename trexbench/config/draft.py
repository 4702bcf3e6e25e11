"""Draft of a DUT config: known values are filled in, others are marked, and every line is explained."""

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
"""Placeholder for an unknown value; a config with it can be read, but `dut check` refuses it."""


@dataclass(frozen=True)
class Draft:
    """Values of a draft."""

    driver: str
    host: str = UNKNOWN
    user: str | None = None
    interfaces: Sequence[str] = ()
    """Interfaces of the DUT, in the order of the tester's ports; empty: the first free ones."""
    there: Sequence[str] = ()
    free: Sequence[str] = ()
    """Interfaces without an address."""
    tester_ports: Sequence[int] = (0, 1)
    macs: Mapping[int, str] = field(default_factory=dict)
    speed: str | None = None
    queues: int | None = None
    """Largest number of receive queues of an interface."""
    server: str | None = None
    rpc_port: int | None = None
    pub_port: int | None = None
    ipv6: bool = False
    """True for addresses and routes of both families."""

    def read(self, path: Path) -> DutConfig:
        """Read the draft as a config; ConfigError for a value that cannot be in one."""
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
    """Return an error for each value that `dut new` did not know and that is still missing."""
    return [
        value.wrong(f"{value.text()}: `dut new` could not find this out", "write the value here")
        for value in parse(config.file, config.text).texts()
        if value.text().startswith(UNKNOWN)
    ]
