"""Disks that a virtual machine starts from."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from trexbench.lab import image
from trexbench.lab.cpio import archive_of

_INIT = image._INIT.decode()
DISK_TOOLS = ("syslinux", "mcopy", "mkfs.vfat", "qemu-img")
"""Programs that make a disk."""


def lacking(*more: str) -> list[str]:
    """Programs of DISK_TOOLS, and of these, that are missing."""
    return [name for name in (*DISK_TOOLS, *more) if shutil.which(name) is None]


def make_disk(path: Path, kernel: Path, initrd: Path, append: str = "", kind: str = "raw") -> Path:
    """A disk of one FAT file system whose boot sector starts the kernel by SYSLINUX; kind: raw or qcow2."""
    raw = path.with_suffix(".raw")
    size_mb = (kernel.stat().st_size + initrd.stat().st_size) // 1_000_000 + 16
    config = path.with_suffix(".cfg")
    words = f"console=ttyS0 quiet panic=-1 {append}".strip()
    config.write_text(f"DEFAULT linux\nLABEL linux\n  KERNEL vmlinuz\n  INITRD initrd\n  APPEND {words}\n")
    commands = (
        ["mkfs.vfat", "-C", str(raw), str(size_mb * 1024)],
        ["mcopy", "-i", str(raw), str(kernel), "::vmlinuz"],
        ["mcopy", "-i", str(raw), str(initrd), "::initrd"],
        ["mcopy", "-i", str(raw), str(config), "::syslinux.cfg"],
        ["syslinux", "--install", str(raw)],
    )
    for command in commands:
        subprocess.run(command, check=True, capture_output=True)
    if kind != "raw":
        subprocess.run(["qemu-img", "convert", "-O", kind, str(raw), str(path)], check=True, capture_output=True)
    return path if kind != "raw" else raw


def with_menu(initrd: Path, password: str, to: Path) -> Path:
    """The initramfs with a console that asks for a login, and then what to do: 8 is a shell, as on pfSense."""
    salted = subprocess.run(["openssl", "passwd", "-6", password], check=True, capture_output=True, text=True).stdout
    init = _INIT.replace("setsid -c sh </dev/ttyS0 >/dev/ttyS0 2>&1", "getty -L 115200 ttyS0 dumb")
    assert init != _INIT
    menu = "#!/bin/sh\necho ' 8) Shell'\nprintf 'Enter an option: '\nread chosen\n[ \"$chosen\" = 8 ] && exec sh\n"
    files = {
        "init": (0o100755, init.encode()),
        "menu": (0o100755, menu.encode()),
        "etc/passwd": (0o100644, b"root:x:0:0:root:/root:/menu\n"),
        "etc/shadow": (0o100600, f"root:{salted.strip()}:19000:0:99999:7:::\n".encode()),
    }
    to.write_bytes(initrd.read_bytes() + archive_of(files))
    return to


def with_sshd(initrd: Path, key: Path, to: Path) -> Path:
    """The initramfs with dropbear, at the address that QEMU's network of one has for a guest; key: who may log in."""
    tree = image._Tree()
    tree.program(shutil.which("dropbear") or "", "sbin")
    host_key = to.with_suffix(".hostkey")
    subprocess.run(["dropbearkey", "-t", "ed25519", "-f", str(host_key)], check=True, capture_output=True)
    start = "ip link set eth4 up\nip address add 10.0.2.15/24 dev eth4\ndropbear -s -r /etc/hostkey\ncd /root"
    tree.files |= {
        "init": (0o100755, _INIT.replace("cd /root", start).encode()),
        "etc/hostkey": (0o100600, host_key.read_bytes()),
        "etc/passwd": (0o100644, b"root:x:0:0:root:/root:/bin/sh\n"),
        "root": (0o040700, b""),
        "root/.ssh": (0o040700, b""),
        "root/.ssh/authorized_keys": (0o100600, key.with_suffix(".pub").read_bytes()),
    }
    to.write_bytes(initrd.read_bytes() + archive_of(tree.files))
    return to
