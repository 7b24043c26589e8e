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
    """Plain values with null for NaN and the infinities, which JSON does not know."""
    if isinstance(value, dict):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def write_document(path: Path, document: Document) -> Path:
    """Writes a document into a study, whole or not at all."""
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)
    make_folder(path.parent)
    write_bytes(path, (text + "\n").encode())
    return path


def read_document(
    path: Path, *, version: int, command: str, check: Callable[[Document], None]
) -> Document | None:
    """What `command` wrote there; None where there is nothing.

    `check` touches every part that readers rely on: a KeyError or a TypeError means another form.
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
    """Raises KeyError or TypeError where a part of a document lacks a name."""
    for name in names:
        part[name]
