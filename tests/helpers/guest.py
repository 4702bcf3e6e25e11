"""A machine with a complete kernel for tests: Debian's in QEMU, with this machine's file system and no network.

What this machine's kernel lacks (netem, sit, WireGuard, PPP, 802.1Q) works there: ``run_in_guest`` runs one command as
root in it. Its file system is this machine's, read-only below a layer in memory that nothing outlives; the command's
directory, where it runs, is copied in before and back after it. The processor is emulated: compare no rate with others.
"""

from __future__ import annotations

import ctypes
import json
import lzma
import mmap
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from trexbench.lab.cpio import archive_of

QEMU = "qemu-system-x86_64"
LACKS_QEMU = f"{QEMU} is not installed"
KERNEL = "linux-image-amd64"
"""The one for clouds has neither 9p nor PPP."""
INIT = Path(__file__).with_name("guest_init.py")
SHARED = "/run/shared"
"""Folder in the guest through which command and results go."""
_TO_MOUNT = ("virtio_pci", "9pnet_virtio", "9p", "overlay")
_WORDS = "console=ttyS0 quiet panic=-1 mitigations=off random.trust_cpu=on tsc=reliable tsc_early_khz={khz}"
_READ_TSC = bytes.fromhex("0f31 48c1e220 4809d0 c3")
"""rdtsc; shl rdx, 32; or rax, rdx; ret."""
_PR_SET_PDEATHSIG = 1
_9P = "trans=virtio,version=9p2000.L,msize=512000"
_INITRD_SH = f"""#!/bin/busybox sh
for module in /modules/*; do /bin/busybox insmod $module; done
busybox() {{ /bin/busybox "$@"; }}
busybox mkdir -p /lower /layer /new
busybox mount -t 9p -o ro,cache=loose,{_9P} root /lower
busybox mount -t tmpfs layer /layer
busybox mkdir -p /layer/upper /layer/work
busybox mount -t overlay -o lowerdir=/lower,upperdir=/layer/upper,workdir=/layer/work root /new
busybox mount -t proc proc /new/proc
busybox mount -t sysfs sysfs /new/sys
busybox mount -t devtmpfs dev /new/dev
busybox mount -t tmpfs run /new/run
busybox mkdir -p {SHARED} /new{SHARED} /new/lib/modules /new/dev/shm /new/dev/pts
busybox mount -t 9p -o {_9P} shared /new{SHARED}
busybox mount -t devpts devpts /new/dev/pts
busybox mount -t tmpfs shm /new/dev/shm
exec busybox switch_root /new $(busybox cat /start)
"""


@dataclass(frozen=True)
class InGuest:
    """The end of a command in the guest."""

    code: int
    stdout: str
    stderr: str
    booted_s: float
    """By the guest's clock, from its start to the command's."""
    took_s: float


def lacking() -> str:
    """Reason why this machine cannot start a guest, for a skip; empty where it can."""
    if shutil.which(QEMU) is None:
        return LACKS_QEMU
    missing = [name for name in ("busybox", "apt-get", "dpkg-deb", "depmod") if shutil.which(name) is None]
    return f"{missing[0]} is not installed" if missing else ""


def run_in_guest(
    argv: Sequence[str],
    folder: Path,
    timeout_s: float = 300.0,
    environment: Mapping[str, str] | None = None,
    hardware: Sequence[str] = (),
) -> InGuest:
    """Boot, run the command in a copy of the folder, bring the folder back, and end; see run_all_in_guest."""
    (done,) = run_all_in_guest([argv], folder, timeout_s, environment, hardware)
    return done


def run_all_in_guest(
    commands: Sequence[Sequence[str]],
    folder: Path,
    timeout_s: float = 300.0,
    environment: Mapping[str, str] | None = None,
    hardware: Sequence[str] = (),
) -> list[InGuest]:
    """Commands one after the other in one guest, as far as each ends with 0. hardware: QEMU's words for more of it.

    RuntimeError, with the console's last lines and what the last command printed, where they do not end in time.
    """
    modules, kernel = _kernel()
    with tempfile.TemporaryDirectory(prefix="guest-") as scratch:
        there = Path(scratch)
        shared = there / "shared"
        shutil.copytree(folder, shared / "folder", symlinks=True)
        words = [[*argv] for argv in commands]
        task = {"commands": words, "folder": str(folder), "modules": str(modules), "environment": environment or {}}
        (shared / "task.json").write_text(json.dumps(task))
        initrd, console = there / "initrd", there / "console"
        initrd.write_bytes(_initrd(modules))
        with console.open("wb") as log:
            qemu = subprocess.Popen(
                [*_qemu(kernel, initrd, shared), *hardware],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=_die_with_parent,
            )  # fmt: skip
            try:
                qemu.wait(timeout_s)
            except subprocess.TimeoutExpired:
                pass
            finally:
                qemu.kill()
                qemu.wait()
        printed = [[_text(path) for path in sorted(shared.glob(f"{name}-*"))] for name in ("stdout", "stderr")]
        if not (shared / "done.json").is_file():
            said = "\n".join([_text(console)[-2000:], *(text[-4000:] for some in printed for text in some[-1:])])
            raise RuntimeError(f"{words} did not end in the guest within {timeout_s:g} s:\n{said}")
        shutil.copytree(shared / "back", folder, symlinks=True, dirs_exist_ok=True)
        ended = json.loads((shared / "done.json").read_text())
        return [InGuest(**one, stdout=out, stderr=err) for one, out, err in zip(ended, *printed, strict=True)]


def trexbench_in_guest(folder: Path, *commands: Sequence[str], timeout_s: float = 300.0) -> list[InGuest]:
    """Commands of the checkout's trexbench, as tools.trexbench runs them here."""
    state = {"TREXBENCH_RUN_DIR": str(folder / "run"), "TREXBENCH_STATE_DIR": str(folder / "state")}
    argvs = [(sys.executable, "-m", "trexbench", *arguments) for arguments in commands]
    return python_in_guest(folder, argvs, timeout_s, state)


def python_in_guest(
    folder: Path, commands: Sequence[Sequence[str]], timeout_s: float, environment: Mapping[str, str] | None = None
) -> list[InGuest]:
    """Commands that find the checkout's trexbench, after what a lab imports is read once.

    Without that, its server would take too long on a busy machine.
    """
    read = (sys.executable, "-c", "import trexbench.cli.tcp, trexbench.lab.keeper, trexbench.stlserver.__main__")
    there = {"PYTHONPATH": str(Path(__file__).resolve().parents[2]), **(environment or {})}
    first, *done = run_all_in_guest([read, *commands], folder, timeout_s, there)
    return done or [first]


def _qemu(kernel: Path, initrd: Path, shared: Path) -> list[str]:
    alone = ["-nodefaults", "-nographic", "-no-reboot", "-no-user-config", "-nic", "none", "-serial", "stdio"]
    share = "security_model=none,multidevs=remap"
    return [
        QEMU, "-accel", "tcg,thread=multi", "-cpu", "Nehalem", "-smp", "2", "-m", "1536", *alone,
        "-kernel", str(kernel), "-initrd", str(initrd), "-append", _WORDS.format(khz=_tsc_khz()),
        "-virtfs", f"local,path=/,mount_tag=root,readonly=on,{share}",
        "-virtfs", f"local,path={str(shared).replace(',', ',,')},mount_tag=shared,{share}",
        "-device", "virtio-rng-pci",
    ]  # fmt: skip


@cache
def _tsc_khz() -> int:
    """Frequency of the counter that the emulated processor reads: on a busy machine the guest would misjudge it."""
    with mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC) as code:
        code.write(_READ_TSC)
        place = ctypes.c_char.from_buffer(code)
        read = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(place))
        begun, begun_ns = read(), time.monotonic_ns()
        time.sleep(0.1)
        ended, ended_ns = read(), time.monotonic_ns()
        del place, read
    return round((ended - begun) * 1e6 / (ended_ns - begun_ns))


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.is_file() else ""


@cache
def _kernel() -> tuple[Path, Path]:
    """Folder of Debian's modules, and the kernel; kept in the user's cache by its release."""
    depends = _said("apt-cache", "depends", KERNEL)
    package = re.findall(r"Depends: (linux-image-\S+)", depends)[0]
    release = package.removeprefix("linux-image-")
    base = os.environ.get("XDG_CACHE_HOME")
    kept = (Path(base) if base else Path.home() / ".cache") / "trexbench" / "test-packages" / release
    if not kept.is_dir():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as scratch:
            there = Path(scratch)
            _said("apt-get", "-o", "APT::Sandbox::User=root", "download", package, directory=there)
            _said("dpkg-deb", "-x", str(next(there.glob("*.deb"))), str(there / "root"))
            _said("depmod", "-b", str(there / "root"), release)
            packed = (there / "root" / "boot" / f"vmlinuz-{release}").read_bytes()
            (there / "root" / "vmlinux").write_bytes(_unpacked(packed))
            try:
                (there / "root").rename(kept)
            except OSError:  # another process was faster
                if not kept.is_dir():
                    raise
    return kept / "lib" / "modules" / release, kept / "vmlinux"


def _unpacked(kernel: bytes) -> bytes:
    """The kernel without what unpacks it at its start, which takes an emulated processor some seconds."""
    return lzma.LZMADecompressor().decompress(kernel[kernel.index(b"\xfd7zXZ\0") :])


def _initrd(modules: Path) -> bytes:
    """Archive with the programs that mount this machine's file system and start Python in it."""
    busybox = shutil.which("busybox")
    assert busybox is not None
    libraries = re.findall(r"(/\S+) \(0x", _said("ldd", busybox, may_fail=True))  # a static program has none
    files = {path.lstrip("/"): (0o100755, Path(path).read_bytes()) for path in libraries}
    files["bin/busybox"] = (0o100755, Path(busybox).read_bytes())
    listed = list[str]()
    for name in _TO_MOUNT:
        root, release = str(modules.parents[2]), modules.name
        shown = _said("modprobe", "-d", root, "-S", release, "--show-depends", name)
        listed += [path for path in re.findall(r"^insmod (\S+)", shown, re.MULTILINE) if path not in listed]
    for number, path in enumerate(listed):
        files[f"modules/{number:02}"] = (0o100644, Path(path).read_bytes())
    files["init"] = (0o100755, _INITRD_SH.encode())
    files["start"] = (0o100644, f"{os.path.realpath(sys.executable)} -IS {INIT} {SHARED}".encode())
    return archive_of(files)


def _said(*argv: str, directory: Path | None = None, may_fail: bool = False) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, cwd=directory, timeout=180, check=False)
    if done.returncode and not may_fail:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr[-500:]}")
    return done.stdout
