"""A page as its reader gets it: tags, text, tables, and the rows of its charts."""

from __future__ import annotations

import html
import json
import re
from html.parser import HTMLParser
from typing import Any


class Page(HTMLParser):
    """Tags in order, attributes, text outside scripts, and the bodies of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.source = text
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.blocks: list[tuple[str, dict[str, str | None], str]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        tag, attributes = self.tags[-1] if self.tags else ("", {})
        if tag in ("script", "style") and data.strip():
            self.blocks.append((tag, attributes, data))
        else:
            self.text += data

    def ids(self) -> list[str]:
        return [attributes["id"] or "" for _, attributes in self.tags if "id" in attributes]

    def payload(self) -> dict[str, Any]:
        (body,) = [text for _, attributes, text in self.blocks if attributes.get("id")]
        return dict(json.loads(body))

    def chart(self, name: str) -> dict[str, list[Any]]:
        """The columns of a chart, words spelt out."""
        columns = self.payload()["charts"][name]["columns"]
        return {
            key: [value["of"][place] for place in value["at"]] if isinstance(value, dict) else value
            for key, value in columns.items()
        }

    def spec(self, name: str) -> dict[str, Any]:
        """The Vega-Lite of a chart."""
        payload = self.payload()
        return dict(payload["specs"][payload["charts"][name]["spec"]])

    def about(self, name: str) -> str:
        """What is said of a chart to whom cannot see it."""
        return next(each["aria-label"] or "" for _, each in self.tags if each.get("id") == name)

    def rows(self, section: str) -> list[list[tuple[str, str]]]:
        """Cells of the tables of a section, each with its class and its words."""
        part = self.source.partition(f'<section id="{section}"')[2].partition("</section>")[0]
        return [
            [
                (kind, html.unescape(re.sub("(<[^>]*>|[ \n])+", " ", body).strip(" ")))
                for kind, body in re.findall(
                    r'<t[hd](?: scope="row")?(?: class="(.*?)")?>(.*?)</t', row
                )
            ]
            for row in re.findall(r"<tr.*?>(.*?)</tr>", part, re.DOTALL)
        ]


def check_charts(page: Page) -> None:
    """Every chart of the page is valid Vega-Lite."""
    import altair

    payload = page.payload()
    assert set(page.ids()) >= set(payload["charts"])
    for name, spec in payload["specs"].items():
        # It raises where the schema does not hold.
        altair.LayerChart.from_dict({"data": {"values": []}, **spec}, validate=True)
        assert any(chart["spec"] == name for chart in payload["charts"].values())
