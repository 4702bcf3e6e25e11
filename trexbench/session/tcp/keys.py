"""Keys, made for one tunnel: they are in the memory of this process and of its ends only."""

from __future__ import annotations

import hashlib
import secrets
import ssl
import subprocess
from base64 import b64encode
from typing import Any

from ...core.errors import DutError
from ...core.tcp.tunnel import Tunnel


def make_keys(wished: Tunnel) -> tuple[dict[str, Any], dict[str, Any]]:
    """The client's and the far end's, in the relay program's words; DutError where openssl does not make them."""
    return _KEYS[wished.kind](wished) if wished.kind in _KEYS else ({}, {})


def _token(_: Tunnel) -> tuple[dict[str, Any], dict[str, Any]]:
    keys = {"token": secrets.token_hex(8)}
    return keys, keys


def _certificates(_: Tunnel) -> tuple[dict[str, Any], dict[str, Any]]:
    """Each end knows the other's certificate by its fingerprint."""
    request = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    made, prints = [], []
    for role in ("client", "far"):
        text = _openssl(*request, "-keyout", "-", "-out", "-", "-subj", f"/CN=trexbench-{role}", "-days", "30").decode()
        at = text.index("-----BEGIN CERTIFICATE-----")
        made.append({"key": text[:at], "certificate": text[at:]})
        prints.append(hashlib.sha256(ssl.PEM_cert_to_DER_cert(text[at:])).hexdigest())
    told = [":".join(one[at : at + 2] for at in range(0, 64, 2)) for one in prints]
    return {**made[0], "peer": told[1]}, {**made[1], "peer": told[0]}


def _pairs(_: Tunnel) -> tuple[dict[str, Any], dict[str, Any]]:
    """Make X25519 key pairs as WireGuard writes them: the last 32 bytes of DER are the key."""
    private = [_openssl("genpkey", "-algorithm", "X25519", "-outform", "DER") for _ in range(2)]
    public = [_openssl("pkey", "-inform", "DER", "-pubout", "-outform", "DER", told=one) for one in private]
    own, other = ([b64encode(one[-32:]).decode() for one in ones] for ones in (private, public))
    return {"key": own[0], "peer": other[1]}, {"key": own[1], "peer": other[0]}


def _associations(wished: Tunnel) -> tuple[dict[str, Any], dict[str, Any]]:
    """A key and a salt of 4 bytes, and an SPI above those that are reserved, for each way."""
    size = (32 if "256" in wished.cipher else 16) + 4
    out, back = ({"key": secrets.token_hex(size), "spi": f"1{secrets.token_hex(3)}"} for _ in range(2))
    return {"out": out, "in": back}, {"out": back, "in": out}


_KEYS = {"relay": _token, "openvpn": _certificates, "wireguard": _pairs, "ipsec": _associations}


def _openssl(*words: str, told: bytes = b"") -> bytes:
    """Run openssl and return what it prints. Keys are on its stdin and stdout only."""
    try:
        done = subprocess.run(("openssl", *words), input=told, capture_output=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DutError(f"openssl makes no keys here ({error})", "install openssl on this machine") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise DutError(f"openssl makes no keys here ({said[:200]})", "see openssl version")
    return done.stdout
