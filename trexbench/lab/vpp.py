"""Real VPP as the lab's router: on af_packet, in the DUT's namespace, for as long as the lab exists."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from ..config.model import vpp_socket
from ..core.errors import LabError
from . import server
from .server import Launch
from .spec import LabSpec, Placement

READY_S = 30.0
_PROGRAMS = ("vpp", "vppctl")


def check(spec: LabSpec) -> None:
    """Raise LabError, before anything is made, if this machine has no VPP."""
    if missing := [name for name in _PROGRAMS if shutil.which(name) is None]:
        remedy = "install the packages vpp and vpp-plugin-core (https://fd.io), or use the kernel: --dut lab-linux"
        what = f"lab {spec.prefix} uses VPP as its router, but {' and '.join(missing)} cannot be found in PATH"
        raise LabError(what, remedy)
    server.require_short(spec, Path(vpp_socket(spec.prefix)))


def launch(spec: LabSpec, placement: Placement, cpus: Sequence[int]) -> Launch:
    """Write a startup.conf for VPP, and return how to start it with that."""
    folder = _folder(spec.prefix)
    folder.mkdir(parents=True, exist_ok=True)
    conf = folder / "startup.conf"
    conf.write_text(startup_conf(spec, placement, cpus))
    return Launch("vpp", (shutil.which("vpp") or "vpp", "-c", str(conf)), {})


def startup_conf(spec: LabSpec, placement: Placement, cpus: Sequence[int]) -> str:
    """Compose startup.conf: workers on the router's cores, the main thread beside them; af_packet, no huge pages.

    cpus: the usable ones. If no core is left for the main thread, there are no workers and it forwards itself.
    """
    folder = _folder(spec.prefix)
    main = main_core(placement, cpus)
    cores = [f"main-core {placement.router[0]}"] if placement.router else []
    if placement.router and main is not None:
        cores = [f"main-core {main}", f"corelist-workers {','.join(map(str, placement.router))}"]
    sections = {
        "unix": (
            *("nodaemon", "nosyslog", "nobanner", "cli-no-pager"),
            *(f"runtime-dir {folder}", f"cli-listen {vpp_socket(spec.prefix)}", f"log {folder}/vpp.log"),
        ),
        "api-segment": (f"prefix {_segment(spec.prefix)}",),
        "memory": ("main-heap-size 512M", "main-heap-page-size 4k"),
        # any other size means huge pages, which VPP takes from the host and does not give back
        "buffers": ("buffers-per-numa 16384", "page-size 4k"),
        "statseg": (f"socket-name {folder}/stats.sock", "size 32M"),
        "cpu": tuple(cores),
        "plugins": ("plugin default { disable }", "plugin af_packet_plugin.so { enable }"),
    }
    return "".join(f"{name} {{\n" + "".join(f"  {line}\n" for line in body) + "}\n" for name, body in sections.items())


def main_core(placement: Placement, cpus: Sequence[int]) -> int | None:
    """Choose a core that does not forward: the harness's, or the first."""
    if placement.harness is not None and placement.harness not in placement.router:
        return placement.harness
    return next((cpu for cpu in cpus if cpu not in placement.router), None)


def answers(spec: LabSpec) -> bool:
    """Test whether VPP's command line answers."""
    asking = [shutil.which("vppctl") or "vppctl", "-s", str(vpp_socket(spec.prefix)), "show", "version"]
    with contextlib.suppress(subprocess.TimeoutExpired):
        return subprocess.run(asking, capture_output=True, timeout=5, check=False).returncode == 0
    return False


def clean(prefix: str) -> None:
    """Remove the sockets and shared memory that a killed VPP leaves."""
    shutil.rmtree(_folder(prefix), ignore_errors=True)
    for path in Path("/dev/shm").glob(f"{_segment(prefix)}-*"):
        path.unlink(missing_ok=True)


def _folder(prefix: str) -> Path:
    return Path(vpp_socket(prefix)).parent


def _segment(prefix: str) -> str:
    return f"{prefix}-vpp"
