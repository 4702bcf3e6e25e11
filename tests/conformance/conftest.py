"""Every test of the suite runs against the embedded server, and against a real TRex where one is named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest
from targets import (
    Target,
    embedded_target,
    kernel_target,
    lab_trex_target,
    named_server,
    named_target,
    simulated_target,
    trex_directory,
)

EMBEDDED = [
    pytest.param(embedded_target, id="embedded"),
    pytest.param(simulated_target, id="simulated", marks=pytest.mark.nightly),  # the same engine with another router
]
KERNEL = [pytest.param(kernel_target, id="kernel", marks=pytest.mark.root)]
NAMED = [pytest.param(named_target, id="real")] if named_server() else []
LAB = [pytest.param(lab_trex_target, id="real-lab", marks=pytest.mark.root)] if trex_directory() else []


@pytest.fixture(scope="module", params=[*EMBEDDED, *KERNEL, *NAMED, *LAB])
def target(request: Any) -> Iterator[Target]:
    """Every server there is."""
    make: Callable[[], AbstractContextManager[Target]] = request.param
    with make() as target:
        yield target
