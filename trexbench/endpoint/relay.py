"""One end of a tunnel, for as long as stdin is open: the relay itself, or what holds another program or device.

Sent through a transport to a Linux host that needs python3 (3.7 or later) and ip: the first line on stdin says what to
do and holds the keys, the rest of stdin only has an end, and with it the tunnel and its interface end. Each line on
stdout is a JSON object with one key: up, counters, error, done. The relay is that of "bench_io_select": select() over
a TUN interface and a UDP socket, one packet for each read and write.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import io
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    Options = dict[str, Any]  # the first line on stdin

PREFIX = "tbvpn"
"""Prefix of the names of all interfaces made here; those that a killed program has left are taken away first."""
TABLE = "trexbench_tunnel"
"""Name of the nft table for the masquerade."""
TOKEN_BYTES = 8
UP_S = 20.0
"""For another program to have its interface, and to agree with its peer."""
END_S = 1.0
"""For it to end by itself."""
NO_DEVICE = ("Unknown device type", "Operation not supported", "Protocol not supported")
REQID = "7761"
"""ID of the IPsec states and policies that are made here, and the number of their interface."""


class RelayFailure(Exception):
    """Error that says what is wrong, and what helps."""

    def __init__(self, what: str, remedy: str = "") -> None:
        Exception.__init__(self, what)
        self.what, self.remedy = what, remedy


class NoDevice(RelayFailure):
    """The kernel has none of this kind."""


# The host


def readable(data: bytes) -> str:
    """Return what a program said, in one line and without anything that a terminal would obey."""
    text = " ".join(data.decode("utf-8", "replace").split())
    return "".join(one if one.isprintable() else "?" for one in text[-300:])


def call(argv: list[str], told: str = "", may_fail: bool = False) -> str:
    """Its output. told: on its stdin, where keys are; never in argv."""
    try:
        done = subprocess.run(argv, input=told.encode(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except OSError as error:
        if may_fail:
            return ""
        raise RelayFailure(f"{argv[0]} cannot be started ({error.strerror})", f"install {argv[0]}") from None
    if done.returncode and not may_fail:
        raise RelayFailure("{}: {}".format(" ".join(argv), readable(done.stdout)), "see what it says")
    return done.stdout.decode("utf-8", "replace")


def ip(*words: str) -> None:
    call(["ip", *words])


def device(options: Options, kind: str, *words: str) -> None:
    """An interface of the kernel's own; NoDevice where it has none of the kind."""
    try:
        ip("link", "add", "name", options["name"], "type", kind, *words)
    except RelayFailure as failure:
        if any(one in failure.what for one in NO_DEVICE):
            lacks = f"the kernel has no device of type {kind} ({failure.what.rpartition(': ')[2]})"
            raise NoDevice(lacks, f"modprobe {kind}, or take another tunnel") from None
        raise


def delete(name: str) -> None:
    call(["ip", "link", "del", "dev", name], may_fail=True)


def with_me() -> None:
    """In a child before exec: it gets SIGTERM when this program is killed."""
    with contextlib.suppress(Exception):
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)


@contextlib.contextmanager
def child(argv: list[str], told: str = "", **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program that ends with the block, and with this one. told: on its stdin, which is then closed."""
    try:
        running = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            preexec_fn=with_me,
        )
    except OSError as error:
        raise RelayFailure(f"{argv[0]} cannot be started ({error.strerror})", f"install {argv[0]}") from None
    assert running.stdin is not None
    try:
        with contextlib.suppress(BrokenPipeError):
            running.stdin.write(told.encode())
            running.stdin.close()
        yield running
    finally:
        running.terminate()
        try:
            running.wait(END_S)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()


def wait_for(running: subprocess.Popen[bytes], what: str, path: str = "", word: bytes = b"") -> None:
    """Until the path is there, and the program has said the word; RelayFailure if it ends, or not in time."""
    until, said = time.monotonic() + UP_S, b""
    assert running.stdout is not None
    while not (os.path.exists(path) if path else word in said):
        if select.select([running.stdout], [], [], 0.05)[0]:
            part = os.read(running.stdout.fileno(), 65536)
            said = (said + part)[-65536:]
            if not part and running.poll() is not None:
                raise RelayFailure(f"{what} has ended ({readable(said)})", "see what it says there")
        if select.select([0], [], [], 0)[0] and not os.read(0, 4096):
            raise SystemExit(0)
        if time.monotonic() > until:
            raise RelayFailure(f"{what} was not up within {UP_S:g} s ({readable(said)})", "see what the other end says")


def set_up(options: Options) -> None:
    """Address, MTU and routes of the interface; they go with it."""
    name = options["name"]
    with contextlib.suppress(OSError), open(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6", "w") as file:
        file.write("1")
    ip("link", "set", "dev", name, "mtu", str(options["mtu"]), "qlen", "1000", "up")
    ip("addr", "add", options["own"], "peer", options["peer"], "dev", name)
    for route in options.get("routes", []):
        ip("route", "replace", route, "dev", name)


def forget() -> None:
    """Remove what an earlier program of this host has left, if it was killed."""
    for name in os.listdir("/sys/class/net"):
        if name.startswith(PREFIX):
            delete(name)


@contextlib.contextmanager
def masquerade(options: Options) -> Iterator[None]:
    """Masquerade what the peer sends on: it leaves by this interface with its address."""
    leaves = options.get("masquerade")
    if not leaves:
        yield
        return
    peer = options["peer"]
    body = f'type nat hook postrouting priority 100\nip saddr {peer} oifname "{leaves}" counter masquerade'
    whole = f"table ip {TABLE}\ndelete table ip {TABLE}\n"
    rule = ["POSTROUTING", "-s", peer, "-o", leaves, "-j", "MASQUERADE"]
    try:
        call(["nft", "-f", "-"], f"{whole}table ip {TABLE} {{\nchain out {{\n{body}\n}}\n}}\n")
        undo = ["nft", "delete", "table", "ip", TABLE]
    except RelayFailure as failure:
        call(["iptables", "-w", "-t", "nat", "-D", *rule], may_fail=True)  # what a killed program has left
        try:
            call(["iptables", "-w", "-t", "nat", "-A", *rule])
        except RelayFailure:
            raise failure from None
        undo = ["iptables", "-w", "-t", "nat", "-D", *rule]
    try:
        yield
    finally:
        call(undo, may_fail=True)


# The kinds: each is a context in which the interface is there, and yields what holds it


@contextlib.contextmanager
def relay(options: Options) -> Iterator[HeldTunnel]:
    sock = udp(options)
    try:
        tun = tunnel(options["name"])
        try:
            yield Mover(options, tun, sock)
        finally:
            os.close(tun)
    finally:
        sock.close()


@contextlib.contextmanager
def openvpn(options: Options) -> Iterator[HeldTunnel]:
    keys = options["keys"]
    lines = [
        f"dev {options['name']}",
        "dev-type tun",
        "proto udp4",
        f"local {options['local']}",
        f"remote {options['remote']}",
        f"port {options['port']}",
        f"data-ciphers {options['cipher']}",
        f"peer-fingerprint {keys['peer']}",
        *(["tls-server", "dh none"] if options["first"] else ["tls-client"]),
        f"ifconfig {options['own']} {options['peer']}",
        "ifconfig-noexec",
        f"tun-mtu {options['mtu']}",
        "mssfix 0",
        "mtu-disc yes",
        "reneg-sec 0",
        f"<cert>\n{keys['certificate']}</cert>",
        f"<key>\n{keys['key']}</key>",
        "verb 3",
    ]
    version = call(["openvpn", "--version"], may_fail=True).split()
    with child(["openvpn", "--config", "stdin"], "\n".join(lines) + "\n") as running:
        wait_for(running, "OpenVPN", path=f"/sys/class/net/{options['name']}")
        told = version[version.index("OpenVPN") + 1] if "OpenVPN" in version[:-1] else ""
        yield HeldTunnel(f"OpenVPN {told}".strip(), running, b"Initialization Sequence Completed")


@contextlib.contextmanager
def wireguard(options: Options) -> Iterator[HeldTunnel]:
    keys, name = options["keys"], options["name"]
    text = (
        f"[Interface]\nPrivateKey = {keys['key']}\nListenPort = {options['port']}\n"
        f"[Peer]\nPublicKey = {keys['peer']}\nAllowedIPs = 0.0.0.0/0\n"
        f"Endpoint = {options['remote']}:{options['port']}\n"
    )
    set_keys = ["wg", "setconf", name, "/proc/self/fd/0"]
    try:
        device(options, "wireguard")
    except NoDevice:
        control = f"/var/run/wireguard/{name}.sock"
        with child(["wireguard-go", "-f", name], LOG_LEVEL="error") as running:
            try:
                wait_for(running, "wireguard-go", path=control)
                call(set_keys, text)
                yield HeldTunnel("wireguard-go", running)
            finally:
                running.terminate()
                with contextlib.suppress(OSError):
                    os.unlink(control)
        return
    try:
        call(set_keys, text)
        yield HeldTunnel("the kernel")
    finally:
        delete(name)


@contextlib.contextmanager
def gre(options: Options) -> Iterator[HeldTunnel]:
    device(options, "gre", "local", options["local"], "remote", options["remote"], "ttl", "64")
    try:
        yield HeldTunnel("the kernel")
    finally:
        delete(options["name"])


@contextlib.contextmanager
def vxlan(options: Options) -> Iterator[HeldTunnel]:
    ends = ["local", options["local"], "remote", options["remote"], "dstport", str(options["port"])]
    device(options, "vxlan", "id", "7761", *ends, "df", "set")
    try:
        yield HeldTunnel("the kernel")
    finally:
        delete(options["name"])


@contextlib.contextmanager
def ipsec(options: Options) -> Iterator[HeldTunnel]:
    """ESP in tunnel mode, with keys that were agreed on elsewhere, by the policies of an interface of its own."""
    number, local, remote = REQID, options["local"], options["remote"]
    device(options, "xfrm", "dev", options["parent"], "if_id", number)
    pairs = [(local, remote, options["keys"]["out"]), (remote, local, options["keys"]["in"])]
    ways = [("out", local, remote), ("in", remote, local), ("fwd", remote, local)]
    make: list[str] = []
    undo: list[str] = []
    for src, dst, _ in pairs:  # what a killed program has left
        ends = ["src", src, "dst", dst, "proto", "esp", "reqid", REQID]
        call(["ip", "xfrm", "state", "deleteall", *ends], may_fail=True)
    for src, dst, key in pairs:
        state = f"src {src} dst {dst} proto esp spi 0x{key['spi']}"
        secret = f"aead rfc4106(gcm(aes)) 0x{key['key']} 128"
        make.append(f"xfrm state add {state} reqid {REQID} mode tunnel replay-window 64 {secret} if_id {number}")
        undo.append(f"xfrm state delete {state}")
    for way, src, dst in ways:
        policy = f"src 0.0.0.0/0 dst 0.0.0.0/0 dir {way} if_id {number}"
        make.append(f"xfrm policy update {policy} tmpl src {src} dst {dst} proto esp reqid {REQID} mode tunnel")
        undo.append(f"xfrm policy delete {policy}")
    try:
        for line in make:
            call(["ip", "-batch", "-"], line + "\n")
        yield HeldTunnel("the kernel")
    finally:
        for line in undo:
            call(["ip", "-batch", "-"], line + "\n", may_fail=True)
        delete(options["name"])


KINDS = {
    "relay": relay,
    "openvpn": openvpn,
    "wireguard": wireguard,
    "gre": gre,
    "vxlan": vxlan,
    "ipsec": ipsec,
}


class HeldTunnel:
    """by: what makes the tunnel. running: a program that does; None: the kernel. word: what it says once it is up."""

    def __init__(self, by: str, running: subprocess.Popen[bytes] | None = None, word: bytes = b"") -> None:
        self.by, self.running, self.word = by, running, word
        self.pid = running.pid if running is not None else None
        self.counts: dict[str, int] = {}

    def agree(self) -> None:
        """Wait until the program has come to terms with its peer."""
        if self.running is not None and self.word:
            wait_for(self.running, self.by, word=self.word)

    def hold(self) -> None:
        """Until stdin has its end; RelayFailure if the program ends before."""
        out = self.running.stdout.fileno() if self.running is not None and self.running.stdout is not None else None
        while True:
            ready = select.select([0] if out is None else [0, out], [], [])[0]
            if 0 in ready and not os.read(0, 4096):
                return
            if out in ready and out is not None and not os.read(out, 65536):
                raise RelayFailure(f"{self.by} has ended", "see what it says there")


class Mover(HeldTunnel):
    """The relay between a TUN interface and a UDP socket. counts: packets to the line and from it, and refused ones."""

    def __init__(self, options: Options, tun: int, sock: socket.socket) -> None:
        HeldTunnel.__init__(self, "trexbench's relay")
        self.pid = os.getpid()
        self.tun, self.sock, self.token = tun, sock, bytes.fromhex(options["keys"]["token"])
        self.counts = dict.fromkeys(("to_line", "from_line", "lost", "strangers"), 0)

    def hold(self) -> None:
        # One packet costs some Python in this loop, so it holds to local names and fixed slices.
        tun, line, token, counts = self.tun, self.sock.fileno(), self.token, self.counts
        outward, inward = bytearray(token).ljust(65536, b"\0"), bytearray(65536)
        whole, room, heard = memoryview(outward), memoryview(outward)[TOKEN_BYTES:], memoryview(inward)
        read_tun, write_tun = (io.FileIO(tun, "r+", closefd=False) for _ in range(2))
        read_line, write_line = (io.FileIO(line, "r+", closefd=False) for _ in range(2))
        take, give, hear, tell = read_tun.readinto, write_tun.write, read_line.readinto, write_line.write
        wait, everything = select.select, [tun, line, 0]
        while True:
            ready = wait(everything, [], [])[0]
            if tun in ready and (size := take(room)) is not None:
                counts["to_line"] += 1
                try:
                    if tell(whole[: TOKEN_BYTES + size]) is None:
                        counts["lost"] += 1
                except OSError:  # nobody listens there yet, or the line is down
                    counts["lost"] += 1
            if line in ready:
                try:
                    size = hear(inward)
                except OSError:  # as the kernel tells what became of an earlier packet
                    size = None
                if size is not None and inward.startswith(token):
                    counts["from_line"] += 1
                    try:
                        give(heard[TOKEN_BYTES:size])
                    except OSError:  # what the kernel does not take for a packet of IP
                        counts["strangers"] += 1
                elif size is not None:
                    counts["strangers"] += 1
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
        raise RelayFailure(f"UDP from {where} cannot be used ({error.strerror})", "see ip addr and ss -un") from None
    sock.setblocking(False)
    return sock


def tunnel(name: str) -> int:
    """A new TUN interface, which goes when the descriptor is closed."""
    set_interface = 0x800454CA if os.uname().machine.startswith(("mips", "ppc", "sparc")) else 0x400454CA
    try:
        tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise RelayFailure(f"/dev/net/tun cannot be opened ({error.strerror})", "as root: modprobe tun") from None
    try:
        fcntl.ioctl(tun, set_interface, struct.pack("16sH22x", name.encode(), 0x1001))  # TUN, without PI
    except OSError as error:
        os.close(tun)
        raise RelayFailure(f"interface {name} cannot be made ({error.strerror})", "run as root") from None
    return tun


# What is said and done


def say(what: str, value: Any) -> None:
    data = json.dumps({what: value}).encode() + b"\n"
    with contextlib.suppress(OSError):  # nobody listens any more; stdin ends likewise
        while data:
            data = data[os.write(1, data) :]


def first_line() -> Any:
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte or len(line) > 65536:
            sys.exit(1)
        line += byte
    return json.loads(line.decode())


def stop(*_: Any) -> None:
    raise SystemExit(0)


def overdue(*_: Any) -> None:
    raise RelayFailure("did not end in time", "see what holds it")


def run(options: Options) -> None:
    if options.get("cpus"):
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, options["cpus"])
    for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(one, stop)
    signal.signal(signal.SIGALRM, overdue)
    signal.alarm(int(options["deadline_s"]))
    forget()
    with KINDS[options["kind"]](options) as held, masquerade(options):
        set_up(options)
        held.agree()
        say("up", {"by": held.by, "pid": held.pid, "interface": options["name"], "mtu": options["mtu"]})
        try:
            held.hold()
        finally:
            if held.counts:
                say("counters", held.counts)


def main() -> None:
    options = first_line()
    try:
        run(options)
        say("done", {})
    except RelayFailure as failure:
        say("error", {"what": failure.what, "remedy": failure.remedy})
        sys.exit(1)
    except Exception as error:
        say("error", {"what": f"{type(error).__name__}: {error}", "remedy": "this is a defect of trexbench"})
        sys.exit(1)


if __name__ == "__main__":
    main()
