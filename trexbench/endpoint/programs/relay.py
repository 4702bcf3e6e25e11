"""One end of a tunnel: the relay itself, or what holds another program or device.

Its Linux host needs ip. It says: up, error, done. The relay is that of "bench_io_select": select() over a TUN
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

from .child import child, wait_for
from .common import ProgramFailure, call, carry_out, ip, keep_within, make_tun, say, set_up

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .common import Options

PREFIX = "tbvpn"
"""Prefix of the names of all interfaces made here; those that a killed program has left are taken away first."""
TABLE = "trexbench_tunnel"
"""Name of the nft table for the masquerade."""
TOKEN_BYTES = 8
NO_DEVICE = ("Unknown device type", "Operation not supported", "Protocol not supported")


class NoDevice(ProgramFailure):
    """The kernel has none of this kind."""


def device(name: str, words: str) -> None:
    """An interface of the kernel's own, by its type and what belongs to it; NoDevice where it has none of the type."""
    kind = words.split()[0]
    try:
        ip("link", "add", "name", name, "type", *words.split())
    except ProgramFailure as failure:
        if any(one in failure.what for one in NO_DEVICE):
            lacks = f"the kernel has no device of type {kind} ({failure.what.rpartition(': ')[2]})"
            raise NoDevice(lacks, f"modprobe {kind}, or take another tunnel") from None
        raise


def delete(name: str) -> None:
    call(["ip", "link", "del", "dev", name], may_fail=True)


def forget() -> None:
    """Remove what an earlier program of this host has left, if it was killed."""
    for name in os.listdir("/sys/class/net"):
        if name.startswith(PREFIX):
            delete(name)


def masquerading(options: Options) -> str:
    """Rules of nft by which what the peer sends on leaves with the address of the interface that it leaves by."""
    leaves = 'ip saddr {peer} oifname "{masquerade}" counter masquerade'.format(**options)
    body = f"type nat hook postrouting priority 100\n{leaves}"
    whole = f"table ip {TABLE}\ndelete table ip {TABLE}\n"
    return f"{whole}table ip {TABLE} {{\nchain out {{\n{body}\n}}\n}}\n"


@contextlib.contextmanager
def masquerade(options: Options) -> Iterator[None]:
    """Masquerade what the peer sends on: it leaves by this interface with its address."""
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
"""ESP in tunnel mode, with keys that were agreed on elsewhere, by the policies of an interface of its own."""
NO_IPSEC = """
ip xfrm state deleteall src {local} dst {remote} proto esp reqid 7761
ip xfrm state deleteall src {remote} dst {local} proto esp reqid 7761
ip xfrm policy delete src 0.0.0.0/0 dst 0.0.0.0/0 dir out if_id 7761
ip xfrm policy delete src 0.0.0.0/0 dst 0.0.0.0/0 dir in if_id 7761
ip xfrm policy delete src 0.0.0.0/0 dst 0.0.0.0/0 dir fwd if_id 7761
"""
"""Each in a process of its own: ip ends its batch where it has deleted all of something."""
DEVICES = {
    "gre": ("gre local {local} remote {remote} ttl 64", (), ""),
    "vxlan": ("vxlan id 7761 local {local} remote {remote} dstport {port} df set", (), ""),
    "wireguard": ("wireguard", ("wg setconf {name} /proc/self/fd/0", WIREGUARD), ""),
    "ipsec": ("xfrm dev {parent} if_id 7761", ("ip -batch -", IPSEC), NO_IPSEC),
}
"""Kinds that the kernel makes: type and words of the device; what sets it up, a command and its stdin, where keys are;
and commands that take away what does not go with it.
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


# Each is a context in which the interface is there, and yields what holds it


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
    told = OPENVPN.format(role="tls-server\ndh none" if options["first"] else "tls-client", **options)
    version = call(["openvpn", "--version"], may_fail=True).split()
    with child(["openvpn", "--config", "stdin"], told) as running:
        wait_for(running, "OpenVPN", path="/sys/class/net/{name}".format(**options))
        number = version[version.index("OpenVPN") + 1] if "OpenVPN" in version[:-1] else ""
        yield HeldTunnel(f"OpenVPN {number}".strip(), running, b"Initialization Sequence Completed")


@contextlib.contextmanager
def by_kernel(options: Options) -> Iterator[HeldTunnel]:
    """A device of the kernel's, or of wireguard-go where it has none."""
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
            command, told = up
            call(command.format(**options).split(), told.format(**options))
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
    """by: what makes the tunnel. running: a program that does; None: the kernel. word: what it says once it is up."""

    def __init__(self, by: str, running: subprocess.Popen[bytes] | None = None, word: bytes = b"") -> None:
        self.by, self.running, self.word = by, running, word
        self.pid = running.pid if running is not None else None

    def agree(self) -> None:
        """Wait until the program has come to terms with its peer."""
        if self.running is not None and self.word:
            wait_for(self.running, self.by, word=self.word)

    def hold(self) -> None:
        """Until stdin has its end; ProgramFailure if the program ends before."""
        out = self.running.stdout.fileno() if self.running is not None and self.running.stdout is not None else None
        while True:
            ready = select.select([0] if out is None else [0, out], [], [])[0]
            if 0 in ready and not os.read(0, 4096):
                return
            if out in ready and out is not None and not os.read(out, 65536):
                raise ProgramFailure(f"{self.by} has ended", "see what it says there")


class Mover(HeldTunnel):
    """The relay between a TUN interface and a UDP socket."""

    def __init__(self, options: Options, tun: int, sock: socket.socket) -> None:
        HeldTunnel.__init__(self, "trexbench's relay")
        self.pid = os.getpid()
        self.tun, self.sock, self.token = tun, sock, bytes.fromhex(options["keys"]["token"])

    def hold(self) -> None:
        # One packet costs some Python in this loop, so it holds to local names and fixed slices.
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
                except OSError:  # what became of an earlier packet, or what the kernel does not take for one of IP
                    pass
            if 0 in ready and not os.read(0, 4096):
                return


def udp(options: Options) -> socket.socket:
    """Hears nobody but the peer's address and port, and sends with DF."""
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
        held.agree()
        say("up", {"by": held.by, "pid": held.pid, "interface": name, "mtu": mtu})
        held.hold()


def main() -> None:
    sys.exit(carry_out(run))
