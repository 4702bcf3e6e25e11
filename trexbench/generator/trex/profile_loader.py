"""Profile files, read by the client's own loader: as streams for a server, as facts, as text, as a capture."""

from __future__ import annotations

import base64
import contextlib
import ctypes
import io
import struct
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any, TypeVar

from ...core.errors import ConfigError
from ...core.load.headers import behind_tags, with_room, with_tags
from ...core.load.profile import Profile, Stream
from ...core.units import FCS_BYTES
from .client import CLIENT_NAMES, Client

PORT_MACS = (("00:00:00:01:00:00", "00:00:00:02:00:00"), ("00:00:00:02:00:00", "00:00:00:01:00:00"))
"""Destination and source that stand in a capture where the port's own addresses would be."""

TIME_BYTES = 16
"""Bytes at the end of a timed frame that carry its time."""
LOAD_S = 20.0
"""Time for which a profile's code may run, in real seconds."""
ENDING_S = 0.5

_GIVEN = {"direction", "port_id", "tunables", "python_file"}
"""Arguments of the client's loader, which tunables would replace."""
T = TypeVar("T")

_PCAP_NANOSECONDS, _ETHERNET = 0xA1B23C4D, 1


def load_streams(client: Client, path: Path, tunables: Mapping[str, str], port: int) -> list[Any]:
    """The client's stream objects of a profile file for a port; odd ports send the other way. ConfigError in one line.

    Tunables are given both ways that profiles know: as a command line, and by name.
    """
    _refuse_names(path, tunables)
    words = [word for name, value in tunables.items() for word in (f"--{name}", str(value))]
    named = {name: int(value) if str(value).isdecimal() else value for name, value in tunables.items()}
    said = io.StringIO()
    with client.namespace(), contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        try:
            load = partial(client.api.STLProfile.load_py, str(path), direction=port % 2, port_id=port, tunables=words)
            loaded = _within_limits(path, partial(load, **named))
        except client.api.TRexError as err:
            raise ConfigError(
                f"profile {path.name}{_line_of(path, err)} does not load: {_last_line(str(err))}"
            ) from err
        finally:
            sys.modules.pop(path.name.partition(".")[0], None)
    if loaded is None:
        shown = ",".join(f"{name}={value}" for name, value in tunables.items())
        raise ConfigError(f"profile {path.name} refuses {shown or 'to load'}: {_last_line(said.getvalue())}")
    return list(loaded.get_streams())


def _line_of(path: Path, error: BaseException) -> str:
    """The line of the profile in which the error arose that the client's loader made this one of, if it did there."""
    cause = error.__context__
    steps = traceback.extract_tb(cause.__traceback__) if cause is not None else ()
    lines = [step.lineno for step in steps if Path(step.filename).name == path.name]
    return f", line {lines[-1]}," if lines else ""


def _refuse_names(path: Path, tunables: Mapping[str, str]) -> None:
    if not path.is_file():
        raise ConfigError(f"no profile file {path}", "stl_profiles/bench.py is the one that comes with trexbench")
    if path.name.partition(".")[0] in sys.stdlib_module_names | CLIENT_NAMES:
        raise ConfigError(f"profile {path.name}: a Python module has that name", "rename the file")
    for name in _GIVEN & set(tunables):
        raise ConfigError(f"tunable {name}: trexbench gives it to profiles itself", "leave it out, or rename it")


def _within_limits(path: Path, load: Callable[[], T]) -> T:
    """Return ``load``'s result. ConfigError when the profile's code takes longer than LOAD_S or ends its interpreter.

    It runs in a thread: a signal goes to the main one, where no ``except`` of the profile's can swallow it.
    """
    results: list[T] = []
    errors: list[BaseException] = []
    ended = threading.Event()  # a thread whose join was interrupted passes for ended, up to Python 3.12

    def work() -> None:
        try:
            results.append(load())
        except BaseException as err:
            errors.append(err)
        ended.set()

    thread = threading.Thread(target=work, name="profile", daemon=True)
    try:
        thread.start()
        ended.wait(LOAD_S)
    finally:
        # One that begins or ends just now would complain on stderr if it were made to end.
        if not ended.wait(ENDING_S):  # raises there at its next line, so that no loop goes on beside a later run
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(SystemExit))
    if results:
        return results[0]
    if not errors:
        raise ConfigError(f"profile {path.name} was not loaded within {LOAD_S:g} s", "it loops, or waits for something")
    if isinstance(errors[0], Exception):
        raise errors[0]
    raise ConfigError(f"profile {path.name} ends the program ({errors[0]!r})", "let it raise an error instead")


def load_profile(client: Client, path: Path, tunables: Mapping[str, str], port: int = 0) -> Profile:
    """Return what this profile file puts on the wire of this port."""
    return as_profile(path, tunables, port, load_streams(client, path, tunables, port))


def as_profile(path: Path, tunables: Mapping[str, str], port: int, streams: Sequence[Any]) -> Profile:
    return Profile(path.name, tuple(_stream(path, one) for one in streams), port, dict(tunables))


def _stream(path: Path, stream: Any) -> Stream:
    fields = stream.to_json()
    mode, packet = fields["mode"], bytes(stream.get_pkt())
    if mode["type"] != "continuous" or not fields["self_start"]:
        raise ConfigError(f"profile {path.name}: a {mode['type']} stream", "a ramp takes continuous streams only")
    if not fields["enabled"]:
        raise ConfigError(f"profile {path.name}: a stream that is switched off", "leave it out")
    if fields["flow_stats"].get("rule_type") == "latency":
        raise ConfigError(f"profile {path.name}: a latency stream", "it ignores the rate; a ramp cannot use it")
    unchanged = fields["flags"] & 7 == 0
    return Stream(packet, _pps(path, mode["rate"], len(packet)), tuple(fields["vm"]["instructions"]), unchanged)


def _pps(path: Path, rate: Mapping[str, Any], length: int) -> float:
    frame, value = max(64, length + FCS_BYTES), float(rate["value"])
    per_frame = {"pps": 1.0, "bps_L2": frame * 8.0, "bps_L1": (frame + 20) * 8.0}
    if rate["type"] not in per_frame:
        raise ConfigError(f"profile {path.name}: a rate in {rate['type']}", "give the streams' rates in pps or bps")
    if value <= 0:
        raise ConfigError(
            f"profile {path.name}: a stream at a rate of {value:g}", "give it a rate above 0, or leave it out"
        )
    return value / per_frame[str(rate["type"])]


def behind_vlans(client: Client, streams: Sequence[Any], vlans: Sequence[int]) -> list[Any]:
    """Return the streams with these VLAN tags in their frames, outer first; ConfigError where that cannot be."""
    found = []
    for stream in streams if vlans else ():
        values = stream.to_json()
        packet = {**values["packet"], "binary": _binary(with_tags(bytes(stream.get_pkt()), vlans))}
        program = {**values["vm"], "instructions": behind_tags(values["vm"]["instructions"], len(vlans))}
        found.append(client.api.STLStream.from_json({**values, "packet": packet, "vm": program}))
    return found or list(streams)


def tagged_streams(client: Client, streams: Sequence[Any], pps: float, first_pg_id: int) -> list[Any]:
    """A latency stream beside each of these, of the same frames and flows; all together at ``pps`` by their shares.

    Their packet groups are numbered from first_pg_id on. TRex sends them at their own rate whatever the multiplier.
    Frames without room for the time, as IPv6's smallest, are longer by what is missing.
    """
    shares = [_pps(Path("-"), one.to_json()["mode"]["rate"], len(bytes(one.get_pkt()))) for one in streams]
    found = []
    for number, (stream, share) in enumerate(zip(streams, shares, strict=True)):
        values = {key: value for key, value in stream.to_json().items() if key not in ("name", "next", "stream_id")}
        group = client.api.STLFlowLatencyStats(pg_id=first_pg_id + number)
        rate = client.api.STLTXCont(pps=pps * share / sum(shares))
        packet = {**values["packet"], "binary": _binary(with_room(bytes(stream.get_pkt()), TIME_BYTES))}
        changed = {"mode": rate.to_json(), "flow_stats": group.to_json(), "packet": packet}
        found.append(client.api.STLStream.from_json({**values, **changed}))
    return found


def _binary(packet: bytes) -> str:
    return base64.b64encode(packet).decode()


def own_groups(streams: Sequence[Any]) -> list[int]:
    """The packet groups that the profile's streams have of their own."""
    found = [one.to_json()["flow_stats"] for one in streams]
    return [int(one["stream_id"]) for one in found if one["enabled"]]


def counted_streams(client: Client, streams: Sequence[Any], first_pg_id: int) -> list[Any]:
    """Return the streams, each counted in a packet group of its own, numbered from first_pg_id on."""
    found = []
    for number, stream in enumerate(streams, first_pg_id):
        group = client.api.STLFlowStats(pg_id=number)
        found.append(client.api.STLStream.from_json({**stream.to_json(), "flow_stats": group.to_json()}))
    return found


def describe(client: Client, profile: Profile) -> list[str]:
    """The first packet of each stream in a line: its layers and addresses."""
    texts = []
    with client.namespace():
        for stream in profile.streams:
            packet = layer = client.api.Ether(_addressed(stream, next(stream.frames()), profile.port))
            names = []
            while layer:
                names.append(layer.name)
                layer = layer.payload
            ends = next((found for name in ("IP", "IPv6") if (found := packet.getlayer(name))), packet)
            texts.append(f"{' / '.join(names)}, {ends.src} to {ends.dst}")
    return texts


def decode(client: Client, profile: Profile) -> list[str]:
    """The first packet of each stream, taken apart by the client's scapy, with a hex dump."""
    texts = []
    with client.namespace():
        from scapy.utils import hexdump

        for stream in profile.streams:
            packet = client.api.Ether(_addressed(stream, next(stream.frames()), profile.port))
            texts.append(f"{packet.show(dump=True).rstrip()}\n{hexdump(packet, dump=True).rstrip()}")
    return texts


def write_pcap(out: IO[bytes], profile: Profile, count: int, pps: float, seed: int = 1) -> None:
    """The first ``count`` frames of the profile at ``pps`` frames per second, as a capture for Wireshark.

    Frames are what the field engine makes of them, interleaved by the streams' rates. The FCS is not in it, as in
    every capture; MAC addresses that the port fills in are stand-ins.
    """
    out.write(struct.pack("<IHHiIII", _PCAP_NANOSECONDS, 2, 4, 0, 0, 65535, _ETHERNET))
    for at_s, frame in islice(timed_frames(profile, pps, seed), count):
        seconds, nanoseconds = divmod(round(at_s * 1e9), 1_000_000_000)
        out.write(struct.pack("<IIII", seconds, nanoseconds, len(frame), len(frame)) + frame)


def timed_frames(profile: Profile, pps: float, seed: int = 1) -> Iterator[tuple[float, bytes]]:
    """Frames in the order of their time: every stream evenly spaced by its share of ``pps``."""
    gaps = [1 / (pps * profile.share(stream)) for stream in profile.streams]
    frames = [stream.frames(seed) for stream in profile.streams]
    sent = [0] * len(gaps)
    while True:
        which = min(range(len(gaps)), key=lambda i: sent[i] * gaps[i])
        at_s = sent[which] * gaps[which]
        sent[which] += 1
        yield at_s, _addressed(profile.streams[which], next(frames[which]), profile.port)


def _addressed(stream: Stream, frame: bytes, port: int) -> bytes:
    """With stand-ins for the port's MAC addresses, and padded as on the wire."""
    if stream.macs_from_port:
        frame = b"".join(bytes.fromhex(mac.replace(":", "")) for mac in PORT_MACS[port % 2]) + frame[12:]
    return frame.ljust(64 - FCS_BYTES, b"\0")


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no reason given"
