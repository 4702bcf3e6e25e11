"""DUT configs: files -> checked data; every message names file, line, key and the fix."""

from .lookup import find_configs, find_profile, find_profiles, load_dut, search_path
from .model import (
    DutConfig,
    GeneratorConfig,
    LabConfig,
    Neighbour,
    PlanDefaults,
    Port,
    Route,
    TransportConfig,
    dut_namespace,
    tester_namespace,
    vpp_socket,
)
from .schema import read_dut
from .settings import LinuxSettings, PfsenseSettings, PowerConfig, VppSettings

__all__ = [
    "DutConfig",
    "GeneratorConfig",
    "LabConfig",
    "LinuxSettings",
    "Neighbour",
    "PfsenseSettings",
    "PlanDefaults",
    "Port",
    "PowerConfig",
    "Route",
    "TransportConfig",
    "VppSettings",
    "dut_namespace",
    "find_configs",
    "find_profile",
    "find_profiles",
    "load_dut",
    "read_dut",
    "search_path",
    "tester_namespace",
    "vpp_socket",
]
