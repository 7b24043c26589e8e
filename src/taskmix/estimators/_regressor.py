"""`MultitaskRegressor`: numbers of several tasks by one shared model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import column_or_1d

from taskmix.estimators._multitask import Multitask
from taskmix.estimators._rows import by_task
from taskmix.tasks import TaskKind


class MultitaskRegressor(RegressorMixin, Multitask):  # type: ignore[misc]
    """The same for numbers; each task's are learned in units of their own spread.

    >>> X = np.linspace(0, 1, 32)[:, None]
    >>> regressor = MultitaskRegressor(steps=100, random_state=0).fit(X, 100 + 50 * X[:, 0])
    >>> regressor.score(X, 100 + 50 * X[:, 0]) > 0.9
    True
    """

    _kind: TaskKind = "regression"

    def _learn_targets(self, target: Any, tasks: NDArray[Any]) -> Any:
        numbers = column_or_1d(target, warn=True).astype(np.float64)
        self.levels_: dict[str, tuple[float, float]] = {}  # by task: the mean and the spread
        learned = np.empty(len(numbers))
        for name in dict.fromkeys(tasks.tolist()):
            own = numbers[tasks == name]
            spread = float(own.std()) or 1.0
            self.levels_[name] = (float(own.mean()), spread)
            learned[tasks == name] = (own - own.mean()) / spread
        return learned

    def predict(self, X: Any, tasks: Any = None) -> NDArray[np.float64]:
        """[row], in the units of the targets."""
        rows = self._rows_to_answer(X, tasks)
        found = np.empty(rows.inputs.num_rows)
        for name, places, part in by_task(rows):
            level, spread = self.levels_[name]
            answers = self.model_.predict(part, name)
            found[places] = level + spread * np.array([each["value"] for each in answers])
        return found

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, tasks: Any = None) -> float:
        """The share of the variance explained, over all rows."""
        from sklearn.metrics import r2_score

        return float(r2_score(y, self.predict(X, tasks), sample_weight=sample_weight))
