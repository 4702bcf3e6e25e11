"""VPP in an initramfs: this machine's VPP, and an init that hands it the NICs, which it drives itself, without DPDK.

Its virtio driver works with uio. Its vmxnet3 driver needs interrupts that only vfio passes on, and uses physical
addresses only (26.06): vfio without an IOMMU, which Debian's kernels lack.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..core.errors import LabError

MODULES = ("uio_pci_generic",)
PLUGINS = "lib/vpp_plugins"
STARTUP_CONF = "etc/startup.conf"
_PROGRAMS = ("vpp", "vppctl")
_WANTED = ("ping_plugin.so",)
"""The virtio driver is no plugin."""
INIT = b"""#!/bin/sh
export PATH=/sbin:/bin:/usr/sbin:/usr/bin HOME=/root TERM=dumb PS1='lab-vm-vpp# '
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm /run/vpp
mount -t tmpfs shm /dev/shm
echo 128 >/proc/sys/vm/nr_hugepages
modprobe uio_pci_generic
for device in /sys/bus/pci/devices/*; do
  case $(cat $device/class) in 0x0200*)
    echo uio_pci_generic >$device/driver_override
    echo ${device##*/} >/sys/bus/pci/drivers_probe
  esac
done
ip link set lo up
last=$(($(nproc) - 1))
[ $last -gt 0 ] && echo "cpu { main-core 0 corelist-workers 1-$last }" >>/etc/startup.conf
vpp -c /etc/startup.conf </dev/null >/run/vpp/said 2>&1 &
for second in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  vppctl show version >/dev/null 2>&1 </dev/null && break
  kill -0 $! 2>/dev/null || break
  sleep 1
done
kill -0 $! 2>/dev/null || { echo "VPP ended:"; tail -n 5 /run/vpp/said; }
cd /root
while :; do setsid -c sh </dev/ttyS0 >/dev/ttyS0 2>&1; done
"""
_CONF = """unix { nodaemon nosyslog nobanner cli-no-pager cli-listen /run/vpp/cli.sock runtime-dir /run/vpp }
memory { main-heap-size 256M main-heap-page-size 4k }
buffers { buffers-per-numa 16384 }
statseg { size 32M page-size 4k }
"""
RECIPE = (MODULES, _WANTED, INIT, _CONF)


@dataclass(frozen=True)
class FoundVpp:
    """Files of a VPP that go into the initramfs."""

    programs: tuple[Path, ...]
    plugins: tuple[Path, ...]

    @property
    def startup_conf(self) -> str:
        enabled = " ".join(f"plugin {plugin.name} {{ enable }}" for plugin in self.plugins)
        return f"{_CONF}plugins {{ path /{PLUGINS} plugin default {{ disable }} {enabled} }}\n"


def find(folder: Path) -> FoundVpp:
    """Find the VPP of a build or an installation, with programs in bin or usr/bin; LabError if they are missing."""
    for base in (folder, folder / "usr"):
        programs = tuple(base / "bin" / name for name in _PROGRAMS)
        if all(program.is_file() for program in programs):
            folders = [*base.glob("lib*/vpp_plugins"), *base.glob("lib*/*/vpp_plugins")]
            plugins = (place / name for name in _WANTED for place in folders)
            return FoundVpp(programs, tuple(plugin for plugin in plugins if plugin.is_file()))
    remedy = "install the packages vpp and vpp-plugin-core (https://fd.io), then name / as the folder"
    raise LabError(f"{folder}: no {' and '.join(_PROGRAMS)} in its bin or usr/bin", remedy)
