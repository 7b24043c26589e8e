"""Tables of several projects as one, over the union of their domains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from taskmix.errors import InputError
from taskmix.mixtures._domains._apply import apply_changes
from taskmix.mixtures._domains._change import DomainChange
from taskmix.mixtures._table import MixtureTable


@dataclass(frozen=True, kw_only=True, eq=False)
class StackedTables:
    """One table of all runs, and which table each came from; made by `stack_tables`.

    >>> table = MixtureTable(
    ...     domains=("web",), metrics=("loss",), runs=("a",),
    ...     shares=np.array([[1.0]]), values=np.array([[3.0]]),
    ... )
    >>> stack_tables({"ours": table, "theirs": table}).sources
    ('ours', 'theirs')
    """

    table: MixtureTable  # its runs are called "source/run"
    sources: tuple[str, ...]  # [run]


def stack_tables(
    tables: Mapping[str, MixtureTable],
    changes: Mapping[str, DomainChange] | None = None,
) -> StackedTables:
    """All runs over the union of the domains: a domain that a table does not have has share 0 there.

    `changes` brings a table to the common names first. Metrics are joined by name, and missing where a
    table does not have them. One metric should mean one thing: losses on other texts, or of models that
    were trained on more tokens, need names of their own (`DomainChange(metrics=...)`).

    >>> first = MixtureTable(
    ...     domains=("web", "code"), metrics=("loss",), runs=("a",),
    ...     shares=np.array([[0.5, 0.5]]), values=np.array([[3.0]]),
    ... )
    >>> second = MixtureTable(
    ...     domains=("cc", "law"), metrics=("loss", "law"), runs=("a",),
    ...     shares=np.array([[0.25, 0.75]]), values=np.array([[3.5, 2.0]]),
    ... )
    >>> changes = {"new": DomainChange(renames={"cc": "web"})}
    >>> stacked = stack_tables({"old": first, "new": second}, changes)
    >>> stacked.table.domains, stacked.table.shares.tolist(), stacked.table.values.tolist()
    (('web', 'code', 'law'), [[0.5, 0.5, 0.0], [0.25, 0.0, 0.75]], [[3.0, nan], [3.5, 2.0]])
    """
    if not tables:
        raise InputError("`tables` should have at least one table. Found none. Name one.")
    changes = changes or {}
    unknown = sorted(set(changes) - set(tables))
    if unknown:
        raise InputError(
            f"`changes` should be of tables that are stacked. Found {unknown[0]!r}; the tables are "
            f"{', '.join(map(repr, tables))}. Use the names of the tables."
        )
    changed = {
        name: apply_changes(table, changes[name]) if name in changes else table
        for name, table in tables.items()
    }
    _check_directions(changed)
    domains = tuple(dict.fromkeys(name for each in changed.values() for name in each.domains))
    metrics = tuple(dict.fromkeys(name for each in changed.values() for name in each.metrics))
    rows = sum(len(each) for each in changed.values())
    shares, values = np.zeros((rows, len(domains))), np.full((rows, len(metrics)), np.nan)
    begin = 0
    for each in changed.values():
        span = slice(begin, begin + len(each))
        shares[span, [domains.index(name) for name in each.domains]] = each.shares
        values[span, [metrics.index(name) for name in each.metrics]] = each.values
        begin += len(each)
    rising = {name for each in changed.values() for name in each.larger_is_better}
    known = [each.sizes for each in changed.values() if each.sizes is not None]
    table = MixtureTable(
        domains=domains,
        metrics=metrics,
        runs=tuple(f"{name}/{run}" for name, each in changed.items() for run in each.runs),
        shares=shares,
        values=values,
        sizes=np.concatenate(known) if known else None,
        larger_is_better=tuple(name for name in metrics if name in rising),
    )
    return StackedTables(
        table=table, sources=tuple(name for name, each in changed.items() for _ in each.runs)
    )


def _check_directions(tables: Mapping[str, MixtureTable]) -> None:
    """Tables that cannot be one: a metric that should rise here and fall there, sizes in some only."""
    sized = {name for name, each in tables.items() if each.sizes is not None}
    if sized and sized != set(tables):
        without = next(name for name in tables if name not in sized)
        raise InputError(
            "Tables that are stacked should all have the sizes of their models, or none. Found them "
            f"for {sorted(sized)[0]!r} and not for {without!r}. Give the others a size."
        )
    for metric in {name for each in tables.values() for name in each.metrics}:
        rises = {
            metric in each.larger_is_better for each in tables.values() if metric in each.metrics
        }
        if len(rises) > 1:
            raise InputError(
                "A metric should be one of which larger is better in all tables, or in none. Found "
                f"both for {metric!r}. Say it alike for all, or rename one of the two metrics."
            )
