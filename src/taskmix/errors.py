"""The error tree.

A sentence says what should hold, what was found and what to do. `InputError` is the user's to mend
(exit code 2 on the command line); every other `TaskmixError` is a run or a record that failed (1).
"""

from __future__ import annotations

from pathlib import Path

__all__ = [
    "DivergedError",
    "InputError",
    "MissingExtraError",
    "OptionError",
    "RecordError",
    "RunError",
    "ShapeError",
    "TaskFileError",
    "TaskmixError",
    "TaskmixWarning",
    "printable",
]


_LONGEST = 2000  # characters of a sentence; names in it may come from a file, and be endless


def printable(words: str) -> str:
    """One line that a terminal shows as it is.

    Names come from files: a control character would break the line or steer the terminal, a bidi
    override show it in another order, and half of a surrogate pair cannot be printed at all.
    """
    if words.isprintable():
        return words
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in words)


class TaskmixError(Exception):
    """Everything taskmix raises on purpose.

    `arguments` are those words in backticks that name arguments of a call. The command line, where they
    are options, says these instead: a larger `budget` is a larger `--budget` there.
    """

    def __init__(self, *words: str, arguments: tuple[str, ...] = ()) -> None:
        super().__init__(*words)
        self.arguments = arguments

    def __str__(self) -> str:
        words = super().__str__()
        return printable(words if len(words) <= _LONGEST else f"{words[:_LONGEST]}...")


class InputError(TaskmixError):
    """What was given cannot be used; mend it and call again."""


class OptionError(InputError, ValueError):
    """An option has a value it cannot have."""


class ShapeError(InputError, ValueError):
    """Arrays that belong together do not fit together."""


class TaskFileError(InputError):
    """A task file cannot be read: the sentence names the file, the row and the remedy."""

    def __init__(self, sentence: str, *, path: Path | None = None, row: int | None = None) -> None:
        super().__init__(sentence)
        self.path = path
        self.row = row


class MissingExtraError(InputError, ImportError):
    """A package of an extra is not installed, or cannot be imported for some `reason`."""

    def __init__(self, package: str, extra: str, purpose: str, *, reason: str = "") -> None:
        found = f"cannot be imported ({reason})" if reason else "is not installed"
        super().__init__(
            f"{purpose} needs the package `{package}`, which {found}. "
            f"Install it with `pip install 'taskmix[{extra}]'`."
        )
        self.package = package
        self.extra = extra


class TaskmixWarning(UserWarning):
    """Something went another way than asked, at no loss; on the command line a note of one line."""


class RecordError(TaskmixError):
    """A record on disk cannot be written or read."""


class RunError(TaskmixError):
    """A run failed."""


class DivergedError(RunError):
    """A loss became NaN or infinite."""

    def __init__(self, *, step: int, task: str, loss: float, checkpoint: int | None) -> None:
        good = (
            f"The last good checkpoint is that of step {checkpoint}."
            if checkpoint is not None
            else "There is no checkpoint before it."
        )
        super().__init__(
            f"The loss of task `{task}` should be finite. Found {loss} at step {step}. {good} "
            "Lower the learning rate or clip the gradients, then run again."
        )
        self.step = step
        self.task = task
        self.loss = loss
        self.checkpoint = checkpoint
