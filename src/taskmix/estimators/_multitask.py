"""What both estimators share: from rows to tasks, one training by the engine, and answers by task."""

from __future__ import annotations

import tempfile
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from taskmix.engine import GivenTasks, Here, Optimization, Run, choose_device, trained_model
from taskmix.errors import InputError, OptionError, TaskmixWarning
from taskmix.estimators._rows import (
    TARGET,
    TASK,
    TaskRows,
    are_texts,
    array_as_table,
    frame_or_texts,
    is_numeric,
    take_column,
    task_rows,
)
from taskmix.models import choose_architecture
from taskmix.plans import Plan
from taskmix.policies import AnyPolicy
from taskmix.records import Study
from taskmix.tasks import TaskKind, TaskSet, frame_table, is_frame, load_tasks
from taskmix.weighting import AnyWeighting


class Multitask(BaseEstimator, ABC):  # type: ignore[misc]
    """One model for the tasks that rows belong to; the two estimators differ in their targets."""

    _kind: TaskKind
    _of_one_class: frozenset[str] = frozenset()

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
        text: str | Sequence[str] | None = None,
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
        self.text = text
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
        text: str | Sequence[str] | None = None,
    ) -> Self:
        """Trains on rows and their targets.

        `X` is an array, a list of texts, or a frame (pandas, polars, Arrow), `y` the target of each row,
        or of a frame the column `label`. `tasks` names the task of each row, or of a frame
        `task_column` the column that does; without either there is one task. What the columns of a
        frame are is found as `taskmix.check_tasks` finds it; `text` names the column of text, or two.
        """
        self.task_column_ = task_column or self.task_column
        self.text_ = text or self.text
        rows, target = self._rows_to_learn(X, y, tasks, label)
        targets = self._learn_targets(target, rows)
        self.tasks_ = tuple(rows.places)
        self._sizes = {name: len(places) for name, places in rows.places.items()}
        self._train(rows, targets)
        return self

    @abstractmethod
    def _learn_targets(self, target: NDArray[Any], rows: TaskRows) -> Any:
        """The targets as the loader takes them; what is needed to turn answers back is kept."""

    def _rows_to_learn(self, X: Any, y: Any, tasks: Any, label: str | None) -> tuple[TaskRows, Any]:
        if label is not None and y is not None:
            raise OptionError(
                "Targets should be `y` or the column `label`, one of the two. Found both."
            )
        if label is None and y is None:
            raise ValueError(  # as scikit-learn's own estimators say it
                f"This {type(self).__name__} estimator requires y to be passed, but the target y is "
                "None."
            )
        named = label is not None or self.task_column_ is not None
        self._has_columns = named or are_texts(X) or (is_frame(X) and not is_numeric(X))
        if self._has_columns:
            table, inside = take_column(frame_or_texts(X), self.task_column_)
            table, targets = take_column(table, label)
            self.n_features_in_ = table.num_columns
            self.feature_names_in_ = np.asarray(table.column_names, dtype=object)
            rows = task_rows(table, inside if tasks is None else tasks)
            y = y if targets is None else np.asarray(targets.to_pylist())
        else:
            values, y = validate_data(
                self,
                X,
                y,
                ensure_all_finite="allow-nan",
                y_numeric=self._kind == "regression",
                dtype=np.float64,
            )
            table = self._array_as_table(values)
            features = None if is_frame(X) else tuple(table.column_names)
            rows = task_rows(table, tasks, features)
        y = column_or_1d(y, warn=True)
        check_consistent_length(rows.inputs, y)
        without = frame_table({"y": y}).column("y").is_null()
        if (place := without.index(pa.scalar(True)).as_py()) >= 0:
            raise InputError(
                f"Every row should have a target. Found none in row {place + 1}. Take out the rows "
                "without one."
            )
        return rows, y

    def _array_as_table(self, values: NDArray[Any]) -> pa.Table:
        unnamed = [f"x{place}" for place in range(values.shape[1])]
        return array_as_table(values, getattr(self, "feature_names_in_", unnamed))

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
        """The tasks as `load_tasks` reads them: columns by their roles, classes by the task's rows."""
        owners = np.empty(rows.inputs.num_rows, dtype=np.int64)
        for number, places in enumerate(rows.places.values()):
            owners[places] = number  # names of tasks need no reading
        table = rows.inputs.append_column(TARGET, pa.array(targets))
        table = table.append_column(TASK, pa.array(owners))
        read = partial(load_tasks, task_column=TASK, label=TARGET, kind=self._kind)
        text, features = self.text_, rows.features if self.text_ is None else None
        if text is None and features is None:
            reading = read({"train": table})[0].reading
            if reading.inputs == "table":
                features = reading.columns
            else:
                text = reading.columns
            self._warn_of(reading.left_out)
        # All rows are learned from; as dev, which the engine asks for, they decide nothing.
        loaded = read({"train": table, "dev": table}, text=text, features=features)
        return TaskSet(
            tuple(
                replace(task, name=name, source=name)
                for name, task in zip(rows.places, loaded, strict=True)
            )
        )

    def _warn_of(self, left_out: Sequence[tuple[str, str]]) -> None:
        if left_out:
            words = ", ".join(f"`{name}` ({why})" for name, why in left_out[:10])
            warnings.warn(
                f"{type(self).__name__} does not learn from {words}. `text` names the column of text "
                "where another is meant; of an array every column is learned from.",
                TaskmixWarning,
                stacklevel=5,
            )

    def _rows_to_answer(self, X: Any, tasks: Any) -> TaskRows:
        check_is_fitted(self)
        if self._has_columns:
            table = frame_or_texts(X)
            if tasks is None:
                table, tasks = take_column(table, self.task_column_)
        else:
            values = validate_data(
                self, X, reset=False, ensure_all_finite="allow-nan", dtype=np.float64
            )
            table = self._array_as_table(values)
        if tasks is None and len(self.tasks_) > 1:
            raise OptionError(
                f"`tasks` should name the task of each row, among {', '.join(self.tasks_[:10])}. Found "
                "none, and more than one was learned."
            )
        # Where one task was learned, its name need not be said.
        rows = task_rows(table, np.full(len(table), self.tasks_[0]) if tasks is None else tasks)
        unseen = [name for name in rows.places if name not in self.model_.tasks]
        if unseen:
            warnings.warn(
                f"The tasks should be among {', '.join(self.tasks_[:10])}. Found "
                f"{', '.join(f'`{name}`' for name in unseen[:10])}, whose rows get the mean answer of "
                "all learned tasks.",
                TaskmixWarning,
                stacklevel=3,
            )
        return rows

    def _ask_others_about(self, tasks: list[str]) -> None:
        """These tasks, all of whose rows had one class, have nothing to tell classes apart by."""
        self._of_one_class = frozenset(tasks)
        if tasks:
            words = ", ".join(f"`{name}`" for name in tasks[:10])
            warnings.warn(
                f"The rows of a task should have two classes or more. Found one in {words}, whose rows "
                "get the mean answer of the other tasks.",
                TaskmixWarning,
                stacklevel=4,
            )

    def _shares_of_answer(self, name: str) -> dict[str, float]:
        """A learned task answers itself; for any other all do, weighed by their rows."""
        learned = [each for each in self.model_.tasks if each not in self._of_one_class]
        names = [name] if name in learned else learned
        count = sum(self._sizes[each] for each in names)
        return {each: self._sizes[each] / count for each in names}
