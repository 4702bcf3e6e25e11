"""The frames of a mode: in numbers, decoded, and as a capture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ..config.lookup import find_profile
from ..core.load.profile import Profile, resolve_mode
from ..generator.trex.client import load_client
from ..generator.trex.profile_loader import decode, describe, load_profile, write_pcap


@dataclass(frozen=True)
class Traffic:
    """The frames of a mode, or of a profile of the user's own, as one port sends them."""

    name: str
    aliases: tuple[str, ...]
    summary: str
    profile: Profile
    trex_dir: Path | None

    def facts(self, speed_bps: float) -> dict[str, Any]:
        """Facts for JSON, with the line rate of a port with this L1 speed."""
        line = {"line_rate_bps": speed_bps, "line_rate_pps": self.profile.line_rate_pps(speed_bps)}
        names = {"mode": self.name, "aliases": list(self.aliases), "summary": self.summary}
        return {**names, **line, **self.profile.to_dict()}

    def described(self) -> list[str]:
        """The first packet of each stream in a line."""
        return describe(load_client(self.trex_dir), self.profile)

    def decoded(self) -> list[str]:
        """The first packet of each stream, decoded and as a hex dump."""
        return decode(load_client(self.trex_dir), self.profile)

    def capture(self, out: IO[bytes], count: int, pps: float) -> None:
        """Write the first frames as a pcap file."""
        write_pcap(out, self.profile, count, pps)


def load_traffic(name: str, tunables: Mapping[str, str] | None, port: int, trex_dir: Path | None) -> Traffic:
    """Load a mode, or a profile's file (``./mine.py``), as this port sends it; odd ports send the other way.

    tunables: added to the mode's own.
    """
    client, given = load_client(trex_dir), tunables or {}
    if name.endswith(".py") or "/" in name:
        file = find_profile(name)
        return Traffic(file.stem, (), "a profile's file", load_profile(client, file, given, port), trex_dir)
    mode = resolve_mode(name)
    profile = load_profile(client, find_profile(mode.profile), {**mode.tunables, **given}, port)
    return Traffic(mode.name, mode.aliases, mode.summary, profile, trex_dir)
