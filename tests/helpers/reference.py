"""Make docs/reference from the code: options, exit codes, YAML keys, stored documents, Python functions.

``python tests/helpers/reference.py`` rewrites the pages; tests/unit/test_reference.py says when that is due.
"""

from __future__ import annotations

import ast
import enum
import inspect
import json
import re
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from textwrap import dedent, fill

import click
import msgspec

import trexbench
from trexbench.cli.main import cli
from trexbench.config.editors import FOLDER, KINDS
from trexbench.core import errors
from trexbench.core.dut.cycles import Cost, CpuShare
from trexbench.core.dut.flowspread import FlowSpread, PortSpread, QueueShare, WorkerShare
from trexbench.core.dut.losses import LossPlace, LossReport
from trexbench.core.dut.runtime import Budget, NodeCost, NodeRuntime, ThreadRuntime, WorkerEfficiency
from trexbench.core.dut.spreadcheck import Compared, SpreadCheck
from trexbench.core.dut.telemetry import (
    CpuTime,
    Detail,
    DropCount,
    DutReading,
    Missing,
    Observation,
    PortCount,
    QueueCount,
)
from trexbench.core.history.cell import Cell
from trexbench.core.history.rows import Figure, RunRow
from trexbench.core.load.plan import Offer
from trexbench.core.load.sample import (
    Conditions,
    CoreState,
    LatencyCounters,
    PortCounters,
    SenderCounters,
    StoredSample,
    StreamCounters,
)
from trexbench.core.result import RunResult
from trexbench.core.strategy.kinds import STRATEGIES
from trexbench.core.tcp.cpu import CoreShare, HostShare, ProcessShare, ThreadShare
from trexbench.core.tcp.intervals import Flow, Interval
from trexbench.core.tcp.limit import TcpVerdict
from trexbench.core.tcp.path import TrafficPath
from trexbench.core.tcp.plan import (
    HostReading,
    Leg,
    LegReadings,
    Ping,
    Processes,
    ProcessTime,
    StreamCount,
    TcpEnvironment,
    TcpPlan,
    ThreadTime,
)
from trexbench.core.tcp.result import FlowResult, LegSummary, LineCalibration, PingResult, TcpResult
from trexbench.core.tcp.statistics import PingStatistics, Statistics
from trexbench.core.tcp.wan import Wan
from trexbench.core.verdict.latency import Latency
from trexbench.core.verdict.parts import Analysis, DirectionResult, Goal, RunWarning, Stall, Trial
from trexbench.core.verdict.streams import StreamLoss

FOLDER_OF_PAGES = Path(__file__).resolve().parents[2] / "docs" / "reference"
MADE = "<!-- Made from the code by tests/helpers/reference.py: change the code. -->"


@dataclass(frozen=True)
class Part:
    """One kind of object in a stored document."""

    place: str
    """Its path in the document; ``[]`` stands for each item of a list, ``*`` for each name."""
    owners: tuple[type, ...]
    """The class that holds it, and others that say what a key means."""
    keys: tuple[str, ...] = ()
    """Keys in the document; empty: the fields of the first owner and ``more``."""
    more: tuple[str, ...] = ()


_ENVELOPE = (
    "schema",
    "version",
    "id",
    "status",
    "reason",
    "simulated",
    "started",
    "finished",
    "command",
    "dut",
    "host",
)
_READING = "telemetry.readings[]"
PACKETS = (
    Part(
        "",
        (RunResult, Analysis),
        (
            *_ENVELOPE,
            *("profiles", "over", "plan", "generator", "spread", "telemetry", "warnings", "analysis", "stalls"),
            *("total_pps", "at_least", "latency", "efficiency", "losses", "samples", "derived"),
        ),
    ),
    Part("warnings[]", (RunWarning,), more=("source",)),
    Part("over", (TrafficPath,)),
    Part("over.wan", (Wan,)),
    *(Part("plan", (strategy,), more=("kind",)) for strategy in STRATEGIES.values()),
    Part("plan.offers[]", (Offer,)),
    Part("samples[]", (StoredSample,)),
    Part("samples[].ports.*", (PortCounters,)),
    Part("samples[].latency.*", (LatencyCounters,)),
    Part("samples[].streams.*", (StreamCounters,)),
    Part("samples[].senders.*", (SenderCounters,)),
    Part("samples[].conditions", (Conditions,)),
    Part("samples[].conditions.cores.*", (CoreState,)),
    Part("telemetry", (), ("mode", "readings")),
    Part(_READING, (DutReading,)),
    Part(f"{_READING}.observation", (Observation,)),
    Part(f"{_READING}.observation.cpus[]", (CpuTime,)),
    Part(f"{_READING}.observation.ports[]", (PortCount,)),
    Part(f"{_READING}.observation.queues[]", (QueueCount,)),
    Part(f"{_READING}.observation.drops[]", (DropCount,)),
    Part(f"{_READING}.observation.threads[]", (ThreadRuntime,)),
    Part(f"{_READING}.observation.threads[].nodes[]", (NodeRuntime,)),
    Part(f"{_READING}.observation.missing[]", (Missing,)),
    Part(f"{_READING}.observation.details[]", (Detail,)),
    Part("analysis[]", (DirectionResult, RunResult), more=("confirmed_pps", "streams")),
    Part("analysis[].goals[]", (Goal,)),
    Part("analysis[].trials[]", (Trial,)),
    Part("analysis[].streams[]", (StreamLoss,)),
    Part("stalls[]", (Stall,)),
    Part("latency[]", (Latency,), more=("history_s",)),
    Part("efficiency[]", (Cost,), more=("effective_hz", "loss")),
    Part("efficiency[].workers[]", (WorkerEfficiency,)),
    Part("efficiency[].workers[].nodes[]", (NodeCost,)),
    Part("efficiency[].budgets[]", (Budget,)),
    Part("efficiency[].cpus[]", (CpuShare,)),
    Part("losses", (LossReport,)),
    Part("losses.places[]", (LossPlace,)),
    Part("spread", (), ("predicted", "measured")),
    Part("spread.predicted", (FlowSpread,)),
    Part("spread.predicted.ports[]", (PortSpread,)),
    Part("spread.predicted.queues[]", (QueueShare,)),
    Part("spread.predicted.workers[]", (WorkerShare,)),
    Part("spread.measured", (SpreadCheck,), more=("sentence",)),
    Part("spread.measured.compared[]", (Compared,)),
    Part("derived", (), ("analysis_version", "rows", "digest")),
    Part("derived.rows[]", (RunRow,)),
    Part("derived.rows[].cell", (Cell,)),
    Part("derived.rows[].figures.*", (Figure,)),
)
TCP = (
    Part(
        "",
        (TcpResult,),
        (
            *_ENVELOPE,
            *("endpoints", "plan", "setup", "pings", "calibration", "warnings", "summaries", "analysis"),
            *("ping_statistics", "bdp_product", "bdp", "ceilings", "idle", "legs", "derived"),
        ),
    ),
    Part("warnings[]", (RunWarning,), more=("source",)),
    Part("plan", (TcpPlan,)),
    Part("plan.legs[]", (Leg,)),
    Part("setup", (TcpEnvironment,)),
    Part("setup.wan", (Wan,)),
    Part("legs[]", (LegReadings,)),
    Part("legs[].client[]", (HostReading,)),
    Part("legs[].client[].streams[]", (StreamCount,)),
    Part("legs[].client[].threads[]", (ThreadTime,)),
    Part("legs[].processes.*", (Processes,)),
    Part("legs[].processes.*.took[]", (ProcessTime,)),
    Part("pings[]", (Ping,)),
    Part("calibration", (LineCalibration,)),
    Part(
        "analysis[]",
        (FlowResult, Flow, TcpVerdict),
        (
            *("leg", "sender", "received_bps", "statistics", "retransmits", "retransmitted", "limit", "at_least"),
            *("reasons", "link_bps", "ceiling_bps", "power_w", "bits_per_cpu_second", "cpu", "intervals"),
        ),
    ),
    Part("analysis[].intervals[]", (Interval,)),
    Part("analysis[].statistics", (Statistics,)),
    Part("analysis[].cpu[]", (HostShare,)),
    Part("analysis[].cpu[].cpus[]", (CoreShare,)),
    Part("analysis[].cpu[].threads[]", (ThreadShare,)),
    Part("analysis[].cpu[].processes[]", (ProcessShare,)),
    Part("ping_statistics[]", (PingResult,)),
    Part("ping_statistics[].statistics", (PingStatistics,)),
    Part("summaries[]", (LegSummary, Leg), more=("way", "version", "buffer_bytes", "congestion", "at_least")),
)
ALIKE = {
    "ceilings[]": "legs[]",
    "legs[].server[]": "legs[].client[]",
    "legs[].dut[]": _READING,
    "idle[]": _READING,
    "calibration.pings[]": "pings[]",
    "legs[].client[].cpus[]": f"{_READING}.observation.cpus[]",
    "legs[].leg": "plan.legs[]",
    "pings[].leg": "plan.legs[]",
    "analysis[].leg": "plan.legs[]",
    "ping_statistics[].leg": "plan.legs[]",
}
"""Places of TCP's documents that hold the same as another."""
NAMES = {"latency": "latencies", "efficiency": "costs", "cpu": "shares", "ping_statistics": "ping_results"}
"""Attributes whose values documents hold below another key."""
SAID = {
    "schema": "`trexbench/run` or `trexbench/tcp`.",
    "version": "Version of the schema; older ones are read, newer ones refused.",
    "source": "`run` (noted during it), `analysis` (from samples), `dut` (from its counters).",
    "derived": "Analysis version, index rows, and a digest of all bytes before it.",
    "mode": "When the DUT's counters were read: `off`, `hold`, `ramp`.",
    "readings": "Raw counters of the DUT, in order.",
    "predicted": "Shares of queues and workers by the NICs' hashes.",
    "measured": "Shares by the DUT's counters.",
    "analysis_version": "Figures of another version are derived again.",
    "rows": "Rows of the index: one, of TCP one for each way and IP version.",
    "digest": "BLAKE2b, 128 bits, of all bytes before it.",
    "stalls": "Losses that lasted though their rate was carried later.",
    "analysis": "Each direction of each leg: rate, who limited it, CPU of all hosts.",
    "bdp_product": "Bandwidth-delay product of the WAN; only with a WAN or several buffers.",
    "bdp": "Each buffer size beside the window that the WAN needs; only with a WAN or several buffers.",
    "total_pps": "Sum of the directions.",
    "at_least": "A lower bound: the DUT was not the limit.",
}
"""Meanings of keys that no class explains."""
NO_LIMIT = 1 << 31
"""An option's limit from here on is the machine's."""
ATTRIBUTES = ("RunResult", "TcpResult")
"""Classes whose attributes have a table in the page on Python."""
LEFT_OUT = {LegSummary: ("kind",), Cost: ("warnings",)}
"""Fields that a document holds elsewhere."""


def keys_of(part: Part) -> tuple[str, ...]:
    if part.keys:
        return part.keys
    owner: typing.Any = part.owners[0]
    held = owner.__struct_fields__ if issubclass(owner, msgspec.Struct) else [one.name for one in fields(owner)]
    kept = (name for name in held if name not in LEFT_OUT.get(owner, ()))
    return (*part.more, *kept)


def meanings_of(owner: type) -> dict[str, str]:
    """First paragraphs of what the source says at each field and property of a class and its bases."""
    meanings: dict[str, str] = {}
    for base in reversed(owner.__mro__):
        if not base.__module__.startswith("trexbench"):
            continue
        source = dedent(inspect.getsource(base))
        lines, tree = source.splitlines(), ast.parse(source).body[0]
        assert isinstance(tree, ast.ClassDef)
        for statement, after in zip(tree.body, [*tree.body[1:], None], strict=True):
            if isinstance(statement, ast.FunctionDef):
                name, text = statement.name, ast.get_docstring(statement)
            elif isinstance(statement, ast.AnnAssign):
                comment = lines[(statement.end_lineno or 0) - 1].partition("  # ")[2]
                name, text = ast.unparse(statement.target), comment.partition(" fmt:")[0]
                if isinstance(after, ast.Expr):
                    text = ast.literal_eval(after.value)
            else:
                continue
            if text:
                meanings[name] = plain(text)
    return meanings


def plain(text: str) -> str:
    """One line of Markdown for a cell of a table."""
    line = " ".join(text.split("\n\n")[0].split()).replace("``", "`").replace("|", "\\|")
    return re.sub(r"<(\w)", r"&lt;\1", line)


def no_none(text: str) -> str:
    """The text with JSON's word for None."""
    return re.sub(r"\bNone\b", "null", text)


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def type_words(hint: object) -> str:
    """A type in JSON's words."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return type_words(args[0])
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(map(type_words, args)))
    if origin is typing.Literal:
        return ", ".join(f"`{one}`" for one in args)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "object"
    if origin is not None:
        return "list"
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return ", ".join(f"`{one.value}`" for one in hint)
    simple = {int: "integer", float: "number", str: "text", bool: "true or false", type(None): "null"}
    if hint in simple:
        return simple[hint]
    return "text" if getattr(hint, "__name__", "") == "Direction" else "object"


def type_of(owners: Sequence[type], name: str) -> str:
    for owner in owners:
        hints = typing.get_type_hints(owner)
        if name in hints and typing.get_origin(hints[name]) is not typing.ClassVar:
            return type_words(hints[name])
        attribute = inspect.getattr_static(owner, name, None)
        getter = getattr(attribute, "fget", None) or getattr(attribute, "func", None)
        if getter is not None:
            return type_words(typing.get_type_hints(getter)["return"])
    return ""


def document(schema: str, parts: Sequence[Part]) -> Iterator[str]:
    """Yield the paragraphs about one kind of stored document."""
    yield f"## {schema}"
    for part in parts:
        if part.place:
            kind = getattr(part.owners[0], "kind", None) if part.place == "plan" else None
            yield f"### `{part.place}`{f': {kind}' if isinstance(kind, str) else ''}"
            about = (part.owners[0].__doc__ or "").split("\n\n") if part.owners else ()
            yield from map(no_none, map(plain, about))
        meanings = [meanings_of(owner) for owner in part.owners]
        rows = []
        for key in keys_of(part):
            name = NAMES.get(key, key)
            meaning = next((one[name] for one in meanings if name in one), SAID.get(key, ""))
            rows.append((f"`{key}`", type_of(part.owners, name), no_none(meaning)))
        yield table(("Key", "Type", "Meaning"), rows)


def documents() -> Iterator[str]:
    yield "# Stored documents"
    yield (
        "Names end in their unit: `_s` seconds, `_pps` frames a second, `_bps` bits a second, `_hz`, `_w`, `_j`; shares"
        " and losses are fractions of 1. `[]` stands for each item of a list, `*` for each name."
    )
    yield from document("trexbench/run", PACKETS)
    yield from document("trexbench/tcp", TCP)
    yield "### Alike"
    yield table(("Place", "As"), [(f"`{one}`", f"`{other}`") for one, other in ALIKE.items()])


def verbs(command: click.Command, name: str) -> Iterator[tuple[str, click.Command, click.Context]]:
    """Yield each command that runs something, with its whole name."""
    context = click.Context(command, info_name=name)
    if not isinstance(command, click.Group):
        yield name, command, context
        return
    for verb in command.list_commands(context):
        each = command.get_command(context, verb)
        if each is not None and not each.hidden:
            yield from verbs(each, f"{name} {verb}")


def options() -> Iterator[str]:
    yield "# Options"
    yield "All options of every verb, as `--help-all` prints them."
    for name, command, context in verbs(cli, "trexbench"):
        yield f"## {name}"
        yield plain(command.help or "")
        pieces = [one.make_metavar(context) for one in command.params if isinstance(one, click.Argument)]
        yield "    " + " ".join((name, *pieces, "[OPTIONS]"))
        shown = [one for one in command.params if isinstance(one, click.Option) and not one.hidden]
        yield table(("Option", "Meaning"), [(f"`{spelled(one)}`", option_help(one)) for one in shown])


def spelled(option: click.Option) -> str:
    """Names of the option and its value's, the same for every version of click."""
    names = ", ".join(sorted(option.opts, key=len)) + "".join(f" / {one}" for one in option.secondary_opts)
    if option.is_flag or option.count:
        return names
    if isinstance(option.type, click.Choice):
        return f"{names} {', '.join(map(str, option.type.choices))}"
    number = isinstance(option.type, (click.types.IntParamType, click.types.FloatParamType))
    return f"{names} {option.metavar or ('N' if number else option.type.name.upper())}"


def option_help(option: click.Option) -> str:
    limits = option.type if isinstance(option.type, (click.IntRange, click.FloatRange)) else None
    ends = (
        [str(end) if end is not None and end < NO_LIMIT else "" for end in (limits.min, limits.max)] if limits else []
    )
    return (
        plain(option.help or "")
        + (f" Default: {option.default}." if option.show_default and not option.is_flag else "")
        + (f" {'Required.' if option.required else ''}").rstrip()
        + (f" [{' to '.join(filter(None, ends)) if all(ends) else f'from {ends[0]}'}]" if any(ends) else "")
    )


def exit_codes() -> Iterator[str]:
    yield "# Exit codes"
    yield dedent(errors.__doc__ or "").replace("``", "`")


def yaml_keys() -> Iterator[str]:
    yield "# Keys of YAML files"
    yield "An editor completes and checks them by the schema that `trexbench dut new` names in a file's first line."
    for kind in KINDS:
        schema = json.loads((FOLDER / f"{kind}.json").read_text(encoding="utf-8"))
        whole = schema["$ref"].rpartition("/")[2]
        yield f"## {kind} files"
        for name, section in {whole: schema["definitions"][whole], **schema["definitions"]}.items():
            if name != whole:
                yield f"### {name}"
            yield plain(section["description"])
            needed = section["required"]
            rows = [
                (
                    f"`{key}`" + (" (required)" if key in needed else ""),
                    schema_words(one),
                    plain(one.get("description", "")),
                )
                for key, one in section["properties"].items()
            ]
            yield table(("Key", "Value", "Meaning"), rows)


def schema_words(value: Mapping[str, object]) -> str:
    """A JSON schema in a few words."""
    if "$ref" in value:
        return str(value["$ref"]).rpartition("/")[2]
    if "enum" in value:
        words = typing.cast(list[object], value["enum"])
        return "true or false" if True in words else ", ".join(f"`{one}`" for one in words)
    if "anyOf" in value:
        each = typing.cast(list[Mapping[str, object]], value["anyOf"])
        return " or ".join(dict.fromkeys(filter(None, map(schema_words, each))))
    kinds = value.get("type", [])
    if kinds == "array":
        of = schema_words(typing.cast(Mapping[str, object], value.get("items", {})))
        return f"list of {of}" if of else "list"
    if kinds == "integer" and "minimum" in value and "maximum" in value:
        return f"{value['minimum']} to {value['maximum']}"
    return " or ".join([kinds] if isinstance(kinds, str) else typing.cast(list[str], kinds))


def python() -> Iterator[str]:
    yield "# Python"
    yield "What `import trexbench` provides; [how to use it](../python.md)."
    causes = {
        name: f"{text[0].upper()}{text[1:]}." for name, text in re.findall(r"(\w+) {2,}(.+)", errors.__doc__ or "")
    }
    for name in trexbench.__all__:
        thing = getattr(trexbench, name)
        yield f"## {name}"
        if not isinstance(thing, type):
            signature = inspect.signature(thing)
            yield f"```python\n{call(name, [*signature.parameters.values()])} -> {signature.return_annotation}\n```"
        yield inspect.cleandoc(thing.__doc__ or causes[name]).replace("``", "`")
        if name in ATTRIBUTES:
            yield table(("Attribute", "Meaning"), [*attributes(thing)])


def attributes(thing: type) -> Iterator[tuple[str, str]]:
    """Yield each public attribute of a class with its meaning, the fields first."""
    meanings = meanings_of(thing)
    held = [one.name for one in fields(thing)]
    every = {name: value for base in thing.__mro__ for name, value in vars(base).items() if name in meanings}
    more = sorted(name for name, value in every.items() if isinstance(value, (property, cached_property)))
    for name in [*held, *more]:
        if not name.startswith("_"):
            yield f"`{name}`", meanings.get(name, "")


def call(name: str, parameters: Sequence[inspect.Parameter]) -> str:
    """A call with all parameters and defaults, the keywords on lines of their own."""
    named = [one for one in parameters if one.kind is one.KEYWORD_ONLY]
    first = [written(one) for one in parameters if one not in named]
    if not named:
        return f"{name}({', '.join(first)})"
    return "\n".join((f"{name}(", *(f"    {one}," for one in (*first, "*", *map(written, named))), ")"))


def written(parameter: inspect.Parameter) -> str:
    if parameter.default is parameter.empty:
        return f"{'**' if parameter.kind is parameter.VAR_KEYWORD else ''}{parameter.name}"
    default = parameter.default.value if isinstance(parameter.default, enum.Enum) else parameter.default
    return f"{parameter.name}={default!r}"


PAGES = {
    "options": options,
    "exit-codes": exit_codes,
    "yaml": yaml_keys,
    "documents": documents,
    "python": python,
}


def page(name: str) -> str:
    title, *rest = (
        fill(one, 116, break_on_hyphens=False) if re.match(r"\w", one) and "\n" not in one else one
        for one in PAGES[name]()
    )
    return "\n\n".join((title, MADE, *filter(None, rest))).rstrip() + "\n"


if __name__ == "__main__":
    for name in PAGES:
        (FOLDER_OF_PAGES / f"{name}.md").write_text(page(name), encoding="utf-8")
