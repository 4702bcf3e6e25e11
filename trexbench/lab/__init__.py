"""The lab: network namespaces on this machine, of a tester, a router and the hosts of TCP, joined by veth pairs."""

from .lab import Lab, RunningLab, all_status, down, status
from .spec import LabSpec, Placement, place

__all__ = ["Lab", "LabSpec", "Placement", "RunningLab", "all_status", "down", "place", "status"]
