"""Files that are replaced as a whole."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trexbench.files import replace_file


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
    with pytest.raises(OSError):
        replace_file(tmp_path, b"a directory")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["file", "link", "pipe"], "nothing is left beside it"
