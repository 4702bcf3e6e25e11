"""A night's measuring by the fleet of ``--fleet``, of the command line and of Python."""

from __future__ import annotations

from ..config.fleet import INSECURE, find_fleet
from ..core.errors import ConfigError
from ..suite.night import NightOptions
from .cluster import require_dask
from .join import joined
from .night import FleetNight


def by_fleet(name: str, text: str, night: NightOptions, insecure: bool = False) -> FleetNight:
    """Return the measuring of this suite's night; ConfigError for what is wrong with the fleet."""
    fleet = find_fleet(text, night.setup.configs_dir, night.setup.sim)
    if fleet.scheduler is None:
        if not night.setup.sim:
            what = f"--fleet {text[:40]}: without a scheduler its testers are simulated"
            raise ConfigError(what, "add --sim, or write scheduler: tls://HOST:8786 in the file")
        require_dask()
        return FleetNight(name, fleet)
    cluster = fleet.cluster(insecure)
    require_dask()
    if cluster.is_insecure:
        night.output.warn(f"each result of this night says: {INSECURE}")
    return FleetNight(name, fleet, opened=lambda *_: joined(cluster, fleet.lease_s), is_cluster=True)
