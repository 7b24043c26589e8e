"""One self-contained HTML page from a template and what it shows."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import taskmix
from taskmix.extras import load
from taskmix.report._drawing import Figure
from taskmix.report._files import convert
from taskmix.report._shell._payload import chart_payload, script_json
from taskmix.report._study import MINUS

PLAIN_PACKAGES = ("jinja2",)  # that a page without a script needs
CHART_PACKAGES = ("vl_convert", *PLAIN_PACKAGES)
PURPOSE = "The report page"


def render_page(
    template: str,
    contents: Mapping[str, Any],
    *,
    figures: Mapping[str, Figure] | None = None,  # None: a page without any script
    styles: Sequence[str] = ("page.css",),
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
    return environment.get_template(template).render(
        **contents,
        version=taskmix.__version__,
        figures=figures or {},
        policy=content_policy(scripts=scripts, styles=(css,)),
        css=Markup(css),
        scripts=[Markup(script) for script in scripts],
        payload=Markup("" if figures is None else script_json(chart_payload(figures))),
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
