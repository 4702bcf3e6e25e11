"""First process of the guest (guest.py): prepares the machine, runs the command that it is given, and powers off."""

import ctypes
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

_POWER_OFF = 0x01234567
"""RB_AUTOBOOT: QEMU, started with -no-reboot, ends."""
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_AT_ONCE = ("tun", "veth", "af_packet")
"""Modules of devices that are there before anything asks for them."""


def main(shared: Path) -> None:
    task = json.loads((shared / "task.json").read_text())
    environment = {"PATH": _PATH, "HOME": "/root", "LC_ALL": "C.UTF-8", "TERM": "dumb", **task["environment"]}
    os.environ.update(environment)
    folder, modules = Path(task["folder"]), Path(task["modules"])
    release = Path("/lib/modules", modules.name)
    if not release.exists():
        release.symlink_to(modules)
    for argv in (["ip", "link", "set", "lo", "up"], ["modprobe", "-a", *_AT_ONCE]):
        subprocess.run(argv, check=False)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(shared / "folder", folder, symlinks=True)
    ended = list[dict[str, float]]()
    for argv in task["commands"]:
        ended.append(_run(argv, folder, shared, len(ended)))
        if ended[-1]["code"]:
            break
    shutil.copytree(folder, shared / "back", symlinks=True, ignore=_no_files)
    (shared / "done.new").write_text(json.dumps(ended))
    (shared / "done.new").rename(shared / "done.json")


def _run(argv: list[str], folder: Path, shared: Path, number: int) -> dict[str, float]:
    booted_s = float(Path("/proc/uptime").read_text().split()[0])
    with open(shared / f"stdout-{number:02}", "wb") as out, open(shared / f"stderr-{number:02}", "wb") as err:
        command = subprocess.Popen(
            argv, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
        )
        begun_s = time.monotonic()
        while (ended := os.wait())[0] != command.pid:  # orphans, too, are this process's
            pass
    took_s = round(time.monotonic() - begun_s, 2)
    return {"code": os.waitstatus_to_exitcode(ended[1]), "booted_s": booted_s, "took_s": took_s}


def _no_files(directory: str, names: list[str]) -> list[str]:
    """Sockets and pipes, which cannot be copied."""
    paths = {name: Path(directory, name) for name in names}
    return [name for name, path in paths.items() if path.is_socket() or path.is_fifo()]


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    finally:
        sys.stderr.flush()
        os.sync()
        ctypes.CDLL(None).reboot(_POWER_OFF)
