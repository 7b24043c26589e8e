"""Categories that no row of `train` has: a model knows nothing of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from taskmix.tasks._columns._cells import cell_family
from taskmix.tasks._columns._stack import StackedFiles
from taskmix.tasks._formats import quoted


def unseen_categories(
    stack: StackedFiles,
    inputs: pa.Table,  # of all rows of the stack
    trained_on: NDArray[np.bool_],  # [row]
    used: NDArray[np.bool_],  # [row], whether it is in any split
) -> Iterator[str]:
    """A remark on each column that has some."""
    if not trained_on.any():
        return
    for name in inputs.column_names:
        if cell_family(inputs.schema.field(name).type) != "text":
            continue
        encoded = inputs.column(name).dictionary_encode().unify_dictionaries().combine_chunks()
        codes = np.asarray(encoded.indices.fill_null(-1).to_numpy(), dtype=np.int64)
        known = np.zeros(len(encoded.dictionary) + 1, dtype=np.bool_)
        known[codes[trained_on]] = True
        known[-1] = True  # that of no cell
        places = np.flatnonzero(used & ~known[codes])
        if len(places):
            value = quoted(encoded.dictionary[codes[places[0]]].as_py())
            rows = (
                "1 row outside train has a value"
                if len(places) == 1
                else (f"{len(places)} rows outside train have values")
            )
            yield f"`{name}`: {rows} that train does not have; the first is {value} in " + (
                stack.where(int(places[0]))
            )
