"""What both estimators share: from rows to tasks, one training by the engine, and answers by task."""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from taskmix.engine import GivenTasks, Here, Optimization, Run, choose_device, trained_model
from taskmix.errors import OptionError
from taskmix.estimators._rows import (
    TARGET,
    TaskRows,
    array_as_table,
    by_task,
    split_frame,
    task_rows,
    texts_as_table,
)
from taskmix.models import choose_architecture
from taskmix.plans import Plan
from taskmix.policies import AnyPolicy
from taskmix.records import Study
from taskmix.tasks import TaskKind, TaskSet, is_frame, load_tasks
from taskmix.weighting import AnyWeighting


class Multitask(BaseEstimator, ABC):  # type: ignore[misc]
    """One model for the tasks that rows belong to; the two estimators differ in their targets."""

    _kind: TaskKind

    def __init__(
        self,
        *,
        model: str = "auto",
        steps: int = 1000,
        batch_size: int = 32,
        learning_rate: float | None = None,
        policy: AnyPolicy | None = None,
        weighting: AnyWeighting | None = None,
        plan: Plan | None = None,
        task_column: str | None = None,
        device: str = "cpu",
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.steps = steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.policy = policy
        self.weighting = weighting
        self.plan = plan
        self.task_column = task_column
        self.device = device
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # a missing cell, as in a file
        tags.input_tags.string = True
        tags.target_tags.required = True
        return tags

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        tasks: Any = None,
        task_column: str | None = None,
        label: str | None = None,
    ) -> Self:
        """Trains on rows and their targets.

        `X` is an array, a list of texts, or a frame (pandas, polars, Arrow), `y` the target of each row,
        or of a frame the column `label`. `tasks` names the task of each row, or of a frame
        `task_column` the column that does; without either there is one task.
        """
        self.task_column_ = task_column or self.task_column
        rows, target = self._rows_to_learn(X, y, tasks, label)
        targets = self._learn_targets(target, rows.tasks)
        self.tasks_ = tuple(dict.fromkeys(rows.tasks.tolist()))
        self._train(rows, targets)
        return self

    @abstractmethod
    def _learn_targets(self, target: Any, tasks: NDArray[Any]) -> Any:
        """The targets as the loader takes them; what is needed to turn answers back is kept."""

    def _rows_to_learn(self, X: Any, y: Any, tasks: Any, label: str | None) -> tuple[TaskRows, Any]:
        named = label is not None or self.task_column_ is not None
        if label is not None and y is not None:
            raise OptionError(
                "Targets should be `y` or the column `label`, one of the two. Found both."
            )
        self._is_framed = named or (is_frame(X) and not _is_numeric(X))
        if self._is_framed:
            table, inside, target = split_frame(X, self.task_column_, label)
            self._label = label
            self.n_features_in_ = table.num_columns
            self.feature_names_in_ = np.asarray(table.column_names, dtype=object)
            return task_rows(table, tasks if inside is None else inside), _given(self, target, y)
        if _are_texts(X):
            return task_rows(texts_as_table(X), tasks, is_text=True), _given(self, None, y)
        _given(self, None, y)
        values, target = validate_data(
            self,
            X,
            y,
            ensure_all_finite="allow-nan",
            y_numeric=self._kind == "regression",
            dtype=np.float64,
        )
        names = getattr(self, "feature_names_in_", None)
        return task_rows(array_as_table(values, names), tasks), target

    def _train(self, rows: TaskRows, targets: Any) -> None:
        source = GivenTasks.of(self._make_tasks(rows, targets))
        loaded = source.load()
        device = choose_device(self.device)
        architecture, tuning = choose_architecture(self.model, loaded, device=device)
        rate = Optimization.usual_rate(self.learning_rate, tuning=tuning)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        template = Run(
            label="estimator",
            source=source,
            architecture=architecture,
            optimization=Optimization(learning_rate=rate),
            policy=self.policy,
            weighting=self.weighting,
            steps=self.steps,
            batch_size=self.batch_size,
            device=device,
            seed=seed,
        )
        served = [(template, loaded.names)]
        if self.plan is not None:
            if self.policy is not None or self.weighting is not None:
                raise OptionError(
                    "A plan says how tasks are drawn and weighed. Found a policy or a weighting beside "
                    "it. Leave one of them out."
                )
            runs = self.plan.runs(template, seeds=(seed,))
            served = [(run, part.scored) for run, part in zip(runs, self.plan.models, strict=True)]
        with tempfile.TemporaryDirectory(prefix="taskmix-fit-") as folder:
            study = Study(Path(folder) / "study")
            Here(workers=1).run([run for run, _ in served], study)
            self.model_ = trained_model(served, study)

    def _make_tasks(self, rows: TaskRows, targets: NDArray[Any]) -> TaskSet:
        """The tasks one by one, so that each has the classes of its own rows alone."""
        features = None if rows.is_text else tuple(rows.inputs.column_names)
        texts = None
        if self._is_framed and (texts := _text_column(rows.inputs)):
            features = None
        made = []
        for name, places, part in by_task(rows):
            table = part.append_column(TARGET, pa.array(targets[places]))
            # All rows are learned from; as dev, which the engine asks for, they decide nothing.
            (task,) = load_tasks(
                {"train": table, "dev": table},
                label=TARGET,
                features=features,
                text=texts,
                kind=self._kind,
            )
            made.append(replace(task, name=name, source=name))
        return TaskSet(tuple(made))

    def _rows_to_answer(self, X: Any, tasks: Any) -> TaskRows:
        check_is_fitted(self)
        if self._is_framed:
            column = self.task_column_
            table, inside, _ = split_frame(X, None if tasks is not None else column, None)
            return self._with_task(table, tasks if inside is None else inside)
        if _are_texts(X):
            return self._with_task(texts_as_table(X), tasks, is_text=True)
        values = validate_data(
            self, X, reset=False, ensure_all_finite="allow-nan", dtype=np.float64
        )
        names = getattr(self, "feature_names_in_", None)
        return self._with_task(array_as_table(values, names), tasks)

    def _with_task(self, table: pa.Table, tasks: Any, *, is_text: bool = False) -> TaskRows:
        """The rows with their tasks; where one was learned, its name need not be said."""
        if tasks is None and len(self.tasks_) > 1:
            raise OptionError(
                f"`tasks` should name the task of each row, among {', '.join(self.tasks_[:10])}. Found "
                "none, and more than one was learned."
            )
        if tasks is None:
            tasks = np.full(table.num_rows, self.tasks_[0])
        rows = task_rows(table, tasks, is_text=is_text)
        for name in set(rows.tasks.tolist()) - set(self.model_.tasks):
            raise OptionError(
                f"The tasks should be among {', '.join(self.tasks_[:10])}. Found `{name}`."
            )
        return rows


def _given(estimator: Multitask, inside: Any, y: Any) -> Any:
    if inside is None and y is None:
        raise ValueError(  # as scikit-learn's own estimators say it
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y is "
            "None."
        )
    return y if inside is None else inside


def _are_texts(X: Any) -> bool:
    """Whether it is one text for each row: of a list, an array, or a column of a frame."""
    if isinstance(X, str) or not hasattr(X, "__len__") or is_frame(X):
        return False
    if len(getattr(X, "shape", (0,))) != 1 or not len(X):
        return False
    return isinstance(next(iter(X)), str)


def _is_numeric(frame: Any) -> bool:
    """Whether every column of a frame is one of numbers, which scikit-learn then reads itself."""
    kinds = getattr(frame, "dtypes", None)
    if kinds is None or not hasattr(frame, "iloc"):
        return False
    return all(getattr(kind, "kind", "O") in "biuf" for kind in kinds)


def _text_column(table: pa.Table) -> str | None:
    """A frame with one column, of text, is texts; others are tables, whose text is categories."""
    only = table.column_names[0] if table.num_columns == 1 else None
    is_text = only is not None and pa.types.is_string(table.column(only).type)
    return only if is_text else None
