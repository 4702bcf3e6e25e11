"""DUT configs as text, and all that is wrong with one."""

from __future__ import annotations

from pathlib import Path

import pytest

from trexbench.config.schema import dut_of
from trexbench.core.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]
BOX = Path("box.yaml")
BARE = "driver: none\nports: [{tester: 0}, {tester: 1}]\n"
"""The shortest config there is."""


def shipped(name: str) -> str:
    return (ROOT / "dut_configs" / f"{name}.yaml").read_text()


def example(document: str, number: int) -> str:
    """An example of a document: its YAML of that number, from 0 on."""
    return (ROOT / "docs" / document).read_text().split("```yaml\n")[number + 1].split("```")[0]


def errors_of(text: str, old: str = "", new: str = "", file: Path = BOX) -> list[str]:
    """All that is wrong, a line each. old, new: a text of the config, and what stands in its place."""
    assert old in text
    with pytest.raises(ConfigError) as caught:
        dut_of(file, text.replace(old, new, 1) if old else text)
    assert "\n" not in str(caught.value)
    return [str(one) for one in caught.value.each]
