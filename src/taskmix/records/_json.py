"""Documents of a study: JSON that every reader takes, written whole, with a version.

What commands write beside runs (`advice.json`, `transfer.json`, ...) are frozen dataclasses, made JSON
and back by the types of their fields: one class says what is in the file, and whoever reads it gets that
class, or a sentence about what is wrong.
"""

from __future__ import annotations

import json
import math
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from taskmix.errors import InputError, TaskmixError
from taskmix.files import UnreadableError, make_folder, read_plain, write_bytes

T = TypeVar("T")

# `field(default=None, metadata=LEFT_OUT_IF_NONE)`: JSON lacks the entry where there is nothing to say.
LEFT_OUT_IF_NONE: Mapping[str, bool] = types.MappingProxyType({"taskmix: left out if none": True})

LARGEST = 2**64  # of a whole number, as of seeds: whoever divides or draws it needs no care then


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


def to_plain(value: Any) -> Any:
    """Dictionaries, lists and plain values for JSON; numbers that are not finite are null.

    >>> from taskmix.numerics import Interval
    >>> to_plain({"gain": Interval(0.5, 0.25, float("nan"), 3), "tasks": ("a", "b")})
    {'gain': {'mean': 0.5, 'low': 0.25, 'high': None, 'n': 3, 'level': 0.95}, 'tasks': ['a', 'b']}
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {
            each.name: to_plain(part)
            for each in fields(value)
            if (part := getattr(value, each.name)) is not None or each.metadata != LEFT_OUT_IF_NONE
        }
    if isinstance(value, Mapping):
        return {str(key): to_plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def from_plain(kind: type[T], value: Any) -> T:
    """A dataclass from what `to_plain` gave; raises `TypeError` that says where something else is.

    Entries that the class does not know are left out, so that files of later versions can be read.
    A number that was not finite comes back as NaN.

    >>> from taskmix.numerics import Interval
    >>> from_plain(Interval, {"mean": 0.5, "low": 0.25, "high": None, "n": 3})
    Interval(mean=0.5, low=0.25, high=nan, n=3, level=0.95)
    >>> from_plain(Interval, {"mean": 0.5, "low": "a little", "high": None, "n": 3})
    Traceback (most recent call last):
    TypeError: Interval.low should be a number, and is 'a little'
    """
    read: T = _read(kind, value, kind.__name__)
    return read


def parse_whole_number(digits: str) -> int:
    """As `parse_int` of `json.loads`: refuses what would overflow where it meets a float.

    >>> parse_whole_number("9" * 400)
    Traceback (most recent call last):
    ValueError: a number of 400 digits
    """
    if len(digits) > len(str(LARGEST)):
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


def _read(kind: Any, value: Any, where: str) -> Any:
    origin, inside = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if is_dataclass(kind):
        return _read_fields(kind, value, where)
    if origin in (Union, types.UnionType):
        return _read_union(inside, value, where)
    if origin is tuple:
        items = _expect(value, list, where)
        each = inside[:1] * len(items) if inside[1:] == (...,) else inside
        if len(each) != len(items):
            raise TypeError(f"{where} should have {len(each)} entries, and has {len(items)}")
        pairs = enumerate(zip(each, items, strict=True))
        return tuple(_read(k, v, f"{where}[{n}]") for n, (k, v) in pairs)
    if origin is Mapping:
        entries = _expect(value, dict, where)
        return {key: _read(inside[1], each, f"{where}.{key}") for key, each in entries.items()}
    if origin is Literal:
        if not isinstance(value, str) or value not in inside:
            raise _other(where, f"one of {', '.join(map(str, inside))}", value)
        return value
    if kind is float:
        return _read_number(value, where)
    if kind is int and isinstance(value, int) and abs(value) > LARGEST:
        raise TypeError(f"{where} should be a whole number of at most {LARGEST}, and is larger")
    return _expect(value, kind, where)


def _read_fields(kind: Any, value: Any, where: str) -> Any:
    entries, hints = _expect(value, dict, where), _hints(kind)
    given = {}
    for each in fields(kind):
        if each.name in entries:
            given[each.name] = _read(hints[each.name], entries[each.name], f"{where}.{each.name}")
        elif each.default is MISSING and each.default_factory is MISSING:
            raise TypeError(f"{where} should have `{each.name}`")
    return kind(**given)


def _read_union(kinds: tuple[Any, ...], value: Any, where: str) -> Any:
    """`X | None`: the only union that JSON can tell apart without a name in it."""
    if value is None:
        return None
    (kind,) = (each for each in kinds if each is not type(None))
    return _read(kind, value, where)


def _read_number(value: Any, where: str) -> float:
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _other(where, "a number", value)
    try:
        number = float(value)
    except OverflowError:  # hundreds of digits
        return math.nan
    return number if math.isfinite(number) else math.nan


_WORDS = {
    dict: "an object",
    list: "a list",
    str: "words",
    int: "a whole number",
    bool: "true or false",
}


def _expect(value: Any, kind: Any, where: str) -> Any:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise _other(where, _WORDS[kind], value)
    return value


def _other(where: str, expected: str, value: Any) -> TypeError:
    found = _WORDS[type(value)] if isinstance(value, dict | list) else repr(value)
    return TypeError(f"{where} should be {expected}, and is {found:.60}")


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)
