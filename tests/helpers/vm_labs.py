"""Labs whose router is a virtual machine: their image, for the tests of a file, their configs and processes."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from packet_lab import plan
from tools import ROOT

from trexbench.files import replace_file
from trexbench.lab import image


@contextmanager
def made_image(cache: Path, vpp: Path | None = None) -> Iterator[None]:
    """Make it of what the code makes now, in this folder; Debian's kernel stays in the user's cache, by its version."""
    if shutil.which("apt-get") is None:
        pytest.skip("the image is made of Debian's packages")
    kept, run = image.folder().with_name("test-packages"), image._output_of

    def run_or_copy(argv: Sequence[str], directory: Path | None = None, may_fail: bool = False) -> str:
        if "download" not in argv or directory is None:
            return run(argv, directory, may_fail)
        shown = run(["apt-cache", "show", "--no-all-versions", argv[-1]])
        version = re.findall(r"^Version: (\S+)$", shown, re.MULTILINE)[0]
        package = kept / f"{argv[-1]}_{version}.deb"
        if not package.is_file():
            run(argv, directory)
            kept.mkdir(parents=True, exist_ok=True)
            replace_file(package, next(directory.glob("*.deb")).read_bytes())
        shutil.copy(package, directory / "kernel.deb")
        return ""

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache))
        patch.setattr(image, "_output_of", run_or_copy)
        image.folder().mkdir(parents=True)
        (image.folder() / "initrd").write_bytes(b"of a former release")
        image.make(vpp)
        yield


def write_vm(path: Path, prefix: str, dut: str = "lab-vm-linux", **machine: str) -> Path:
    """Its config with a short plan. machine: keys of lab.vm."""
    text = (ROOT / "dut_configs" / f"{dut}.yaml").read_text()
    text, plans = re.subn(r"^plan:\n(?: +.*\n)+", f"plan: {plan(ramp_to='5kpps')}\n", text, flags=re.MULTILINE)
    keys = "".join(f"    {key}: {value}\n" for key, value in {"accelerator": "tcg", **machine}.items())
    text, machines = re.subn(r"^  vm:\n(?: {4}.*\n)+", f"  vm:\n{keys}", text, flags=re.MULTILINE)
    text, prefixes = re.subn(r"prefix: tb[mn]", f"prefix: {prefix}", text)
    assert plans == machines == prefixes == 1
    path.write_text(text)
    return path


def processes(prefix: str) -> dict[int, str]:
    """Names of the processes that a lab of this prefix has started, by their pids."""
    names = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if f"TREXBENCH_LAB={prefix}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                names[int(entry.name)] = (entry / "comm").read_text().strip()
        except OSError:
            continue
    return names
