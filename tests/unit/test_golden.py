"""Documents that former versions wrote: every verb says of them what it has always said."""

from __future__ import annotations

from typing import Any

import golden
import pytest

from trexbench.core.result import ANALYSIS_VERSION

CHANGED = """The figures of stored documents changed, and ANALYSIS_VERSION (core/result.py) is still {}.
If they should not: undo the change. If they should: raise ANALYSIS_VERSION, so that nobody takes stored figures of the
former analysis, and write the new ones with `python tests/helpers/golden.py`."""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return golden.figures(golden.unpack(tmp_path_factory.mktemp("golden")), golden.call)


def test_every_verb_gives_the_figures_that_it_always_gave(said: dict[str, Any]) -> None:
    kept = golden.load()
    assert kept["figures"].keys() == said.keys()
    differing = [
        f"{verb} {place}: {wanted!r} is now {said[verb].get(place, 'missing')!r}"
        for verb, known in kept["figures"].items()
        for place, wanted in known.items()
        if not same(wanted, said[verb].get(place, "missing"))
    ]
    if differing and kept["analysis_version"] == ANALYSIS_VERSION:
        pytest.fail("\n".join([CHANGED.format(ANALYSIS_VERSION), *differing[:20], f"{len(differing)} in all"]))
    assert kept["analysis_version"] == ANALYSIS_VERSION, "write the new figures: python tests/helpers/golden.py"


def test_they_tell_something(said: dict[str, Any]) -> None:
    assert len(said) == 2 * 21 + 4 and said["regress"]["code"] == 3
    assert sum(len(known) for known in said.values()) > 2000


def same(wanted: Any, found: Any) -> bool:
    if isinstance(wanted, float) and isinstance(found, float | int):
        return abs(found - wanted) <= 1e-9 * abs(wanted)
    return bool(wanted == found)
