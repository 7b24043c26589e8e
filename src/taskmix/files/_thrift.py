"""Thrift's compact protocol, in which Parquet says what it holds: numbers, structures and lists.

Arrow reads it too, but some footers that are none end the process in Arrow's own reading of columns.
Whatever is not as it should be is a `ValueError` or an `IndexError`, the latter where the data end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

DEEPEST = 16  # structures inside structures

Fields = dict[int, Any]  # by number; texts are left out


def structures_of(data: bytes, wanted: int) -> Iterator[Fields]:
    """The structures of the list that is a field of the structure at the beginning, one at a time."""
    place = number = 0
    while data[place]:
        number, kind, place = _field(data, place, number)
        if number == wanted and kind == 9:
            count, _, place = _list(data, place)
            for _ in range(count):
                fields, place = structure_at(data, place)
                yield fields
        else:
            _, place = _value(data, place, kind, 0)


def structure_at(data: bytes, place: int, depth: int = 0) -> tuple[Fields, int]:
    """The fields of a structure, and where it ends."""
    if depth > DEEPEST:
        raise ValueError("structures in structures")
    fields: Fields = {}
    number = 0
    while data[place]:
        number, kind, place = _field(data, place, number)
        fields[number], place = _value(data, place, kind, depth)
    return fields, place + 1


def _field(data: bytes, place: int, number: int) -> tuple[int, int, int]:
    step, kind = data[place] >> 4, data[place] & 15
    if step:
        return number + step, kind, place + 1
    number, place = _whole_number(data, place + 1)
    return number, kind, place


def _list(data: bytes, place: int) -> tuple[int, int, int]:
    count, kind = data[place] >> 4, data[place] & 15
    if count < 15:
        return count, kind, place + 1
    count, place = _unsigned(data, place + 1)
    return count, kind, place


def _value(data: bytes, place: int, kind: int, depth: int) -> tuple[Any, int]:
    match kind:
        case 5 | 6 | 4:
            return _whole_number(data, place)
        case 8:
            length, place = _unsigned(data, place)
            return None, place + length
        case 12:
            return structure_at(data, place, depth + 1)
        case 9 | 10:
            count, inner, place = _list(data, place)
            if count > len(data):
                raise ValueError("a list longer than the file")
            items = []
            for _ in range(count):
                if inner in (1, 2):  # true or false, a byte each in a list
                    place += 1
                    continue
                item, place = _value(data, place, inner, depth + 1)
                items.append(item)
            return items, place
        case 1 | 2:
            return kind == 1, place
        case 3:
            return data[place], place + 1
        case 7:
            return None, place + 8
    raise ValueError("a type that Parquet does not have")


def _whole_number(data: bytes, place: int) -> tuple[int, int]:
    value, place = _unsigned(data, place)
    return (value >> 1) ^ -(value & 1), place


def _unsigned(data: bytes, place: int) -> tuple[int, int]:
    byte = data[place]
    if byte < 128:
        return byte, place + 1
    value, shift = byte & 127, 7
    while True:
        place += 1
        byte = data[place]
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place + 1
        shift += 7
        if shift > 63:
            raise ValueError("a number without end")
