"""A whole machine with a complete kernel: what this machine's kernel lacks works in it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from guest import lacking, run_in_guest

pytestmark = [pytest.mark.root, pytest.mark.skipif(lacking() != "", reason=lacking())]


def test_a_guest_brings_back_what_a_command_leaves_and_has_no_network(tmp_path: Path) -> None:
    """Output, exit code and files come back; its kernel knows netem, and no interface leads out."""
    (tmp_path / "given").write_text("seen")
    code = (
        "import os, pathlib, subprocess, sys; pathlib.Path('left').write_text(pathlib.Path('given').read_text());"
        "pathlib.Path('/usr/not-kept').touch();"
        "subprocess.run(['tc', 'qdisc', 'add', 'dev', 'lo', 'root', 'netem', 'delay', '1ms'], check=True);"
        "print(os.listdir('/sys/class/net')); sys.exit(3)"
    )
    done = run_in_guest([sys.executable, "-c", code], tmp_path, timeout_s=120)
    assert (done.code, done.stdout, done.stderr) == (3, "['lo']\n", "")
    assert (tmp_path / "left").read_text() == "seen" and not Path("/usr/not-kept").exists()
