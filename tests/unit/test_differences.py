"""Differences between two documents, and which runs around a change are compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nights import VPP, date, make_row, make_rows, noisy

from trexbench.core.history.causes import groups_of
from trexbench.core.history.differences import LONGEST, Difference, agree, compare_documents
from trexbench.core.history.regression import Judgement, judge_rows
from trexbench.host.linux import PLATFORM_FILES, platform_of
from trexbench.report.groups import MOST_DIFFERENCES, NOTHING_DIFFERS, difference_lines
from trexbench.report.regress import format_judgement, format_markdown, judgement_values
from trexbench.review.judge import with_differences
from trexbench.session.process import host_facts

FACTS: dict[str, Any] = {
    "kernel": "6.1.0",
    "uptime": 12345.6,
    "boot_id": "c0ffee",
    "interfaces": {
        name: {"mtu": 1500, "driver": {"firmware-version": "1.2"}, "irqs": [{"irq": number, "name": name, "cpus": "1"}]}
        for name, number in (("ix0", 30), ("ix1", 31))
    },
    "neighbours": {"10.0.0.2%ix0": {"mac": "02:00:00:00:00:01", "state": "REACHABLE"}},
    "secret_env": "one",
    "unknown": [],
}


def document(**facts: Any) -> dict[str, Any]:
    return {
        "started": "2026-11-16T01:00:00Z",
        "dut": {"attested": True, "facts": {**FACTS, **facts}, "facts_sha256": str(facts), "config": "speed: 10gbit\n"},
        "host": {"hostname": "tester", "kernel": "6.8", "versions": {"trexbench": "1.0", "numpy": "2.4"}},
        "generator": {"kind": "TRex", "server": {"version": "v3.04"}, "host": {"uptime": "1 day"}},
        "command": {"mode": "64b", "night": "2026-11-16", "tunables": {"size": "64"}},
        "plan": {"kind": "ramp", "hold_s": 30.0},
    }


def told(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return [f"{'/'.join(one.path)}: {one.before} {one.after}" for one in compare_documents(before, after)]


def test_facts_are_told_by_their_path_with_both_values() -> None:
    after = document(
        kernel="6.8.0",
        uptime=1.0,
        boot_id="other",
        interfaces={
            name: {"mtu": 1500, "driver": {"firmware-version": "1.3"}, "irqs": [{"irq": 99, "name": name, "cpus": "1"}]}
            for name in ("ix0", "ix1")
        },
        neighbours={"10.0.0.2%ix0": {"mac": "02:00:00:00:00:01", "state": "STALE"}},
        secret_env="another",
        unknown=["x"],
    )
    assert told(document(), after) == [
        "DUT/kernel: 6.1.0 6.8.0",
        "DUT/interfaces/ix0, ix1/driver/firmware-version: 1.2 1.3",
    ]


def test_tester_programs_and_conditions_are_told_after_the_dut() -> None:
    after = document(kernel="6.8.0", meter="http://me:pass@meter/")
    after["host"] |= {"kernel": "6.9", "versions": {"trexbench": "1.1", "numpy": "2.5"}, "hostname": "other"}
    after["generator"] |= {"server": {"version": "v3.06"}, "host": {"uptime": "2 days"}}
    after["plan"] = {"kind": "ramp", "hold_s": 10.0}
    after["command"]["night"] = "2026-11-17"
    assert told(document(), after) == [
        "DUT/kernel: 6.1.0 6.8.0",
        "trexbench/version: 1.0 1.1",
        "generator/server/version: v3.04 v3.06",
        "tester/kernel: 6.8 6.9",
        "tester/numpy: 2.4 2.5",
        "run/hold_s: 30.0 10.0",
    ]


def test_a_mapping_that_older_documents_do_not_have_is_no_difference() -> None:
    before, after = document(), document()
    after["dut"]["platform"] = after["host"]["platform"] = {"microcode": "0x24"}
    assert told(before, after) == []
    before["dut"]["platform"] = {"microcode": "0x20"}
    assert told(before, after) == ["DUT/microcode: 0x20 0x24"]


def test_a_fact_that_older_versions_did_not_read_is_no_difference() -> None:
    port = {"mtu": 1500, "driver": {"firmware-version": "1.3"}, "rings": {"now": {"rx": 512}}}
    before, after = document(interfaces={"ix0": {"mtu": 1500, "driver": {}, "firmware": "1.2"}}), document()
    after["dut"] |= {"facts": {**after["dut"]["facts"], "interfaces": {"ix0": port}, "governor": "powersave"}}
    before["dut"]["platform"], after["dut"]["platform"] = {}, {"microcode": "0x24", "bios_version": "1"}
    after["host"] |= {"governor": "powersave"}
    after["generator"]["ports"] = [{"port": 0, "driver": "net_ixgbe"}]
    assert told(before, after) == told(after, before) == []


def test_what_the_dut_stopped_telling_and_what_came_or_went_is_a_difference() -> None:
    before, after = document(governor="powersave"), document(governor=None)
    after["dut"]["facts"]["interfaces"] = {"ix0": FACTS["interfaces"]["ix0"]}
    after["command"]["tunables"]["seed"] = "7"
    governor, gone, seed = told(before, after)
    assert (governor, seed) == ("DUT/governor: powersave None", "run/tunables/seed: None 7")
    assert gone.startswith("DUT/interfaces/ix1: {") and gone.endswith(" None")


def test_of_long_values_is_told_where_they_begin_to_differ() -> None:
    before, after = (document(cmdline=f"{'isolcpus=1 ' * 30}nohz={word}{' quiet' * 30}") for word in ("on", "off"))
    (difference,) = told(before, after)
    assert " nohz=on quiet" in difference and " nohz=off quiet" in difference
    assert len(difference) <= len("DUT/cmdline:  ") + 2 * LONGEST and not agree(before, after)


def test_facts_that_were_read_back_once_are_told_in_one_line() -> None:
    after = document()
    after["dut"]["facts"] = {"not attested": "--no-apply"}
    assert told(document(), after) == ["DUT: read back not read back"]


JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda some: st.lists(some, max_size=3) | st.dictionaries(st.text(max_size=3), some, max_size=3),
    max_leaves=8,
)


@given(*[st.fixed_dictionaries({}, optional=dict.fromkeys(("dut", "host", "generator", "command", "plan"), JSON))] * 2)
def test_any_documents_can_be_compared(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert compare_documents(before, before) == ()
    assert all(one.before != one.after for one in compare_documents(before, after))


SLOWER = [*noisy(30), *noisy(3, 4.5e6, seed=2)]


def write(path: Path, written: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(written))


def stored(results: Path, change: dict[int, dict[str, Any]]) -> Judgement:
    """33 nights, the last three slower, each with its document: those of these numbers are changed so.

    The eleventh was measured again, after all.
    """
    rows, facts = make_rows(SLOWER), dict[str, Any]()
    rows.append(make_row(10, SLOWER[10], id="again", started=f"{date(40)}T08:00:00Z", path="again/x.json"))
    for number, row in enumerate(rows):
        facts |= change.get(number, {})
        write(results / row.path, document(**facts))
    return with_differences(judge_rows(rows), rows, results, pytest.fail)


def test_the_last_run_before_and_the_first_since_are_compared(tmp_path: Path) -> None:
    judgement = stored(tmp_path, {20: {"kernel": "6.2"}, 30: {"kernel": "6.8.0"}, 31: {"kernel": "6.9"}})
    (group,) = groups_of(judgement)
    assert group.since == date(30) and group.differences == (Difference(("DUT", "kernel"), "6.2", "6.8.0"),)
    for text in (format_judgement(judgement, 80), format_markdown(judgement)):
        assert "DUT / kernel: 6.2 -" in text
    (values,) = judgement_values(judgement)["groups"]
    assert values["differences"] == [{"path": ("DUT", "kernel"), "before": "6.2", "after": "6.8.0"}]


def test_a_change_at_which_nothing_differs_says_so(tmp_path: Path) -> None:
    judgement = stored(tmp_path, {20: {"kernel": "6.2"}})
    assert NOTHING_DIFFERS in format_judgement(judgement) and NOTHING_DIFFERS in format_markdown(judgement)


def test_many_differences_are_counted(tmp_path: Path) -> None:
    before, after = ({f"setting{number}": number + more for number in range(30)} for more in (0, 1))
    (group,) = groups_of(stored(tmp_path, {0: before, 30: after}))
    lines = [*difference_lines(group)]
    assert len(lines) == MOST_DIFFERENCES + 1 and lines[-1] == f"and {30 - MOST_DIFFERENCES} more"
    assert lines[0] == "DUT / setting0: 0 -> 1"


def test_values_of_the_config_file_are_compared(tmp_path: Path) -> None:
    rows = make_rows(SLOWER, tester="t1")
    rows.append(make_row(33, 4.5e6, tester="t2"))  # which has no such history
    for number, row in enumerate(rows):
        written = document()
        written["dut"] |= {"config": f"# {number}\ntwin: {{workers: {3 if number < 30 else 2}}}\n"}
        write(tmp_path / row.path, written)
    (group,) = groups_of(with_differences(judge_rows(rows), rows, tmp_path, pytest.fail))
    assert [*difference_lines(group)] == ["DUT's config file / twin / workers: 3 -> 2"]


def test_a_document_that_cannot_be_read_costs_a_warning(tmp_path: Path) -> None:
    rows = make_rows(SLOWER)
    said: list[str] = []
    judgement = with_differences(judge_rows(rows), rows, tmp_path, said.append)
    (group,) = groups_of(judgement)
    assert group.differences is None and NOTHING_DIFFERS not in format_judgement(judgement)
    assert len(said) == 1 and f"what differs since {date(30)} is not shown" in said[0] and VPP.dut in said[0]


def test_the_testers_firmware_and_board_are_stored_as_far_as_it_tells() -> None:
    read = {PLATFORM_FILES["microcode"]: "0x24\n", PLATFORM_FILES["bios_date"]: " \n"}
    assert platform_of(read) == {"microcode": "0x24"}
    platform = host_facts()["platform"]
    assert platform == {name: text for name in platform if (text := Path(PLATFORM_FILES[name]).read_text().strip())}
    assert platform.keys() <= PLATFORM_FILES.keys()


@pytest.mark.parametrize("board", ["board", {"name": "board"}])
def test_a_fact_may_have_the_name_of_a_part_of_the_platform(board: object) -> None:
    before, after = document(board="1"), document(board="2")
    before["dut"]["platform"], after["dut"]["platform"] = {"board": "1"}, {"board": board}
    assert told(before, after)[0] == "DUT/board: 1 2"
