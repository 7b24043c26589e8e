"""What only adds to an answer never costs it."""

from collections.abc import Callable
from typing import TypeVar

from taskmix.errors import RunError, TaskmixError

Made = TypeVar("Made")


def made_or_noted(what: str, make: Callable[[], Made], notes: list[str]) -> Made | None:
    """What `make` gives; None, with a note, where it fails."""
    try:
        return make()
    except RunError:  # a stop, or a run that has to be there
        raise
    except Exception as error:
        # The budget is spent: no mistake of ours may cost the answer as well.
        is_said = isinstance(error, TaskmixError)
        reason = error if is_said else f"it could not be made ({type(error).__name__}: {error})."
        notes.append(f"{what} was left out: {reason}")
        return None
