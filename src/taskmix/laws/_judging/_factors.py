"""Columns that name the group of a row: one, or several that cross (a model and a data set)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import InputError, ShapeError

GROUP = "group"  # what the column is called where it has no name
TARGET = "target"  # the column of what a row explains, where several columns are explained
TOGETHER = " / "  # between the names of a cell


@dataclass(frozen=True, eq=False)
class GroupFactors:
    """The levels of each column of groups, and of all together where there are several."""

    levels: Mapping[str, tuple[str, ...]]  # [column][level], names
    codes: Mapping[str, NDArray[np.intp]]  # [column][row], places among the levels; -1 is unknown
    columns: tuple[str, ...]  # without the one of all together

    @classmethod
    def of(cls, groups: Any, rows: int) -> GroupFactors:
        """From labels, or from several columns of labels by name."""
        labels = _labels(groups)
        for name, column in labels.items():
            if len(column) != rows:
                raise ShapeError(
                    f"`{name}` should name a group for each of the {rows} rows. Found {len(column)}."
                )
        kept = {name: column for name, column in labels.items() if len(set(column)) > 1}
        if not kept:
            raise InputError("There should be at least two groups. Found 1.")
        names = tuple(kept)
        if len(kept) > 1:
            kept[TOGETHER.join(names)] = [
                TOGETHER.join(each) for each in zip(*kept.values(), strict=True)
            ]
        levels = {name: tuple(sorted(set(column))) for name, column in kept.items()}
        return cls(levels, _coded(kept, levels), names)

    @property
    def whole(self) -> str:
        """The column of all together."""
        return TOGETHER.join(self.columns)

    @property
    def cells(self) -> tuple[str, ...]:
        """Every group, by all columns."""
        return self.levels[self.whole]

    @property
    def cell(self) -> NDArray[np.intp]:
        """[row], places among the cells."""
        return self.codes[self.whole]

    def __len__(self) -> int:
        return len(self.cell)

    def rows(self, places: NDArray[np.integer[Any]]) -> GroupFactors:
        """Of some rows, the levels as they were."""
        codes = {name: column[places] for name, column in self.codes.items()}
        return GroupFactors(self.levels, codes, self.columns)

    def named(self, groups: Any, rows: int) -> GroupFactors:
        """Other rows by their labels; groups that were not there have no place."""
        labels = _labels(groups)
        if len(self.columns) == 1 and len(labels) == 1:
            labels = {self.columns[0]: next(iter(labels.values()))}
        elif set(labels) == {GROUP}:  # cells, as they are printed
            parts = [label.split(TOGETHER) for label in labels[GROUP]]
            labels = {
                name: [each[place] if len(each) == len(self.columns) else "" for each in parts]
                for place, name in enumerate(self.columns)
            }
        missing = [name for name in self.columns if name not in labels]
        if missing:
            raise InputError(
                f"The group should be given by {', '.join(self.columns)}. Found nothing for "
                f"`{missing[0]}`."
            )
        kept = {name: labels[name] for name in self.columns}
        if len(kept) > 1:
            kept[self.whole] = [TOGETHER.join(each) for each in zip(*kept.values(), strict=True)]
        for name, column in kept.items():
            if len(column) != rows:
                raise ShapeError(
                    f"`{name}` should name a group for each of the {rows} rows. Found {len(column)}."
                )
        return GroupFactors(self.levels, _coded(kept, self.levels), self.columns)

    def of_cell(self, cell: str) -> dict[str, int]:
        """The places of one cell in every column, from a row that has it."""
        row = int(np.flatnonzero(self.cell == self.cells.index(cell))[0])
        return {name: int(column[row]) for name, column in self.codes.items()}


def _labels(groups: Any) -> dict[str, list[str]]:
    if isinstance(groups, Mapping):
        return {str(name): [str(each) for each in column] for name, column in groups.items()}
    if hasattr(groups, "columns"):
        return {str(name): [str(each) for each in groups[name]] for name in groups.columns}
    name = str(getattr(groups, "name", None) or GROUP)
    return {name: [str(each) for each in _each(groups)]}


def _each(groups: Iterable[Any]) -> Sequence[Any]:
    return groups.tolist() if isinstance(groups, np.ndarray) else list(groups)


def _coded(
    labels: Mapping[str, Sequence[str]], levels: Mapping[str, tuple[str, ...]]
) -> dict[str, NDArray[np.intp]]:
    found = {}
    for name, column in labels.items():
        place = {level: number for number, level in enumerate(levels[name])}
        found[name] = np.array([place.get(each, -1) for each in column], dtype=np.intp)
    return found
