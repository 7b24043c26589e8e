"""A folder of runs, each named by the hash of what determines it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa

from taskmix.errors import RecordError
from taskmix.records._atomic import unreadable
from taskmix.records._run import RunFolder
from taskmix.records._specification import specification_hash
from taskmix.records._summary import NAME, RunSummary

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
THREADS = 8  # they wait for the disk more than they compute


class Study:
    """Runs that any number of processes may add to; nothing is created before a run is claimed."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def __repr__(self) -> str:
        return f"Study({str(self.path)!r})"

    def run(self, specification: Mapping[str, object]) -> RunFolder:
        """The folder of the run with this specification, whether it is there yet or not."""
        return RunFolder(self.path / specification_hash(specification))

    def runs(self) -> Iterator[RunFolder]:
        """The runs that have been started, by name. Links and whatever else lies there are not."""
        for name in self._names():
            if (self.path / name / NAME).is_file():
                yield RunFolder(self.path / name)

    def summaries(self, *, note: Callable[[str], object] = warnings.warn) -> list[RunSummary]:
        """All runs as their `run.json` have them; one that cannot be read is told to `note`."""

        def read(name: str) -> RunSummary | RecordError | None:
            try:
                return RunFolder(self.path / name).summary()
            except RecordError as error:
                return error

        found: list[RunSummary] = []
        with ThreadPoolExecutor(THREADS) as pool:
            for summary in pool.map(read, self._names()):
                if isinstance(summary, RecordError):
                    note(str(summary))
                elif summary is not None:
                    found.append(summary)
        return found

    def scores(self, *, note: Callable[[str], object] = warnings.warn) -> pa.Table:
        """The final scores of all finished runs, one row each."""
        rows = [
            (run.name, run.label, run.seed, *score, run.step if best is None else best)
            for run in self.summaries(note=note)
            if run.status == "finished"
            for best in (run.best_step,)
            for score in run.scores
        ]
        columns = list(zip(*rows, strict=True)) or [()] * len(STUDY_SCORES)
        arrays = [pa.array(c, kind) for c, kind in zip(columns, STUDY_SCORES.types, strict=True)]
        return pa.Table.from_arrays(arrays, schema=STUDY_SCORES)

    def _names(self) -> list[str]:
        try:
            with os.scandir(self.path) as entries:
                folders = (entry for entry in entries if entry.is_dir(follow_symlinks=False))
                return sorted(entry.name for entry in folders if not entry.name.startswith("."))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise unreadable(error, self.path) from error
