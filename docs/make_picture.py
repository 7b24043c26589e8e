"""Takes a picture of a report page, for the README: `docs/make_picture.py REPORT.html PNG`.

Needs chromium and playwright, as the browser tests do.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
UNDRAWN = (
    "[...document.querySelectorAll('.chart')].some(e => e.checkVisibility() && !e.dataset.drawn)"
)


def report_picture(
    page: Path, png: Path, *, width: int = 1200, height: int = 1480, scheme: str = "light"
) -> Path:
    """The first `height` pixels of a report that is `width` pixels wide, at twice the resolution."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        tab = browser.new_page(
            viewport={"width": width, "height": height},
            color_scheme="dark" if scheme == "dark" else "light",
            device_scale_factor=2,
        )
        tab.goto(page.resolve().as_uri())
        while tab.evaluate(UNDRAWN):
            tab.wait_for_timeout(100)
        tab.screenshot(path=png)
        browser.close()
    return png


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=Path)
    parser.add_argument("png", type=Path)
    parser.add_argument("--width", type=int, default=1200)
    parser.add_argument("--height", type=int, default=1480)
    parser.add_argument("--scheme", choices=["light", "dark"], default="light")
    arguments = parser.parse_args()
    report_picture(
        arguments.page,
        arguments.png,
        width=arguments.width,
        height=arguments.height,
        scheme=arguments.scheme,
    )


if __name__ == "__main__":
    main()
