"""A run of TCP in results/: ``results/<date>/<dut>/<HHMMSS>-tcp-<ways>-<versions>.json``, date and time in UTC.

There is no journal: legs are few, and the whole document is replaced whenever one is over. A kill at any moment leaves
what was measured until then.
"""

from __future__ import annotations

import msgspec

from ..core.errors import StoreError
from ..core.tcp.bdp import bdp_part
from ..core.tcp.result import TcpResult, from_document, raw_part, readings_part, to_document
from ..core.typed import Status
from .document import checked_rows, dump, encode_line, seal, written_here


def encode_tcp(result: TcpResult) -> bytes:
    """The file of a run as it stands: its figures, then a line for each leg; sealed once it has ended.

    A run that no reader would accept, or that cannot be analysed, is written without a seal: nothing measured is lost.
    """
    raw, readings, rows = raw_part(result), readings_part(result), None
    try:
        # Derived from what readers will find, which may be less than what is in memory.
        found = from_document(msgspec.json.decode(dump(raw | readings)))
        checked = checked_rows(found)
        raw = to_document(found, with_readings=False) | bdp_part(found)
        rows = None if found.status is Status.RUNNING else checked
    except StoreError:  # every reader refuses it and says why
        pass
    except Exception as error:  # a defect of ours in what is derived must not cost what was measured
        text = f"not analysed: {type(error).__name__}: {error}"
        raw["warnings"].append({"source": "run", "code": "defect", "text": text})
    if result.status is Status.RUNNING:
        raw |= written_here()
    data = dump(raw)[:-2].encode()
    for name, legs in readings.items():
        data += f',\n "{name}": [\n'.encode() + b",\n".join(map(encode_line, legs)) + b"\n ]"
    return data + b"\n}\n" if rows is None else seal(data, {"rows": rows})
