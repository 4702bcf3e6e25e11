"""The two hosts of a TCP test: what sends and receives on them, and what they read of themselves."""

from .engines import ENGINES as ENGINES
from .engines import Embedded as Embedded
from .engines import Iperf3 as Iperf3
from .engines import TcpEngine as TcpEngine
from .held import PppEnd as PppEnd
from .held import TunnelEnd as TunnelEnd
from .held import lost_of as lost_of
from .hosts import EndpointHost as EndpointHost
from .leg import run_leg as run_leg
from .leg import run_program as run_program
from .leg import watched_processes as watched_processes
