"""Words of `taskmix mix` as what they stand for: weights, bounds, groups of domains, supplies."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taskmix.errors import InputError, OptionError
from taskmix.files import unguard_formula

if TYPE_CHECKING:
    from taskmix.mixtures import DomainGroup

_UNITS = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9, "t": 1e12}
_AMOUNT = re.compile(r"([0-9.]+(?:[eE][+-]?\d+)?)\s*([kKmMbBgGtT]?)")
_GROUP = re.compile(r"(?P<names>.+?)(?P<sign><=|>=)(?P<bound>[^<>=]+)")


def split_names(text: str | None) -> tuple[str, ...]:
    """`a, b` as names."""
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


def amount(text: str, option: str) -> float:
    """`1.5B` or 1.5e9 as a number."""
    found = _AMOUNT.fullmatch(text.strip())
    try:
        value = float(found[1]) * _UNITS[found[2].lower()] if found else float(text)
    except ValueError:
        raise OptionError(
            f"`{option}` should be a number, such as 0.3, 2e9 or 2B. Found {text[:40]!r}."
        ) from None
    return value


def numbers_by_name(texts: Sequence[str] | None, option: str, example: str) -> dict[str, float]:
    """`web=2,code=1B`, once or more, as numbers by name."""
    found: dict[str, float] = {}
    for part in (part for text in texts or () for part in text.split(",")):
        name, sign, value = part.rpartition("=")
        if not sign or not name.strip():
            raise OptionError(f"`{option}` should be like {example}. Found {part[:60]!r}.")
        found[name.strip()] = amount(value, option)
    return found


def read_groups(texts: Sequence[str] | None) -> tuple[DomainGroup, ...]:
    """`code+math<=0.4` as groups of domains with a bound."""
    from taskmix.mixtures import DomainGroup

    groups = []
    for text in texts or ():
        found = _GROUP.fullmatch(text.strip())
        if found is None:
            raise OptionError(
                f'`--group` should be like "code+math<=0.4" or "wiki+books>=0.1". Found {text[:60]!r}.'
            )
        names = tuple(name.strip() for name in found["names"].split("+"))
        bound = amount(found["bound"], "--group")
        kind = "at_most" if found["sign"] == "<=" else "at_least"
        groups.append(DomainGroup(domains=names, **{kind: bound}))
    return tuple(groups)


def read_supply(text: str | None) -> dict[str, float] | None:
    """Tokens at hand: `web=1B,code=2e8`, or a file with a row a domain (or a column a domain)."""
    if text is None:
        return None
    if not Path(text).exists():
        return numbers_by_name([text], "--supply", "web=1B,code=2e8, or a file")
    columns = _columns(Path(text))
    names = next((key for key in ("domain", "name", "task") if key in columns), None)
    tokens = next((key for key in ("tokens", "supply", "count") if key in columns), None)
    if names is not None and tokens is not None:
        pairs = zip(columns[names], columns[tokens], strict=True)
        return {str(name): amount(str(value), "--supply") for name, value in pairs}
    if len(next(iter(columns.values()), [])) == 1:
        return {name: amount(str(values[0]), "--supply") for name, values in columns.items()}
    raise InputError(
        "A file of supplies should have the columns `domain` and `tokens`, or one row with a column for "
        f"each domain. Found {', '.join(list(columns)[:8])} in {text}."
    )


def read_shares_of(path: Path, domains: Sequence[str]) -> dict[str, dict[str, float]]:
    """Mixtures by name, from a file with a row each; a domain without a column has none of it."""
    columns = _columns(path)
    known = [name for name in columns if name in domains]
    if not known:
        raise InputError(
            f"`{path}` should have a column for each domain. Found {', '.join(list(columns)[:8])}, "
            f"and the domains are {', '.join(domains[:8])}."
        )
    label = next((name for name in ("run", "name", "mixture", "index") if name in columns), None)
    count = len(columns[known[0]])
    names = [
        str(row + 1) if label is None else unguard_formula(str(columns[label][row]))
        for row in range(count)
    ]
    if len(set(names)) < count:
        names = [f"{name} (row {row + 1})" for row, name in enumerate(names)]
    return {
        names[row]: {name: _share(columns[name][row], path, row, name) for name in known}
        for row in range(count)
    }


def _share(cell: Any, path: Path, row: int, name: str) -> float:
    try:
        return float(cell) if cell not in (None, "") else 0.0
    except (TypeError, ValueError):
        raise InputError(
            f"Column `{name}` of `{path}` should be shares. Found {str(cell)[:40]!r} in row {row + 1}."
        ) from None


def _columns(path: Path) -> dict[str, list[Any]]:
    from taskmix.tasks import read_rows

    columns = read_rows(path).table.to_pydict()
    return {unguard_formula(name): cells for name, cells in columns.items()}
