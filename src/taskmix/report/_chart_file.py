"""A single chart as a file: what a reproduction draws beside its table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from taskmix.errors import OptionError
from taskmix.extras import load, require
from taskmix.report._file import write_whole

SUFFIXES = (".svg", ".png", ".html")


def check_chart_path(path: Path) -> None:
    """Raises where no chart can be written to a file of that name, before any work is done."""
    if path.suffix.lower() not in SUFFIXES:
        raise OptionError(
            "A chart should be written to a file that ends in .svg, .png or .html. Found "
            f"{path.name!r}."
        )
    require("vl_convert", purpose="A chart")


def write_chart(specification: dict[str, Any], path: Path) -> Path:
    """Draws a Vega-Lite chart into `path`: .svg, .png, or .html, which works offline."""
    check_chart_path(path)
    vl_convert = load("vl_convert", purpose="A chart")
    content: bytes
    match path.suffix.lower():
        case ".svg":
            content = vl_convert.vegalite_to_svg(specification).encode()
        case ".png":
            content = vl_convert.vegalite_to_png(specification, scale=2)
        case _:
            content = vl_convert.vegalite_to_html(specification, bundle=True).encode()
    return write_whole(path, content, "a chart")
