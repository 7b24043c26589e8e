"""One self-contained HTML page from a template and what it shows, with its charts as data.

A single chart as a file: what a reproduction draws beside its table.

Calls of `vl_convert`, each in a process of its own.

One takes seconds in which Python does nothing else, not even hear a Ctrl-C. A process can be ended.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import taskmix
from taskmix.errors import InputError, OptionError, RecordError, RunError
from taskmix.extras import load, require
from taskmix.files import check_output, make_folder, write_bytes
from taskmix.report._figures import Columns, Figure
from taskmix.report._words import MINUS


def chart_payload(figures: Mapping[str, Figure]) -> dict[str, Any]:
    """Specifications by name, and for each chart its own and its columns."""
    return {
        "specs": {name: spec for figure in figures.values() for name, spec in figure.specs.items()},
        "charts": {
            panel.id: {
                "spec": panel.spec,
                "unit": "share" if figure.id == "shares" else "",
                "columns": _compact(panel.columns),
            }
            for figure in figures.values()
            for panel in figure.panels
        },
    }


def script_json(value: object) -> str:
    """JSON that no parser of HTML can take for anything else."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\N{LINE SEPARATOR}\N{PARAGRAPH SEPARATOR}":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _compact(columns: Columns) -> dict[str, Any]:
    """Words that repeat are sent once: the distinct ones, and which stands where."""
    compact: dict[str, Any] = {}
    for name, values in columns.items():
        if values and isinstance(values[0], str):
            distinct = {word: place for place, word in enumerate(dict.fromkeys(values))}
            compact[name] = {"of": list(distinct), "at": [distinct[word] for word in values]}
        else:
            compact[name] = values
    return compact


PLAIN_PACKAGES = ("jinja2",)  # that a page without a script needs
CHART_PACKAGES = ("vl_convert", *PLAIN_PACKAGES)
PURPOSE = "The report page"


def by_name(figures: Iterable[Figure | None]) -> dict[str, Figure]:
    """The figures that there are."""
    return {figure.id: figure for figure in figures if figure is not None}


def render_page(
    template: str,
    contents: Mapping[str, Any],
    *,
    figures: Mapping[str, Figure] | None = None,  # as `by_name`; None: a page without any script
    styles: Sequence[str] = ("page.css",),
    live: str = "",  # the stamp of what a server shows, whom the page asks for the next one
) -> str:
    """The page as text. It asks for nothing from outside and runs no script but its own."""
    load("jinja2", purpose=PURPOSE)
    import jinja2
    from markupsafe import Markup  # for what is ours, or escaped for its place

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_packaged),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"strong": _strong, "ticked": _ticked, "minus": _minus}
    css = "".join(map(_packaged, styles))
    scripts = () if figures is None else (vega_runtime(), _packaged("page.js"))
    asking = {"live": live} if live else {}
    return environment.get_template(template).render(
        **contents,
        version=taskmix.__version__,
        figures=figures or {},
        policy=content_policy(scripts=scripts, styles=(css,))
        + ("; connect-src 'self'" if live else ""),
        css=Markup(css),
        live=live,
        scripts=[Markup(script) for script in scripts],
        payload=Markup("" if figures is None else script_json(chart_payload(figures) | asking)),
    )


@cache
def vega_runtime() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, from the package that carries them."""
    snippet = "window.vegaEmbed = vegaEmbed;"
    bundle = convert("javascript_bundle", snippet, purpose=PURPOSE).decode()
    # Browsers read `\r` as `\n` and `</script` as the end; either would break the policy's hash.
    return bundle.replace("\r", "\n").replace("</script", "<\\/script")


def content_policy(*, scripts: Sequence[str], styles: Sequence[str]) -> str:
    """Only what carries one of these hashes runs, whatever else finds its way into the page."""

    def hashes(sources: Sequence[str]) -> str:
        digests = (hashlib.sha256(source.encode()).digest() for source in sources)
        return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)

    return (
        f"default-src 'none'; script-src {hashes(scripts)}; style-src {hashes(styles)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _packaged(name: str) -> str:
    return files("taskmix.report").joinpath(name).read_text(encoding="utf-8")


def _strong(sentence: str, words: str) -> str:
    """The first place of these words in the sentence, in bold."""
    from markupsafe import Markup

    before, found, after = sentence.partition(words) if words else (sentence, "", "")
    return Markup("{}<strong>{}</strong>{}" if found else "{}{}{}").format(before, found, after)


def _ticked(sentence: str) -> str:
    """Names between backticks as code."""
    from markupsafe import Markup

    parts = sentence.split("`")
    if len(parts) % 2 == 0:
        return sentence
    marked = (
        Markup("<code>{}</code>") if place % 2 else Markup("{}") for place in range(len(parts))
    )
    return Markup("").join(mark.format(part) for mark, part in zip(marked, parts, strict=True))


def _minus(numbers: str) -> str:
    """Numbers of a terminal with a true minus sign."""
    return numbers.replace("-", MINUS)


MARK = "taskmix"  # stands in each file for people that we write, so that we know it again
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


_CODE = """
import json, sys, vl_convert
name, argument, options = json.load(sys.stdin)
made = getattr(vl_convert, name)(argument, **options)
sys.stdout.buffer.write(made if isinstance(made, bytes) else made.encode())
"""


def convert(name: str, argument: Any, *, purpose: str, **options: Any) -> bytes:
    """What the function of this name gives, as bytes; `purpose` is for who lacks the package."""
    require("vl_convert", purpose=purpose)
    # -P: nothing is imported from the folder that the user happens to be in. A session of its own:
    # the signals of the terminal are for this process.
    done = subprocess.run(
        [sys.executable, "-P", "-c", _CODE],
        input=json.dumps([name, argument, options]).encode(),
        capture_output=True,
        start_new_session=True,
    )
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise RunError(f"{purpose} should be drawn. Found: {''.join(words) or 'no answer'}.")
    return done.stdout


def is_our_page(begin: bytes) -> bool:
    """Whether a page, or a chart, is one that we wrote, by its first bytes."""
    return (
        f'name="generator" content="{MARK}'.encode() in begin
        or f"Software\0{MARK}".encode() in begin
    )


def check_page(path: Path) -> None:
    """Raises where a page with charts cannot be written to that file, before any work is done."""
    check_output(path, is_ours=is_our_page, what="the page")
    require(*CHART_PACKAGES, purpose=PURPOSE)


def write_whole(path: Path, content: bytes, what: str) -> Path:
    """Writes aside and renames: whoever has the file open, or kills us, sees a whole one."""
    check_output(path, is_ours=is_our_page, what=what)
    try:
        make_folder(path.parent)
        write_bytes(path, content)
    except (OSError, RecordError) as error:
        reason = getattr(error.__cause__ or error, "strerror", None) or error
        raise InputError(
            f"`{path}` should be a place to write {what} to. Found: {reason}. Choose another."
        ) from error
    return path
