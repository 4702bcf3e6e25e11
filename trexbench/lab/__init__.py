"""The lab: two network namespaces on this machine, a tester and a router, with nothing else on their wire."""

from .lab import Lab, LabStatus, RunningLab, all_status, down, enter_tester, status
from .spec import LabSpec, Placement, place

__all__ = [
    "Lab",
    "LabSpec",
    "LabStatus",
    "Placement",
    "RunningLab",
    "all_status",
    "down",
    "enter_tester",
    "place",
    "status",
]
