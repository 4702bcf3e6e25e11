"""The two hosts of a TCP test: what sends and receives on them, and what they read of themselves."""

from .engines import ENGINES, Embedded, Iperf3, TcpEngine
from .held import PppEnd, TunnelEnd, lost_of
from .hosts import EndpointHost
from .program import run_program, watched_processes
from .run import PORT, run_leg

__all__ = [
    "ENGINES",
    "PORT",
    "Embedded",
    "EndpointHost",
    "Iperf3",
    "PppEnd",
    "TcpEngine",
    "TunnelEnd",
    "lost_of",
    "run_leg",
    "run_program",
    "watched_processes",
]
