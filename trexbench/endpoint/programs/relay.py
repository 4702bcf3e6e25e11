"""One end of a tunnel: the relay itself, or another program or a device of the kernel, which it holds open.

Its Linux host needs ip. It reports: up, error, done. The relay is that of "bench_io_select": select() over a TUN
interface and a UDP socket, one packet for each read and write; the kernel counts packets, as of any interface.
"""

from __future__ import annotations

import contextlib
import io
import os
import select
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

from .common import ProgramFailure, call, carry_out, child, ip, keep_within, make_tun, say, set_up, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .common import Options

PREFIX = "tbvpn"
"""Prefix of the names of all interfaces made here; those that a killed program has left are removed first."""
TABLE = "trexbench_tunnel"
"""Name of the nft table for the masquerade."""
TOKEN_BYTES = 8
NO_DEVICE = ("Unknown device type", "Operation not supported", "Protocol not supported")
"""Words of ip's error when the kernel has no such type of interface."""


class NoDevice(ProgramFailure):
    """The kernel has no interface of this type."""


def device(name: str, words: str) -> None:
    """Make an interface of the kernel by its type and options; NoDevice if the kernel has no such type."""
    kind = words.split()[0]
    try:
        ip("link", "add", "name", name, "type", *words.split())
    except ProgramFailure as failure:
        if any(words in failure.what for words in NO_DEVICE):
            lacks = f"the kernel has no device of type {kind} ({failure.what.rpartition(': ')[2]})"
            raise NoDevice(lacks, f"modprobe rtnl-link-{kind}, or use another tunnel") from None
        raise


def delete(name: str) -> None:
    call(["ip", "link", "del", "dev", name], may_fail=True)


def forget() -> None:
    """Remove interfaces that an earlier, killed program has left on this host."""
    for name in os.listdir("/sys/class/net"):
        if name.startswith(PREFIX):
            delete(name)


def masquerading(options: Options) -> str:
    """Rules of nft that replace the peer's source address by that of the interface its packets leave by."""
    rule = 'ip saddr {peer} oifname "{masquerade}" counter masquerade'.format(**options)
    chain = f"chain out {{\ntype nat hook postrouting priority 100\n{rule}\n}}\n"
    return f"table ip {TABLE}\ndelete table ip {TABLE}\ntable ip {TABLE} {{\n{chain}}}\n"


@contextlib.contextmanager
def masquerade(options: Options) -> Iterator[None]:
    """Masquerade the peer's packets until the end of the block, if the options name an interface for that."""
    if not options.get("masquerade"):
        yield
        return
    call(["nft", "-f", "-"], masquerading(options))
    try:
        yield
    finally:
        call(["nft", "delete", "table", "ip", TABLE], may_fail=True)


WIREGUARD = """[Interface]
PrivateKey = {keys[key]}
ListenPort = {port}
[Peer]
PublicKey = {keys[peer]}
AllowedIPs = 0.0.0.0/0
Endpoint = {remote}:{port}
"""
IPSEC = """
xfrm state add src {local} dst {remote} proto esp spi 0x{keys[out][spi]} reqid 7761 mode tunnel replay-window 64 \
  aead rfc4106(gcm(aes)) 0x{keys[out][key]} 128 if_id 7761
xfrm state add src {remote} dst {local} proto esp spi 0x{keys[in][spi]} reqid 7761 mode tunnel replay-window 64 \
  aead rfc4106(gcm(aes)) 0x{keys[in][key]} 128 if_id 7761
xfrm policy update src 0.0.0.0/0 dst 0.0.0.0/0 dir out if_id 7761 \
  tmpl src {local} dst {remote} proto esp reqid 7761 mode tunnel
xfrm policy update src 0.0.0.0/0 dst 0.0.0.0/0 dir in if_id 7761 \
  tmpl src {remote} dst {local} proto esp reqid 7761 mode tunnel
xfrm policy update src 0.0.0.0/0 dst 0.0.0.0/0 dir fwd if_id 7761 \
  tmpl src {remote} dst {local} proto esp reqid 7761 mode tunnel
"""
"""ESP in tunnel mode, with keys made elsewhere, by the policies of an interface of its own."""
NO_IPSEC = """
ip xfrm state deleteall src {local} dst {remote} proto esp reqid 7761
ip xfrm state deleteall src {remote} dst {local} proto esp reqid 7761
ip xfrm policy delete src 0.0.0.0/0 dst 0.0.0.0/0 dir out if_id 7761
ip xfrm policy delete src 0.0.0.0/0 dst 0.0.0.0/0 dir in if_id 7761
ip xfrm policy delete src 0.0.0.0/0 dst 0.0.0.0/0 dir fwd if_id 7761
"""
"""Commands, each for a process of its own: ip ends its batch after it has deleted all of something."""
DEVICES = {
    "gre": ("gre local {local} remote {remote} ttl 64", (), ""),
    "vxlan": ("vxlan id 7761 local {local} remote {remote} dstport {port} df set", (), ""),
    "wireguard": ("wireguard", ("wg setconf {name} /proc/self/fd/0", WIREGUARD), ""),
    "ipsec": ("xfrm dev {parent} if_id 7761", ("ip -batch -", IPSEC), NO_IPSEC),
}
"""Kinds that the kernel makes: type and options of the device; a command that sets it up, and its stdin with the keys;
commands that remove what does not go with the device.
"""
OPENVPN = """dev {name}
dev-type tun
proto udp4
local {local}
remote {remote}
port {port}
data-ciphers {cipher}
peer-fingerprint {keys[peer]}
{role}
ifconfig {own} {peer}
ifconfig-noexec
tun-mtu {mtu}
mssfix 0
mtu-disc yes
reneg-sec 0
<cert>
{keys[certificate]}</cert>
<key>
{keys[key]}</key>
verb 3
"""


# Each is a context in which the interface exists, and yields its holder


@contextlib.contextmanager
def relay(options: Options) -> Iterator[HeldTunnel]:
    with contextlib.closing(udp(options)) as sock:
        tun = make_tun(options["name"])
        try:
            yield Mover(options, tun, sock)
        finally:
            os.close(tun)


@contextlib.contextmanager
def openvpn(options: Options) -> Iterator[HeldTunnel]:
    config = OPENVPN.format(role="tls-server\ndh none" if options["first"] else "tls-client", **options)
    version = call(["openvpn", "--version"], may_fail=True).split()
    with child(["openvpn", "--config", "stdin"], config) as running:
        wait_for(running, "OpenVPN", word=b"Initialization Sequence Completed")  # it has agreed with its peer
        number = version[version.index("OpenVPN") + 1] if "OpenVPN" in version[:-1] else ""
        yield HeldTunnel(f"OpenVPN {number}".strip(), running)


@contextlib.contextmanager
def by_kernel(options: Options) -> Iterator[HeldTunnel]:
    """Make a device of the kernel, or of wireguard-go if the kernel has no WireGuard."""
    words, up, down = DEVICES[options["kind"]]

    def clear() -> None:
        for line in down.format(**options).split("\n"):
            if line:
                call(line.split(), may_fail=True)

    with contextlib.ExitStack() as stack:
        try:
            device(options["name"], words.format(**options))
            stack.callback(delete, options["name"])
            held = HeldTunnel("the kernel")
        except NoDevice:
            if options["kind"] != "wireguard":
                raise
            held = HeldTunnel("wireguard-go", stack.enter_context(wireguard_go(options["name"])))
        clear()  # what a killed program has left
        stack.callback(clear)
        if up:
            command, text = up
            call(command.format(**options).split(), text.format(**options))
        yield held


@contextlib.contextmanager
def wireguard_go(name: str) -> Iterator[subprocess.Popen[bytes]]:
    control = f"/var/run/wireguard/{name}.sock"
    with child(["wireguard-go", "-f", name], LOG_LEVEL="error") as running:
        try:
            wait_for(running, "wireguard-go", path=control)
            yield running
        finally:
            running.terminate()
            with contextlib.suppress(OSError):
                os.unlink(control)


KINDS = {"relay": relay, "openvpn": openvpn, **dict.fromkeys(DEVICES, by_kernel)}


class HeldTunnel:
    """Holder of a tunnel. by: its name. running: its program; None: the kernel."""

    def __init__(self, by: str, running: subprocess.Popen[bytes] | None = None) -> None:
        self.by, self.running = by, running
        self.pid = running.pid if running is not None else None

    def hold(self) -> None:
        """Wait for the end of stdin; ProgramFailure if the program ends before."""
        out = self.running.stdout.fileno() if self.running is not None and self.running.stdout is not None else None
        while True:
            ready = select.select([0] if out is None else [0, out], [], [])[0]
            if 0 in ready and not os.read(0, 4096):
                return
            if out in ready and out is not None and not os.read(out, 65536):
                raise ProgramFailure(f"{self.by} has ended", "see what it says there")


class Mover(HeldTunnel):
    """Relay between a TUN interface and a UDP socket."""

    def __init__(self, options: Options, tun: int, sock: socket.socket) -> None:
        HeldTunnel.__init__(self, "trexbench's relay")
        self.pid = os.getpid()
        self.tun, self.sock, self.token = tun, sock, bytes.fromhex(options["keys"]["token"])

    def hold(self) -> None:
        # For speed per packet this loop uses local names and fixed slices.
        tun, line, token = self.tun, self.sock.fileno(), self.token
        outward, inward = bytearray(token).ljust(65536, b"\0"), bytearray(65536)
        whole, room, heard = memoryview(outward), memoryview(outward)[TOKEN_BYTES:], memoryview(inward)
        read_tun, write_tun = (io.FileIO(tun, "r+", closefd=False) for _ in range(2))
        read_line, write_line = (io.FileIO(line, "r+", closefd=False) for _ in range(2))
        take, give, hear, tell = read_tun.readinto, write_tun.write, read_line.readinto, write_line.write
        wait, everything = select.select, [tun, line, 0]
        while True:
            ready = wait(everything, [], [])[0]
            size = take(room) if tun in ready else None
            if size is not None:
                try:  # noqa: SIM105, a context takes time
                    tell(whole[: TOKEN_BYTES + size])
                except OSError:  # nobody listens there yet, or the line is down
                    pass
            if line in ready:
                try:
                    size = hear(inward)
                    if size is not None and inward.startswith(token):
                        give(heard[TOKEN_BYTES:size])
                except OSError:  # an earlier packet was refused, or this is not one of IP
                    pass
            if 0 in ready and not os.read(0, 4096):
                return


def udp(options: Options) -> socket.socket:
    """Open a UDP socket that receives from the peer's address and port only, and sends with DF."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        sock.setsockopt(socket.IPPROTO_IP, 10, 2)  # IP_MTU_DISCOVER: IP_PMTUDISC_DO
        for force in (32, 33):  # SO_SNDBUFFORCE, SO_RCVBUFFORCE
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, force, 4 << 20)
        sock.bind((options["local"], options["port"]))
        sock.connect((options["remote"], options["port"]))
    except OSError as error:
        sock.close()
        where = f"{options['local']}, port {options['port']}"
        raise ProgramFailure(f"UDP from {where} cannot be used ({error.strerror})", "see ip addr and ss -un") from None
    sock.setblocking(False)
    return sock


def run(options: Options) -> None:
    keep_within(options)
    forget()
    with KINDS[options["kind"]](options) as held, masquerade(options):
        name, mtu = options["name"], options["mtu"]
        set_up(name, mtu, options["own"], options["peer"])
        for route in options.get("routes", []):
            ip("route", "replace", route, "dev", name)
        say("up", {"by": held.by, "pid": held.pid, "interface": name, "mtu": mtu})
        held.hold()


def main() -> None:
    sys.exit(carry_out(run))
