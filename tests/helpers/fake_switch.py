"""A switch that keeps the VLAN of each port in a file.

    python fake_switch.py TABLE set PORT VLAN
    python fake_switch.py TABLE unset PORT
    python fake_switch.py TABLE show PORT

TABLE.log gets each change, with all ports after it. A port that TABLE.broken names refuses; one that TABLE.deaf names
stays as it is.
"""

from __future__ import annotations

import fcntl
import json
import sys
from pathlib import Path

HERE = Path(__file__)


def main(table: str, verb: str, port: str, vlan: str = "") -> int:
    with Path(f"{table}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ports = vlans_of(Path(table))
        if verb == "show":
            print(f"{port} VLAN {ports.get(port, 1)}")
            return 0
        deaf = Path(f"{table}.deaf")
        if deaf.exists() and port in deaf.read_text().split():
            return 0
        broken = Path(f"{table}.broken")
        if broken.exists() and port in broken.read_text().split():
            print(f"% port {port} refuses", file=sys.stderr)
            return 1
        if verb == "set":
            ports[port] = int(vlan)
        elif ports.pop(port, None) is None:
            print(f"% port {port} has no VLAN", file=sys.stderr)
            return 1
        Path(f"{table}.new").write_text(json.dumps(ports))
        Path(f"{table}.new").replace(table)
        with Path(f"{table}.log").open("a") as log:
            log.write(f"{verb} {port} {vlan} {json.dumps(ports, sort_keys=True)}\n")
    return 0


def vlans_of(table: Path) -> dict[str, int]:
    found: dict[str, int] = json.loads(table.read_text()) if table.exists() else {}
    return found


def section_of(table: Path) -> str:
    """The switch sw1 in a fleet.yaml, at arm's length."""
    words = f"{sys.executable}, {HERE}, {table}"
    return f"""\
switches:
  - name: sw1
    transport: {{type: local}}
    set: [{words}, set, '{{port}}', '{{vlan}}']
    unset: [{words}, unset, '{{port}}']
    check: [{words}, show, '{{port}}']
    matches: ^{{port}} VLAN {{vlan}}$
    undone_if: has no VLAN
"""


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
