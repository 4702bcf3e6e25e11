"""Devices under test: what to set, what to read back before anything is measured, and what they count."""

from .drivers import open_dut
from .model import Attestation, Change, Command, Dut, Mismatch, Wanted, not_attested

__all__ = ["Attestation", "Change", "Command", "Dut", "Mismatch", "Wanted", "not_attested", "open_dut"]
