"""``trexbench lab image``: kernel and initramfs of lab-vm-linux, from packages of this machine's Debian.

The kernel is Debian's for clouds, downloaded by apt-get, with the modules for NICs and routing. The initramfs has this
machine's busybox, ip, tc, ethtool, grep and nft with the libraries that they load. Nothing of it is shipped.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..core.errors import LabError
from ..files import replace_file
from . import vppimage
from .cpio import archive_of

KERNEL_PACKAGE = "linux-image-cloud-amd64"
_ELSE = "Debian amd64, or name kernel: and initrd: in lab.vm"
_WITHIN_S = 180.0
TOOLS = {"apt-get": "apt", "dpkg-deb": "dpkg", "depmod": "kmod", "modprobe": "kmod", "ldd": "libc-bin"}
"""Programs that make the image, and Debian's packages."""
PROGRAMS = {
    "busybox": ("busybox", "bin"),
    "ip": ("iproute2", "sbin"),
    "tc": ("iproute2", "sbin"),
    "ethtool": ("ethtool", "sbin"),
    "grep": ("grep", "bin"),
    "nft": ("nftables", "sbin"),
}
"""Programs in the image: package, and folder there. busybox's own ip, tc and grep can do too little."""
WELCOME = {"wg": "bin"}
"""Programs that are included if this machine has them."""
_NICS = ("virtio_pci", "virtio_net", "vmxnet3", *vppimage.MODULES)
_LINES = ("8021q", "sch_netem", "sch_tbf", "sit", "wireguard")
_RULES = ("nf_flow_table_inet", "nft_chain_nat", "nft_ct", "nft_fib_inet", "nft_flow_offload", "nft_limit", "nft_log")
_MORE_RULES = ("nft_masq", "nft_nat", "nft_redir", "nft_reject_inet")
_INIT = b"""#!/bin/sh
export PATH=/sbin:/bin:/usr/sbin:/usr/bin HOME=/root TERM=dumb PS1='lab-vm-linux# '
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
for scope in all default; do echo 1 >/proc/sys/net/ipv6/conf/$scope/disable_ipv6; done
modprobe -a virtio_pci virtio_net vmxnet3
for nic in /sys/class/net/eth*; do
  ethtool -X ${nic##*/} equal $(ls -d $nic/queues/rx-* | wc -l)
done 2>/dev/null
ip link set lo up
cd /root
while :; do setsid -c sh </dev/ttyS0 >/dev/ttyS0 2>&1; done
"""
"""Without IPv6 until the DUT is configured: its own packets would count as traffic. virtio_net shows a table that the
device gets only once it is set (seen with Linux 6.1)."""


@dataclass
class _Tree:
    """Files of the initramfs by their path in it: mode and content."""

    files: dict[str, tuple[int, bytes]] = field(default_factory=dict)

    def program(self, source: str, folder: str) -> None:
        self.files[f"{folder}/{Path(source).name}"] = (0o100755, Path(source).read_bytes())
        needed = _output_of(["ldd", source], may_fail=True)  # a static program has none
        if "=> not found" in needed:
            raise LabError(f"{source} needs libraries that are not installed", "install its packages")
        for library in re.findall(r"(/\S+) \(0x", needed):
            self.files[library.lstrip("/")] = (0o100755, Path(library).read_bytes())


def folder() -> Path:
    """Return the folder of images in the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "trexbench" / "lab-vm-linux"


def kernel_file() -> Path:
    return folder() / f"vmlinuz-{_recipe()}"


def initrd_file(guest: str = "linux") -> Path:
    return folder() / f"initrd-{_recipe()}{'-vpp' if guest == 'vpp' else ''}"


def _recipe() -> str:
    """Return a digest of an image's ingredients, so that none of another release of trexbench is started."""
    parts = (KERNEL_PACKAGE, PROGRAMS, WELCOME, _NICS, _LINES, _RULES, _MORE_RULES, _INIT, vppimage.RECIPE)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:8]


def install_command(packages: Sequence[str]) -> str:
    return f"apt-get install --no-install-recommends {' '.join(dict.fromkeys(packages))}"


def check() -> None:
    """Raise LabError if this machine lacks programs that make the image, or go into it."""
    needed = {**TOOLS, **{name: package for name, (package, _) in PROGRAMS.items()}}
    lacking = {name: package for name, package in needed.items() if shutil.which(name) is None}
    if "apt-get" in lacking:
        what = "the image is made of Debian's packages, and this machine has no apt-get"
        raise LabError(what, f"make it on {_ELSE}")
    if lacking:
        what = f"the image needs {', '.join(lacking)}"
        raise LabError(what, f"install: {install_command(list(lacking.values()))}")


def make(vpp: Path | None = None) -> str:
    """Make the files, which replace former ones, and describe them. vpp: folder of a VPP, which gets an initramfs, too.

    Without it a former one of VPP stays if the kernel, whose modules it has, stays the same.
    """
    check()
    source = vppimage.find(vpp) if vpp is not None else None
    with tempfile.TemporaryDirectory(prefix="trexbench-image-") as scratch:
        there = Path(scratch)
        release = _unpack_kernel(there)
        tree = _initramfs(there, release)
        made = {initrd_file(): archive_of(tree.files)}
        if source is not None:
            made[initrd_file("vpp")] = archive_of(_with_vpp(tree, source).files)
        kernel = (there / "boot" / f"vmlinuz-{release}").read_bytes()
    try:
        without_vpp = _replace(kernel, made)
    except OSError as error:
        raise LabError(f"{folder()}: {error.strerror}", "name another place with XDG_CACHE_HOME") from None
    packages = ["busybox-static", *(package for package, _ in PROGRAMS.values())]
    versions = {**dict(_versions(packages)), **({"VPP of": str(vpp)} if vpp is not None else {})}
    parts = ", ".join(f"{name} {version}" for name, version in versions.items())
    gone = "; VPP's was of another kernel and is removed: make it again with --vpp" if without_vpp else ""
    sizes = f"({len(kernel) / 1e6:.1f} MB), initramfs ({sum(map(len, made.values())) / 1e6:.1f} MB)"
    return f"{folder()}: Linux {release} {sizes} with {parts}{gone}"


def _replace(kernel: bytes, made: Mapping[Path, bytes]) -> bool:
    """Write these files, and delete former ones; True if VPP's is deleted and not made anew."""
    folder().mkdir(parents=True, exist_ok=True)
    stays = kernel_file().is_file() and kernel_file().read_bytes() == kernel
    for path, content in {kernel_file(): kernel, **made}.items():
        replace_file(path, content)
    former = {*folder().glob("vmlinuz*"), *folder().glob("initrd*")} - {kernel_file(), *made}
    former -= {initrd_file("vpp")} if stays else set()
    for path in former:
        path.unlink(missing_ok=True)
    return initrd_file("vpp") not in made and any(path.name.endswith("-vpp") for path in former)


def _unpack_kernel(there: Path) -> str:
    """Download and unpack Debian's kernel; return its release."""
    depends = _output_of(["apt-cache", "depends", KERNEL_PACKAGE], may_fail=True)
    match = re.search(r"Depends: (linux-image-\S+)", depends)
    if match is None:
        remedy = f"update its lists: apt-get update; it is there on {_ELSE}"
        raise LabError(f"apt knows no package {KERNEL_PACKAGE}", remedy)
    _output_of(["apt-get", "-o", "APT::Sandbox::User=root", "download", match[1]], there)
    for package in there.glob("*.deb"):
        _output_of(["dpkg-deb", "-x", str(package), str(there)])
    releases = [path.name.removeprefix("vmlinuz-") for path in there.glob("boot/vmlinuz-*")]
    if len(releases) != 1:
        raise LabError(f"the package {match[1]} has no kernel", "report it")
    return releases[0]


def _initramfs(there: Path, release: str) -> _Tree:
    tree = _Tree()
    for name, place in {**{name: place for name, (_, place) in PROGRAMS.items()}, **WELCOME}.items():
        if (path := shutil.which(name)) is not None:  # as all of PROGRAMS are: see check
            tree.program(path, place)
    taken = {Path(name).name for name in tree.files}
    for name in _output_of(["busybox", "--list-full"]).split():
        if Path(name).name not in taken:
            tree.files[name] = (0o120777, b"/bin/busybox")
    for path, content in _modules(there, release):
        tree.files[path] = (0o100644, content)
    tree.files["init"] = (0o100755, _INIT)
    for name in ("proc", "sys", "dev", "tmp", "root"):
        tree.files[name] = (0o040755, b"")
    return tree


def _with_vpp(tree: _Tree, vpp: vppimage.FoundVpp) -> _Tree:
    whole = _Tree(dict(tree.files))
    for program in vpp.programs:
        whole.program(str(program), "bin")
    for plugin in vpp.plugins:
        whole.program(str(plugin), vppimage.PLUGINS)
    whole.files[vppimage.STARTUP_CONF] = (0o100644, vpp.startup_conf.encode())
    whole.files["init"] = (0o100755, vppimage.INIT)
    return whole


def _modules(there: Path, release: str) -> Iterator[tuple[str, bytes]]:
    """Yield the modules, those that they need, and the lists that modprobe reads."""
    _output_of(["depmod", "-b", str(there), release])
    needed = set()
    for name in (*_NICS, *_LINES, *_RULES, *_MORE_RULES):
        commands = _output_of(["modprobe", "-d", str(there), "-S", release, "--show-depends", name])
        needed |= set(re.findall(r"^insmod (\S+)", commands, re.MULTILINE))
    home = there / "lib" / "modules" / release
    for path in [*home.rglob("*.ko*")]:
        if str(path) not in needed:
            path.unlink()
    _output_of(["depmod", "-b", str(there), release])
    for path in sorted([*home.rglob("*.ko*"), *home.glob("modules.*")]):
        if path.suffix != ".bin":
            yield str(path.relative_to(there)), path.read_bytes()


def _versions(packages: Sequence[str]) -> Iterator[tuple[str, str]]:
    form = "-f=${binary:Package} ${Version}\\n"
    for line in _output_of(["dpkg-query", "-W", form, *dict.fromkeys(packages)], may_fail=True).splitlines():
        name, _, version = line.partition(" ")
        if version:  # only one of busybox and busybox-static is installed
            yield name.partition(":")[0], version


def _output_of(argv: Sequence[str], directory: Path | None = None, may_fail: bool = False) -> str:
    """Run a program; return its output. LabError, with the last line of its complaint, if it fails and may not."""
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, errors="replace", cwd=directory, timeout=_WITHIN_S,
            check=False, env={**os.environ, "LC_ALL": "C"}, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LabError(f"{argv[0]} does not make the image ({error})", "try it again") from None
    if done.returncode and not may_fail:
        said = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()[-1]
        is_apt = argv[0].startswith("apt")
        remedy = "update its lists: apt-get update" if is_apt else "see whether there is space in /tmp"
        raise LabError(f"{' '.join(argv[:2])} failed ({said[:200]})", remedy)
    return done.stdout
