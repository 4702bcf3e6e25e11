"""Devices under test: what to set, and what to read back before anything is measured."""

from .drivers import DRIVERS, not_attested, open_dut
from .model import Attestation, Command, Dut, Mismatch

__all__ = ["DRIVERS", "Attestation", "Command", "Dut", "Mismatch", "not_attested", "open_dut"]
