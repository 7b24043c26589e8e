"""`MultitaskClassifier`: classes of several tasks by one shared model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from taskmix.estimators._multitask import Multitask
from taskmix.estimators._rows import TaskRows
from taskmix.tasks import TaskKind


class MultitaskClassifier(ClassifierMixin, Multitask):  # type: ignore[misc]
    """A classifier whose rows belong to one task or several, trained as one model.

    `classes_` has the classes of all tasks; a row's probabilities are zero for those its task does not
    have. Rows of a task that was not learned, or whose rows in `fit` all had one class, get the mean of
    what the other tasks answer, weighed by their rows, and a warning. `policy`, `weighting` or a `plan`
    of `taskmix.advise` says how tasks are drawn and weighed; without any all are drawn alike. What was
    trained is `model_`, a `TrainedModel`.

    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]] * 8)
    >>> y = np.array(["low", "low", "high", "high"] * 8)
    >>> classifier = MultitaskClassifier(steps=60, random_state=0).fit(X, y)
    >>> classifier.predict([[0.0], [3.0]]).tolist(), classifier.score(X, y)
    (['low', 'high'], 1.0)
    >>> frame = {"kind": ["a", "b"] * 16, "x": X[:, 0], "size": y}
    >>> several = MultitaskClassifier(steps=60, random_state=0)
    >>> several.fit(frame, task_column="kind", label="size").tasks_
    ('a', 'b')
    """

    _kind: TaskKind = "classification"

    def _learn_targets(self, target: NDArray[Any], rows: TaskRows) -> Any:
        check_classification_targets(target)
        self.classes_, codes = np.unique(target, return_inverse=True)
        own = {name: set(codes[places].tolist()) for name, places in rows.places.items()}
        several = set().union(*(classes for classes in own.values() if len(classes) > 1))
        self._ask_others_about(
            [name for name, classes in own.items() if len(classes) == 1 and classes <= several]
        )
        return codes.astype(str).astype(object)

    def predict_proba(self, X: Any, tasks: Any = None) -> NDArray[np.float64]:
        """[row, class of `classes_`]."""
        rows = self._rows_to_answer(X, tasks)
        found = np.zeros((rows.inputs.num_rows, len(self.classes_)))
        for name, places, part in rows.by_task():
            for task, share in self._shares_of_answer(name).items():
                columns = np.array([int(label) for label in self.model_.question(task).labels])
                found[np.ix_(places, columns)] += share * self.model_.probabilities(part, task)
        return found

    def predict(self, X: Any, tasks: Any = None) -> NDArray[Any]:
        """[row], the most likely class of its task."""
        places = self.predict_proba(X, tasks).argmax(axis=1)
        return np.asarray(self.classes_[places])

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, tasks: Any = None) -> float:
        """The accuracy over all rows."""
        from sklearn.metrics import accuracy_score

        return float(accuracy_score(y, self.predict(X, tasks), sample_weight=sample_weight))
