"""Parse what FreeBSD's tools print. Pure; absent is None, never zero; DutError for what cannot be read.

The formats are those of FreeBSD 11 to 15, from the sources of the tools (sbin/ifconfig, sbin/route, usr.sbin/arp,
sbin/sysctl).
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Network, ip_interface
from typing import Any

from ...core.errors import DutError

_HEADER = re.compile(r"([A-Za-z][^\s:]*): flags=[0-9a-f]+<([^>]*)>(.*)")
_LENGTH = r"(?:/([0-9]{1,3}))?"
_PEER = rf"(?: -->\s*[^\s/]+{_LENGTH})?"
_MASK = r"(?: (?:netmask|prefixlen) (0x[0-9a-f]{1,8}|[0-9.]+))?"
_INET = re.compile(rf"inet6? ([0-9a-f:.]+)(?:%\S+)?{_LENGTH}{_PEER}{_MASK}(?: |$)")
_VLAN = re.compile(r"vlan: ([0-9]{1,4})(?: vlanproto: (802\.1[a-z]+))?.* parent interface: (\S+)")
_NDP = re.compile(r"([0-9a-f:.]+)(?:%\S+)?\s+(\S+)\s+(\S+)\s+(\S+)(?:\s+(.*))?")
_MEDIA_SPEED = re.compile(r"\b([0-9]{1,6})(G?)base", re.IGNORECASE)
_ARP = re.compile(r"\S+ \(([0-9.]+)\) at (\S+) on (\S+)(.*)")
_LONGEST_TIMER_S = 2**31
_GETS = re.compile(r"\s*([a-z ]+?): (.*)")


def parse_interfaces(text: str) -> dict[str, dict[str, Any]]:
    """Parse ``ifconfig -a``: up, status (as printed), mtu, mac, addresses, media, speed_bps, options of each interface.

    ipv6_off: it drops all IPv6. unusable: why an address gets no packet, ``tentative`` or ``duplicated``, by address.
    """
    interfaces: dict[str, dict[str, Any]] = {}
    interface: dict[str, Any] | None = None
    for line in text.splitlines():
        if header := _HEADER.match(line):
            mtu = re.search(r"\bmtu ([0-9]{1,6})\b", header[3])
            interface = interfaces[header[1]] = {
                "up": "UP" in header[2].split(","),
                "running": "RUNNING" in header[2].split(","),
                "status": None,
                "mtu": int(mtu[1]) if mtu else None,
                "mac": None,
                "addresses": [],
                "unusable": {},
                "ipv6_off": False,
                "media": None,
                "speed_bps": None,
                "options": None,
            }
        elif interface is not None:
            _read_line(line.strip(), interface)
    if not interfaces and text.strip():
        raise DutError(f"ifconfig printed no interface ({text.strip()[:60]!r})", "is it FreeBSD?")
    return interfaces


def _read_line(line: str, interface: dict[str, Any]) -> None:
    word, _, rest = line.partition(" ")
    if word in ("inet", "inet6") and not rest.startswith("fe80:"):
        address = _address(line)
        interface["addresses"].append(address)
        for why in {"tentative", "duplicated"}.intersection(rest.split()):
            interface["unusable"][address] = why
    elif word == "nd6":
        interface["ipv6_off"] = "IFDISABLED" in re.split("[<,>]", rest)
    elif word == "ether":
        interface["mac"] = rest.split(" ")[0].lower()
    elif word == "vlan:" and (match := _VLAN.match(line)):
        interface["vlan"] = {"tag": int(match[1]), "protocol": match[2] or "802.1q", "parent": match[3]}
    elif word == "status:":
        interface["status"] = rest
    elif word == "media:":
        interface["media"], interface["speed_bps"] = rest, media_speed_bps(rest)
    elif word.startswith("options="):
        interface["options"] = sorted(line.partition("<")[2].rstrip(">").split(",")) if "<" in line else []


def _address(line: str) -> str:
    match = _INET.match(line)
    length = match and (match[2] or match[3] or match[4])
    try:
        if not match or not length:
            raise ValueError
        length = str(IPv4Address(int(length, 16))) if length.startswith("0x") else length
        return ip_interface(f"{match[1]}/{length}").with_prefixlen
    except ValueError:
        raise DutError(f"ifconfig printed an address that cannot be read ({line[:80]!r})") from None


def media_speed_bps(media: str) -> float | None:
    """Speed in use, as in ``Ethernet autoselect (10Gbase-SR <full-duplex>)``; None where there is none."""
    _, parenthesis, active = media.partition("(")
    match = _MEDIA_SPEED.search(active if parenthesis else media)
    return float(match[1]) * (1e9 if match[2] else 1e6) if match else None


def parse_routes(text: str) -> list[dict[str, Any]]:
    """Parse ``netstat -rn -f inet``: to, gateway (as printed), flags, interface (None: not printed) of each hop.

    The columns around the interface differ from release to release, and 13.2 leaves an MTU of 0 blank; all but the
    interface's have digits. A family without a route has no header (usr.bin/netstat/route.c, p_rtable_sysctl).
    """
    routes: list[dict[str, Any]] = []
    default, header = "0.0.0.0/0", False
    for line in text.splitlines():
        words = line.split()
        if words[:2] == ["Destination", "Gateway"]:
            header = True
        elif words[:1] == ["Internet6:"]:
            default = "::/0"
        elif not words or not header:
            continue
        elif len(words) < 3:
            raise DutError(f"netstat -rn printed a route that cannot be read ({line[:80]!r})")
        else:
            to, gateway, flags = words[:3]
            interface = next((word for word in reversed(words[3:]) if word[0].isalpha()), None)
            gateway, to = gateway.partition("%")[0], default if to == "default" else network(to)
            routes.append({"to": to, "gateway": gateway, "flags": flags, "interface": interface})
    if not header and not text.startswith("Routing tables"):
        raise DutError(f"netstat -rn printed no routing table ({text.strip()[:60]!r})", "is it FreeBSD?")
    return routes


def network(text: str) -> str:
    """Expand a destination: a network, a host without length, or an abbreviation of old releases (``10.1/16``).

    One of IPv6 may name an interface: ``fe80::%ix0/64``.
    """
    digits, slash, length = text.partition("/")
    parts = digits.split(".")
    try:
        if ":" in text:
            return str(IPv6Network(re.sub(r"%[^/]*", "", text), strict=False))
        if not all(re.fullmatch(r"[0-9]{1,3}", part) for part in parts) or len(parts) > 4:
            raise ValueError
        padded = ".".join(parts + ["0"] * (4 - len(parts)))
        return str(IPv4Network(f"{padded}/{length if slash else 8 * len(parts)}"))
    except ValueError:
        raise DutError(f"netstat -rn printed {text[:60]!r} where a network is expected") from None


def parse_path(text: str) -> str:
    """Parse ``route -n get``: where the kernel would send it, ``via 1.2.3.4 dev ix0``, ``blackhole`` or ``reject``."""
    answer = {match[1].strip(): match[2].strip() for match in map(_GETS.match, text.splitlines()) if match}
    flags = answer.get("flags", "").strip("<>").split(",")
    for end in ("BLACKHOLE", "REJECT"):
        if end in flags:
            return end.lower()
    if "interface" not in answer:
        raise DutError(f"route get printed no interface ({text.strip()[:60]!r})")
    via = f"via {answer['gateway']} " if "GATEWAY" in flags and "gateway" in answer else ""
    return f"{via}dev {answer['interface']}"


def parse_neighbours(text: str) -> list[dict[str, Any]]:
    """Parse ``arp -an``: address, interface, mac (None where incomplete), permanent, published of each entry.

    stale: it has expired and is still there, or it is to expire later than any timer runs.
    """
    entries = []
    for match in filter(None, (_ARP.match(line.strip()) for line in text.splitlines())):
        rest, expires = match[4].split(), re.search(r" expires in ([0-9]{1,20}) seconds", match[4])
        stale = "expired" in rest or bool(expires and int(expires[1]) > _LONGEST_TIMER_S)
        entries.append(_neighbour(match[1], match[2], match[3], "permanent" in rest, "published" in rest, stale))
    return entries


def parse_ndp(text: str) -> list[dict[str, Any]]:
    """Parse ``ndp -an``, as parse_neighbours. Columns: neighbour, MAC, interface, expiry, state, flags, probes."""
    entries = []
    for match in filter(None, (_NDP.fullmatch(line.strip()) for line in text.splitlines())):
        published = any("p" in word for word in (match[5] or "").split()[1:])
        entries.append(_neighbour(match[1], match[2], match[3], match[4] == "permanent", published))
    return entries


def _neighbour(
    address: str, mac: str, interface: str, permanent: bool, published: bool, stale: bool = False
) -> dict[str, Any]:
    # a byte of the MAC may lack its first digit
    digits = mac.lower() if re.fullmatch(r"[0-9a-f]{1,2}(:[0-9a-f]{1,2}){5}", mac.lower()) else None
    return {
        "address": address,
        "interface": interface,
        "mac": ":".join(part.zfill(2) for part in digits.split(":")) if digits else None,
        "permanent": permanent,
        "stale": stale,
        "published": published,
    }


def parse_firewall(text: str) -> str:
    """Parse ``pfctl -s info``: ``enabled`` or ``disabled``."""
    match = re.search(r"^Status: (Enabled|Disabled)\b", text, re.MULTILINE)
    if not match:
        raise DutError(f"pfctl -s info printed no status ({text.strip()[:60]!r})")
    return match[1].lower()


def parse_opaque(text: str) -> str | None:
    """Parse ``sysctl -x`` of an opaque value, ``Format: Length:16 Dump:0x2b1d...``: its digits."""
    match = re.search(r"\bDump:0x([0-9a-f]{1,64})\s*$", text)
    return match[1] if match else None


def parse_struct(text: str, field: str) -> int | None:
    """Read one field of a sysctl that prints a structure: ``{ sec = 1637938203, usec = 7 } Fri ...``."""
    match = re.search(rf"\b{re.escape(field)} = (-?[0-9]{{1,20}})\b", text)
    return int(match[1]) if match else None
