"""Every test of the suite runs against the embedded server, and against a real TRex where one is named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

from conformance.targets import NEEDS_ROOT, Target, embedded_target, kernel_target, real_target, simulated_target


@contextmanager
def named_target() -> Iterator[Target]:
    found = real_target()
    assert found is not None
    yield found


EMBEDDED = [pytest.param(embedded_target, id="embedded"), pytest.param(simulated_target, id="simulated")]
KERNEL = [pytest.param(kernel_target, id="kernel", marks=[pytest.mark.root, NEEDS_ROOT])]
REAL = [pytest.param(named_target, id="real")] if real_target() else []


def served(request: Any) -> Iterator[Target]:
    make: Callable[[], AbstractContextManager[Target]] = request.param
    with make() as target:
        yield target


@pytest.fixture(scope="module", params=[*EMBEDDED, *KERNEL, *REAL])
def target(request: Any) -> Iterator[Target]:
    """Every server there is."""
    yield from served(request)


@pytest.fixture(scope="module", params=[*EMBEDDED, *REAL])
def twin(request: Any) -> Iterator[Target]:
    """Those whose ports have the addresses of the recorded TRex."""
    yield from served(request)
