"""The census as tasks: one for each state, or one for each racial group, of the same rows.

    Ding, Hardt, Miller and Schmidt, "Retiring Adult: New Datasets for Fair Machine Learning",
    NeurIPS 2021: ACSIncome, whether a person earns more than 50,000 dollars a year, from ten answers.

Answers become features by the code book of the survey and not by what a sample holds, so the
features of a person do not depend on the states that a model is trained on. Occupations are the 26
families and places of birth the eight parts of the world that their codes are grouped by.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray

from taskmix.errors import InputError, OptionError
from taskmix.tasks import (
    DenseInputs,
    EncodedSplit,
    EncodedTask,
    EncodedTasks,
    KeptByTable,
    Split,
    Task,
    TaskSet,
    read_parquet,
)

ANSWERS = ("AGEP", "COW", "SCHL", "MAR", "OCCP", "POBP", "RELP", "WKHP", "SEX", "RAC1P")
GROUP = "RAC1P"
# Means and deviations of the three answers that count something, rounded.
NUMBERS = {"AGEP": (43.0, 15.0), "SCHL": (18.0, 4.0), "WKHP": (38.0, 13.0)}
CODES = {"COW": (1, 9), "SCHL": (1, 24), "MAR": (1, 5), "RELP": (0, 17), "RAC1P": (1, 9)}
CODES |= {"SEX": (1, 2)}
# The first code of each family of occupations (management to military, and none).
OCCUPATIONS: tuple[int, ...] = (0, 500, 800, 1000, 1300, 1600, 2000, 2100, 2200, 2600, 3000, 3600)
OCCUPATIONS += (3700, 4000, 4200, 4300, 4700, 5000, 6000, 6200, 6800, 7000, 7700, 9000, 9800, 9900)
# The United States, its islands, Europe, Asia, northern America, Latin America, Africa, Oceania.
BIRTHPLACES = (0, 60, 100, 200, 300, 303, 400, 500)
LABELS = ("0", "1")

_encoded: KeptByTable[DenseInputs] = KeptByTable()


@dataclass(frozen=True, kw_only=True)
class CensusEncoding:
    """Answers as numbers in standard units and indicators of codes."""

    def encode(self, tasks: TaskSet, *, cache: Path | None = None) -> EncodedTasks:
        """The tasks as tensors; a table that several runs have is encoded once, without `cache`."""
        encoded = tuple(
            EncodedTask(
                name=task.name,
                kind=task.kind,
                labels=task.labels,
                metric=task.metric,
                source=task.source,
                splits={
                    name: EncodedSplit(_inputs(split.inputs), torch.from_numpy(split.targets))
                    for name, split in task.splits.items()
                },
            )
            for task in tasks
        )
        return EncodedTasks(encoded, features=features_of(np.zeros((1, len(ANSWERS)))).shape[1])


def _inputs(table: pa.Table) -> DenseInputs:
    known = _encoded.get(table, "census")
    if known is not None:
        return known
    answers = np.stack([table.column(name).to_numpy() for name in ANSWERS], axis=1)
    return _encoded.put(table, "census", DenseInputs(torch.from_numpy(features_of(answers))))


def features_of(
    answers: NDArray[np.number],  # [person, answer], in the order of `ANSWERS`
) -> NDArray[np.float32]:
    """[person, feature]."""
    columns = dict(zip(ANSWERS, answers.T, strict=True))
    parts = [((columns[name] - mean) / scale)[:, None] for name, (mean, scale) in NUMBERS.items()]
    parts.append(parts[0] ** 2 - 1)  # earnings rise with age and fall again
    for name, (least, most) in CODES.items():
        places = np.clip(columns[name].astype(np.int64), least, most) - least
        parts.append(np.eye(most - least + 1)[places])
    for name, starts in (("OCCP", OCCUPATIONS), ("POBP", BIRTHPLACES)):
        places = np.searchsorted(starts, columns[name], side="right") - 1
        parts.append(np.eye(len(starts))[places])
    return np.concatenate(parts, axis=1).astype(np.float32)


@dataclass(frozen=True, kw_only=True)
class CensusSource:
    """People of some states, a few thousand of each, divided into train, dev and test rows."""

    path: str  # the Parquet file, or the folder it is in
    states: tuple[str, ...] | None = None  # all
    groups: Literal["state", "race"] = "state"  # what a task is
    rows: int = 3000  # to train on, of a state, at most
    dev_rows: int = 1000  # at most, and at most a fifth of the state
    test_rows: int = 10_000  # at most, and at most two fifths
    seed: int = 0  # of the division

    def __post_init__(self) -> None:
        if min(self.rows, self.dev_rows, self.test_rows) < 1:
            raise OptionError(
                "`rows`, `dev_rows` and `test_rows` should be 1 or more. Found "
                f"{self.rows}, {self.dev_rows} and {self.test_rows}."
            )

    def load(self) -> TaskSet:
        """The tasks, in alphabetical order; a race has the rows of all the states."""
        table = _read(Path(self.path))
        states = table.column("state").to_numpy(zero_copy_only=False).astype(str)
        known = sorted(set(states.tolist()))
        for state in self.states or ():
            if state not in known:
                raise InputError(
                    f"A state should be one of {', '.join(known)}. Found `{state}`. Name it as there."
                )
        chosen = [state for state in known if self.states is None or state in self.states]
        rows = {state: self._divide(np.flatnonzero(states == state), state) for state in chosen}
        if self.groups == "state":
            return TaskSet(tuple(_task(table, state, rows[state]) for state in chosen))
        race = table.column(GROUP).to_numpy()
        tasks = []
        for code in range(1, 10):
            parts = {
                split: np.concatenate([rows[state][split] for state in chosen])
                for split in ("train", "dev")
            }
            parts = {split: each[race[each] == code] for split, each in parts.items()}
            if len(parts["train"]):
                tasks.append(_task(table, f"race {code}", parts))
        return TaskSet(tuple(tasks))

    def _divide(self, rows: NDArray[np.int64], state: str) -> dict[str, NDArray[np.int64]]:
        if len(rows) < 5:
            raise InputError(f"A state should have 5 rows or more. Found {len(rows)} of `{state}`.")
        generator = np.random.default_rng([self.seed, *state.encode()])
        rows = generator.permutation(rows)
        dev = min(self.dev_rows, len(rows) // 5)
        test = min(self.test_rows, 2 * len(rows) // 5)
        train = rows[dev + test :][: self.rows]
        return {"train": train, "dev": rows[:dev], "test": rows[dev : dev + test]}


def _read(path: Path) -> pa.Table:
    if path.is_dir():
        files = sorted(path.glob("*.parquet"))
        if len(files) != 1:
            raise InputError(
                f"`{path}` should hold one Parquet file of ACSIncome. Found {len(files)}. Name the file."
            )
        path = files[0]
    wanted = ["state", *ANSWERS, "label"]
    return read_parquet(path, wanted)


def _task(table: pa.Table, name: str, rows: dict[str, NDArray[np.int64]]) -> Task:
    splits = {}
    for split, numbers in rows.items():
        part = table.take(pa.array(numbers))
        labels = part.column("label").to_numpy().astype(np.int64)
        splits[split] = Split(part.select(list(ANSWERS)), labels)
    return Task(
        name=name,
        kind="classification",
        inputs="table",
        labels=LABELS,
        metric="accuracy",
        source=name,
        splits=splits,
    )
