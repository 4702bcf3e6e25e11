"""The script of docs/python.md: a lab and a twin in one process, in a table."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from packet_lab import write_lab
from tools import ROOT


@pytest.mark.nightly
def test_the_script_of_the_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"^<!-- lab -->\n```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(script.splitlines()) <= 15
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TREXBENCH_RUN_DIR", str(tmp_path / "run"))
    write_lab(tmp_path / "dut_configs" / "lab-linux.yaml", f"tbn{os.getpid()}")
    namespace = os.stat("/proc/thread-self/ns/net").st_ino
    times = '"warmup_duration": 2, "ramp_duration": 10, "hold": 3'
    assert times in script and 'ramp_to="50%"' in script
    shorter = script.replace(times, '"ramp_duration": 4, "hold": 1').replace('"50%"', '"10kpps"')
    for text in (script, shorter):  # a lab after a simulation, too
        exec(compile(text, "docs/python.md", "exec"), {"__name__": "notebook"})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 10 and [line.split()[0] for line in lines[1:5]] == ["lab-linux"] * 2 + ["netgate-vpp"] * 2
    assert os.stat("/proc/thread-self/ns/net").st_ino == namespace, "back where it came from"
