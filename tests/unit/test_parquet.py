"""The index as a Parquet file: every column of every run with its type, as pyarrow reads it."""

from __future__ import annotations

import io
import re
import sys
from dataclasses import fields, replace
from datetime import date, datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from nights import make_row
from tcp_runs import make_tcp_result

from trexbench.cli import main
from trexbench.core.errors import ConfigError
from trexbench.core.history.rows import Cell, RunRow
from trexbench.core.history.rows_tcp import rows_of_tcp
from trexbench.report.parquet import to_parquet

pytestmark = pytest.mark.portable

parquet = pytest.importorskip("pyarrow.parquet", reason="needs pip install 'trexbench[parquet]'")
DOCS = Path(__file__).resolve().parents[2] / "docs" / "results.md"
RENAMED = {
    "limit": "limited_by",
    "hold_loss": "hold_loss_share",
    "loss_threshold": "loss_threshold_share",
    "retransmitted": "retransmitted_share",
    "with_polling": "with_polling_cycles_per_packet",
    "nodes": "nodes_cycles_per_packet",
}


def read(*rows: RunRow) -> Any:
    return parquet.read_table(io.BytesIO(to_parquet(rows)))


def test_every_field_of_the_index_has_a_typed_column() -> None:
    packets = make_row(3, power_w=21.5, nodes={"dpdk-input": 79.5}, hold_loss=0.25, at_least=True)
    table = read(packets, *rows_of_tcp(make_tcp_result(), "tcp.json"))
    every = {one.name for one in (*fields(RunRow), *fields(Cell))} - {"cell"}
    assert {RENAMED.get(name, name) for name in every} == set(table.column_names)
    kinds = {one.name: str(one.type) for one in table.schema}
    assert kinds["started"] == "timestamp[us, tz=UTC]" and kinds["night"] == "date32[day]"
    assert kinds["simulated"] == kinds["bidir"] == kinds["at_least"] == "bool" and kinds["rx_queues"] == "int64"
    assert kinds["total_pps"] == kinds["latency_s"] == "double" and "null" not in kinds.values()
    assert table.schema.metadata[b"trexbench_version"].decode() == metadata.version("trexbench")


def test_values_are_those_of_the_run_and_what_does_not_exist_is_null() -> None:
    packets = make_row(3, power_w=21.5, nodes={"dpdk-input": 79.5}, hold_loss=0.25, at_least=True)
    ramp, forward, reverse = read(packets, *rows_of_tcp(make_tcp_result(), "tcp.json")).to_pylist()
    assert ramp["started"] == datetime(2026, 1, 4, 3, tzinfo=timezone.utc) and ramp["night"] == date(2026, 1, 4)
    assert (ramp["dut"], ramp["rx_queues"], ramp["total_pps"], ramp["at_least"]) == ("netgate-vpp", 1, 5e6, True)
    assert ramp["hold_loss_share"] == 0.25 and ramp["power_w"] == 21.5 and ramp["total_bps"] is None
    assert dict(ramp["nodes_cycles_per_packet"]) == {"dpdk-input": 79.5}
    assert (forward["mode"], reverse["mode"]) == ("forward-ipv4", "reverse-ipv4") and forward["kind"] == "tcp"
    assert forward["total_pps"] is None and forward["total_bps"] == pytest.approx(940e6)
    odd = read(replace(packets, started="yesterday", night="tonight", cell=Cell("a", "b", True, None, simulated=True)))
    assert odd.to_pylist()[0].items() >= {"started": None, "night": None, "simulated": True, "rx_queues": None}.items()


def test_no_run_is_a_table_with_all_columns() -> None:
    assert read().num_rows == 0 and len(read().column_names) == len(fields(RunRow)) + len(fields(Cell)) - 1


def test_without_pyarrow_the_remedy_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ConfigError, match=r"pyarrow is not installed: pip install 'trexbench\[parquet\]'"):
        to_parquet([])


def test_the_verb_writes_the_chosen_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("results").mkdir()
    with pytest.raises(SystemExit) as ended:
        main(["results", "export", "--parquet", "runs.parquet", "--dut", "nobody"])
    assert ended.value.code == 0 and capfd.readouterr().out == "runs.parquet\n"
    assert parquet.read_table("runs.parquet").num_rows == 0


@pytest.mark.parametrize("library", ["duckdb", "pandas"])
def test_the_examples_of_the_documentation_run(
    library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    Path("runs.parquet").write_bytes(to_parquet([make_row(number) for number in range(3)]))
    (example,) = re.findall(rf"```python\n(import {library}\n.*?)```", DOCS.read_text(), re.DOTALL)
    exec(example, {})
    assert "netgate-vpp" in capfd.readouterr().out
