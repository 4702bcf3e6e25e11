"""Every test of the suite runs against the embedded server, and against a real TRex where one is named."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from conformance.targets import Target, embedded_target, real_target


@pytest.fixture(scope="module", params=["embedded"] + ["real"] * (real_target() is not None))
def target(request: Any) -> Iterator[Target]:
    if request.param == "embedded":
        with embedded_target() as found:
            yield found
        return
    found_real = real_target()
    assert found_real is not None
    yield found_real
