"""What a mode puts on the wire: in numbers, decoded, and as a capture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from ..config.lookup import find_profile
from ..core.load.profile import Mode, Profile
from ..generator.trex.client import load_client
from ..generator.trex.profile_loader import decode, load_profile, write_pcap


@dataclass(frozen=True)
class Traffic:
    """A mode's frames as one port sends them."""

    mode: Mode
    profile: Profile
    trex_dir: Path | None

    def facts(self, speed_bps: float) -> dict[str, Any]:
        """For JSON; the line rate is that of a port with this L1 speed."""
        line = {"line_rate_bps": speed_bps, "line_rate_pps": self.profile.line_rate_pps(speed_bps)}
        names = {"mode": self.mode.name, "aliases": list(self.mode.aliases), "summary": self.mode.summary}
        return {**names, **line, **self.profile.to_dict()}

    def decoded(self) -> list[str]:
        """The first packet of each stream, decoded and as a hex dump."""
        return decode(load_client(self.trex_dir), self.profile)

    def capture(self, out: BinaryIO, count: int, pps: float) -> None:
        """Write the first frames as a pcap file."""
        write_pcap(out, self.profile, count, pps)


def load_traffic(mode: Mode, tunables: Mapping[str, str] | None, port: int, trex_dir: Path | None) -> Traffic:
    """The mode as this port sends it; odd ports send the other way. tunables: besides the mode's own."""
    client, file = load_client(trex_dir), find_profile(mode.profile)
    return Traffic(mode, load_profile(client, file, {**dict(mode.tunables), **(tunables or {})}, port), trex_dir)
