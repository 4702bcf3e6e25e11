"""A switch that keeps the VLAN of each port in a file.

    python fake_switch.py TABLE set PORT VLAN
    python fake_switch.py TABLE unset PORT
    python fake_switch.py TABLE show PORT

TABLE.log gets each change, with all ports after it. A port that TABLE.broken names refuses; one that TABLE.deaf names
stays as it is. It is started for each of these, and imports little for it.
"""

from __future__ import annotations

import fcntl
import os
import sys


def main(table: str, verb: str, port: str, vlan: str = "") -> int:
    with open(f"{table}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ports = vlans_of(table)
        if verb == "show":
            print(f"{port} VLAN {ports.get(port, 1)}")
            return 0
        if port in _read(f"{table}.deaf").split():
            return 0
        if port in _read(f"{table}.broken").split():
            print(f"% port {port} refuses", file=sys.stderr)
            return 1
        if verb == "set":
            ports[port] = int(vlan)
        elif ports.pop(port, None) is None:
            print(f"% port {port} has no VLAN", file=sys.stderr)
            return 1
        with open(f"{table}.new", "w") as new:
            new.writelines(f"{name} {number}\n" for name, number in ports.items())
        os.replace(f"{table}.new", table)
        with open(f"{table}.log", "a") as log:
            log.write(f"{verb} {port} {vlan} " + str(dict(sorted(ports.items()))).replace("'", '"') + "\n")
    return 0


def _read(path: str) -> str:
    if not os.path.exists(path):
        return ""
    with open(path) as file:
        return file.read()


def vlans_of(table: str | os.PathLike[str]) -> dict[str, int]:
    words = _read(os.fspath(table)).split()
    return dict(zip(words[::2], map(int, words[1::2]), strict=True))


def section_of(table: str | os.PathLike[str]) -> str:
    """The switch sw1 in a fleet.yaml, at arm's length."""
    words = f"{sys.executable}, -IS, {__file__}, {table}"
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
