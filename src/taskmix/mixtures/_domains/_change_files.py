"""Changes of domains in a small file, TOML or JSON.

removals = ["spam"]
additions = ["law"]

[renames]
cc = "web"

[merges]
code = ["python", "c"]

[splits.books]
fiction = 0.25
essays = 0.75
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import fields
from pathlib import Path

from taskmix.errors import InputError
from taskmix.files import UnreadableError, read_plain
from taskmix.mixtures._domains._change import DomainChange
from taskmix.records import from_plain

SIZE_LIMIT = 1 << 20  # bytes; such a file is written by hand


def read_changes(path: Path | str) -> DomainChange:
    r"""The change that a file describes; its keys are the fields of `DomainChange`.

    >>> from pathlib import Path
    >>> _ = Path("changes.toml").write_text('[merges]\ncode = ["python", "c"]\n')
    >>> read_changes("changes.toml").merges
    {'code': ('python', 'c')}
    """
    path = Path(path)

    def bad(found: str) -> InputError:
        known = ", ".join(each.name for each in fields(DomainChange))
        return InputError(
            f"A file of changes should be TOML or JSON with {known}. Found {found} in `{path}`. "
            "docs/mixtures-domains.md has an example."
        )

    try:
        text = read_plain(path, limit=SIZE_LIMIT).decode()
        found = json.loads(text) if path.suffix.lower() == ".json" else tomllib.loads(text)
    except FileNotFoundError as error:
        raise bad("no file") from error
    except UnreadableError as error:
        raise bad(error.found) from error
    except (ValueError, RecursionError) as error:
        raise bad("something that cannot be read as such") from error
    if not isinstance(found, dict):
        raise bad("no table of changes")
    unknown = sorted(set(found) - {each.name for each in fields(DomainChange)})
    if unknown:
        raise bad(f"the key {unknown[0]!r}")
    try:
        return from_plain(DomainChange, found)
    except InputError as error:
        raise InputError(f"{error} It stands in `{path}`.") from error
    except TypeError as error:
        raise bad(f"another form ({error})") from error
