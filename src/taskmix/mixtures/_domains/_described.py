"""A change of domains in words: what of it is exact, and what is not."""

from __future__ import annotations

import numpy as np

from taskmix.mixtures._domains._apply import runs_without
from taskmix.mixtures._domains._change import DomainChange
from taskmix.mixtures._domains._merge_cost import merge_cost
from taskmix.mixtures._table import MixtureTable


def describe_changes(table: MixtureTable, change: DomainChange) -> tuple[str, ...]:
    """A sentence or two for each part of a change, about the table as it was before.

    >>> table = MixtureTable(
    ...     domains=("web", "spam"), metrics=("loss",), runs=("a", "b"),
    ...     shares=np.array([[1.0, 0.0], [0.5, 0.5]]), values=np.array([[3.0], [3.2]]),
    ... )
    >>> describe_changes(table, DomainChange(removals=("spam",)))
    ("'spam' was removed: 1 run of 2 drew from it and is left out; the others are exact.",)
    """
    change.matrix(table.domains)  # names that are not there get their sentence
    said = [f"{old!r} is {new!r} now: exact." for old, new in change.renames.items()]
    for name, parts in change.merges.items():
        said.append(f"{name!r} has the shares of {', '.join(map(repr, parts))} together: exact.")
        if len(parts) > 1:
            said.append(merge_cost(table, name, parts).describe())
    for name, shares in change.splits.items():
        words = ", ".join(f"{part!r} {_percent(share)}" for part, share in shares.items())
        said.append(
            f"{name!r} was split ({words}): exact where runs drew from it in these proportions. What "
            "each part is worth is unknown until runs vary them."
        )
    said += [
        f"{name!r} is new: no run had it, and what it is worth is unknown until runs do."
        for name in change.additions
    ]
    for name in change.removals:
        count = int(np.count_nonzero(~runs_without(table, [name])))
        said.append(
            f"{name!r} was removed: no run drew from it, so this is exact."
            if count == 0
            else f"{name!r} was removed: {count} {'run' if count == 1 else 'runs'} of {len(table)} drew "
            f"from it and {'is' if count == 1 else 'are'} left out; the others are exact."
        )
    said += [f"The metric {old!r} is {new!r} now." for old, new in change.metrics.items()]
    return tuple(said)


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
