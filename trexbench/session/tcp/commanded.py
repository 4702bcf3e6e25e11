"""A tunnel's end on a DUT whose console holds no program open: made by single commands, and taken away by them."""

from __future__ import annotations

from typing import Any

from ...dut import Change, Command
from ...dut.apply import run
from ...endpoint import TunnelEnd
from ...endpoint.programs.relay import TABLE, WIREGUARD, masquerading
from ..dut import ConnectedDut
from ..temporary import NAME, Temporary

_GONE = ("Cannot find device", "No such file or directory")


class CommandedEnd(TunnelEnd):
    """WireGuard of the DUT's kernel. Journalled, but for its keys: what a killed run leaves is undone before the next.

    options: those of the program that other hosts run.
    """

    def __init__(self, there: ConnectedDut, options: dict[str, Any]) -> None:
        self.place, self.done, self.error = f"the DUT ({there.transport.place})", False, None
        self.up = {"by": "the kernel", "pid": None, "interface": options["name"], "mtu": options["mtu"]}
        self._there, self._made = there, Temporary(there)
        try:
            self._make(options)
        except BaseException as error:
            self._made.__exit__(type(error), error, None)
            raise

    def _make(self, options: dict[str, Any]) -> None:
        device, name, why = ("dev", str(options["name"])), str(options["name"]), "a tunnel ends here"
        lack = ("Unknown device type", "modprobe wireguard, or take another tunnel")
        add = Command(("ip", "link", "add", "name", name, "type", "wireguard"), why, remedy=lack)
        remove = Command(("ip", "link", "del", *device), why, fine_if=_GONE)
        self._made.make(Change(f"tunnel {name}", "none", "wireguard", (add,), (remove,), variant=NAME))
        keys = Command(("wg", "setconf", name, "/proc/self/fd/0"), why, WIREGUARD.format(**options))
        up = Command(("ip", "link", "set", *device, "mtu", str(options["mtu"]), "up"), why)
        own = Command(("ip", "address", "add", str(options["own"]), "peer", str(options["peer"]), *device), why)
        for command in (keys, up, own):
            run(self._there.transport, command)
        load = Command(("nft", "-f", "-"), "it masquerades", masquerading(options))
        unload = Command(("nft", "delete", "table", "ip", TABLE), "it masquerades", fine_if=_GONE)
        self._made.make(Change(f"table {TABLE}", "none", "masquerade", (load,), (unload,), variant=NAME))

    def hear(self, within_s: float = 0.0) -> None:
        """No program says anything."""

    def __exit__(self, *how: Any) -> None:
        self._made.__exit__(*how)

    def close(self) -> None:
        self.__exit__(None, None, None)
