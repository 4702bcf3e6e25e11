"""The documentation as a site: every link and anchor leads somewhere, and its search knows every page."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tools import ROOT


def test_the_site_is_built_and_can_be_searched(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / "zensical.toml", tmp_path)
    build = [sys.executable, "-m", "zensical", "build", "--strict"]
    done = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    search = json.loads((tmp_path / "site" / "search.json").read_text(encoding="utf-8"))
    pages = {item["location"].partition("#")[0].strip("/") for item in search["items"]}
    written = {str(page.relative_to(ROOT / "docs").with_suffix("")) for page in (ROOT / "docs").rglob("*.md")}
    assert pages == {"" if page == "index" else page for page in written}
    assert any("--ramp-duration" in item["text"] for item in search["items"])
    shown = (tmp_path / "docs" / "index.md").read_text(encoding="utf-8")
    assert {*re.findall(r"\]\((.+?)\.md\)", shown)} == written - {"index"}, "the first page lists all"
