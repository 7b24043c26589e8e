"""Golden cases that have no command: the estimators with scikit-learn's manners."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import taskmix
from taskmix.laws import LawRegressor

QUICK: dict[str, Any] = {"steps": 60, "learning_rate": 0.02, "random_state": 0}


def _rows() -> tuple[Any, Any, Any]:
    random = np.random.default_rng(11)
    inputs = random.normal(size=(80, 3))
    return inputs, inputs[:, 0] * np.where(np.arange(80) % 2, 1.0, -1.0), np.arange(80) % 2


def classifier() -> dict[str, Any]:
    inputs, values, tasks = _rows()
    names = np.where(tasks, "loan", "card")
    model = taskmix.MultitaskClassifier(**QUICK).fit(
        inputs, np.where(values > 0, 7, 3), tasks=names
    )
    return {
        "tasks": list(model.tasks_),
        "classes": model.classes_,
        "probabilities": model.predict_proba(inputs[:10], names[:10]),
        "answers": model.predict(inputs[:10], names[:10]),
        "score": model.score(inputs, np.where(values > 0, 7, 3), tasks=names),
    }


def regressor() -> dict[str, Any]:
    inputs, values, tasks = _rows()
    model = taskmix.MultitaskRegressor(**QUICK).fit(inputs, values, tasks=tasks)
    return {
        "answers": model.predict(inputs[:10], tasks[:10]),
        "score": model.score(inputs, values, tasks=tasks),
    }


def law_regressor() -> dict[str, Any]:
    random = np.random.default_rng(12)
    n, tasks = random.integers(10, 200, 60), random.integers(1, 16, 60)
    values = 0.02 * n**0.5 * tasks**0.25 * (1 + 0.02 * random.normal(size=60))
    model = LawRegressor().fit({"n": n, "T": tasks}, values)
    return {
        "inputs": model.feature_names_in_,
        "predictions": model.predict({"n": [50, 500], "T": [2, 20]}),
        "score": model.score({"n": n, "T": tasks}, values),
        "front": len(model.front_) > 2,
    }


PYTHON_CASES: dict[str, Callable[[], dict[str, Any]]] = {
    "python_classifier": classifier,
    "python_regressor": regressor,
    "python_law_regressor": law_regressor,
}
