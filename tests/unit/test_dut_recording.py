"""A recording of a DUT answers in its place, and holds no secret."""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Sequence

import pytest
from bench import PFSENSE
from box_pfsense import PfsenseBox
from boxes import BoxTransport

from trexbench.core.errors import DutError
from trexbench.core.typed import read_stored
from trexbench.dut import Wanted, open_dut
from trexbench.dut.recording import (
    SCHEMA,
    VERSION,
    RecordedAnswer,
    Recording,
    RecordingTransport,
    record,
    recording_to_dict,
    without_secrets,
)
from trexbench.transport import Completed, Running
from trexbench.transport.words import shown


class Replay:
    """A transport that answers as a recording does: to the same command in its order, at last the last one again."""

    def __init__(self, recording: Recording) -> None:
        self.place = "a recording"
        self._answers: dict[tuple[tuple[str, ...], str | None], deque[RecordedAnswer]] = defaultdict(deque)
        for one in recording.answers:
            self._answers[one.argv, one.input].append(one)

    def run(self, argv: Sequence[str], timeout_s: float, input: str | None = None) -> Completed:
        left = self._answers.get((tuple(argv), None if input is None else without_secrets(input)))
        if not left:
            raise DutError(f"{shown(argv)} was not run when {self.place} was made", "record it anew")
        return left.popleft() if len(left) > 1 else left[0]

    def start(self, argv: Sequence[str]) -> Running:
        raise DutError(f"{shown(argv)} is not held open in {self.place}", "what is recorded ends by itself")

    def close(self) -> None:
        """Nothing is open."""


def test_a_recording_answers_as_the_dut_did() -> None:
    box = BoxTransport(PfsenseBox())
    recorder = RecordingTransport(box)
    made = record(open_dut(Wanted(PFSENSE), recorder), recorder, PFSENSE)
    assert not made.failures and made.driver == "pfsense" and made.answers and "\nports:" in made.config
    written = json.loads(json.dumps(recording_to_dict(made)))
    played = read_stored(written, "recording of a DUT", SCHEMA, VERSION, Recording)
    assert played == made
    dut, live = open_dut(Wanted(PFSENSE), Replay(played)), open_dut(Wanted(PFSENSE), BoxTransport(PfsenseBox()))
    assert dut.identity() == live.identity() and list(dut.plan()) == list(live.plan())
    assert dut.verify().facts == live.verify().facts and dut.observe().ports == live.observe().ports
    with pytest.raises(DutError, match="was not run when a recording was made"):
        Replay(played).run(("sysctl", "kern.unheard"), 1)


def test_a_dut_that_is_not_there_is_recorded_as_far_as_it_goes() -> None:
    class Gone(BoxTransport):
        def run(self, argv: Sequence[str], timeout_s: float, input: str | None = None) -> Completed:
            raise DutError("the connection to dut was lost", "password=geheim")

    recorder = RecordingTransport(Gone(PfsenseBox()))
    made = record(open_dut(Wanted(PFSENSE), recorder), recorder, PFSENSE)
    assert set(made.failures) == {"identity", "plan", "verify", "observe"} and not made.answers
    assert "geheim" not in json.dumps(recording_to_dict(made))


@pytest.mark.parametrize(
    "text",
    [
        "<bcrypt-hash>geheim</bcrypt-hash>",
        "<radius_secret>geheim</radius_secret>",
        "password: geheim",
        "set service snmp community geheim",
        "secret=geheim",
        'smbios.system.serial="geheim"',
        "smbios.system.uuid=geheim",
        "-----BEGIN PRIVATE KEY-----\ngeheim\n-----END PRIVATE KEY-----",
        "  pre-shared-key geheim",
        "enable secret 9 geheim",
        "username admin password 7 geheim",
        'psk "ganz geheim"',
        "PrivateKey = geheim",
        "network.wg0.preshared_key='ganz geheim'",
        "rocommunity geheim",
    ],
)
def test_secrets_are_masked(text: str) -> None:
    masked = without_secrets(f"ix0: up\n{text}\nix1: down")
    assert "geheim" not in masked and "ix1: down" in masked


@pytest.mark.parametrize("text", ["dev.ix.0.queue0.rx_packets: 17", "net.inet.ip.forwarding: 1", "hw.ncpu=4"])
def test_other_answers_stay_as_they_are(text: str) -> None:
    assert without_secrets(text) == text
