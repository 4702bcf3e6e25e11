"""6in4 between DUT and server: what it does to a line's payload, who may be compared, and how it is chosen."""

from __future__ import annotations

from pathlib import Path

import pytest
from documents import to_document
from tcp_runs import Path as Flow
from tcp_runs import make_tcp_result

from trexbench.config.lookup import read_suite
from trexbench.config.model import PlanDefaults
from trexbench.config.schema import read_dut
from trexbench.config.suite import Instead
from trexbench.core.errors import ConfigError
from trexbench.core.history.rows import rows_of_tcp
from trexbench.core.load.profile import MODES
from trexbench.core.strategy.kinds import STRATEGIES
from trexbench.core.tcp.limit import TcpLimit
from trexbench.core.tcp.plan import Leg, TcpEnvironment, TcpPlan, Way
from trexbench.core.tcp.result import from_document
from trexbench.core.units import tcp_payload_bps
from trexbench.report.tcp.text import format_tcp
from trexbench.session.options import Case
from trexbench.session.options import Setup as PacketSetup
from trexbench.session.request import make_request
from trexbench.session.tcp.request import TcpRequest
from trexbench.session.tcp.simulate import SimulatedBench
from trexbench.suite.jobs import make_jobs

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = ROOT / "dut_configs"
IN_SIX = TcpEnvironment(line_bps=1e9, tunnel="6in4", tunnel_by="sit")
BOTH = (Leg(Way.FORWARD, 4), Leg(Way.FORWARD, 6))


def test_a_line_carries_the_outer_header_as_well() -> None:
    assert tcp_payload_bps(1e9, version=6, tunnel=20) == pytest.approx(1e9 * 1408 / 1538)
    result = make_tcp_result(Flow(bps=1e9 * 1408 / 1538), BOTH, setup=IN_SIX)
    four, six = result.flows
    assert (four.verdict.limit, six.verdict.limit) == (TcpLimit.UNKNOWN, TcpLimit.LINK)
    assert six.verdict.link_bps == pytest.approx(1e9 * 1408 / 1538)
    assert "carries at MTU 1500 in 6in4" in six.verdict.reasons[0]


def test_only_ipv6_is_other_traffic_by_another_way() -> None:
    def told(**setup: str) -> list[object]:
        return [row.through for row in rows_of_tcp(make_tcp_result(legs=BOTH, setup=TcpEnvironment(**setup)), "x.json")]

    plain, sit, programs = told(), told(tunnel="6in4", tunnel_by="sit"), told(tunnel="6in4", tunnel_by="tc-bpf")
    assert plain[0] == sit[0] == programs[0] and len({plain[1], sit[1], programs[1]}) == 3


def test_the_document_says_what_ipv6_went_through() -> None:
    result = make_tcp_result(legs=BOTH, setup=IN_SIX)
    assert from_document(to_document(result)).setup == IN_SIX
    assert "tunnel  6in4 between DUT and server, by sit: all of IPv6" in format_tcp(result)
    lacking = TcpEnvironment(without_tunnel="the server has no device for 6in4")
    native = make_tcp_result(legs=BOTH, setup=lacking)
    (doubt,) = (one for one in native.analysis_warnings if one.code == "no-tunnel")
    assert doubt.text == "IPv6 went without the tunnel: the server has no device for 6in4"
    assert doubt.text in format_tcp(native)
    assert "no-tunnel" not in {one.code for one in make_tcp_result(setup=lacking).analysis_warnings}


@pytest.mark.parametrize(("name", "wished", "through"), [
    ("lab-linux", None, "none"),
    ("lab-linux", "6in4", "6in4"),
    ("raspberry-pi", None, "6in4"),
    ("raspberry-pi", "none", "none"),
])  # fmt: skip
def test_a_twin_has_the_tunnel_that_is_asked_for(name: str, wished: str | None, through: str) -> None:
    dut = read_dut(CONFIGS / f"{name}.yaml")
    plan = TcpPlan((Leg(Way.FORWARD, 6),), time_s=5)
    bench = SimulatedBench(TcpRequest(dut=dut, plan=plan, sim=True, speedup=1e9, tunnel=wished))
    assert (bench.setup.tunnel, bench.setup.header_bytes(6)) == (through, {"none": 0, "6in4": 20}[through])
    assert bench._model.sizes(6).mss == 1428 - bench.setup.header_bytes(6)


def test_the_pis_config_and_its_twin_say_the_same() -> None:
    for name in ("raspberry-pi", "raspberry-pi-2"):
        dut = read_dut(CONFIGS / f"{name}.yaml")
        assert dut.endpoints is not None and dut.twin is not None
        assert dut.endpoints.tunnel == dut.twin.tcp.encapsulation.ipv6 == "6in4"


def test_the_documents_suite_asks_for_it_on_any_dut() -> None:
    suite = read_suite(ROOT / "suites/raspberry-pi-2015.yaml", CONFIGS, Instead(dut=("lab-linux",)))
    jobs = make_jobs(suite, PacketSetup(configs_dir=CONFIGS))
    assert {str(job.cell).split()[1] for job in jobs} >= {"firewall"}
    for job in jobs:
        assert job.request.dut.endpoints is not None and job.request.dut.endpoints.tunnel == "6in4"


def test_packets_do_not_go_through_it(tmp_path: Path) -> None:
    text = (CONFIGS / "lab-linux.yaml").read_text().replace("\nvariants:\n", "\nvariants:\n  in: {tunnel: 6in4}\n")
    (tmp_path / "box.yaml").write_text(text)
    case = Case(str(tmp_path / "box.yaml"), MODES[0].name, variant="in")
    with pytest.raises(ConfigError, match="variant in of box puts a tunnel between DUT and server"):
        make_request(next(iter(STRATEGIES)), case, PlanDefaults(), PacketSetup())
