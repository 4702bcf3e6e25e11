"""Devices under test: set and verify them before anything is measured, and read their counters."""

from __future__ import annotations

from importlib import import_module

from ..config.model import DRIVERS
from ..transport import Transport
from .settings import Attestation, Change, Command, Dut, DutDriver, Mismatch, Wanted, not_attested

__all__ = ["Attestation", "Change", "Command", "Dut", "Mismatch", "Wanted", "not_attested"]


def driver_of(name: str) -> DutDriver:
    """Load the driver of this name in a config; only its own folder is imported."""
    driver: DutDriver = import_module(f".{DRIVERS[name].folder}.driver", __package__).DRIVER
    return driver


def open_dut(wanted: Wanted, transport: Transport) -> Dut:
    """Open the DUT of this config, reached by this transport."""
    return driver_of(wanted.config.driver).open(wanted, transport)
