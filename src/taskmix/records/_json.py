"""Documents of a study: JSON that every reader takes, written whole, with a version."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from taskmix.errors import InputError
from taskmix.files import UnreadableError, make_folder, read_plain, write_bytes

Document = dict[str, Any]


def without_nan(value: Any) -> Any:
    """Plain values with null for NaN and the infinities, which JSON does not know.

    >>> without_nan({"score": float("nan"), "rows": (1, 2.5)})
    {'score': None, 'rows': [1, 2.5]}
    """
    if isinstance(value, dict):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def write_document(path: Path, document: Document) -> Path:
    r"""Writes a document into a study, whole or not at all.

    >>> from pathlib import Path
    >>> path = write_document(Path("advice.json"), {"version": 1, "score": 0.5})
    >>> path.read_text()
    '{\n "version": 1,\n "score": 0.5\n}\n'
    """
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)
    make_folder(path.parent)
    write_bytes(path, (text + "\n").encode())
    return path


def read_document(
    path: Path, *, version: int, command: str, check: Callable[[Document], None]
) -> Document | None:
    """What `command` wrote there; None where there is nothing.

    `check` touches every part that readers rely on: a KeyError or a TypeError means another form.

    >>> from pathlib import Path
    >>> path = write_document(Path("advice.json"), {"version": 1, "score": 0.5})
    >>> check = lambda document: must_have(document, "score")
    >>> read_document(path, version=1, command="taskmix advise", check=check)
    {'version': 1, 'score': 0.5}
    >>> read_document(path, version=2, command="taskmix advise", check=check)
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
        check(document)
    except (KeyError, TypeError, AttributeError) as error:
        raise bad(f"a part in another form ({error})") from error
    return document


def must_have(part: Document, *names: str) -> None:
    """Raises KeyError or TypeError where a part of a document lacks a name.

    >>> must_have({"score": 0.5}, "score", "seeds")
    Traceback (most recent call last):
    KeyError: 'seeds'
    """
    for name in names:
        part[name]
