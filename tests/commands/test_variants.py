"""A night over the variants of one DUT, simulated: each is a cell of its own from the plan to the page."""

from __future__ import annotations

import json
from pathlib import Path

from routed import plain_lab
from tools import succeed, trexbench

NIGHT = """\
duts: [box]
variants: [none, stateful]
modes: [var2-64b]
directions: [uni]
plan: {ramp_duration: 20s, confirm: 2s, hold: 2s}
"""


def test_a_night_of_variants_keeps_them_apart(tmp_path: Path) -> None:
    text = plain_lab()
    twin = "  noise: 1%\n  variants: {stateful: {cycles_per_packet: 3400}}\n"
    (tmp_path / "box.yaml").write_text(
        text.replace("  noise: 1%\n", twin) + "\nvariants:\n  stateful: {firewall: stateful}\n  nat: {nat: true}\n"
    )
    (tmp_path / "night.yaml").write_text(NIGHT)
    sim = ("--sim", "--configs-dir", str(tmp_path))
    succeed(tmp_path, "suite", "run", "./night.yaml", *sim)
    rows = json.loads(trexbench(tmp_path, "results", "list", "--json").stdout)["runs"]
    rates = {row["cell"]["variant"]: row["total_pps"] for row in rows}
    assert set(rates) == {None, "stateful"}
    assert 0.7 < rates["stateful"] / rates[None] < 0.9
    (night,) = (tmp_path / "results/nights").glob("*.json")
    assert [cell["variant"] for cell in json.loads(night.read_text())["cells"]] == [None, "stateful"]
