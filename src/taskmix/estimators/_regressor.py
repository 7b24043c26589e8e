"""`MultitaskRegressor`: numbers of several tasks by one shared model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import assert_all_finite

from taskmix.estimators._multitask import Multitask
from taskmix.estimators._rows import TaskRows
from taskmix.tasks import TaskKind


class MultitaskRegressor(RegressorMixin, Multitask):  # type: ignore[misc]
    """The same for numbers; each task's are learned in units of their own spread.

    >>> X = np.linspace(0, 1, 32)[:, None]
    >>> regressor = MultitaskRegressor(steps=100, random_state=0).fit(X, 100 + 50 * X[:, 0])
    >>> regressor.score(X, 100 + 50 * X[:, 0]) > 0.9
    True
    """

    _kind: TaskKind = "regression"

    def _learn_targets(self, target: NDArray[Any], rows: TaskRows) -> Any:
        numbers = target.astype(np.float64)
        assert_all_finite(numbers, input_name="target")
        self.levels_: dict[str, tuple[float, float]] = {}  # by task: the mean and the spread
        learned = np.empty(len(numbers))
        for name, places in rows.places.items():
            own = numbers[places]
            spread = float(own.std()) or 1.0
            self.levels_[name] = (float(own.mean()), spread)
            learned[places] = (own - own.mean()) / spread
        return learned

    def predict(self, X: Any, tasks: Any = None) -> NDArray[np.float64]:
        """[row], in the units of the targets."""
        rows = self._rows_to_answer(X, tasks)
        found = np.zeros(rows.inputs.num_rows)
        for name, places, part in rows.by_task():
            for task, share in self._shares_of_answer(name).items():
                level, spread = self.levels_[task]
                answers = self.model_.predict(part, task)
                values = level + spread * np.array([each["value"] for each in answers])
                found[places] += share * values
        return found

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, tasks: Any = None) -> float:
        """The share of the variance explained, over all rows."""
        from sklearn.metrics import r2_score

        return float(r2_score(y, self.predict(X, tasks), sample_weight=sample_weight))
