"""What was made of a table, kept for as long as the table lives.

Runs on different subsets of the same tasks hold the same tables, so what is made of a table row by
row is made once in a process, and runs that train together find that they share it.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable
from typing import Generic, TypeVar

import pyarrow as pa

Made = TypeVar("Made")


class KeptByTable(Generic[Made]):
    """A value for each pair of a table, as an object, and the options it was made with.

    >>> import pyarrow as pa
    >>> kept, table = KeptByTable(), pa.table({"text": ["good"]})
    >>> kept.put(table, "lengths", [4])
    [4]
    >>> kept.get(table, "lengths"), kept.get(table, "words")
    ([4], None)
    """

    def __init__(self) -> None:
        self._values: dict[int, dict[Hashable, Made]] = {}

    def get(self, table: pa.Table, options: Hashable) -> Made | None:
        return self._values.get(id(table), {}).get(options)

    def put(self, table: pa.Table, options: Hashable, value: Made) -> Made:
        if id(table) not in self._values:
            # A table cannot be a key of a dictionary, and its number is given away after its end.
            weakref.finalize(table, self._values.pop, id(table), None)
        self._values.setdefault(id(table), {})[options] = value
        return value

    def __len__(self) -> int:
        return len(self._values)


JOINED: KeptByTable[tuple[pa.Table, ...]] = KeptByTable()  # the tables that one was joined from
