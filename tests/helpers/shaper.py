"""A queue of bytes behind a lab's router: where it is full, large frames find no room sooner than small ones."""

from __future__ import annotations

import subprocess
from typing import Any

RAMP = ("--mode", "imix", "--warmup", "1kpps:2s", "--ramp-to", "16kpps", "--ramp-duration", "12s", "--hold", "2s")
"""A ramp of TRex's rates on a busy machine, through the shaper's rate in its first half."""


def shape(namespace: str, waiting: str = "2kb") -> None:
    """Let 20 Mbit/s leave port 1 at most. waiting: so much is kept meanwhile; the rate's frames of 10 ms are 25 kB."""
    limits = ("rate", "20mbit", "burst", "8kb", "limit", waiting)
    subprocess.run(["tc", "-n", namespace, "qdisc", "replace", "dev", "d1", "root", "tbf", *limits], check=True)


def assert_large_frames_are_lost_first(run: Any, said: str) -> None:
    """Every size sent by its share, and lost by its length; all of the loss is some stream's."""
    (verdict,) = run["analysis"]
    small, middle, large = verdict["streams"]
    assert [one["frame_bytes"] for one in verdict["streams"]] == [64, 590, 1514], verdict
    for one, share in ((small, 28), (middle, 16), (large, 4)):
        assert one["sent"] / sum(each["sent"] for each in verdict["streams"]) - share / 48 < 0.005, verdict
    assert large["loss"] > middle["loss"] > small["loss"] > 0, verdict
    assert max(middle["knee_loss"], large["knee_loss"]) > small["knee_loss"], verdict
    # Which size loses in the first window depends on the order of the frames that a pause of the machine has put into
    # one burst: that the sentence is the document's is all that holds.
    begins = [one["lossy_from_pps"] for one in verdict["streams"]]
    names = [f"{one['frame_bytes']} B" for one in verdict["streams"] if one["lossy_from_pps"] == min(begins)]
    words = " ".join(said.split()).partition("by stream 0->1: ")[2]
    expected = "all lose from" if len(names) == 3 else " and ".join(names) + " lost first"
    assert words.startswith(expected), said
    assert "lost in the first bad windows: 64 B" in words, said
    last, first = run["samples"][-1], run["samples"][0]
    frames = last["ports"]["0"]["opackets"] - first["ports"]["0"]["opackets"]
    assert sum(last["streams"]["0"]["sent"]) == frames, "every frame is some stream's"


SEARCH = ("--mode", "64b", "--loss", "0.5%", "--width", "3%", "--ramp-to", "80kpps", "--confirm", "1s")
SHAPED_PPS = 20e6 / (60 * 8)
"""Rate of frames of 64 B, 4 of which no queue sees."""


def assert_the_shapers_rate_is_found(run: Any, said: str) -> None:
    """It is laid to the DUT, within a few percent, in less than a minute; and what the DUT paid for it is known."""
    (verdict,) = run["analysis"]
    assert run["status"] == "complete" and verdict["limit"] == "dut", said
    assert abs(verdict["maximum_pps"] / (SHAPED_PPS / 0.995) - 1) < 0.05, said
    (goal,) = verdict["goals"]
    assert goal["loss"] == 0.005 and goal["low_pps"] <= goal["maximum_pps"] <= goal["high_pps"], goal
    assert verdict["trials"] and run["samples"][-1]["t_s"] < 60, said
