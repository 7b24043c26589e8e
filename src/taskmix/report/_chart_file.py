"""A single chart as a file: what a reproduction draws beside its table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from taskmix.errors import OptionError
from taskmix.report._file import write_whole
from taskmix.report._vega import convert

SUFFIXES = (".svg", ".png", ".html")


def check_chart_path(path: Path) -> None:
    """Raises where no chart can be written to a file of that name, before any work is done."""
    if path.suffix.lower() not in SUFFIXES:
        raise OptionError(
            "A chart should be written to a file that ends in .svg, .png or .html. Found "
            f"{path.name!r}."
        )


def write_chart(specification: dict[str, Any], path: Path) -> Path:
    """Draws a Vega-Lite chart into `path`: .svg, .png, or .html, which works offline."""
    check_chart_path(path)
    options: dict[str, dict[str, Any]] = {".png": {"scale": 2}, ".html": {"bundle": True}}
    suffix = path.suffix.lower()
    content = convert(
        f"vegalite_to_{suffix[1:]}", specification, purpose="A chart", **options.get(suffix, {})
    )
    return write_whole(path, content, "a chart")
