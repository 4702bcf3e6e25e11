"""Loads profile files with the client's own loader: as streams for a server, as facts, as text, as a capture."""

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
"""Destination and source in a capture, in place of the port's own addresses."""
TIME_BYTES = 16  # bytes at the end of a timed frame that carry its time
LOAD_S = 20.0  # time for which a profile's code may run
ENDING_S = 0.5
_LOADER_ARGUMENTS = {"direction", "port_id", "tunables", "python_file"}
"""Arguments of the client's loader, which a tunable of that name would replace."""
T = TypeVar("T")

_PCAP_NANOSECONDS, _ETHERNET = 0xA1B23C4D, 1


def load_streams(client: Client, path: Path, tunables: Mapping[str, str], port: int) -> list[Any]:
    """Load the client's stream objects for a port; odd ports send the other way. ConfigError in one line.

    Tunables are passed in both ways that profiles know: as a command line, and by name.
    """
    _check_names(path, tunables)
    words = [word for name, value in tunables.items() for word in (f"--{name}", str(value))]
    named = {name: int(value) if str(value).isdecimal() else value for name, value in tunables.items()}
    output = io.StringIO()
    with client.namespace(), contextlib.redirect_stderr(output), contextlib.redirect_stdout(output):
        try:
            load = partial(client.api.STLProfile.load_py, str(path), direction=port % 2, port_id=port, tunables=words)
            loaded = _within_limits(path, partial(load, **named))
        except client.api.TRexError as err:
            text = f"profile {path.name}{_line_of(path, err)} does not load: {_last_line(str(err))}"
            raise ConfigError(text) from err
        finally:
            sys.modules.pop(path.name.partition(".")[0], None)
    if loaded is None:
        shown = ",".join(f"{name}={value}" for name, value in tunables.items())
        raise ConfigError(f"profile {path.name} refuses {shown or 'to load'}: {_last_line(output.getvalue())}")
    return list(loaded.get_streams())


def _line_of(path: Path, error: BaseException) -> str:
    """Line of the profile in which the original error arose, if it did there, as words for the message."""
    cause = error.__context__
    steps = traceback.extract_tb(cause.__traceback__) if cause is not None else ()
    lines = [step.lineno for step in steps if Path(step.filename).name == path.name]
    return f", line {lines[-1]}," if lines else ""


def _check_names(path: Path, tunables: Mapping[str, str]) -> None:
    if not path.is_file():
        raise ConfigError(f"no profile file {path}", "stl_profiles/bench.py is the one that comes with trexbench")
    if path.suffix != ".py":
        raise ConfigError(f"profile {path}: its name does not end in .py", "rename the file, or name another")
    if path.name.partition(".")[0] in sys.stdlib_module_names | CLIENT_NAMES:
        raise ConfigError(f"profile {path.name}: a Python module has that name", "rename the file")
    for name in _LOADER_ARGUMENTS & set(tunables):
        raise ConfigError(f"tunable {name}: trexbench sets it itself", "leave it out, or rename it")


def _within_limits(path: Path, load: Callable[[], T]) -> T:
    """Return ``load``'s result; ConfigError if the profile's code takes longer than LOAD_S or ends the program.

    It runs in a thread: signals go to the main one, where no ``except`` of the profile can swallow them.
    """
    results: list[T] = []
    errors: list[BaseException] = []
    ended = threading.Event()  # up to Python 3.12 a thread whose join was interrupted seems to have ended

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
        # a thread just beginning or ending would print an error if it were killed
        if not ended.wait(ENDING_S):  # SystemExit at its next line, so that no loop goes on during a later run
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(SystemExit))
    if results:
        return results[0]
    if not errors:
        raise ConfigError(f"profile {path.name} was not loaded within {LOAD_S:g} s", "it loops, or waits for something")
    if isinstance(errors[0], Exception):
        raise errors[0]
    raise ConfigError(f"profile {path.name} ends the program ({errors[0]!r})", "let it raise an error instead")


def load_profile(client: Client, path: Path, tunables: Mapping[str, str], port: int = 0) -> Profile:
    """Load the streams that a profile file sends on this port."""
    return as_profile(path, tunables, port, load_streams(client, path, tunables, port))


def as_profile(path: Path, tunables: Mapping[str, str], port: int, streams: Sequence[Any]) -> Profile:
    """Convert the client's stream objects; ConfigError for those that a run cannot use."""
    return Profile(path.name, tuple(_convert_stream(path, stream) for stream in streams), port, dict(tunables))


def _convert_stream(path: Path, stream: Any) -> Stream:
    fields = stream.to_json()
    mode, packet = fields["mode"], bytes(stream.get_pkt())
    if mode["type"] != "continuous" or not fields["self_start"]:
        raise ConfigError(f"profile {path.name}: a {mode['type']} stream", "a ramp takes continuous streams only")
    if not fields["enabled"]:
        raise ConfigError(f"profile {path.name}: a stream that is switched off", "leave it out")
    if fields["flow_stats"].get("rule_type") == "latency":
        raise ConfigError(f"profile {path.name}: a latency stream", "it ignores the rate; a ramp cannot use it")
    unchanged, program = fields["flags"] & 7 == 0, fields["vm"]
    pps, cache = _pps(path, mode["rate"], len(packet)), int(program.get("cache", 0))
    return Stream(packet, pps, tuple(program["instructions"]), unchanged, cache)


def _pps(path: Path, rate: Mapping[str, Any], length: int) -> float:
    frame, value = max(64, length + FCS_BYTES), float(rate["value"])
    per_frame = {"pps": 1.0, "bps_L2": frame * 8.0, "bps_L1": (frame + 20) * 8.0}
    if rate["type"] not in per_frame:
        raise ConfigError(f"profile {path.name}: a rate in {rate['type']}", "give the streams' rates in pps or bps")
    if value <= 0:
        text = f"profile {path.name}: a stream at a rate of {value:g}"
        raise ConfigError(text, "give it a rate above 0, or leave it out")
    return value / per_frame[str(rate["type"])]


def behind_vlans(client: Client, streams: Sequence[Any], vlans: Sequence[int]) -> list[Any]:
    """Copy the streams with these VLAN tags in their frames, outer first; ConfigError if that cannot be done."""
    tagged = []
    for stream in streams if vlans else ():
        values = stream.to_json()
        packet = {**values["packet"], "binary": _binary(with_tags(bytes(stream.get_pkt()), vlans))}
        program = {**values["vm"], "instructions": behind_tags(values["vm"]["instructions"], len(vlans))}
        tagged.append(client.api.STLStream.from_json({**values, "packet": packet, "vm": program}))
    return tagged or list(streams)


def tagged_streams(client: Client, streams: Sequence[Any], pps: float, first_pg_id: int) -> list[Any]:
    """Make a latency stream for each stream, with the same frames and flows; together they send ``pps``, by its shares.

    Their packet groups are numbered from first_pg_id on. TRex sends them at their own rate whatever the multiplier.
    Frames without room for the time, like IPv6's smallest, are extended.
    """
    shares = [_pps(Path("-"), stream.to_json()["mode"]["rate"], len(bytes(stream.get_pkt()))) for stream in streams]
    tagged = []
    for number, (stream, share) in enumerate(zip(streams, shares, strict=True)):
        values = {key: value for key, value in stream.to_json().items() if key not in ("name", "next", "stream_id")}
        group = client.api.STLFlowLatencyStats(pg_id=first_pg_id + number)
        rate = client.api.STLTXCont(pps=pps * share / sum(shares))
        packet = {**values["packet"], "binary": _binary(with_room(bytes(stream.get_pkt()), TIME_BYTES))}
        changed = {"mode": rate.to_json(), "flow_stats": group.to_json(), "packet": packet}
        tagged.append(client.api.STLStream.from_json({**values, **changed}))
    return tagged


def _binary(packet: bytes) -> str:
    return base64.b64encode(packet).decode()


def own_groups(streams: Sequence[Any]) -> list[int]:
    """Packet groups that the profile itself gives to its streams."""
    groups = (stream.to_json()["flow_stats"] for stream in streams)
    return [int(group["stream_id"]) for group in groups if group["enabled"]]


def counted_streams(client: Client, streams: Sequence[Any], first_pg_id: int) -> list[Any]:
    """Copy the streams, each counted in a packet group of its own, numbered from first_pg_id on."""
    groups = (client.api.STLFlowStats(pg_id=first_pg_id + number).to_json() for number in range(len(streams)))
    return [
        client.api.STLStream.from_json({**stream.to_json(), "flow_stats": group})
        for stream, group in zip(streams, groups, strict=True)
    ]


def describe(client: Client, profile: Profile) -> list[str]:
    """Describe the first packet of each stream in a line: its layers and addresses."""
    texts = []
    with client.namespace():
        for stream in profile.streams:
            packet = layer = client.api.Ether(_addressed(stream, next(stream.frames()), profile.port))
            names = []
            while layer:
                names.append(layer.name)
                layer = layer.payload
            ends = packet.getlayer("IP") or packet.getlayer("IPv6") or packet
            texts.append(f"{' / '.join(names)}, {ends.src} to {ends.dst}")
    return texts


def decode(client: Client, profile: Profile) -> list[str]:
    """Dissect the first packet of each stream with the client's scapy, and add a hex dump."""
    texts = []
    with client.namespace():
        from scapy.utils import hexdump

        for stream in profile.streams:
            packet = client.api.Ether(_addressed(stream, next(stream.frames()), profile.port))
            texts.append(f"{packet.show(dump=True).rstrip()}\n{hexdump(packet, dump=True).rstrip()}")
    return texts


def write_pcap(out: IO[bytes], profile: Profile, count: int, pps: float, seed: int = 1) -> None:
    """Write the first ``count`` frames of the profile at ``pps`` frames per second as a capture for Wireshark.

    Frames are as changed by the field engine, interleaved by the streams' rates, without FCS. PORT_MACS stand for the
    addresses that the port would fill in.
    """
    out.write(struct.pack("<IHHiIII", _PCAP_NANOSECONDS, 2, 4, 0, 0, 65535, _ETHERNET))
    for at_s, frame in islice(timed_frames(profile, pps, seed), count):
        seconds, nanoseconds = divmod(round(at_s * 1e9), 1_000_000_000)
        out.write(struct.pack("<IIII", seconds, nanoseconds, len(frame), len(frame)) + frame)


def timed_frames(profile: Profile, pps: float, seed: int = 1) -> Iterator[tuple[float, bytes]]:
    """Yield frames in the order of their times: every stream evenly spaced by its share of ``pps``."""
    gaps = [1 / (pps * profile.share(stream)) for stream in profile.streams]
    frames = [stream.frames(seed) for stream in profile.streams]
    sent = [0] * len(gaps)
    while True:
        which = min(range(len(gaps)), key=lambda i: sent[i] * gaps[i])
        at_s = sent[which] * gaps[which]
        sent[which] += 1
        yield at_s, _addressed(profile.streams[which], next(frames[which]), profile.port)


def _addressed(stream: Stream, frame: bytes, port: int) -> bytes:
    """Fill in PORT_MACS for the port's MAC addresses, and pad the frame as on the wire."""
    if stream.macs_from_port:
        frame = b"".join(bytes.fromhex(mac.replace(":", "")) for mac in PORT_MACS[port % 2]) + frame[12:]
    return frame.ljust(64 - FCS_BYTES, b"\0")


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no reason given"
