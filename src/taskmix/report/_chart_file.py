"""A single chart as a file: what a reproduction draws beside its table."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

from taskmix.errors import OptionError
from taskmix.extras import load, require
from taskmix.files import check_output
from taskmix.report._file import MARK, is_our_page, write_whole

GENERATOR = f'<meta name="generator" content="{MARK}"/>'
SUFFIXES = (".svg", ".png", ".html")


def check_chart_path(path: Path) -> None:
    """Raises where no chart can be written to a file of that name, before any work is done."""
    if path.suffix.lower() not in SUFFIXES:
        raise OptionError(
            "A chart should be written to a file that ends in .svg, .png or .html. Found "
            f"{path.name!r}."
        )
    check_output(path, is_ours=is_our_page, what="the chart")
    require("vl_convert", purpose="A chart")


def write_chart(specification: dict[str, Any], path: Path) -> Path:
    """Draws a Vega-Lite chart into `path`: .svg, .png, or .html, which works offline."""
    check_chart_path(path)
    vl_convert = load("vl_convert", purpose="A chart")
    content: bytes
    match path.suffix.lower():
        case ".svg":
            svg = vl_convert.vegalite_to_svg(specification)
            content = svg.replace(">", f"><metadata>{GENERATOR}</metadata>", 1).encode()
        case ".png":
            content = _with_software(vl_convert.vegalite_to_png(specification, scale=2))
        case _:
            page = vl_convert.vegalite_to_html(specification, bundle=True)
            content = page.replace("<head>", f"<head>{GENERATOR}", 1).encode()
    return write_whole(path, content, "a chart")


def _with_software(png: bytes) -> bytes:
    """The picture with a text chunk that says who made it, behind its header of fixed length."""
    end = 8 + 25  # the signature, and the chunk IHDR
    body = b"tEXt" + f"Software\0{MARK}".encode()
    size, total = len(body) - 4, zlib.crc32(body)
    return png[:end] + struct.pack(">I", size) + body + struct.pack(">I", total) + png[end:]
