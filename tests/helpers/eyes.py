"""Measure in Chromium what an eye, a keyboard, a finger, a screen reader and a printer would meet on a page.

Every measure returns sentences, one for each thing that is wrong; none: nothing is.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from axe import JUDGED, load_axe
from browser import WITHIN_S, Page
from effort import scaled
from printed import dark_sheets, overprinted, pale, read_words, stranded

SCRIPT = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")

MOST_OPTIONS = scaled(6, 2)
"""Maximum number of options tried per list."""
HEADINGS = "'h2, h3, tr.block, tr:has(> .block)'"
UNFOLD = "document.querySelectorAll('details:not(.pick)').forEach(function (one) { one.open = true; })"
LONGEST = 12
"""Maximum number of sentences of one kind that are reported; more would say nothing new."""


@dataclass
class Eyes:
    """Looks at what is open in this browser. A page that nothing was done to stays open for the next look."""

    page: Page
    _open: tuple[Path, int, int] | None = None

    def open(
        self,
        path: Path,
        width: int = 1440,
        scheme: str = "light",
        text: int = 16,
        unfolded: bool = True,
        forced: bool = False,
    ) -> None:
        """A page, seen on a screen so wide; all that can be unfolded is, but menus.

        forced: in the reader's own colours.
        """
        self.page.prefer(scheme, forced=forced)
        if not unfolded or self._open != (path, width, text):
            self.page.said.clear()
            self.page.asked.clear()
            self.page.size(width, 900, phone=width < 500)
            self.page.text_size(text)
            self.page.open(path.as_uri())
            self.page.evaluate(SCRIPT)
            if unfolded:
                self.page.evaluate(UNFOLD)
        self._open = (path, width, text) if unfolded else None
        self.settle()

    def settle(self) -> None:
        """Wait until two frames in a row look alike."""
        before, deadline = "", time.monotonic() + WITHIN_S
        while (now := self.page.evaluate("eyes.frame()")) != before:
            assert time.monotonic() < deadline, f"not at rest within {WITHIN_S:g} s"
            before = now

    def noise(self, path: Path) -> list[str]:
        """Report what the console said, and what was requested besides the page."""
        asked = [one for one in self.page.asked if one != path.as_uri() and not one.startswith("data:")]
        return [*(f"the console said: {one}" for one in self.page.said), *(f"it asked for {one}" for one in asked)]

    def told(self, *measures: str) -> list[str]:
        found = [one for measure in measures for one in self.page.evaluate(f"eyes.{measure}()")]
        return _shortened(found)

    def layout(self) -> list[str]:
        return self.told("overlaps", "cuts")

    def contrast(self) -> list[str]:
        return self.told("paleText", "paleMarks")

    def choices(self) -> list[str]:
        """Each choice that the controls offer, one at a time: axes keep their numbers, texts their places."""
        found: dict[str, str] = {}
        self._open = None
        for words, choose, back in self._choices()[: 30 : scaled(1, 3)]:
            self.page.evaluate(choose)
            self.page.evaluate("eyes.frame()")
            for measure in ("axes()", *self._plots_overlaps()):
                for one in self.page.evaluate(f"eyes.{measure}"):
                    found.setdefault(one, words)
            self.page.evaluate(back)
        self.settle()
        return _shortened([f"with {words}: {one}" for one, words in found.items()])

    def _plots_overlaps(self) -> list[str]:
        return [f"overlaps(eyes.plots()[{at}])" for at in range(self.page.evaluate("eyes.plots().length"))]

    def _choices(self) -> list[tuple[str, str, str]]:
        """Words, what makes the choice, and what takes it back."""
        found: list[tuple[str, str, str]] = []
        for at, of in enumerate(self.page.evaluate("eyes.choices()")):
            one = f"document.querySelectorAll('main select, main input')[{at}]"
            if of["kind"] == "checkbox":
                found.append((f"{of['name']} {'off' if of['now'] else 'on'}", f"{one}.click()", f"{one}.click()"))
            elif of["kind"] == "radio" and not of["now"]:
                found.append((of["name"], f"{one}.click()", "0"))
            for value in of["values"][:MOST_OPTIONS]:
                choose = "(function (one, value) {{ one.value = value;"
                choose += " one.dispatchEvent(new Event('change', {{ bubbles: true }})); }})({}, {!r})"
                told = f"{of['name']} {value or 'all'}"
                found.append((told, choose.format(one, value), choose.format(one, of["now"])))
        return found

    def keyboard(self) -> list[str]:
        """Tab reaches every control and leaves the page; the focus is seen; Enter and Space do their work."""
        self._open = None
        self.page.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")
        names = self.page.evaluate("eyes.controls().map(eyes.name)")
        reached, wrong, left = set[int](), list[str](), False
        for _ in range(2 * len(names) + 10):
            self.page.press("Tab")
            here = self.page.evaluate("eyes.focused()")
            if here is None or (here["number"] in reached and here["number"] == min(reached)):
                left = True
                break
            reached.add(here["number"])
            wrong += here["wrong"]
        wrong += [f"Tab does not reach {name}" for at, name in enumerate(names) if at not in reached]
        wrong += [] if left else ["Tab does not get out of the page"]
        return _shortened(list(dict.fromkeys([*wrong, *self._folds()])))

    def _folds(self) -> Iterator[str]:
        for at in range(min(3, self.page.evaluate("document.querySelectorAll('summary').length"))):
            fold = f"document.querySelectorAll('summary')[{at}]"
            for key in ("Enter", " "):
                before = self.page.evaluate(f"{fold}.focus(), {fold}.parentElement.open")
                self.page.press(key)
                if self.page.evaluate(f"{fold}.parentElement.open") == before:
                    yield f"{key!r} does not open or close {self.page.evaluate(f'eyes.name({fold})')}"

    def touch(self, path: Path) -> list[str]:
        """A swipe over a plot scrolls a phone's page."""
        self.page.touched(True)
        try:
            self.open(path, 375, unfolded=False)
            return [one for at in range(self.page.evaluate("eyes.plots().length")) for one in self._swiped(at)]
        finally:
            self.page.touched(False)

    def _swiped(self, at: int) -> Iterator[str]:
        plot = f"eyes.plots()[{at}]"
        self.page.evaluate(f"{plot}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
        self.settle()
        up = 1 if self.page.evaluate("scrollY + innerHeight + 250 < document.scrollingElement.scrollHeight") else -1
        before = self.page.evaluate("scrollY")
        middle = self.page.evaluate(
            f"(function (box) {{ return box.top + box.height / 2; }})({plot}.getBoundingClientRect())"
        )
        lifted = "addEventListener('pointerup', function () { window.lifted = true; }, { capture: true, once: true })"
        self.page.evaluate(f"window.lifted = false; {lifted}")
        self.page.swipe(180, middle, 200 * up)
        self.page.wait(f"lifted || Math.abs(scrollY - {before}) >= 100")
        if self.page.evaluate("lifted"):  # a finger whose move becomes a scroll is never told to be lifted
            yield f"a swipe over #{self.page.evaluate(plot + '.id')} does not scroll the page"

    def axe(self) -> list[str]:
        """Report what breaks axe-core's rules: names, roles, headings, contrast of text in HTML, sizes of targets."""
        if not self.page.evaluate("Boolean(window.axe)"):
            self.page.evaluate(f"{load_axe()}; 0")
        found: list[str] = self.page.evaluate(JUDGED)
        return _shortened(found)

    def reader(self) -> list[str]:
        """The accessibility tree: tables with names, plots with names and descriptions, which axe-core does not ask."""
        nodes = self.page.tree()
        by_id = {node["nodeId"]: node for node in nodes}
        wrong = [
            "a table has neither caption nor label"
            for node in nodes
            if _of(node, "role") == "table" and not _of(node, "name")
            if not _of(by_id.get(node.get("parentId", ""), {}), "name")
        ]
        return _shortened([*wrong, *self._drawings()])

    def _drawings(self) -> Iterator[str]:
        root = self.page.call("DOM.getDocument")["root"]["nodeId"]
        for number in self.page.call("DOM.querySelectorAll", nodeId=root, selector=".plot")["nodeIds"]:
            node = self.page.call("Accessibility.getPartialAXTree", nodeId=number, fetchRelatives=False)["nodes"][0]
            if node.get("ignored") or not _of(node, "name"):
                yield "a plot has no name"
            elif not _of(node, "description"):
                yield f"the plot {_of(node, 'name')!r} has no description"

    def larger_text(self, path: Path) -> list[str]:
        """A reader who chose letters twice as large gets them, and nothing is cut or covered."""
        sizes = "[document.body, ...eyes.plots().map(function (one) { return one.querySelector('svg text'); })].map("
        sizes += "function (one) { return one ? parseFloat(getComputedStyle(one).fontSize) : 0; })"
        self.open(path)
        before, names = (
            self.page.evaluate(sizes),
            ["the page", *self.page.evaluate("eyes.plots().map(p => '#' + p.id)")],
        )
        self.open(path, text=32)
        after = self.page.evaluate(sizes)
        small = [
            f"text of {name} stays at {now:g} px"
            for name, was, now in zip(names, before, after, strict=True)
            if now < 1.4 * was
        ]
        return _shortened([*small, *self.layout()])

    def paper(self, path: Path, pdf: Path) -> list[str]:
        """Printed: light ground, dark words that lie apart, every plot and every warning; no heading ends a sheet."""
        self.open(path, scheme="dark", unfolded=False)
        titles = self.page.evaluate("eyes.titles()")
        doubts = self.page.evaluate("Array.from(document.querySelectorAll('.doubt')).map(one => one.textContent)")
        headings = self.page.evaluate("Array.from(document.querySelectorAll(" + HEADINGS + "), one => one.textContent)")
        words = read_words(self.page.pdf(pdf))
        text = _letters("".join(word.text for word in words))
        wrong = [
            f"the axis title {one!r} of {plot} is not printed" for plot, one in titles if _letters(one) not in text
        ]
        wrong += [
            f"the warning {one.strip()[:60]!r} is not printed" for one in doubts if _letters(one)[:40] not in text
        ]
        return _shortened([*wrong, *dark_sheets(pdf), *overprinted(words), *pale(words), *stranded(words, headings)])


def _of(node: dict[str, Any], what: str) -> str:
    return str(node.get(what, {}).get("value") or "")


def _letters(text: str) -> str:
    return re.sub(r"[^\w%/]", "", text)


def _shortened(found: Sequence[str]) -> list[str]:
    return [*found[:LONGEST], *([f"and {len(found) - LONGEST} more"] if len(found) > LONGEST else [])]
