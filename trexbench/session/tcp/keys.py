"""Keys for one tunnel, kept only in the memory of this process and of the tunnel's ends."""

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
    """Make the client's and the far end's keys, named as for the relay program; DutError if openssl fails."""
    if wished.kind == "relay":
        token = {"token": secrets.token_hex(8)}
        return token, token
    if wished.kind == "ipsec":
        size = (32 if "256" in wished.cipher else 16) + 4  # a salt of 4 bytes follows the key
        out, back = ({"key": secrets.token_hex(size), "spi": f"1{secrets.token_hex(3)}"} for _ in range(2))
        return {"out": out, "in": back}, {"out": back, "in": out}  # SPIs above the reserved ones
    return {"openvpn": _certificates, "wireguard": _key_pairs}.get(wished.kind, lambda: ({}, {}))()


def _certificates() -> tuple[dict[str, Any], dict[str, Any]]:
    """Make self-signed certificates; each end knows the other's by its fingerprint."""
    request = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    made, prints = [], []
    for role in ("client", "far"):
        text = _openssl(*request, "-keyout", "-", "-out", "-", "-subj", f"/CN=trexbench-{role}", "-days", "30").decode()
        at = text.index("-----BEGIN CERTIFICATE-----")
        made.append({"key": text[:at], "certificate": text[at:]})
        prints.append(hashlib.sha256(ssl.PEM_cert_to_DER_cert(text[at:])).digest().hex(":"))
    return {**made[0], "peer": prints[1]}, {**made[1], "peer": prints[0]}


def _key_pairs() -> tuple[dict[str, Any], dict[str, Any]]:
    """Make X25519 key pairs as WireGuard writes them: the last 32 bytes of DER are the key."""
    private = [_openssl("genpkey", "-algorithm", "X25519", "-outform", "DER") for _ in range(2)]
    public = [_openssl("pkey", "-inform", "DER", "-pubout", "-outform", "DER", text=key) for key in private]
    own, other = ([b64encode(key[-32:]).decode() for key in keys] for keys in (private, public))
    return {"key": own[0], "peer": other[1]}, {"key": own[1], "peer": other[0]}


def _openssl(*words: str, text: bytes = b"") -> bytes:
    """Run openssl and return its output. Keys are on its stdin and stdout only."""
    try:
        done = subprocess.run(("openssl", *words), input=text, capture_output=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DutError(f"openssl makes no keys here ({error})", "install openssl on this machine") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise DutError(f"openssl makes no keys here ({said[:200]})", "see openssl version")
    return done.stdout
