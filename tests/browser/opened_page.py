"""A page in a browser, and everything it should not do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page

SCRIPT_NAME = "</script><script>alert(1)</script>"
WIDTHS = {"wide": (1280, 1900, 1), "phone": (390, 1500, 2)}  # across, down, pixels a point
LIGHT = {"viewport": {"width": 1200, "height": 900}, "color_scheme": "light"}
DARK = LIGHT | {"color_scheme": "dark"}
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}

# Words that no reader can reach: outside the viewport and in no box that scrolls sideways, or cut by a
# box that hides what does not fit; and words of a drawing that leave it.
CUT = """() => {
  const wide = document.documentElement.clientWidth;
  const found = [];
  const scrolls = (box) => /auto|scroll/.test(getComputedStyle(box).overflowX);
  const hides = (box) => /hidden|clip/.test(getComputedStyle(box).overflowX);
  function boxOf(element, holds) {
    let box = element;
    while (box && box !== document.body && !holds(box)) box = box.parentElement;
    return box === document.body ? null : box;
  }
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const parent = node.parentElement;
    if (!node.data.trim() || !parent.checkVisibility({ opacityProperty: true })) continue;
    if (parent.closest("script, style, noscript, svg")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const hider = boxOf(parent, hides);
    const inside = hider && hider.getBoundingClientRect();
    for (const box of range.getClientRects()) {
      if (box.width < 1 || box.height < 1) continue;
      const beyond = box.left < -1 || box.right > wide + 1;
      const hidden = inside && (box.right > inside.right + 2 || box.left < inside.left - 2);
      if (hidden || (beyond && !boxOf(parent, scrolls))) found.push(node.data.trim().slice(0, 60));
    }
  }
  for (const svg of document.querySelectorAll("svg")) {
    if (!svg.checkVisibility()) continue;
    const whole = svg.getBoundingClientRect();
    for (const text of svg.querySelectorAll("text")) {
      if (!text.textContent.trim() || +getComputedStyle(text).opacity === 0) continue;
      const box = text.getBoundingClientRect();
      const across = box.left < whole.left - 2 || box.right > whole.right + 2;
      const down = box.top < whole.top - 2 || box.bottom > whole.bottom + 2;
      if (across || down) found.push(`in a drawing: ${text.textContent}`);
    }
  }
  return [...new Set(found)];
}"""

# Names of an axis that lie on each other.
OVERLAPS = """() => {
  const found = [];
  for (const group of document.querySelectorAll(".role-axis-label, .map thead")) {
    if (!group.checkVisibility()) continue;
    const boxes = [...group.querySelectorAll("text, th span")]
      .filter((text) => text.textContent && +getComputedStyle(text).opacity > 0)
      .map((text) => [text.textContent, text.getBoundingClientRect()]);
    for (const [a, one] of boxes) for (const [b, other] of boxes) {
      if (a >= b) continue;
      const across = Math.min(one.right, other.right) - Math.max(one.left, other.left);
      const down = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
      if (across > 2 && down > 3) found.push(`${a} and ${b}`);
    }
  }
  return found;
}"""

TIP = """() => {
  const tip = document.getElementById("tip");
  const box = tip.getBoundingClientRect();
  return [tip.hidden, tip.textContent, box.left, box.right];
}"""


@dataclass(frozen=True)
class Tip:
    """A tooltip as it stood: its words, and where it began and ended from left to right."""

    words: str
    left: float
    right: float


@dataclass
class Opened:
    """A page, and everything it should not do."""

    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def drawn(self, selector: str) -> Any:
        """A chart, once it is drawn. The page's policy forbids waiting by an expression."""
        self.page.locator(selector).scroll_into_view_if_needed()
        chart = self.page.locator(f"{selector}[data-drawn]")
        chart.wait_for(timeout=30_000)
        # Scrolling is told to the page a frame or two later, and closes its tooltip.
        self.page.evaluate(
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )
        return chart

    def hovered(self, selector: str) -> Tip:
        """What shows for a pointer that moves inside a chart."""

        def move() -> None:
            box = self.drawn(selector).bounding_box()
            for place in (0.55, 0.6):
                self.page.mouse.move(
                    box["x"] + place * box["width"], box["y"] + 0.4 * box["height"]
                )

        return self.tip_after(move)

    def tip_after(self, act: Callable[[], None]) -> Tip:
        """What shows after an act, read at one moment: a layout that still moves closes it."""
        self.all_drawn()
        for _ in range(20):
            act()
            self.page.wait_for_timeout(200)
            hidden, words, left, right = self.page.evaluate(TIP)
            if not hidden and right > left:
                return Tip(words, left, right)
        raise AssertionError("No tooltip showed in twenty attempts.")

    def all_drawn(self) -> list[str]:
        visible = "[...document.querySelectorAll('.chart')].filter(e => e.checkVisibility())"
        for _ in range(300):
            if self.page.evaluate(f"{visible}.every(e => e.dataset.drawn)"):
                return list(self.page.evaluate(f"{visible}.map(e => e.id)"))
            self.page.wait_for_timeout(100)
        raise AssertionError("Some charts were not drawn within 30 seconds.")

    def must_be_readable(self) -> None:
        """No words beyond the edge, cut off or on top of each other, and nothing asked from outside."""
        width = self.page.viewport_size["width"]  # type: ignore[index]
        self.all_drawn()
        assert self.page.evaluate("document.documentElement.scrollWidth") <= width
        assert self.page.evaluate(CUT) == []
        assert self.page.evaluate(OVERLAPS) == []
        assert self.complaints == []
        assert all(url.startswith(("file:", "data:")) for url in self.requests)

    def must_be_heard(self) -> None:
        """Every chart has its words, and headings go down one level at a time."""
        for chart in self.page.locator(".chart").all():
            assert chart.get_attribute("role") == "img"
            assert len(chart.get_attribute("aria-label") or "") > 40
        levels = self.page.evaluate(
            "[...document.querySelectorAll('h1, h2, h3')].map(heading => +heading.tagName[1])"
        )
        assert levels[0] == 1
        assert all(after - before <= 1 for before, after in pairwise(levels))


Open = Callable[[Path, Mapping[str, Any]], Opened]


def screen(width: int) -> dict[str, object]:
    """A light screen of that width."""
    return {"viewport": {"width": width, "height": 900}, "color_scheme": "light"}
