"""How a list of domains changed: renamed, merged, split, added, removed.

Evidence is stored by the names of domains. When the names change, it need not be lost: each change here
is a matrix T [old domain, new domain], and a run that had the shares w has the shares w T afterwards.

| change   | T                          | exact                                                     |
|----------|----------------------------|-----------------------------------------------------------|
| rename   | 1                          | always                                                    |
| merge    | 1 for each part            | always: shares add up (laws may hide variation inside it) |
| split    | proportions of the old one | where runs drew from it in these proportions              |
| addition | a column of zeros          | where no run had the new domain                           |
| removal  | the column goes            | for runs that never drew from it; the others go too       |

All of a change happens at once: names on the old side are those of the table, whatever the new ones are.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

import numpy as np

from taskmix.errors import InputError
from taskmix.files import UnreadableError, read_plain
from taskmix.mixtures._table import Floats, MixtureTable
from taskmix.records import from_plain

SUMS_TO_ONE = 1e-6  # how far proportions may be off; the rest is scaled away
SIZE_LIMIT = 1 << 20  # bytes of a file of changes, which is written by hand


@dataclass(frozen=True, kw_only=True)
class DomainChange:
    """What became of the domains of a table; those not named stay as they are.

    >>> change = DomainChange(
    ...     renames={"cc": "web"}, merges={"code": ("python", "c")},
    ...     splits={"books": {"fiction": 0.25, "essays": 0.75}},
    ... )
    >>> change.matrix(("cc", "python", "books", "c", "law"))[0]
    ('web', 'code', 'fiction', 'essays', 'law')
    """

    renames: Mapping[str, str] = field(default_factory=dict)  # old name to new name
    merges: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # new name to its old parts
    splits: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # old to its new parts
    additions: tuple[str, ...] = ()
    removals: tuple[str, ...] = ()
    metrics: Mapping[str, str] = field(
        default_factory=dict
    )  # metrics that were renamed, old to new

    def __post_init__(self) -> None:
        for name, parts in self.merges.items():
            given: object = parts
            if isinstance(given, str):
                raise InputError(
                    f"A merged domain should have a list of parts. Found the word {given!r} for "
                    f"{name!r}. Put it into a list."
                )
            if not parts:
                raise InputError(
                    f"A merged domain should have parts. Found none for {name!r}. Name the domains "
                    "that became it, or list it among the additions."
                )
        for name, shares in self.splits.items():
            _check_proportions(name, shares)
        counted = Counter(self._used())
        twice = sorted(name for name, count in counted.items() if count > 1)
        if twice:
            raise InputError(
                "An old domain should be renamed, merged, split or removed, and only once. Found "
                f"{_listed(twice)} more than once. Make two changes of it, one after the other."
            )

    @property
    def is_empty(self) -> bool:
        """Whether nothing changes."""
        return not any(
            (self.renames, self.merges, self.splits, self.additions, self.removals, self.metrics)
        )

    def matrix(self, domains: Sequence[str]) -> tuple[tuple[str, ...], Floats]:
        """The new domains, and T [old domain, new domain]; old shares times T are the new ones."""
        self._check_known(domains)
        columns: dict[str, Floats] = {}

        def add(new: str, old: int | None, proportion: float) -> None:
            column = columns.setdefault(new, np.zeros(len(domains)))
            if old is not None:
                column[old] += proportion

        merged = {part: name for name, parts in self.merges.items() for part in parts}
        makers: dict[str, str] = {}  # which change made each new name
        for place, name in enumerate(domains):
            if name in self.removals:
                continue
            maker = f"merge of {merged[name]}" if name in merged else f"domain {name}"
            targets: Mapping[str, float] = {name: 1.0}
            if name in merged:
                targets = {merged[name]: 1.0}
            elif name in self.renames:
                targets = {self.renames[name]: 1.0}
            elif name in self.splits:
                targets = self.splits[name]
            scale = math.fsum(targets.values())
            for new, proportion in targets.items():
                if makers.setdefault(new, maker) != maker:
                    raise _ambiguous(new)
                add(new, place, proportion / scale)
        for new in self.additions:
            if new in columns:
                raise _ambiguous(new)
            add(new, None, 0.0)
        if not columns:
            raise InputError(
                "A change should leave at least one domain. Found that all were removed. Keep one."
            )
        return tuple(columns), np.stack(list(columns.values()), axis=1)

    def _used(self) -> Iterable[str]:
        yield from self.renames
        yield from (part for parts in self.merges.values() for part in parts)
        yield from self.splits
        yield from self.removals

    def _check_known(self, domains: Sequence[str]) -> None:
        unknown = sorted(set(self._used()) - set(domains))
        if unknown:
            raise InputError(
                f"A change should name domains of the table. Found {_listed(unknown)}; the table has "
                f"{_listed(domains)}. Correct the names in the change."
            )


def apply_changes(table: MixtureTable, change: DomainChange) -> MixtureTable:
    """The runs as if they had been recorded under the new domains.

    Runs that drew from a removed domain are left out.

    >>> table = MixtureTable(
    ...     domains=("web", "python", "c"), metrics=("loss",), runs=("a", "b"),
    ...     shares=np.array([[0.5, 0.25, 0.25], [0.75, 0.25, 0.0]]), values=np.array([[3.0], [3.2]]),
    ... )
    >>> changed = apply_changes(table, DomainChange(merges={"code": ("python", "c")}))
    >>> changed.domains, changed.shares.tolist()
    (('web', 'code'), [[0.5, 0.5], [0.75, 0.25]])
    """
    domains, matrix = change.matrix(table.domains)
    removed = [table.domains.index(name) for name in change.removals]
    kept = (table.shares[:, removed] == 0).all(axis=1)
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


def read_changes(path: Path | str) -> DomainChange:
    r"""The change that a file describes; its keys are the fields of `DomainChange`.

    >>> from pathlib import Path
    >>> _ = Path("changes.toml").write_text('[merges]\ncode = ["python", "c"]\n')
    >>> read_changes("changes.toml").merges
    {'code': ('python', 'c')}
    """
    path = Path(path)

    def bad(found: str) -> InputError:
        known = ", ".join(each.name for each in fields(DomainChange))
        return InputError(
            f"A file of changes should be TOML or JSON with {known}. Found {found} in `{path}`. "
            "docs/mixtures.md has an example."
        )

    try:
        text = read_plain(path, limit=SIZE_LIMIT).decode()
        found = json.loads(text) if path.suffix.lower() == ".json" else tomllib.loads(text)
    except FileNotFoundError as error:
        raise bad("no file") from error
    except UnreadableError as error:
        raise bad(error.found) from error
    except (ValueError, RecursionError) as error:
        raise bad("something that cannot be read as such") from error
    if not isinstance(found, dict):
        raise bad("no table of changes")
    unknown = sorted(set(found) - {each.name for each in fields(DomainChange)})
    if unknown:
        raise bad(f"the key {unknown[0]!r}")
    try:
        return from_plain(DomainChange, found)
    except InputError as error:
        raise InputError(f"{error} It stands in `{path}`.") from error
    except TypeError as error:
        raise bad(f"another form ({error})") from error


def _check_proportions(name: str, shares: Mapping[str, float]) -> None:
    if not shares:
        raise InputError(
            f"A split domain should have parts. Found none for {name!r}. Give each part its "
            "proportion, or list the domain among the removals."
        )
    wrong = [part for part, share in shares.items() if not (math.isfinite(share) and share >= 0)]
    if wrong:
        raise InputError(
            f"The proportions of a split should be numbers of at least 0. Found "
            f"{shares[wrong[0]]!r} for {wrong[0]!r} in the split of {name!r}. Correct it."
        )
    total = math.fsum(shares.values())
    if abs(total - 1) > SUMS_TO_ONE:
        raise InputError(
            f"The proportions of a split should sum to 1. Found {total:.6g} for {name!r}. Give the "
            "part of the old domain's tokens that each new one has."
        )


def _ambiguous(name: str) -> InputError:
    return InputError(
        f"A domain should come out of one change only. Found {name!r} twice among the new domains. "
        "Merge what should be one domain, or choose another name."
    )


def _listed(names: Iterable[str], most: int = 8) -> str:
    names = list(names)
    shown = ", ".join(repr(name) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


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
