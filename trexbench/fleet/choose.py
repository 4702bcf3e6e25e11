"""A night's measuring by the fleet of ``--fleet``, of the command line and of Python."""

from __future__ import annotations

from ..config.fleet import find_fleet
from ..core.errors import ConfigError
from ..suite.night import NightOptions
from .cluster import require_dask
from .night import FleetNight


def by_fleet(name: str, text: str, night: NightOptions) -> FleetNight:
    """Return the measuring of this suite's night; ConfigError for what is wrong with the fleet."""
    if not night.setup.sim:
        raise ConfigError(f"--fleet {text[:40]}: its testers are simulated, as yet", "add --sim, or leave --fleet out")
    require_dask()
    return FleetNight(name, find_fleet(text, night.setup.configs_dir, night.setup.sim))
