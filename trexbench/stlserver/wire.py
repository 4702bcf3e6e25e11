"""JSON-RPC 2.0 as TRex frames it: decodes requests and checks their parameters, encodes replies.

A frame is plain JSON, or a header of two big-endian u32 (magic, uncompressed length) and a zlib stream.
Error codes are those of TRex v3.08 (src/rpc-server), as are the texts that generator/trex/client.py acts on.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partialmethod
from typing import Any

Json = Any

MAGIC = 0xABE85CEA
HEADER = struct.Struct(">II")
MAX_MESSAGE_BYTES = 999_999

PARSE = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL = -32603
EXECUTE = -32000


class RpcError(Exception):
    """Error that the client gets instead of a result; ``specific`` is left out where it is None."""

    def __init__(self, code: int, message: str, specific: str | None = None) -> None:
        super().__init__(specific or message)
        self.code = code
        self.message = message
        self.specific = specific


def bad_params(text: str) -> RpcError:
    """Make the error for a parameter that is missing, of the wrong type or out of range."""
    return RpcError(INVALID_PARAMS, "Bad parameters for method", text)


def cannot_execute(text: str) -> RpcError:
    """Make the error for a well-formed request that cannot be fulfilled."""
    return RpcError(EXECUTE, "Failed To Execute Method", text)


@dataclass(frozen=True)
class RpcRequest:
    """One call of a frame, or what is wrong with it."""

    id: Json = None  # also None where an error hides it
    method: str = ""
    params: Json = None
    error: RpcError | None = None


def decode(frame: bytes) -> tuple[list[RpcRequest], bool]:
    """Calls of one frame in order, and whether it was compressed, as the answer is then to be. Never raises."""
    inflated = None if len(frame) > MAX_MESSAGE_BYTES else _inflate(frame)
    zipped, data = inflated is not None, frame if inflated is None else inflated
    if len(data) > MAX_MESSAGE_BYTES:
        claimed = HEADER.unpack_from(frame)[1] if zipped else len(frame)
        text = f"Request is too large ({claimed} bytes). Consider splitting to smaller chunks."
        return [RpcRequest(error=RpcError(INTERNAL, text))], zipped
    try:
        # what follows the first value is ignored, as TRex's reader does
        value, _ = _DECODER.raw_decode(data.decode("utf-8", "replace").lstrip(" \t\r\n"))
    except (ValueError, RecursionError):
        return [RpcRequest(error=RpcError(PARSE, "Bad JSON Format"))], zipped
    return [_parse_call(call) for call in (value if isinstance(value, list) else [value])], zipped


def encode(replies: Sequence[Json], zipped: bool) -> bytes:
    """Encode one reply bare, several as an array, none as null."""
    body: Json = replies[0] if len(replies) == 1 else (list(replies) or None)
    data = dumps(body)
    return deflate(data) if zipped else data


def reply(call_id: Json, result: Json | RpcError) -> dict[str, Json]:
    """Make the answer to a call."""
    answer: dict[str, Json] = {"jsonrpc": "2.0", "id": call_id}
    if not isinstance(result, RpcError):
        return {**answer, "result": result}
    error = {"code": result.code, "message": result.message}
    return {**answer, "error": error if result.specific is None else {**error, "specific_err": result.specific}}


def dumps(value: Json) -> bytes:
    """Write compact JSON with sorted keys and a newline, as TRex does; ValueError for NaN and infinities."""
    return (json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False) + "\n").encode()


def deflate(data: bytes) -> bytes:
    """Compress a frame: header and zlib stream."""
    return HEADER.pack(MAGIC, len(data)) + zlib.compress(data, 1)  # fast: it stays on this machine


def _inflate(frame: bytes) -> bytes | None:
    """Uncompressed bytes, cut one byte past the limit; None if this is not a compressed frame."""
    if len(frame) < HEADER.size:
        return None
    magic, length = HEADER.unpack_from(frame)
    if magic != MAGIC:
        return None
    inflater = zlib.decompressobj()
    try:
        data = inflater.decompress(frame[HEADER.size :], MAX_MESSAGE_BYTES + 1)
    except zlib.error:
        return None
    complete = inflater.eof or len(data) > MAX_MESSAGE_BYTES
    return data if complete and len(data) <= length else None


def _finite(text: str) -> float:
    value = float(text)
    if value - value != 0:  # NaN, an infinity, or out of range
        raise ValueError(f"{text} is not a finite number")
    return value


def _integer(text: str) -> int | float:
    """Integers beyond 64 bits are floats, as in TRex's JSON library."""
    value = int(text)
    return value if -(2**63) <= value < 2**64 else _finite(text)


_DECODER = json.JSONDecoder(parse_constant=_finite, parse_float=_finite, parse_int=_integer)


def _parse_call(call: Json) -> RpcRequest:
    call_id = call.get("id") if isinstance(call, dict) else None
    try:
        dumps(call_id)
    except RecursionError:  # nested so deeply that it can be read, but not be written into an answer
        call_id = None
    if call_id is None:
        return RpcRequest(error=RpcError(INVALID_REQUEST, "Missing 'id' field"))
    if call.get("jsonrpc") != "2.0":
        return RpcRequest(call_id, error=RpcError(INVALID_REQUEST, "Invalid JSONRPC Version"))
    method = call.get("method")
    if method in (None, "") or isinstance(method, (dict, list)):
        return RpcRequest(call_id, error=RpcError(INVALID_REQUEST, "Missing Method Name"))
    return RpcRequest(call_id, str(method), call.get("params"))


INT32_MAX = 2**31 - 1
REQUIRED: Any = object()

Fits = Callable[[Json], bool]  # test of a value's type and range


def _is(kind: type) -> Fits:
    return lambda value: isinstance(value, kind)


def _is_number(value: Json) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_whole(low: int, high: int) -> Fits:
    return lambda value: _is_number(value) and low <= value <= high and value == int(value)


class Params:
    """One JSON object or array among the parameters."""

    def __init__(self, value: Json) -> None:
        self.value = value

    def get(self, name: str | int) -> Json:
        """Raw value of a member; None if it is absent or this is not an object."""
        if isinstance(name, int):
            return self.value[name]
        return self.value.get(name) if isinstance(self.value, dict) else None

    def _typed(
        self,
        kind: str,
        fits: Fits,
        name: str | int,
        default: Any = REQUIRED,
        convert: Callable[[Json], Any] = lambda value: value,
    ) -> Any:
        value = self.get(name)
        if value is None and default is not REQUIRED:
            return default
        if value is None:
            raise bad_params(f"field '{name}' is missing")
        if not fits(value):
            raise bad_params(f"field '{name}' is {str(value)[:40]!r}, expecting {kind}")
        return convert(value)

    # each takes a member's name or index, and a default if the member is optional
    string = partialmethod(_typed, "text", _is(str))
    boolean = partialmethod(_typed, "true or false", _is(bool))
    integer = partialmethod(_typed, "a whole number", _is_whole(-INT32_MAX - 1, INT32_MAX), convert=int)
    double = partialmethod(_typed, "a number", _is_number, convert=float)
    udouble = partialmethod(_typed, "a number from 0 on", lambda value: _is_number(value) and value >= 0, convert=float)
    byte = partialmethod(_typed, "a whole number of 8 bits", _is_whole(0, 2**8 - 1), convert=int)
    uint16 = partialmethod(_typed, "a whole number of 16 bits", _is_whole(0, 2**16 - 1), convert=int)
    uint32 = partialmethod(_typed, "a whole number of 32 bits", _is_whole(0, 2**32 - 1), convert=int)
    uint64 = partialmethod(_typed, "a whole number of 64 bits", _is_whole(0, 2**64 - 1), convert=int)

    def object(self, name: str | int) -> Params:
        """Member that must be an object."""
        return Params(self._typed("an object", _is(dict), name))

    def array(self, name: str) -> Params:
        """Member that must be an array; ``value`` holds the elements as they came."""
        return Params(self._typed("a list", _is(list), name))

    def choice(self, name: str, choices: Sequence[Any]) -> Any:
        """Member that must equal one of ``choices``, in type too."""
        value = self.get(name)
        if not any(type(value) is type(choice) and value == choice for choice in choices):
            raise bad_params(f"field '{name}' can only be one of {list(choices)}")
        return value

    def profile(self, default: str = "_") -> str:
        """Name of the profile."""
        return str(self.string("profile_id", default))
