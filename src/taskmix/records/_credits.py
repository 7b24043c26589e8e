"""What each dev row adds to a run's final scores: `scores/credits.safetensors` in the run's folder.

It is written before `run.json` says that the run is finished, and deleted by whoever takes the run up
again, so a finished run has its own or none.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.files import delete, make_folder
from taskmix.records._damage import DamageError
from taskmix.records._state import load_state, save_state

FOLDER = "scores"  # whose names are flushed before the end of a run is written
NAME = "credits.safetensors"
MOST = 200_000  # values; of so many rows a score is known well without


def write_credits(folder: Path, row_credits: Mapping[str, NDArray[Any]]) -> None:
    """Keeps the credits of each task, [metric or loss, row]; none where there are too many."""
    if 0 < sum(each.shape[-1] for each in row_credits.values()) <= MOST:
        make_folder(folder / FOLDER)
        save_state(
            folder / FOLDER / NAME,
            {task: _narrowed(each) for task, each in row_credits.items()},
            sync=False,
        )


def read_credits(folder: Path) -> dict[str, NDArray[np.float32]]:
    """Of each task, [metric or loss, row]; none where there is no such file."""
    path = folder / FOLDER / NAME
    if not path.exists():
        return {}
    try:
        found = load_state(path).items()
        # Runs of earlier versions have those of the metric alone, [row].
        return {str(task): np.atleast_2d(np.asarray(each, np.float32)) for task, each in found}
    except (DamageError, AttributeError, TypeError, ValueError) as error:
        raise DamageError(
            f"`{path}` should hold what each row adds to a run's scores. Found another or a broken "
            "file. Restore it from a copy, or delete it: the run reads as well without."
        ) from error


def forget_credits(folder: Path) -> None:
    delete(folder / FOLDER / NAME, is_ours=lambda path: path.name == NAME)


def _narrowed(values: NDArray[Any]) -> NDArray[Any]:
    """In half as many bytes where that changes nothing, as with rights and wrongs."""
    with np.errstate(over="ignore"):
        half = values.astype(np.float16)
    return half if np.array_equal(half, values, equal_nan=True) else values.astype(np.float32)
