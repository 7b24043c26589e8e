"""Pages about methods: the words of their modules, and tables of options read from the code itself."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import io
import re
import tokenize
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert

HERE = Path(__file__).parent
_LEADS = re.compile(r"^(Symbols|Cost|Departures(?: and decisions)?|Scale|Shift): ?", re.MULTILINE)
_MATHS = re.compile(r"\$\$(.+?)\$\$|\$([^$]+?)\$", re.DOTALL)


@dataclass(frozen=True)
class Method:
    """A method, its family, and what `methods.toml` says of it."""

    family: dict[str, Any]
    words: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.words["name"])

    @property
    def path(self) -> str:
        return f"methods/{self.family['folder']}/{self.name.lower()}.md"

    @property
    def object(self) -> Any:
        return getattr(importlib.import_module(self.family["module"]), self.name)

    @property
    def docstring(self) -> str:
        """What its module says at the top."""
        return inspect.cleandoc(importlib.import_module(self.object.__module__).__doc__ or "")

    @property
    def summary(self) -> str:
        """The first sentence of that, without the method's name."""
        first = self.docstring.split("\n\n")[0].replace("\n", " ")
        _, found, rest = first.partition(": ")
        text = rest if found and len(rest) > 20 else first
        return text[0].upper() + text[1:]

    @property
    def example(self) -> str:
        family, words = self.family, self.words
        return str(family["example"]).strip().format(
            name=self.name,
            imports=words.get("imports", self.name),
            call=words.get("call", f"{self.name}()"),
            function=words.get("function", ""),
            arguments=words.get("arguments", ""),
            more=words.get("more", ""),
            after=words.get("after", ""),
            data=family.get(words.get("data", ""), ""),
        )  # fmt: skip


def all_methods() -> list[Method]:
    """Every method that has a page, in the order of the site."""
    with (HERE / "methods.toml").open("rb") as file:
        families = tomllib.load(file)["family"]
    return [Method(family, words) for family in families for words in family["method"]]


def method_pages(weightings: dict[str, dict[str, str]]) -> Iterator[tuple[str, str]]:
    """Path and text of every page about a method, and of the list of them all."""
    methods = all_methods()
    for method in methods:
        yield method.path, _page(method, weightings.get(method.name, {}))
    yield "methods/index.md", _index(methods)


def _index(methods: list[Method]) -> str:
    lines = [
        "# Methods",
        "",
        "One page each: what it does, when to take it, its options, what it costs.",
    ]
    families = {method.family["folder"]: method.family for method in methods}
    for folder, family in families.items():
        lines += ["", f"## {family['title']}", "", f"{family['words']} See the"
                  f" [guide](../{family['guide']}).", "", "| method | |", "|---|---|"]  # fmt: skip
        lines += [
            f"| [`{method.name}`]({folder}/{method.name.lower()}.md) | {maths(method.summary)} |"
            for method in methods
            if method.family["folder"] == folder
        ]
    return "\n".join(lines) + "\n"


def _page(method: Method, table: dict[str, str]) -> str:
    """One method; `table` is its row in the guide to weightings, where it has one."""
    words = method.words
    command = words.get("command") or (
        f"taskmix train digits --weighting {table['word']}" if table else ""
    )
    cost = words.get("cost") or (f"{table['cost']}. It needs {table['needs']}." if table else "")
    options = options_table(method.object)
    if "function" in words:
        module = importlib.import_module(method.family["module"])
        options = arguments_table(getattr(module, words["function"]))
    parts = [
        f"# {method.name}",
        markdown_of(method.docstring),
        "## When to take it",
        words["when"],
        "## Options",
        markdown_of(inspect.cleandoc(method.object.__doc__ or "")),
        options or "It has none.",
        "## Cost",
        cost,
        "## Example",
        f"```python\n{method.example}\n```",
    ]
    if command:
        parts += ["From the command line:", f"```sh\n{command}\n```"]
    guide = f"../../{method.family['guide']}"
    parts += [f"All of its kind: [{method.family['title']}](../index.md) · [guide]({guide})"]
    return "\n\n".join(parts) + "\n"


def options_table(kind: type) -> str:
    """The fields of an options dataclass with types, defaults and the comments beside them."""
    rows = []
    for field in dataclasses.fields(kind):
        if not field.init or field.name.startswith("_"):
            continue
        if field.default is not dataclasses.MISSING:
            default = repr(field.default)
        elif field.default_factory is not dataclasses.MISSING:
            default = repr(field.default_factory())
        else:
            default = ""
        rows.append((field.name, str(field.type), default, _comment(kind, field.name)))
    return _table(rows)


def arguments_table(function: Any) -> str:
    """The keyword arguments of a function, as `options_table` has the fields of a class."""
    comments = _comments(inspect.getsource(function))
    rows = [
        (
            name,
            str(parameter.annotation),
            "" if parameter.default is parameter.empty else repr(parameter.default),
            comments.get(name, ""),
        )
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    ]
    return _table(rows)


def _table(rows: list[tuple[str, str, str, str]]) -> str:
    if not rows:
        return ""
    lines = ["| option | type | default | |", "|---|---|---|---|"]
    for name, kind, default, comment in rows:
        shown = f"`{default}`" if default else "required"
        lines.append(f"| `{name}` | `{_cell(kind)}` | {_cell(shown)} | {_cell(comment)} |")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _comment(kind: type, name: str) -> str:
    """The comment beside a field, in the class that has it or in one it comes from."""
    for each in kind.__mro__:
        if name in getattr(each, "__annotations__", {}):
            return _comments(inspect.getsource(each)).get(name, "")
    return ""


def _comments(source: str) -> dict[str, str]:
    """Of each `name: type` at the beginning of a line, the comment at its end."""
    found = {}
    names = {
        number: match[1]
        for number, line in enumerate(inspect.cleandoc(source).splitlines(), start=1)
        if (match := re.match(r"\s*([a-z_]\w*): ", line))
    }
    text = io.StringIO(inspect.cleandoc(source)).readline
    for token in tokenize.generate_tokens(text):
        if token.type == tokenize.COMMENT and token.start[0] in names:
            found[names[token.start[0]]] = token.string.lstrip("# ")
    return found


def markdown_of(docstring: str) -> str:
    """A module's words as Markdown: papers are quoted, formulas are MathML, examples are code."""
    blocks = []
    for block in docstring.split("\n\n"):
        lines = block.splitlines()
        if block.startswith(">>>"):
            blocks.append(f"```pycon\n{block}\n```")
            continue
        if all(line.startswith("    ") for line in lines):
            block = "\n".join(f"> {line.strip()}" for line in lines)
        block = re.sub(r"(?m)^(?!- )(.*)\n(?=- )", r"\1\n\n", block)
        blocks.append(_LEADS.sub(lambda match: f"**{match[1]}.** ", block))
    return maths("\n\n".join(blocks))


def maths(text: str) -> str:
    """LaTeX between dollars as MathML, which browsers draw without a script."""

    def drawn(match: re.Match[str]) -> str:
        formula = " ".join((match[1] or match[2]).replace("\n> ", " ").split())
        made = convert(formula, display="block" if match[1] else "inline")
        for character in "*_":  # Markdown would take them for emphasis
            made = made.replace(character, f"&#{ord(character)};")
        return made

    return _MATHS.sub(drawn, text)
