"""A DUT that answers as a recording does (``trexbench dut record``)."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence

from trexbench.core.errors import DutError
from trexbench.dut.recording import RecordedAnswer, Recording, without_secrets
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
