"""Reading of DUT configs, STL profiles and suites by name."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path

from ..core.errors import ConfigError
from .catalogue import DUTS, PROFILES
from .model import DutConfig
from .readers import pattern, repeated, section
from .schema import read_dut
from .suite import AS_IT_IS, METHODS, Instead, Suite, SuiteDut
from .yamltree import Value, parse, raise_any, read_text

_STEM = pattern(r"[A-Za-z0-9][A-Za-z0-9._-]*", "a suite's name", "nightly.yaml, in a to z, digits and . _ -")


def load_dut(name: str, directory: Path | None = None, prefix: str | None = None) -> DutConfig:
    """Read the DUT of this name, or of this file where the name is a path. prefix: of its lab; None: the config's."""
    dut = read_dut(DUTS.find(name, directory))
    dut = dut if directory is not None else replace(dut, called=name)
    return dut if prefix is None else dut.with_lab_prefix(prefix)


def find_profile(name: str, directory: Path | None = None) -> Path:
    """Return the file of an STL profile, named by its path or, with or without ``.py``, by its name."""
    path = PROFILES.find(name, directory)
    if not os.path.isfile(path):
        raise ConfigError(f"{path}: no such profile", "name an existing file, or one of stl_profiles")
    return path


def read_suite(path: Path, configs_dir: Path | None = None, instead: Instead = AS_IT_IS) -> Suite:
    """Read a suite and look its DUTs up; ConfigError naming file, line, key and remedy."""
    root = parse(path, read_text(path, "suite"))
    kind = METHODS.get(str(root.at("method").raw).strip())
    made = kind.suite if kind is not None and kind.suite is not None else Suite
    suite = section(made, "a suite", name=Value(path, 1, "", path.stem).read(_STEM), file=path)(root)
    suite.require_fit(root)
    if instead.dut or instead.variant or instead.time is not None:
        suite = suite.with_instead(instead)
        return replace(suite, duts=tuple(_look_up(dut, suite, configs_dir, root.at("duts")) for dut in suite.duts))
    items = root.at("duts").items("DUT")
    duts = [item.read(partial(_look_up, dut, suite, configs_dir)) for item, dut in zip(items, suite.duts, strict=True)]
    raise_any(repeated(items, [dut.known_by for dut in duts], "DUT"))  # r1 and r1.yaml are one
    return replace(suite, duts=tuple(duts))


def _look_up(wanted: SuiteDut, suite: Suite, configs_dir: Path | None, value: Value) -> SuiteDut:
    """Return the suite's DUT by its config's name; ConfigError if the config lacks the queues or variants asked for."""
    dut = load_dut(wanted.name, configs_dir)

    def require_all(_: Value) -> None:
        for queues in wanted.rx_queues:
            dut.require_queues(queues)

    value.at("rx_queues").read(require_all)
    for variant in wanted.variants or suite.variants:
        dut.with_variant(variant)
    return replace(wanted, name=dut.name)
