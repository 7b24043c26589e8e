"""A folder of runs, each named by the hash of what determines it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa

from taskmix._html import html_table
from taskmix.errors import RecordError, TaskmixWarning
from taskmix.files import read_plain, unreadable
from taskmix.records._labels import read_labels
from taskmix.records._run import RunFolder
from taskmix.records._specification import specification_hash
from taskmix.records._subject import Subject
from taskmix.records._summary import (
    NAME,
    FinalScores,
    RunSummary,
    parse_final_scores,
    parse_summary,
    with_labels,
)

STUDY_SCORES = pa.schema(
    [
        ("run", pa.string()),
        ("label", pa.string()),
        ("seed", pa.int64()),
        ("task", pa.string()),
        ("split", pa.string()),
        ("metric", pa.string()),
        ("value", pa.float64()),
        ("step", pa.int64()),  # the best one where there is one, else the last
    ]
)
THREADS = 8
BLOCK = 64  # files a thread reads before it hands them over

Parsed = TypeVar("Parsed")


def warn(sentence: str) -> None:
    """Says of a run that cannot be read why."""
    warnings.warn(sentence, TaskmixWarning, stacklevel=3)


class Study:
    """Runs that any number of processes may add to; nothing is created before a run is claimed.

    With `lean` what is written of a finished run is its `run.json`, with the final scores: no steps
    and no weights. It is for grids of thousands of runs of which only the scores are asked. With a
    `subject` the study is about those tasks alone: `settle` writes it down before the first run.

    >>> study = Study("study")
    >>> with study.run({"rate": 0.1}).claim() as claim:
    ...     claim.writer.start(
    ...         specification={"rate": 0.1}, seed=7, label="fast", tasks=[{"name": "a"}], steps=1
    ...     )
    ...     claim.writer.finish(scores=[("a", "dev", "f1", 0.5)], best_step=None)
    >>> study.scores().select(["label", "seed", "task", "value"]).to_pylist()
    [{'label': 'fast', 'seed': 7, 'task': 'a', 'value': 0.5}]
    """

    def __init__(
        self,
        path: str | Path,
        *,
        lean: bool = False,
        subject: Subject | None = None,
    ) -> None:
        self.path = Path(path)
        self.lean = lean
        self._subject = subject
        if subject is not None:
            subject.check(self.path)

    def __repr__(self) -> str:
        return f"Study({str(self.path)!r})"

    def _repr_html_(self) -> str:
        """For notebooks: how many runs there are under each label, and the last of their scores."""
        counts: dict[str, dict[str, int]] = {}
        for summary in self.summaries(note=lambda sentence: None):
            each = counts.setdefault(summary.label or "", {"runs": 0, "finished": 0})
            each["runs"] += 1
            each["finished"] += summary.status == "finished"
        rows = [{"label": label, **each} for label, each in counts.items()]
        return html_table(rows, caption=f"{self!r}: {sum(r['runs'] for r in counts.values())} runs")

    def settle(self) -> None:
        """Writes down which tasks the study is about, if it is to be about some alone."""
        if self._subject is not None:
            self._subject.settle(self.path)
            self._subject = None

    def run(self, specification: Mapping[str, object], *, label: str | None = None) -> RunFolder:
        """The folder of the run with this specification, whether it is there yet or not.

        A label is what the run is asked for under: it determines nothing, and who claims the run adds
        it to those the run has.
        """
        return self.run_named(specification_hash(specification), label=label)

    def run_named(self, name: str, *, label: str | None = None) -> RunFolder:
        """The folder of that name: the hash of a run's specification."""
        return RunFolder(self.path / name, lean=self.lean, label=label)

    def runs(self) -> Iterator[RunFolder]:
        """The runs that have been started, by name. Links and whatever else lies there are not."""
        for name in self._names():
            if (self.path / name / NAME).is_file():
                yield RunFolder(self.path / name)

    def summaries(self, *, note: Callable[[str], object] = warn) -> list[RunSummary]:
        """All runs as their `run.json` have them; one that cannot be read is told to `note`.

        A run of several labels is one of them; `under_each_label` gives it once for each.
        """

        def parse(data: bytes, path: Path) -> RunSummary:
            return with_labels(parse_summary(data, path), read_labels(path.parent, note=note))

        found: list[RunSummary] = []
        for summary in self._parsed(parse, note):
            last = found[-1] if found else summary
            if summary.tasks == last.tasks and summary.versions == last.versions:
                # As a rule all runs of a study are alike in these, which take the most memory.
                summary = replace(summary, tasks=last.tasks, versions=last.versions)
            found.append(summary)
        return found

    def scores(self, *, note: Callable[[str], object] = warn) -> pa.Table:
        """The final scores of all finished runs, one row each for each label of its run."""

        def parse(data: bytes, path: Path) -> list[FinalScores]:
            found = parse_final_scores(data, path)
            if found is None:
                return []
            others = [each for each in read_labels(path.parent, note=note) if each != found.label]
            return [found, *(found._replace(label=label) for label in others)]

        runs = list(chain.from_iterable(self._parsed(parse, note)))
        rows = np.repeat(np.arange(len(runs)), [len(run.values) for run in runs])

        def repeated(values: Iterable[object], kind: pa.DataType) -> pa.Array:
            return pa.array(values, kind).take(pa.array(rows, pa.int64()))

        def joined(columns: Iterable[Iterable[object]], kind: pa.DataType) -> pa.Array:
            return pa.array(list(chain.from_iterable(columns)), kind)

        columns = [
            repeated((run.run for run in runs), pa.string()),
            repeated((run.label for run in runs), pa.string()),
            repeated((run.seed for run in runs), pa.int64()),
            joined((run.tasks for run in runs), pa.string()),
            joined((run.splits for run in runs), pa.string()),
            joined((run.metrics for run in runs), pa.string()),
            joined((run.values for run in runs), pa.float64()),
            repeated((run.step for run in runs), pa.int64()),
        ]
        return pa.Table.from_arrays(columns, schema=STUDY_SCORES)

    def _parsed(
        self, parse: Callable[[bytes, Path], Parsed], note: Callable[[str], object]
    ) -> Iterator[Parsed]:
        """Every `run.json`, parsed. Threads read ahead: on a far disk that is where time goes."""
        names = self._names()
        blocks = [names[first : first + BLOCK] for first in range(0, len(names), BLOCK)]
        with ThreadPoolExecutor(THREADS) as pool:
            for block in pool.map(self._read, blocks):
                for path, data in block:
                    try:
                        if isinstance(data, RecordError):
                            raise data
                        yield parse(data, path)
                    except RecordError as error:  # the others are as good as they were
                        note(str(error))

    def _read(self, names: Sequence[str]) -> list[tuple[Path, bytes | RecordError]]:
        found: list[tuple[Path, bytes | RecordError]] = []
        for name in names:
            path = self.path / name / NAME
            try:
                found.append((path, read_plain(path)))
            except FileNotFoundError:
                continue  # no run, or not yet
            except RecordError as error:
                found.append((path, error))
        return found

    def _names(self) -> list[str]:
        try:
            with os.scandir(self.path) as entries:
                folders = (entry for entry in entries if entry.is_dir(follow_symlinks=False))
                return sorted(entry.name for entry in folders if not entry.name.startswith("."))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise unreadable(error, self.path) from error
