"""Devices under test: what to set, what to read back before anything is measured, and what they count."""

from .drivers import DRIVERS, not_attested, open_dut
from .model import Attestation, Command, Dut, Mismatch, Step, Wanted

__all__ = ["DRIVERS", "Attestation", "Command", "Dut", "Mismatch", "Step", "Wanted", "not_attested", "open_dut"]
