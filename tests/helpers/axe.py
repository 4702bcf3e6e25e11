"""Accessibility as axe-core judges it, Deque's rules for WCAG 2.2 at level AA and its best practices.

Its script is a file of the package axe-playwright-python, of which nothing else is used.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest

PACKAGE = "axe-playwright-python"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
ASKED = {"runOnly": TAGS, "resultTypes": ["violations"], "preload": False}
JUDGED = f"""axe.run(document, {json.dumps(ASKED)}).then(function (all) {{
  return all.violations.flatMap(function (rule) {{
    var kind = rule.tags.indexOf("best-practice") >= 0 ? " (best practice)" : "";
    return rule.nodes.map(function (node) {{
      var why = node.any.concat(node.all, node.none).map(function (check) {{ return check.message; }}).join("; ");
      return rule.id + kind + " at " + node.target.join(" ") + ": " + why;
    }});
  }});
}})"""
"""Sentences, one for each element that breaks a rule."""


@cache
def load_axe() -> str:
    """axe-core's script; the test is skipped where it is not installed."""
    try:
        place = metadata.distribution(PACKAGE).locate_file("axe_playwright_python/axe.min.js")
    except metadata.PackageNotFoundError:
        pytest.skip("axe-core is not installed: pip install -e '.[dev]'")
    return Path(str(place)).read_text(encoding="utf-8")
