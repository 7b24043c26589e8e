"""One self-contained HTML page from the tables of a report."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from taskmix.extras import load
from taskmix.report._advice import (
    budget_figure,
    expected_figure,
    gap_figure,
    law_figure,
)
from taskmix.report._drawing import (
    Columns,
    Figure,
    curve_figure,
    loss_figure,
    palette,
    score_figure,
    share_figure,
    variance_figure,
    weight_figure,
)
from taskmix.report._files import convert
from taskmix.report._page._contents import contents
from taskmix.report._study import MINUS, ReportData, Scoreboard, scoreboard
from taskmix.report._transfer import effect_figure, prediction_figure, transfer_figure

PACKAGES = ("vl_convert", "jinja2")  # that the page needs
PURPOSE = "The report page"


def report_html(data: ReportData) -> str:
    """The page as text. It asks for nothing from outside and runs no script but its own.

    `taskmix report STUDY` makes it; it takes seconds.
    """
    load("jinja2", purpose=PURPOSE)
    import jinja2
    from markupsafe import Markup  # for what is ours, or escaped for its place

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(packaged),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )

    def strong(sentence: str, words: str) -> str:
        before, found, after = sentence.partition(words) if words else (sentence, "", "")
        return Markup("{}<strong>{}</strong>{}" if found else "{}{}{}").format(before, found, after)

    def ticked(sentence: str) -> str:
        """Names between backticks as code."""
        parts = sentence.split("`")
        if len(parts) % 2 == 0:
            return sentence
        marked = (
            Markup("<code>{}</code>") if place % 2 else Markup("{}") for place in range(len(parts))
        )
        return Markup("").join(mark.format(part) for mark, part in zip(marked, parts, strict=True))

    def minus(numbers: str) -> str:
        """Numbers of a terminal with a true minus sign."""
        return numbers.replace("-", MINUS)

    environment.filters |= {"strong": strong, "ticked": ticked, "minus": minus}
    board = scoreboard(data)
    figures = _figures(data, board)
    css, script, runtime = packaged("page.css"), packaged("page.js"), vega_runtime()
    return environment.get_template("page.html.j2").render(
        **vars(contents(data, board, figures)),
        policy=content_policy(scripts=(runtime, script), styles=(css,)),
        css=Markup(css),
        script=Markup(script),
        runtime=Markup(runtime),
        payload=Markup(script_json(_payload(figures))),
    )


@cache
def vega_runtime() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, from the package that carries them."""
    snippet = "window.vegaEmbed = vegaEmbed;"
    bundle = convert("javascript_bundle", snippet, purpose=PURPOSE).decode()
    # Browsers read `\r` as `\n` and `</script` as the end; either would break the policy's hash.
    return bundle.replace("\r", "\n").replace("</script", "<\\/script")


def script_json(value: object) -> str:
    """JSON that no parser of HTML can take for anything else."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\N{LINE SEPARATOR}\N{PARAGRAPH SEPARATOR}":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def packaged(name: str) -> str:
    return files("taskmix.report").joinpath(name).read_text(encoding="utf-8")


def content_policy(*, scripts: Sequence[str], styles: Sequence[str]) -> str:
    """Only what carries one of these hashes runs, whatever else finds its way into the page."""

    def hashes(sources: Sequence[str]) -> str:
        digests = (hashlib.sha256(source.encode()).digest() for source in sources)
        return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)

    return (
        f"default-src 'none'; script-src {hashes(scripts)}; style-src {hashes(styles)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _figures(data: ReportData, board: Scoreboard) -> dict[str, Figure]:
    colours = palette(data)
    found = (
        expected_figure(data.advice),
        gap_figure(data.advice),
        budget_figure(data.advice),
        law_figure(data.advice),
        score_figure(data, board),
        transfer_figure(data.transfer),
        effect_figure(data.transfer),
        prediction_figure(data.transfer),
        curve_figure(data),
        share_figure(data, colours),
        loss_figure(data, colours),
        variance_figure(data),
        weight_figure(data, colours),
    )
    return {figure.id: figure for figure in found if figure is not None}


def _payload(figures: Mapping[str, Figure]) -> dict[str, Any]:
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
