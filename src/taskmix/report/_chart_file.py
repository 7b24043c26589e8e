"""A single chart as a file: what a reproduction draws beside its table."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from taskmix.errors import InputError, MissingExtraError, OptionError

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
    try:
        import vl_convert
    except ImportError:
        raise MissingExtraError("vl-convert-python", "report", "A chart") from None
    content: bytes
    match path.suffix.lower():
        case ".svg":
            content = vl_convert.vegalite_to_svg(specification).encode()
        case ".png":
            content = vl_convert.vegalite_to_png(specification, scale=2)
        case _:
            content = vl_convert.vegalite_to_html(specification, bundle=True).encode()
    aside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        aside.write_bytes(content)
        aside.replace(path)
    except OSError as error:
        raise InputError(
            f"`{path}` should be a place to write a chart to. Found: {error.strerror}. Choose another."
        ) from error
    finally:
        aside.unlink(missing_ok=True)
    return path
