"""A single chart as a file: what a reproduction draws beside its table."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

from taskmix.errors import OptionError
from taskmix.extras import require
from taskmix.files import check_output
from taskmix.report._files._vega import convert
from taskmix.report._files._whole import MARK, is_our_page, write_whole

GENERATOR = f'<meta name="generator" content="{MARK}"/>'
SUFFIXES = (".svg", ".png", ".html")


def check_chart_path(path: Path) -> None:
    """Raises where no chart can be written to a file of that name, before any work is done.

    >>> from pathlib import Path
    >>> check_chart_path(Path("front.doc"))
    Traceback (most recent call last):
    taskmix.errors.OptionError: A chart should be written to a file that ends in .svg, .png or .html...
    """
    if path.suffix.lower() not in SUFFIXES:
        raise OptionError(
            "A chart should be written to a file that ends in .svg, .png or .html. Found "
            f"{path.name!r}."
        )
    check_output(path, is_ours=is_our_page, what="the chart")
    require("vl_convert", purpose="A chart")


def write_chart(specification: dict[str, Any], path: Path) -> Path:
    """Draws a Vega-Lite chart into `path`: .svg, .png, or .html, which works offline.

    `taskmix laws --plot front.svg` draws one; it takes seconds.
    """
    check_chart_path(path)
    options: dict[str, dict[str, Any]] = {".png": {"scale": 2}, ".html": {"bundle": True}}
    suffix = path.suffix.lower()
    content = convert(
        f"vegalite_to_{suffix[1:]}", specification, purpose="A chart", **options.get(suffix, {})
    )
    return write_whole(path, _marked(content, suffix), "a chart")


def _marked(content: bytes, suffix: str) -> bytes:
    """The chart with a word in it by which we know it for ours."""
    match suffix:
        case ".svg":
            return content.replace(b">", f"><metadata>{GENERATOR}</metadata>".encode(), 1)
        case ".png":
            return _with_software(content)
        case _:
            return content.replace(b"<head>", f"<head>{GENERATOR}".encode(), 1)


def _with_software(png: bytes) -> bytes:
    """The picture with a text chunk that says who made it, behind its header of fixed length."""
    end = 8 + 25  # the signature, and the chunk IHDR
    body = b"tEXt" + f"Software\0{MARK}".encode()
    size, total = len(body) - 4, zlib.crc32(body)
    return png[:end] + struct.pack(">I", size) + body + struct.pack(">I", total) + png[end:]
