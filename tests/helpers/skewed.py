"""A simulated tester that measures 3 % low: its DUTs' twins are so much slower."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from trexbench.fleet.task import CellOrder, CellOutcome, _tester_name, measure_cell, measure_job
from trexbench.session.keep import Measured, Output
from trexbench.suite.jobs import Job

LOW = 0.97


def measure_skewed(order: CellOrder) -> CellOutcome:
    """The task of a tester; t2 is the one."""

    def drive(job: Job, output: Output) -> Measured[Any]:
        if _tester_name() == "t2":
            dut = job.request.dut
            slower = replace(dut, twin=replace(dut.twin, clock_hz=LOW * dut.twin.clock_hz))
            job = replace(job, request=replace(job.request, dut=slower))
        return measure_job(job, output)

    return measure_cell(order, drive)
