"""``trexbench doctor`` as a whole command: against a server, without one, and for a lab that is down."""

from __future__ import annotations

import json
from pathlib import Path

from tools import fake_server, succeed, trexbench


def test_a_server_that_runs_is_good_and_nothing_is_taken(tmp_path: Path) -> None:
    with fake_server() as server:
        found = json.loads(succeed(tmp_path, "doctor", *server.where, "--configs-dir", ".", "--json").stdout)
    named = {one["what"]: one["state"] for one in found if one["area"] == "tester"}
    assert named["server"] == named["port 0"] == named["port 1"] == "good"
    assert {one["area"] for one in found} == {"this machine", "results", "tester"}
    assert not list(tmp_path.iterdir()), "nothing is written"


_PORTS = "ports: [{tester: 0}, {tester: 1}]\n"


def _states_of_dut(folder: Path, text: str) -> tuple[int, dict[str, tuple[str, str]]]:
    (folder / "mine.yaml").write_text(text + _PORTS)
    with fake_server() as server:
        done = trexbench(folder, "doctor", "--dut", "mine.yaml", *server.where, "--json")
    found = [one for one in json.loads(done.stdout) if one["area"] == "DUT"]
    return done.returncode, {one["what"]: (one["state"], one["found"]) for one in found}


def test_a_dut_of_commands_without_any_is_doubted(tmp_path: Path) -> None:
    code, found = _states_of_dut(tmp_path, "driver: commands\ntransport: {type: local}\n")
    why = "driver: commands: the DUT is configured by hand, its config names nothing to read back"
    assert code == 0 and found["settings"] == ("doubtful", why)
    assert found["counters"] == ("doubtful", "its config names none")


def test_a_router_between_two_hosts_needs_no_trex_but_its_hosts(tmp_path: Path) -> None:
    end = "transport: {{type: netns, namespace: no-{0}}}, interface: e, address: 10.{0}.0.2/24, gateway: 10.{0}.0.1"
    ends = f"endpoints: {{client: {{{end.format(1)}}}, server: {{{end.format(2)}}}}}\n"
    (tmp_path / "mine.yaml").write_text(f"driver: none\n{ends}")
    done = trexbench(tmp_path, "doctor", "--dut", "mine.yaml", "--json")
    checks = json.loads(done.stdout)
    assert not any(check["area"] == "tester" for check in checks)
    bad = {check["what"]: check["found"] for check in checks if check["state"] == "bad"}
    assert done.returncode == 6 and "no-1" in bad["client"] and "no-2" in bad["server"]


def test_a_wan_host_without_tc_is_bad_with_its_remedy(tmp_path: Path) -> None:
    wan = "wan: 20ms,1gbit\nwan_host: {transport: {type: netns, namespace: no-such}, interfaces: [a, b]}\n"
    code, found = _states_of_dut(tmp_path, f"driver: none\n{wan}")
    assert code != 0 and found["WAN"][0] == "bad" and "no-such" in found["WAN"][1]
