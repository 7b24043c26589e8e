"""Pictures of pages for the documentation, small enough to be kept beside it."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

COLOURS = 200  # of a picture; with fewer, small dots lose theirs


@dataclass(frozen=True)
class Photographer:
    """Writes pictures into a folder; without one it takes none."""

    folder: Path | None

    def take(self, page: Page, name: str, *, height: int) -> None:
        """The first `height` pixels of the page, from its left edge to its right one."""
        if self.folder is None:
            return
        from PIL import Image

        width = page.viewport_size["width"]  # type: ignore[index]
        whole = page.evaluate("document.documentElement.scrollHeight")
        clip = {"x": 0, "y": 0, "width": width, "height": min(height, whole)}
        picture = Image.open(io.BytesIO(page.screenshot(full_page=True, clip=clip)))
        self.folder.mkdir(parents=True, exist_ok=True)
        # Not the commonest colours but the most different ones, or a few orange dots would turn brown.
        few = picture.convert("RGB").quantize(
            COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
        )
        few.save(self.folder / f"{name}.png", optimize=True)
