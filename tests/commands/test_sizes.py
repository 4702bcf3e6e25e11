"""``--sizes``: several frame sizes in one session, as a user without root runs it."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tools import succeed, trexbench

QUICK = ("--dut", "netgate-vpp", "--sim", "--speedup", "10000", "-q")


def test_a_search_of_two_sizes_has_two_documents_a_table_and_a_picture(tmp_path: Path) -> None:
    done = succeed(tmp_path, "search", *QUICK, "--sizes", "64,1518", "--loss", "0,0.5%")
    assert done.stdout.startswith("*** SIMULATED")
    rows = [line for line in done.stdout.splitlines() if " B  " in line]
    assert [row.split()[0] for row in rows] == ["64", "64", "1518", "1518"]
    assert all("14.88 Mpps" in row and "the DUT saturated" in row for row in rows[:2])
    stored = [json.loads(path.read_text()) for path in tmp_path.glob("results/*/*/*-search.json")]
    assert {one["command"]["mode"] for one in stored} == {"var2-64b", "var2-1518b"}
    assert all(one["status"] == "complete" and len(one["analysis"][0]["goals"]) == 2 for one in stored)
    (picture,) = tmp_path.glob("results/*/*/*.png")
    assert picture.name.endswith("-sizes.png") and picture.read_bytes().startswith(b"\x89PNG")


def test_a_size_that_cannot_be_measured_costs_the_others_nothing(tmp_path: Path) -> None:
    options = ("--sizes", "1280,512,1518", "--ramp-to", "0.9mpps", "--no-picture")
    done = trexbench(tmp_path, "search", *QUICK, *options, "--json")
    assert done.returncode == 2
    assert [one["command"]["mode"] for one in json.loads(done.stdout)] == ["var2-1280b", "var2-512b"]
    *named, line = done.stderr.splitlines()
    assert len(named) == 2 and all((tmp_path / one.removeprefix("result   ")).is_file() for one in named)
    assert line.startswith("trexbench: var2-1518b: 900kpps is 900000 pps, over the line rate")
    done = trexbench(tmp_path, "search", *QUICK, "--sizes", "1518,512,1280", *options[2:], "--format", "md")
    assert done.returncode == 2 and done.stdout.startswith("# Throughput by frame size, netgate-vpp\n\n- ")
    assert re.findall(r"^- netgate-vpp (\S+)", done.stdout, re.MULTILINE) == ["var2-512b", "var2-1280b"]
