"""Pictures of pages for the documentation, small enough to be kept beside it."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

from opened_page import Opened

COLOURS = 96  # of a picture; text and plain areas need no more


@dataclass(frozen=True)
class Photographer:
    """Writes pictures into a folder; without one it takes none."""

    folder: Path | None

    def take(self, view: Opened, name: str, *, height: int) -> None:
        """The first `height` pixels of the page, from its left edge to its right one."""
        if self.folder is None:
            return
        from PIL import Image

        width = view.page.viewport_size["width"]  # type: ignore[index]
        whole = view.page.evaluate("document.documentElement.scrollHeight")
        clip = {"x": 0, "y": 0, "width": width, "height": min(height, whole)}
        picture = Image.open(io.BytesIO(view.page.screenshot(full_page=True, clip=clip)))
        self.folder.mkdir(parents=True, exist_ok=True)
        few = picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
        few.save(self.folder / f"{name}.png", optimize=True)
