"""One input to one reader: what came out, and what it left behind."""

from __future__ import annotations

import os
import random
import signal
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import numpy as np
from mutations import mutated
from readers import Reader

from taskmix.errors import TaskmixError
from taskmix.tasks import TaskSet

SENTENCE = 3000  # characters of an error at most


class HangError(BaseException):
    """Reading takes longer than its deadline; nothing catches this."""


@dataclass(frozen=True)
class Defect:
    """An input that a reader does not take as it should."""

    reader: str
    what: str  # the error and where it came from: one line for each defect
    data: bytes


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    def ring(number: int, frame: FrameType | None) -> None:
        raise HangError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def make_input(reader: Reader, chance: random.Random) -> bytes:
    data, _ = mutated(reader.seeds, chance, reader.words)
    if reader.refit is not None and chance.random() < 0.8:
        data = reader.refit(data)
    return data


Make = Callable[[Path], None]  # puts something odd at a path


def attempt(
    reader: Reader,
    folder: Path,
    data: bytes | Make,
    *,
    seconds: float = 20.0,
    told: Callable[[str], object] = str,  # gets the sentence of a refusal
) -> Defect | None:
    """Reads the file; anything but a result or our own error in a sentence is a defect."""
    path = folder / reader.file
    is_file = path.is_file() and not path.is_symlink()
    if isinstance(data, bytes) and is_file:
        path.write_bytes(data)
    else:
        _clear(path)
        path.write_bytes(data) if isinstance(data, bytes) else data(path)
    data = data if isinstance(data, bytes) else data.__name__.encode()
    before = _files(folder)
    try:
        with warnings.catch_warnings(), deadline(seconds):
            warnings.simplefilter("ignore")
            must_be_sound(reader.read(folder))
    except TaskmixError as error:
        told(str(error))
        if "\n" in str(error) or len(str(error)) > SENTENCE:
            return Defect(reader.name, f"no sentence: {str(error)[:60]!r}", data)
        left = {name for name in _files(folder) - before if not name.startswith("cache")}
        return Defect(reader.name, f"left {sorted(left)}", data) if left else None
    except HangError:
        return Defect(reader.name, f"longer than {seconds:g} s", data)
    except Exception as error:
        return Defect(reader.name, _place(error), data)
    return None


def must_be_sound(found: object) -> None:
    """What holds of all tasks, whatever the file was."""
    for task in found if isinstance(found, TaskSet) else ():
        for split in task.splits.values():
            assert len(split) > 0
            assert np.isfinite(split.targets).all()
            assert not task.labels or split.targets.max() < len(task.labels)


def _clear(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    path.unlink(missing_ok=True)


def _place(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "taskmix" in frame.filename] or frames
    where = f"{Path(ours[-1].filename).name}:{ours[-1].name}"
    return f"{type(error).__name__} from {where}: {str(error)[:60]!r}"


def _files(folder: Path) -> set[str]:
    return {
        str(Path(where, name).relative_to(folder))
        for where, _, names in os.walk(folder)
        for name in names
    }
