"""A run of TCP in results/: ``results/<date>/<dut>/<HHMMSS>-tcp-<ways>-<versions>.json``, date and time in UTC.

There is no journal: legs are few, and the whole document is replaced whenever one is over. A kill at any moment leaves
what was measured until then.
"""

from __future__ import annotations

from math import isfinite

import msgspec

from ..core.damage import find_tcp_damage
from ..core.errors import StoreError
from ..core.history.rows import RunRow
from ..core.history.rows_tcp import rows_of_tcp
from ..core.tcp.bdp import bdp_part
from ..core.tcp.result import TcpResult, from_document, raw_part, readings_part, to_document
from ..core.typed import Status
from .document import dump, encode_line, seal


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
    data = dump(raw)[:-2].encode()
    for name, legs in readings.items():
        data += f',\n "{name}": [\n'.encode() + b",\n".join(map(encode_line, legs)) + b"\n ]"
    return data + b"\n}\n" if rows is None else seal(data, {"rows": rows})


def checked_rows(result: TcpResult) -> tuple[RunRow, ...]:
    """The run's rows, their paths empty; StoreError for what no run can have produced."""
    damage = find_tcp_damage(result)
    if damage is None:
        rows = rows_of_tcp(result, "")
        figures = [(name, value) for row in rows for name, value in vars(row).items()]
        odd = [name for name, value in figures if isinstance(value, float) and not isfinite(value)]
        if not odd:
            return rows
        damage = f"{odd[0]} is not finite"
    raise StoreError(damage, "the file is damaged")
