"""In a guest: what the embedded engine finds of two NICs that are wired to one another, and what it sends over them.

    python engine_on_nics.py MODULE ...

Prints for each driver a line of JSON: the server's words, its answers, and the engine's counts of bursts without and
with a VLAN tag.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from rpc import RawClient

from trexbench.stlserver.engine import StreamSpec
from trexbench.stlserver.kernel.engine import KernelEngine

BURST, RATE_PPS, MARK = 1200, 400.0, 7
IPV4 = bytes.fromhex("45000030000100004011000010000004300000040401000c001c0000")


def run(*argv: str) -> None:
    subprocess.run(argv, check=True, timeout=60, capture_output=True)


def prepare(module: str) -> list[str]:
    """Load the driver and set its NICs up; their names."""
    others = set(os.listdir("/sys/class/net"))
    run("modprobe", module)
    names = sorted(set(os.listdir("/sys/class/net")) - others)
    for name in names:
        Path(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6").write_text("1")
        run("ip", "link", "set", name, "up")
        subprocess.run(["ethtool", "-K", name, "rxvlan", "off"], check=False, capture_output=True)  # virtio has none
    await_links(names)
    return names


def await_links(names: list[str]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not all(linked(name) for name in names):
        time.sleep(0.1)


def linked(name: str) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/sys/class/net/{name}/carrier").read_text().strip() == "1"
    return False


def serve(names: list[str]) -> dict[str, Any]:
    """Ask a server about the ports."""
    argv = [sys.executable, "-m", "trexbench.stlserver", "--interfaces", ",".join(names), "--rpc-port", "0"]
    with subprocess.Popen([*argv, "--pub-port", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as one:
        assert one.stdout is not None and one.stderr is not None
        ready = one.stdout.readline()
        match = re.search(r"rpc=tcp://127\.0\.0\.1:(\d+)", ready)
        if match is None:
            raise SystemExit(one.stderr.read())
        client = RawClient("127.0.0.1", int(match[1]))
        client.sync()
        system = client.call("get_system_info", {})["result"]
        status = client.call("get_port_status", {"port_id": 0, "profile_id": "*", "block": False})["result"]
        run("ip", "link", "set", names[0], "down")
        down = client.call("get_port_status", {"port_id": 0, "profile_id": "*", "block": False})["result"]
        run("ip", "link", "set", names[0], "up")
        client.close()
        one.terminate()
        said = one.stderr.read()
    return {
        "ready": ready, "said": said, "port": system["ports"][0], "attr": status["attr"],
        "up_when_down": down["attr"]["link"]["up"],
    }  # fmt: skip


def send(names: list[str]) -> dict[str, Any]:
    """Counts of a burst from the first to the second port, and back of one with a VLAN tag."""
    counts: dict[str, Any] = {}
    await_links(names)
    with contextlib.closing(KernelEngine(names)) as engine:
        engine.set_promiscuous(0, True)
        macs = [bytes.fromhex(port.src_mac.replace(":", "")) for port in engine.ports]
        for port, tag in ((0, b""), (1, bytes.fromhex("81000005"))):
            frame = macs[1 - port] + macs[port] + tag + b"\x08\x00" + IPV4 + bytes(18)
            before = engine.counters(port), engine.counters(1 - port)
            engine.start(port, [StreamSpec(1, frame, RATE_PPS, "single_burst", BURST, mark=MARK)], 1.0, None)
            while port not in engine.poll():
                time.sleep(0.1)
            time.sleep(1.0)
            after = engine.counters(port), engine.counters(1 - port)
            counts[str(port)] = {
                "sent": after[0].opackets - before[0].opackets,
                "received": after[1].ipackets - before[1].ipackets,
                "sent_bytes": after[0].obytes - before[0].obytes,
                "received_bytes": after[1].ibytes - before[1].ibytes,
                "errors": after[0].oerrors + after[1].ierrors,
                "marked": engine.flows()[1 - port][MARK].received,
            }
    return counts


def main() -> None:
    for module in sys.argv[1:]:
        interfaces = prepare(module)
        print(json.dumps({**serve(interfaces), "counts": send(interfaces)}), flush=True)
        run("modprobe", "-r", module)


if __name__ == "__main__":
    main()
