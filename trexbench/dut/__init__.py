"""Devices under test: what to set, what to read back before anything is measured, and what they count."""

from __future__ import annotations

from importlib import import_module

from ..config.model import DRIVERS
from ..transport import Transport
from .model import Attestation, Change, Command, Dut, DutDriver, Mismatch, Wanted, not_attested

__all__ = ["Attestation", "Change", "Command", "Dut", "Mismatch", "Wanted", "not_attested"]


def driver_of(name: str) -> DutDriver:
    """The driver of this name in a config; only its own folder is imported."""
    driver: DutDriver = import_module(f".{DRIVERS[name].folder}.driver", __package__).DRIVER
    return driver


def open_dut(wanted: Wanted, transport: Transport) -> Dut:
    """The DUT of this config, reached by this transport."""
    return driver_of(wanted.config.driver).open(wanted, transport)
