"""What a trained model answers: a list of mappings, one a row, that becomes a frame on demand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from taskmix.errors import OptionError


class Answers(list[dict[str, Any]]):
    """A mapping for each row, and the same as a table of any kind.

    >>> answers = Answers([{"label": "yes", "probability": 0.75}, {"label": "no", "probability": 0.5}])
    >>> answers[0]["label"], answers.to_dict()["probability"]
    ('yes', [0.75, 0.5])
    >>> answers.to_arrow().column_names
    ['label', 'probability']
    """

    def __init__(self, answers: Iterable[dict[str, Any]] = (), *, index: Any = None) -> None:
        super().__init__(answers)
        self._frame_index = index  # of pandas, whose rows they are for; None: they are numbered

    def to_dict(self) -> dict[str, list[Any]]:
        """The columns; an answer that has no such cell has None."""
        names = dict.fromkeys(name for answer in self for name in answer)
        return {name: [answer.get(name) for answer in self] for name in names}

    def to_arrow(self) -> pa.Table:
        return pa.table(self.to_dict())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Whatever speaks Arrow takes them: `polars.DataFrame(answers)`."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """A pandas frame, with the index of the frame that was answered for: `frame.join` takes it."""
        pandas = _imported("pandas")
        return pandas.DataFrame(self.to_dict(), index=self._frame_index)

    def to_polars(self) -> Any:
        return _imported("polars").DataFrame(self.to_dict())


def _imported(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as error:
        raise OptionError(
            f"`{name}` should be installed for a frame of it. Found none ({error}). Install it, or use "
            "`to_arrow` or `to_dict`."
        ) from error
