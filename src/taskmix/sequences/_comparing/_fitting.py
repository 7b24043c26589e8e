"""How a function that needs several fits asks for each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from taskmix.sequences._estimator import Tasks


class Fitting(Protocol):
    """Fits a model and gives what `result` then says of it.

    The name says what the fit is for. Who has done it before may give the model what it had learned.
    """

    def __call__(
        self,
        name: str,
        model: Any,
        sequences: Sequence[Any],
        tasks: Tasks,
        result: Callable[[], Any],
    ) -> Any: ...


def fit_now(
    name: str, model: Any, sequences: Sequence[Any], tasks: Tasks, result: Callable[[], Any]
) -> Any:
    """Fits whatever the name is."""
    model.fit(sequences, tasks)
    return result()
