"""Frozen dataclasses as JSON and back, by the types of their fields.

What commands write beside runs (`advice.json`, `transfer.json`, ...) are such documents: one class says
what is in the file, and whoever reads it gets that class, or a sentence about what is wrong.
"""

from __future__ import annotations

import math
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


def to_plain(value: Any) -> Any:
    """A dataclass as dictionaries, lists and plain values; numbers that are not finite are null.

    >>> from taskmix.numerics import Interval
    >>> to_plain(Interval(0.5, 0.25, float("nan"), 3))
    {'mean': 0.5, 'low': 0.25, 'high': None, 'n': 3}
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: to_plain(getattr(value, each.name)) for each in fields(value)}
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
    >>> from_plain(Interval, {"mean": 0.5, "low": 0.25, "high": 0.75, "n": 3})
    Interval(mean=0.5, low=0.25, high=0.75, n=3)
    """
    read: T = _read(kind, value, kind.__name__)
    return read


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
    if origin in (dict, Mapping):
        entries = _expect(value, dict, where)
        return {key: _read(inside[1], each, f"{where}.{key}") for key, each in entries.items()}
    if origin is Literal:
        if value not in inside:
            raise TypeError(f"{where} should be one of {inside}, and is {value!r}")
        return value
    if kind is float:
        number = math.nan if value is None else _expect(value, (int, float), where)
        if isinstance(number, bool):
            raise TypeError(f"{where} should be a number, and is {value!r}")
        return float(number)
    if kind is int and isinstance(value, bool):
        raise TypeError(f"{where} should be a whole number, and is {value!r}")
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
    if value is None and type(None) in kinds:
        return None
    reasons = []
    for kind in kinds:
        if kind is not type(None):
            try:
                return _read(kind, value, where)
            except TypeError as error:
                reasons.append(str(error))
    raise TypeError(reasons[0])


def _expect(value: Any, kind: Any, where: str) -> Any:
    if not isinstance(value, kind):
        name = getattr(kind, "__name__", "number")
        words = {"dict": "an object", "list": "a list", "str": "words", "int": "a whole number"}
        raise TypeError(f"{where} should be {words.get(name, name)}, and is {value!r:.60}")
    return value


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)
