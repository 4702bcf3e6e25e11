"""Archives that the Linux kernel unpacks at its start (cpio, ``newc``); pure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

_DIRECTORY = 0o040755


def archive_of(files: Mapping[str, tuple[int, bytes]]) -> bytes:
    """Pack files by path: mode (with the bits of its kind), and content, or the target of a symbolic link.

    Directories are added. Everything is root's, and has no time, so that the same files make the same bytes.
    """
    parents = {str(parent) for name in files for parent in PurePosixPath(name).parents} - {"."}
    every = {**dict.fromkeys(parents, (_DIRECTORY, b"")), **files}
    out = bytearray()
    for number, name in enumerate(sorted(every), 1):
        _append(out, number, name, *every[name])
    _append(out, 0, "TRAILER!!!", 0, b"")
    return bytes(out)


def _append(out: bytearray, number: int, name: str, mode: int, content: bytes) -> None:
    word = name.encode() + b"\0"
    fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(word), 0)
    out += b"070701" + b"".join(b"%08x" % value for value in fields) + word
    out += b"\0" * (-len(out) % 4) + content
    out += b"\0" * (-len(out) % 4)
