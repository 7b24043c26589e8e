"""A table of runs under a new list of domains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from taskmix.errors import InputError
from taskmix.mixtures._domains._change import DomainChange
from taskmix.mixtures._table import MixtureTable


def apply_changes(table: MixtureTable, change: DomainChange) -> MixtureTable:
    """The runs as if they had been recorded under the new domains.

    Runs that drew from a removed domain are left out. `describe_changes` says what is exact.

    >>> table = MixtureTable(
    ...     domains=("web", "python", "c"), metrics=("loss",), runs=("a", "b"),
    ...     shares=np.array([[0.5, 0.25, 0.25], [0.75, 0.25, 0.0]]), values=np.array([[3.0], [3.2]]),
    ... )
    >>> changed = apply_changes(table, DomainChange(merges={"code": ("python", "c")}))
    >>> changed.domains, changed.shares.tolist()
    (('web', 'code'), [[0.5, 0.5], [0.75, 0.25]])
    """
    domains, matrix = change.matrix(table.domains)
    kept = runs_without(table, change.removals)
    if not kept.any():
        raise InputError(
            "A removed domain should be one that some run did without. Found that every run drew from "
            f"{', '.join(map(repr, change.removals))}. Keep the domain, and let its share be at most 0 "
            "in the mixtures that you look for."
        )
    table = table.only(kept)
    metrics = _renamed_metrics(table, change)
    return replace(
        table,
        domains=domains,
        shares=table.shares @ matrix,
        metrics=metrics,
        larger_is_better=tuple(change.metrics.get(name, name) for name in table.larger_is_better),
    )


def runs_without(
    table: MixtureTable, domains: Sequence[str]
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """[run], whether a run had no share of any of these domains."""
    places = [table.domains.index(name) for name in domains]
    return np.asarray((table.shares[:, places] == 0).all(axis=1))


def merge_domains(table: MixtureTable, merges: Mapping[str, Sequence[str]]) -> MixtureTable:
    """Domains become one, with the sum of their shares.

    >>> table = MixtureTable(
    ...     domains=("python", "c"), metrics=("loss",), runs=("a",),
    ...     shares=np.array([[0.25, 0.75]]), values=np.array([[3.0]]),
    ... )
    >>> merge_domains(table, {"code": ["python", "c"]}).shares.tolist()
    [[1.0]]
    """
    return apply_changes(
        table, DomainChange(merges={name: tuple(parts) for name, parts in merges.items()})
    )


def split_domains(table: MixtureTable, splits: Mapping[str, Mapping[str, float]]) -> MixtureTable:
    """A domain becomes several, each with its proportion of the old share.

    >>> table = MixtureTable(
    ...     domains=("web", "code"), metrics=("loss",), runs=("a",),
    ...     shares=np.array([[0.5, 0.5]]), values=np.array([[3.0]]),
    ... )
    >>> split_domains(table, {"web": {"web_good": 0.25, "web_rest": 0.75}}).shares.tolist()
    [[0.125, 0.375, 0.5]]
    """
    return apply_changes(table, DomainChange(splits=splits))


def rename_domains(table: MixtureTable, renames: Mapping[str, str]) -> MixtureTable:
    """Domains under other names.

    >>> table = MixtureTable(
    ...     domains=("web", "code"), metrics=("loss",), runs=("a",),
    ...     shares=np.array([[0.5, 0.5]]), values=np.array([[3.0]]),
    ... )
    >>> rename_domains(table, {"web": "crawl"}).domains
    ('crawl', 'code')
    """
    return apply_changes(table, DomainChange(renames=renames))


def _renamed_metrics(table: MixtureTable, change: DomainChange) -> tuple[str, ...]:
    unknown = sorted(set(change.metrics) - set(table.metrics))
    if unknown:
        raise InputError(
            f"A change should rename metrics of the table. Found {unknown[0]!r}; the table has "
            f"{', '.join(map(repr, table.metrics))}. Correct the name in the change."
        )
    names = tuple(change.metrics.get(name, name) for name in table.metrics)
    if len(set(names)) < len(names):
        raise InputError(
            "Metrics should have different names after a change. Found two of the same name among "
            f"{', '.join(map(repr, names))}. Choose another new name."
        )
    return names
