"""The lab: two network namespaces on this machine, a tester and a router, joined by veth pairs only."""

from .lab import Lab, RunningLab, all_status, down, status
from .spec import LabSpec, Placement, place

__all__ = ["Lab", "LabSpec", "Placement", "RunningLab", "all_status", "down", "place", "status"]
