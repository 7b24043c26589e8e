"""Tasks out of what Python holds: one frame, frames by split or by task, pairs of inputs and targets.

| given                                                     | tasks                                  |
|-----------------------------------------------------------|----------------------------------------|
| a frame, or a mapping from columns to values              | as a file has: one, or one for each    |
|                                                           | value of a column                      |
| a mapping from `train`, `dev`, ... to frames              | one, with these splits                 |
| a mapping from other names to any of these, or to a tuple | one or more for each name              |
| `(train, dev)` or `(train, dev, test)`                    | one, with these splits                 |
| `(X, y)`, or a data set that gives (input, target)        | one; vectors are columns, texts a text |

Data sets of the Hugging Face hub, by name, and those that `save_to_disk` has left in a folder are here
too. Their splits are named as files are (`validation` is `dev`), class numbers become the class names,
and a split whose classes are hidden (-1 in every row, as in the test sets of GLUE) is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import InputError
from taskmix.extras import load
from taskmix.tasks._formats._readers import Rows
from taskmix.tasks._formats._words import Notes, quoted
from taskmix.tasks._frames import (
    Given,
    Pairs,
    are_pairs,
    columns_of_pairs,
    is_table,
    pairs_of,
    rows_of,
    saved_splits,
)
from taskmix.tasks._loading._build import Origin
from taskmix.tasks._loading._splits import (
    MAIN_SPLITS,
    divide_rows,
    name_splits,
    order_splits,
    put_aside,
)

WHOLE = ""  # the one part of rows that are still to be divided


@dataclass(frozen=True)
class GivenShape:
    """One task, or the rows of several, as it was given: a part for each split, or one to be divided."""

    name: str  # empty where it was given alone
    parts: Mapping[str, Any]
    others: tuple[str, ...] = ()  # names beside those of splits, which are left alone

    @property
    def whole(self) -> bool:
        return WHOLE in self.parts

    def where(self, split: str) -> str:
        """What a sentence calls a part."""
        which = f"{split} frame" if split else "frame"
        return f"the {which} of {self.name}" if self.name else f"the {which}"


def find_shapes(given: Any) -> list[GivenShape]:
    """What tasks are given, without reading their rows."""
    if isinstance(given, Mapping) and not is_table(given):
        if not given:
            raise InputError("There should be at least one task. Found none.")
        if (alone := _by_split("", given)) is not None:
            return [alone]
        return [_named_shape(str(name), each) for name, each in given.items()]
    return [_named_shape("", given)]


def _named_shape(name: str, given: Any) -> GivenShape:
    if is_table(given) or are_pairs(given):
        return GivenShape(name, {WHOLE: given})
    if isinstance(given, Mapping) and (found := _by_split(name, given)) is not None:
        return found
    if isinstance(given, Sequence) and not isinstance(given, str) and 1 <= len(given) <= 3:
        parts = dict(zip(MAIN_SPLITS, given, strict=False))
        kept = {split: part for split, part in parts.items() if part is not None}
        if "train" in kept and all(map(_is_part, kept.values())):
            return GivenShape(name, kept)
    what = f"Task `{name}`" if name else "What tasks are made of"
    raise InputError(
        f"{what} should be a frame (pandas, polars, Arrow, a Hugging Face data set, a mapping from "
        "columns to values, a list of mappings), or (train, dev, test), or a mapping with these names, "
        f"each a frame, arrays (X, y) or a data set of (input, target). Found {type(given).__name__}."
    )


def _is_part(part: Any) -> bool:
    return is_table(part) or are_pairs(part) or isinstance(part, list | tuple)


def _by_split(name: str, given: Mapping[Any, Any]) -> GivenShape | None:
    """A mapping whose keys are splits: all of them, or `train` among others."""
    kept = {str(key): part for key, part in given.items() if part is not None}
    names = name_splits(kept)
    if not names or not ("train" in names.values() or len(names) == len(kept)):
        return None
    parts = {split: kept[key] for key, split in names.items()}
    others = tuple(key for key in kept if key not in names)
    return GivenShape(name, {split: parts[split] for split in order_splits(parts)}, others)


def read_shape(shape: GivenShape) -> Iterator[tuple[str, Given]]:
    """The rows of each part."""
    for split, part in shape.parts.items():
        where = shape.where(split)
        found = rows_of(part, where)
        if found is None:
            columns = columns_of_pairs(
                shape.name or "the task", *pairs_of(shape.name or where, part)
            )
            found = rows_of(columns, where)
        if found is None:
            raise AssertionError("columns have rows")
        yield split, found


def origins_in_memory(given: Any, notes: Notes) -> list[Origin]:
    """The origins of tasks that were given as frames, pairs, or mappings of these."""
    shapes = find_shapes(given)
    return [_origin(shape, notes, is_only=len(shapes) == 1 and not shape.name) for shape in shapes]


def _origin(shape: GivenShape, notes: Notes, *, is_only: bool) -> Origin:
    about = f" of `{shape.name}`" if shape.name else ""
    if shape.others:
        names = ", ".join(quoted(name) for name in shape.others[:5])
        notes.add(f"{names}{about} name no split and were left alone")
    parts = join_given(dict(read_shape(shape)), about, notes)
    return Origin(name=shape.name, parts=parts, whole=shape.whole, is_only=is_only)


def join_given(given: Mapping[str, Given], about: str, notes: Notes) -> dict[str, Any]:
    """The rows of splits, without those whose classes are hidden."""
    parts = {}
    for split, found in given.items():
        for remark in found.remarks:
            notes.add(remark)
        if found.hidden and len(given) > 1:
            notes.add(f"the split `{split}`{about} was left out, because its labels are hidden")
        else:
            parts[split] = found.rows
    return parts


def split_pairs(parts: Mapping[str, Pairs]) -> tuple[dict[str, Pairs], str | None]:
    """Pairs with a `dev`: what has none is divided as a file is; and what is to be noted."""
    if WHOLE in parts:
        targets = parts[WHOLE][1]
        codes = divide_rows(len(targets), _strata(targets))
        divided = {
            split: _rows_at(parts[WHOLE], np.flatnonzero(codes == code))
            for code, split in enumerate(MAIN_SPLITS)
        }
        said = "it is not divided, so 80, 10 and 10 rows in a hundred became train, dev and test"
        return {split: each for split, each in divided.items() if len(each[1])}, said
    if "dev" in parts:
        return dict(parts), None
    targets = parts["train"][1]
    aside = put_aside(len(targets), _strata(targets))
    train, dev = (_rows_at(parts["train"], np.flatnonzero(each)) for each in (~aside, aside))
    others = {split: each for split, each in parts.items() if split != "train"}
    said = "there is no dev split, so every tenth row of train was put aside as dev"
    return {"train": train, "dev": dev, **others}, said


def _strata(targets: Any) -> NDArray[np.int64] | None:
    """[row], the class of each; None where targets are numbers that are not whole, or no plain ones."""
    cells = np.asarray([each.item() if hasattr(each, "item") else each for each in targets])
    if cells.ndim != 1 or cells.dtype.kind not in "biuUS":
        return None
    return np.unique(cells, return_inverse=True)[1]


def _rows_at(pairs: Pairs, places: NDArray[np.int64]) -> Pairs:
    return _taken(pairs[0], places), _taken(pairs[1], places)


def _taken(values: Any, places: NDArray[np.int64]) -> Any:
    if hasattr(values, "shape"):
        return values[places]
    return [values[place] for place in places]


def hub_parts(name: str, config: str | None, notes: Notes) -> dict[str, Rows]:
    """The splits of a data set of the hub."""
    datasets = load("datasets", purpose="Loading tasks from the hub")
    try:
        found = datasets.load_dataset(name, config)
    except (OSError, ValueError, RuntimeError) as error:  # not there, no way there, another config
        raise InputError(
            f"`hf:{name}` should be a data set that the hub has and that can be reached. Found "
            f"{type(error).__name__}: {quoted(str(error), limit=200)}. Check the name, the "
            "configuration (`hf:name:config`) and the connection."
        ) from error
    return dataset_parts(f"hf:{name}" + (f":{config}" if config else ""), found, notes)


def dataset_parts(name: str, found: Any, notes: Notes) -> dict[str, Rows]:
    """The splits of a `DatasetDict`; a `Dataset` is one split, `train`."""
    splits: Mapping[str, Any] = found if isinstance(found, Mapping) else {"train": found}
    given = {key: each for key, each in splits.items() if key in name_splits(splits)}
    return _named_splits(
        name,
        tuple(splits),
        {key: rows for key, each in given.items() if (rows := rows_of(each, f"{name}/{key}"))},
        notes,
    )


def saved_origin(folder: Path, name: str, notes: Notes, byte_limit: int | None = None) -> Origin:
    """The folder of a saved `Dataset`, to be divided, or of a saved `DatasetDict`."""
    found = saved_splits(folder, byte_limit=byte_limit)
    if WHOLE in found:
        return Origin(name=name, parts={WHOLE: found[WHOLE].rows}, whole=True, is_only=True)
    parts = _named_splits(str(folder), tuple(found), found, notes)
    return Origin(name=name, parts=parts, is_only=True)


def _named_splits(
    name: str, known: tuple[str, ...], found: Mapping[str, Given], notes: Notes
) -> dict[str, Rows]:
    parts: dict[str, Rows] = {}
    for key, split in name_splits(known).items():
        if found[key].hidden:
            notes.add(f"the split `{key}` of {name} was left out, because its labels are hidden")
        else:
            parts[split] = replace(found[key].rows, format="hub")
    if not parts:
        raise InputError(
            f"`{name}` should have a split named train, dev, validation or test. Found "
            f"{', '.join(map(str, known)) or 'none'}. Load it yourself and write the splits to files."
        )
    return {split: parts[split] for split in order_splits(parts)}
