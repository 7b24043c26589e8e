"""Documents of a study: JSON that every reader takes, written whole, with a version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeVar

from taskmix.errors import InputError, TaskmixError
from taskmix.files import UnreadableError, make_folder, read_plain, write_bytes
from taskmix.records._typed import from_plain, to_plain

T = TypeVar("T")


def write_document(path: Path, document: object) -> Path:
    r"""Writes a dataclass into a study as JSON, whole or not at all.

    >>> from pathlib import Path
    >>> from taskmix.numerics import Interval
    >>> path = write_document(Path("gain.json"), Interval(0.5, 0.25, 0.75, 3))
    >>> path.read_text()
    '{\n "mean": 0.5,\n "low": 0.25,\n "high": 0.75,\n "n": 3,\n "level": 0.95\n}\n'
    """
    text = json.dumps(to_plain(document), indent=1, ensure_ascii=False, allow_nan=False)
    make_folder(path.parent)
    write_bytes(path, (text + "\n").encode())
    return path


def read_document(path: Path, kind: type[T], *, version: int, command: str) -> T | None:
    """The dataclass that `command` wrote there; None where there is nothing.

    The file says in `version` what its form is.

    >>> from pathlib import Path
    >>> from taskmix.numerics import Interval
    >>> _ = Path("gain.json").write_text('{"version": 1, "mean": 0.5, "low": 0, "high": 1, "n": 3}')
    >>> read_document(Path("gain.json"), Interval, version=1, command="taskmix advise")
    Interval(mean=0.5, low=0.0, high=1.0, n=3, level=0.95)
    >>> read_document(Path("gain.json"), Interval, version=2, command="taskmix advise")
    Traceback (most recent call last):
    taskmix.errors.InputError: ... Found another kind or version. ...
    """

    def bad(found: str) -> InputError:
        return InputError(
            f"`{path}` should be a JSON file of version {version} that `{command}` wrote. "
            f"Found {found}. Run the command again; it trains nothing twice."
        )

    try:
        document = json.loads(read_plain(path))
    except FileNotFoundError:
        return None
    except UnreadableError as error:
        raise bad(error.found) from error
    except (ValueError, RecursionError) as error:
        raise bad("something that is no JSON") from error
    if not isinstance(document, dict) or document.get("version") != version:
        raise bad("another kind or version")
    try:
        return from_plain(kind, document)
    except (TypeError, TaskmixError) as error:  # the second where a class checks its own fields
        raise bad(f"a part in another form ({error})") from error
