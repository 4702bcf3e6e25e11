"""Make docs/reference from the code: options, exit codes, YAML keys, stored documents, Python functions.

``python tests/helpers/reference.py`` rewrites the pages; tests/unit/test_reference.py says when that is due.
"""

from __future__ import annotations

import enum
import inspect
import json
import re
import types
import typing
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, cached_property
from pathlib import Path
from textwrap import fill

import click
import msgspec

import trexbench
from trexbench.cli.main import cli
from trexbench.cli.verbs import Heading
from trexbench.config.editors import FOLDER, notes_of
from trexbench.core import errors
from trexbench.core.dut.cycles import Cost
from trexbench.core.dut.flowspread import FlowSpread
from trexbench.core.dut.losses import LossReport
from trexbench.core.dut.spreadcheck import SpreadCheck
from trexbench.core.dut.telemetry import DutReading
from trexbench.core.history.rows import RunRow
from trexbench.core.load.sample import Phase, StoredSample
from trexbench.core.result import RunResult
from trexbench.core.strategy.kinds import STRATEGIES
from trexbench.core.tcp.bdp import Bdp, BdpRow
from trexbench.core.tcp.cpu import HostShare, ProcessShare
from trexbench.core.tcp.intervals import Flow, Interval
from trexbench.core.tcp.limit import TcpVerdict
from trexbench.core.tcp.path import TrafficPath
from trexbench.core.tcp.plan import Leg, LegReadings, Ping, ProcessTime, TcpEnvironment, TcpMode, TcpPlan
from trexbench.core.tcp.result import FlowResult, LegSummary, LineCalibration, PingResult, TcpResult
from trexbench.core.verdict.latency import Latency
from trexbench.core.verdict.parts import Analysis, DirectionResult, RunWarning, Stall
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
    """Keys in the document; empty: those of MORE and the fields of the first owner."""

    @property
    def heading(self) -> str:
        """Its place; plans differ by strategy, and both kinds of document have an analysis."""
        words = f": {getattr(self.owners[0], 'kind', 'tcp')}" if self.place == "plan" else ""
        return f"`{self.place}`{words}{' of TCP' if FlowResult in self.owners else ''}"

    @property
    def about(self) -> list[str]:
        """The paragraphs about the class that holds it."""
        return (self.owners[0].__doc__ or "").split("\n\n") if self.owners else [""]


MORE: Mapping[type, tuple[str, ...]] = {
    **dict.fromkeys(STRATEGIES.values(), ("kind",)),
    RunWarning: ("source",),
    DirectionResult: ("confirmed_pps", "streams"),
    Latency: ("history_s",),
    Cost: ("effective_hz", "loss"),
    SpreadCheck: ("sentence",),
    LegSummary: ("way", "version", "buffer_bytes", "congestion", "at_least"),
    BdpRow: ("way", "version", "set_bytes", "at_least", "ratio", "words"),
}
"""Keys beside the fields of a class."""
LEFT_OUT = {LegSummary: ("kind",), Cost: ("warnings",), Interval: ("streams",), BdpRow: ("kind",)}
"""Fields that a document holds elsewhere, or not."""
BESIDE = {ProcessShare: (ProcessTime,), TcpMode: (Leg, TcpPlan)}
"""Other classes that say what a key of the first means."""
ALIKE: dict[str, str] = {}
"""Places of documents that hold the same as another."""
_FIRST: dict[object, str] = {}


def keys_of(part: Part) -> tuple[str, ...]:
    if part.keys:
        return part.keys
    owner: typing.Any = part.owners[0]
    own = owner.__struct_fields__ if issubclass(owner, msgspec.Struct) else [one.name for one in fields(owner)]
    return (*MORE.get(owner, ()), *(name for name in own if name not in LEFT_OUT.get(owner, ())))


def walked(*parts: Part) -> Iterator[Part]:
    """Yield these parts and those inside them; one whose class was somewhere before is noted in ALIKE."""
    for part in parts:
        owner = part.owners[0] if part.owners else part
        if owner in _FIRST:
            ALIKE[part.place] = _FIRST[owner]
            continue
        _FIRST[owner] = part.place
        yield part
        hints = {name: hint for one in reversed(part.owners) for name, hint in typing.get_type_hints(one).items()}
        for key in keys_of(part) if part.place else ():
            for kind, end in classes_in(hints.get(key)):
                yield from walked(Part(f"{part.place}.{key}{end}", (kind, *BESIDE.get(kind, ()))))


def classes_in(hint: typing.Any, end: str = "") -> Iterator[tuple[type, str]]:
    """Yield the classes of objects that a value of this type may hold, with the end of their place."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        for one in args:
            yield from classes_in(one, end)
    elif isinstance(origin, type) and issubclass(origin, Mapping):
        yield from classes_in(args[1], f"{end}.*")
    elif origin is not None:
        yield from classes_in(args[0], f"{end}[]")
    elif is_dataclass(hint) or (isinstance(hint, type) and issubclass(hint, msgspec.Struct)):
        yield typing.cast(type, hint), end


_ENVELOPE = (
    *("schema", "version", "id", "status", "reason", "simulated", "started", "finished", "command", "dut", "host"),
    *("warnings", "analysis", "derived", "plan"),
)
_OF_PACKETS = (
    *("profiles", "over", "generator", "samples", "telemetry", "stalls", "total_pps", "at_least", "latency"),
    *("efficiency", "losses", "spread"),
)
_OF_TCP = (
    *("endpoints", "setup", "calibration", "ceilings", "pings", "idle", "legs", "summaries", "ping_statistics"),
    *("bdp_product", "bdp"),
)
_FLOW = (
    *("leg", "sender", "received_bps", "statistics", "retransmits", "retransmitted", "limit", "at_least", "reasons"),
    *("link_bps", "ceiling_bps", "power_w", "bits_per_cpu_second", "cpu", "intervals"),
)
PACKETS = tuple(
    walked(
        Part("", (RunResult, Analysis), (*_ENVELOPE, *_OF_PACKETS)),
        Part("warnings[]", (RunWarning,)),
        Part("over", (TrafficPath,)),
        *(Part("plan", (strategy,)) for strategy in STRATEGIES.values()),
        Part("samples[]", (StoredSample,)),
        Part("telemetry", (), ("mode", "readings")),
        Part("telemetry.readings[]", (DutReading,)),
        Part("analysis[]", (DirectionResult, RunResult)),
        Part("analysis[].streams[]", (StreamLoss,)),
        Part("stalls[]", (Stall,)),
        Part("latency[]", (Latency,)),
        Part("efficiency[]", (Cost,)),
        Part("losses", (LossReport,)),
        Part("spread", (), ("predicted", "measured")),
        Part("spread.predicted", (FlowSpread,)),
        Part("spread.measured", (SpreadCheck,)),
        Part("derived", (), ("analysis_version", "rows", "digest")),
        Part("derived.rows[]", (RunRow,)),
    )
)
TCP = tuple(
    walked(
        Part("", (TcpResult,), (*_ENVELOPE, *_OF_TCP)),
        Part("plan", (TcpPlan,)),
        Part("setup", (TcpEnvironment,)),
        Part("legs[]", (LegReadings,)),
        Part("ceilings[]", (LegReadings,)),
        Part("idle[]", (DutReading,)),
        Part("pings[]", (Ping,)),
        Part("calibration", (LineCalibration,)),
        Part("analysis[]", (FlowResult, Flow, TcpVerdict), _FLOW),
        Part("analysis[].cpu[]", (HostShare,)),
        Part("ping_statistics[]", (PingResult,)),
        Part("summaries[]", (LegSummary, Leg)),
        Part("bdp_product", (Bdp,)),
        Part("bdp[]", (BdpRow, Leg)),
    )
)
NAMES = {"latency": "latencies", "efficiency": "costs", "ping_statistics": "ping_results"}
"""Attributes whose values documents hold below another key."""
SAID = {
    "schema": ("text", "`trexbench/run` or `trexbench/tcp`."),
    "version": ("integer", "Version of the schema; older ones are read, newer ones refused."),
    "telemetry": ("object", "Readings of the DUT's counters."),
    "telemetry.mode": ("`off`, `hold`, `ramp`", "When: never; before, after and in holds; in the ramp, too."),
    "telemetry.readings": ("list", "Readings in order."),
    "spread": ("object", "Spread of the flows over the DUT's queues and workers."),
    "spread.predicted": ("object or null", "Prediction by the NICs' hashes; null: none."),
    "spread.measured": ("object or null", "Shares by the DUT's counters; null: not compared."),
    "warnings": ("list", "Reasons to doubt a figure."),
    "warnings[].source": ("`run`, `analysis`, `dut`", "Noted in the run; from its samples; from the DUT's counters."),
    "plan.kind": ("text", "Name of the strategy."),
    "analysis": ("list", "Each direction (of TCP, of each leg): its rate, and what limited it."),
    "analysis[].streams": ("list", "Losses of its streams; absent: not counted."),
    "analysis[].cpu": ("list", "CPU time by host, the DUT included."),
    "bdp_product": ("object or null", "Bandwidth-delay product of the path; only with a WAN or several buffers."),
    "bdp": ("list", "Each buffer size beside the window that the line needs; only with a WAN or several buffers."),
    "bdp[].set_bytes": ("integer or null", "Size that both hosts' buffers were let grow to; null: as found."),
    "derived": ("object", "Rows of the index, and a seal; absent while the run goes on."),
    "derived.analysis_version": ("integer", "Figures of another version are derived again."),
    "derived.rows": ("list", "Rows of the index: one, of TCP one for each way and IP version."),
    "derived.digest": ("text", "BLAKE2b, 128 bits, of all bytes before it."),
}
"""Types and meanings of keys that no class explains."""
NO_LIMIT = 1 << 31
"""An option's limit from here on is the machine's."""
COMMON = 4
"""An option that so many verbs have, in the same words, is described once for all."""
ATTRIBUTES = ("RunResult", "TcpResult")
"""Classes whose attributes have a table in the page on Python."""
FILES = {
    "dut": ("DUT configs", "Files of [dut_configs](../configs.md), with [twins](../twins.md)."),
    "fleet": ("Fleets", "The file [fleet.yaml](../fleet.md)."),
    "suite": ("Suites", "Files of [suites](../nightly.md), of packets or [TCP](../tcp.md#tcp-in-suites)."),
}
"""Titles of kinds of YAML files, and links to what explains their use."""


def meanings_of(owner: type) -> dict[str, str]:
    """First paragraphs of what the source says at each field and property of a class and its bases."""
    meanings: dict[str, str | None] = {}
    for base in reversed(owner.__mro__):
        if base.__module__.startswith("trexbench"):
            meanings |= {name: value.__doc__ for name, value in vars(base).items() if isinstance(value, COMPUTED)}
            meanings |= notes_of(base)
    return {name: plain(text) for name, text in meanings.items() if text}


COMPUTED = (property, cached_property)


def plain(text: str) -> str:
    """One line of Markdown for a cell of a table: a sentence."""
    line = " ".join(text.split("\n\n")[0].split()).replace("``", "`").replace("|", "\\|")
    if re.match(r"[a-z]+([ ,;:.]|$)", line):
        line = line[0].upper() + line[1:]
    return re.sub(r"<(\w)", r"&lt;\1", line) + ("." if re.search(r"[\w)`%\]]$", line) else "")


def no_none(text: str) -> str:
    """The text with JSON's word for None."""
    return re.sub(r"\bNone\b", "null", text)


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def link(text: str, heading: str) -> str:
    """A link to a heading of the same page."""
    anchor = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).lower())
    return f"[{text}](#{anchor})"


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
    if hint is Phase:
        return link("phase", "Phases")
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
    known = {part.place: part for part in reversed((*parts, *PACKETS))}
    for part in parts:
        if part.place:
            yield f"### {part.heading}"
            yield from map(no_none, map(plain, part.about))
        meanings, rows = [meanings_of(owner) for owner in part.owners], []
        for key in keys_of(part):
            place, name = f"{part.place}.{key}".lstrip("."), NAMES.get(key if not part.place else "", key)
            words, meaning = SAID.get(place) or (type_of(part.owners, name), "")
            meaning = meaning or next((one[name] for one in meanings if name in one), "")
            ways = (ALIKE.get(place + end, place + end) for end in ("", "[]", ".*"))
            if (target := next((known[way] for way in ways if way in known), None)) is not None:
                words, meaning = link(words, target.heading), meaning or plain(target.about[0])
            rows.append((f"`{key}`", words, no_none(meaning)))
        yield table(("Key", "Type", "Meaning"), rows)
        if StoredSample in part.owners:
            yield "### Phases"
            yield table(("Phase", "Meaning"), [(f"`{Phase[one].value}`", plain(text)) for one, text in PHASES.items()])


PHASES = notes_of(Phase)


def documents() -> Iterator[str]:
    yield "# Stored documents"
    yield (
        "What a [run's file](../results.md#the-documents) holds. Names end in their unit: `_s` seconds, `_pps` frames a"
        " second, `_bps` bits a second, `_hz`, `_w`, `_j`; shares and losses are fractions of 1. Counters are totals"
        " since they were last cleared. `[]` stands for each item of a list, `*` for each name."
    )
    yield from document("trexbench/run", PACKETS)
    yield from document("trexbench/tcp", TCP)


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
    yield "All options of every verb. `trexbench VERB --help` shows the usual ones, `--help-all` all of them."
    yield "Rates, times, shares and speeds are written as in [YAML files](yaml.md)."
    every = [*verbs(cli, "trexbench")]
    rows = {name: [*option_rows(command)] for name, command, _ in every}
    counted = Counter(row for own in rows.values() for row in own)
    often = {longest(row): row for row, count in reversed(counted.most_common()) if count >= COMMON}
    common = [row for row in counted if row in often.values()]
    yield "## Common options"
    yield table(("Option", "Meaning"), common)
    for name, command, context in every:
        yield f"## {name}"
        yield plain(command.help or "")
        pieces = [one.make_metavar(context) for one in command.params if isinstance(one, click.Argument)]
        yield "    " + " ".join((name, *pieces, "[OPTIONS]"))
        if own := [row for row in rows[name] if row not in common]:
            yield table(("Option", "Meaning"), own)
        if shared := [longest(row) for row in rows[name] if row in common]:
            yield f"And {link('common options', 'Common options')}: {', '.join(f'`{one}`' for one in shared)}."


def option_rows(command: click.Command) -> Iterator[tuple[str, str]]:
    """Yield each option with its meaning, in the order of the help."""
    order = [*Heading]
    shown = [one for one in command.params if isinstance(one, click.Option) and not one.hidden]
    for one in sorted(shown, key=lambda option: order.index(getattr(option, "heading", Heading.OTHER))):
        yield f"`{spelled(one)}`", option_help(one)


def longest(row: tuple[str, str]) -> str:
    """The longest name of an option, of which only one meaning can be common."""
    return str(re.findall(r"--[a-z-]+", row[0])[0])


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
    text = errors.__doc__ or ""
    exits = re.findall(r"(\w+) {2,}(.+) \(exit (\d+).*\)", text)
    causes = [(code, cause, f"`{name}`") for name, cause, code in exits]
    others = [(codes, cause, "") for codes, cause in re.findall(r"([\d/]+): ([^.]+)\.", text)]
    rows = sorted((*causes, *others), key=lambda row: int(row[0].partition("/")[0]))
    rows = [(code, plain(cause), error) for code, cause, error in rows]
    yield table(("Code", "Meaning", "[Error](python.md#errors) in Python"), rows)
    yield (
        "What was measured before a run ended early is always saved."
        " [Nights](../nightly.md#run-a-night-unattended) end with the code of what failed first."
    )


def yaml_keys() -> Iterator[str]:
    yield "# Keys of YAML files"
    yield (
        "An editor completes and checks them by the schema that `trexbench dut new` names in a file's first line."
        " Values are written as on the command line:"
    )
    yield table(("Value", "As in"), VALUES)
    headings: dict[str, str] = {}
    for kind, (title, links) in FILES.items():
        schema = json.loads((FOLDER / f"{kind}.json").read_text(encoding="utf-8"))
        known, places = schema["definitions"], dict[str, str]()
        for name, place in placed(schema["definitions"], schema["$ref"].rpartition("/")[2], ""):
            if name not in headings:
                places.setdefault(name, place)
        shared = {place for place, count in Counter(places.values()).items() if count > 1}
        headings |= {name: f"`{place}`{f': {name}' * (place in shared)}" for name, place in places.items()}
        yield f"## {title}"
        yield links
        for name, place in places.items():
            if place:
                yield f"### {headings[name]}"
                yield plain(known[name]["description"])
            rows = []
            for key, one in known[name]["properties"].items():
                text = one.get("description") or next((known[of]["description"] for of, _ in held(one)), "")
                default = f" Default: `{json_text(one['default'])}`." if "default" in one else ""
                needed = " (required)" if key in known[name]["required"] else ""
                rows.append((f"`{key}`{needed}", schema_words(one, headings), f"{plain(text)}{default}".strip()))
            yield table(("Key", "Value", "Meaning"), rows)


VALUES = (
    ("rate", "`64kpps`, `1.2mpps`; `3gbps` (L2); `5gbpsl1`, `40%` (L1, of line rate)"),
    ("time", "`500ms`, `10s`, `2m30s`, `1h`; a number alone: seconds"),
    ("share", "`0.1%`, `0.001`"),
    ("speed", "`1gbit`, `100mbit`: L1, per second"),
    ("clock rate", "`2.2ghz`, `800mhz`"),
    ("command", "`[ip, link, show]`: its words; over transport `cli` a line, as typed"),
    ("pattern", "a regular expression of Python; quoted: `'^eth1: *(\\d+)'`"),
    ("mapping", "`{key: value}`, or a line for each key"),
)
"""Words for values in YAML files, with examples."""
MORE_KEYS = "additionalProperties"


def json_text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else value if isinstance(value, str) else json.dumps(value)


def placed(known: Mapping[str, typing.Any], name: str, place: str) -> Iterator[tuple[str, str]]:
    """Yield a section of a schema and those inside, each with its place."""
    yield name, place
    for key, value in known[name]["properties"].items():
        for of, end in held(value):
            yield from placed(known, of, f"{place}.{key}{end}".lstrip("."))


def held(value: Mapping[str, typing.Any], end: str = "") -> Iterator[tuple[str, str]]:
    """Yield the sections that a value may be or hold, with the end of their place."""
    if "$ref" in value:
        yield value["$ref"].rpartition("/")[2], end
    inside = [(one, "") for one in value.get("anyOf", ())] + [(value.get("items"), "[]"), (value.get(MORE_KEYS), ".*")]
    for one, more in inside:
        if isinstance(one, Mapping):
            yield from held(one, end + more)


def schema_words(value: Mapping[str, typing.Any], headings: Mapping[str, str]) -> str:
    """A JSON schema in a few words."""
    if "$ref" in value:
        return link("mapping", headings[value["$ref"].rpartition("/")[2]])
    if "title" in value:
        return re.sub(r"^(an?|the) ", "", value["title"])
    if "enum" in value:
        return "true or false" if True in value["enum"] else ", ".join(f"`{one}`" for one in value["enum"])
    if "anyOf" in value:
        return " or ".join(dict.fromkeys(schema_words(one, headings) for one in value["anyOf"]))
    kind = value.get("type", "")
    if kind == "array":
        return f"list of {schema_words(value.get('items', {}), headings)}"
    if kind == "integer" and "minimum" in value and "maximum" in value:
        return f"{value['minimum']} to {value['maximum']}"
    if kind == "object":
        return "mapping" + (f" of {schema_words(value[MORE_KEYS], headings)}" if MORE_KEYS in value else "")
    return "text" if kind in ("string", ["string", "number"]) else kind


def python() -> Iterator[str]:
    yield "# Python"
    yield "What `import trexbench` provides; [how to use it](../python.md)."
    things = {name: getattr(trexbench, name) for name in trexbench.__all__}
    classes = {name: thing for name, thing in things.items() if isinstance(thing, type)}
    yield "## Functions"
    for name, thing in things.items():
        if name not in classes:
            signature = inspect.signature(thing)
            yield f"### {name}"
            yield f"```python\n{call(name, [*signature.parameters.values()])} -> {signature.return_annotation}\n```"
            yield inspect.cleandoc(thing.__doc__ or "").replace("``", "`")
    yield "## Results"
    for name, thing in classes.items():
        if not issubclass(thing, Exception):
            yield f"### {name}"
            yield inspect.cleandoc(thing.__doc__ or "").replace("``", "`")
            if name in ATTRIBUTES:
                yield table(("Attribute", "Meaning"), [*attributes(thing)])
    yield "## Errors"
    yield "Each has the [exit code](exit-codes.md) as `exit_code`, and as `result` what was measured before it."
    yield (errors.__doc__ or "").split("\n\n")[1]


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


PAGES = {"options": options, "exit-codes": exit_codes, "yaml": yaml_keys, "documents": documents, "python": python}


@cache
def page(name: str) -> str:
    title, *rest = (
        fill(one, 116, break_on_hyphens=False) if re.match(r"\w", one) and "\n" not in one else one
        for one in PAGES[name]()
    )
    return "\n\n".join((title, MADE, *filter(None, rest))).rstrip() + "\n"


if __name__ == "__main__":
    for name in PAGES:
        (FOLDER_OF_PAGES / f"{name}.md").write_text(page(name), encoding="utf-8")
