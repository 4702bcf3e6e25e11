"""A recording of a DUT has its answers, and no secret."""

from __future__ import annotations

import json
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
from trexbench.transport import Completed


def test_a_recording_has_the_answers_of_the_dut() -> None:
    box = BoxTransport(PfsenseBox())
    recorder = RecordingTransport(box)
    made = record(open_dut(Wanted(PFSENSE), recorder), recorder, PFSENSE)
    assert not made.failures and made.driver == "pfsense" and made.answers and "\nports:" in made.config
    written = json.loads(json.dumps(recording_to_dict(made)))
    played = read_stored(written, "recording of a DUT", SCHEMA, VERSION, Recording)
    assert played == made and [" ".join(one.argv) for one in played.answers] == box.ran
    for one in played.answers:
        done = BoxTransport(PfsenseBox()).run(one.argv, 1)
        assert one == RecordedAnswer(one.argv, int(done.returncode), without_secrets(done.stdout), done.stderr)


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
        "set service snmp community geheim",
        'smbios.system.serial="geheim"',
        "-----BEGIN PRIVATE KEY-----\ngeheim\n-----END PRIVATE KEY-----",
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
