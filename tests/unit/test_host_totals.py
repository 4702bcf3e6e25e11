"""A host's counters, part by part; and files that are replaced as a whole."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from trexbench.core.errors import DutError, DutLost
from trexbench.files import replace_file
from trexbench.host.read_freebsd import FreebsdHost
from trexbench.host.read_linux import LinuxHost
from trexbench.transport import Completed, NetnsTransport


class Gone:
    """The way to a host that is not there."""

    place = "the host"

    def run(self, argv: Sequence[str], timeout_s: float, input: str | None = None) -> Completed:
        raise DutLost("the host cannot be reached", "see whether it is up")

    def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize("host", [LinuxHost(Gone(), ("d0",)), FreebsdHost(Gone(), ("ix0",))], ids=["linux", "freebsd"])
def test_a_host_that_is_not_there_is_an_error_and_no_empty_reading(host: LinuxHost | FreebsdHost) -> None:
    with pytest.raises(DutLost, match="cannot be reached: see whether it is up"):
        host.read()


def test_a_namespace_that_is_not_there_is_an_error() -> None:
    with pytest.raises(DutError, match="namespace no-such-lab does not exist: bring it up") as caught:
        LinuxHost(NetnsTransport("no-such-lab"), ("d0",)).read()
    assert caught.value.exit_code == 6


def test_a_file_is_replaced_whole_or_left_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    replace_file(path, b"first")
    replace_file(path, b"second")
    assert path.read_bytes() == b"second" and list(tmp_path.iterdir()) == [path]
    with pytest.raises(OSError):
        replace_file(tmp_path / "absent" / "one.json", b"third")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError):
        replace_file(tmp_path / "folder", b"third")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["folder", "one.json"], "nothing is left beside it"


def test_a_pipe_and_a_link_stay_what_they_are(tmp_path: Path) -> None:
    pipe, link, file = tmp_path / "pipe", tmp_path / "link", tmp_path / "file"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        replace_file(pipe, b"into it")
        assert pipe.is_fifo() and os.read(reader, 100) == b"into it"
    finally:
        os.close(reader)
    link.symlink_to(file)
    replace_file(link, b"behind it")
    assert link.is_symlink() and file.read_bytes() == b"behind it"
