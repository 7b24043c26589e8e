"""Columns of dates, which are read as numbers: days since 1970-01-01, with the time as a fraction.

As words, dates would be a category with thousands of values, nearly all of which new rows do not have.
A column holds dates if its type says so, or if 95 of 100 cells are written in one of these ways, with a
time behind them or not: `2021-03-04`, `04.03.2021`, `3/4/2021`, `4 Mar 2021`, `Mar 4, 2021`. Of numbers
on both sides of a slash the first is the month, unless it is above 12 somewhere. Time zones are not
counted. The first day is fixed, so that rows which come later are read as those of training were.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from taskmix.tasks._columns._cells import cell_family, cells_of, plain
from taskmix.tasks._columns._stack import StackedFiles
from taskmix.tasks._formats import trimmed_cells

DATE_SHARE = 0.95  # of the cells: as for numbers, a few may say that there is no date
_SAMPLED = 100  # cells looked at first: most columns of text end there
_TIME = (
    r"(?:[T ,]+(?P<H>\d{1,2}):(?P<M>\d{2})(?::(?P<S>\d{2})(?:[.,]\d+)?)?"
    r" ?(?P<half>[AaPp][Mm])?(?: ?(?:Z|UTC|GMT|[+-]\d{2}:?(?:\d{2})?))?)?$"
)
_YEAR_FIRST = r"^(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})" + _TIME
_DAY_FIRST = r"^(?P<day>\d{1,2})[./-](?P<month>\d{1,2})[./-](?P<year>\d{4})" + _TIME
_MONTH_FIRST = r"^(?P<month>\d{1,2})[/-](?P<day>\d{1,2})[/-](?P<year>\d{4})" + _TIME
_NAMED_MONTH = r"^(?P<day>\d{1,2})[- ](?P<word>[A-Za-z]{3,9})[- ,]+(?P<year>\d{4})" + _TIME
_MONTH_NAMED_FIRST = r"^(?P<word>[A-Za-z]{3,9})\.? (?P<day>\d{1,2}),? (?P<year>\d{4})" + _TIME
# The first that fits best: where both orders of day and month do, the month comes first.
_WAYS = {
    "year-month-day": _YEAR_FIRST,
    "month/day/year": _MONTH_FIRST,
    "day.month.year": _DAY_FIRST,
    "day month year": _NAMED_MONTH,
    "month day, year": _MONTH_NAMED_FIRST,
}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


@dataclass(frozen=True, eq=False)
class DateColumn:
    """The dates of a column."""

    days: pa.ChunkedArray  # [row], float64; null where there is none
    way: str  # how they are written
    others: int  # cells that are no dates, and so count as missing

    @property
    def first(self) -> str:
        return _day(pc.min(self.days).as_py())

    @property
    def last(self) -> str:
        return _day(pc.max(self.days).as_py())


_known: WeakKeyDictionary[StackedFiles, dict[str, DateColumn | None]] = WeakKeyDictionary()


def dates_of(stack: StackedFiles, name: str) -> DateColumn | None:
    """The dates that a column holds; None where it holds something else."""
    known = _known.setdefault(stack, {})
    if name not in known:
        known[name] = None if stack.wanted.get(name) == "text" else _read(stack, name)
    return known[name]


def _read(stack: StackedFiles, name: str) -> DateColumn | None:
    columns = [plain(cells_of(part, name)) for part in stack.parts]
    texts = [each for each in columns if cell_family(each.type) == "text"]
    if not all(_may_hold_dates(each) for each in columns) or not any(map(len, columns)):
        return None
    way = "a type of its own"
    if texts:
        cells = trimmed_cells(pa.chunked_array([c for each in texts for c in each.chunks]))
        valid = cells.drop_null()
        if not len(valid):
            return None
        few = valid.take(pa.array(np.unique(np.linspace(0, len(valid) - 1, _SAMPLED).astype(int))))
        counts = {
            way: int(np.isfinite(_days(few, pattern)).sum()) for way, pattern in _WAYS.items()
        }
        if max(counts.values()) < DATE_SHARE * len(few) - 1:
            return None
        ways = [way for way, count in counts.items() if count >= DATE_SHARE * len(few) - 1]
        found = {way: int(np.isfinite(_days(valid, _WAYS[way])).sum()) for way in ways}
        way = max(found, key=lambda each: found[each])
        if found[way] < DATE_SHARE * len(valid):
            return None
    elif all(cell_family(each.type) == "nothing" for each in columns):
        return None
    parts = [_column_days(each, way) for each in columns]
    days = np.concatenate(parts)
    filled = sum(
        len(each) - (trimmed_cells(each) if cell_family(each.type) == "text" else each).null_count
        for each in columns
    )
    missing = ~np.isfinite(days)
    array = pa.array(np.where(missing, 0.0, days), pa.float64(), mask=missing)
    return DateColumn(pa.chunked_array([array]), way, filled - int((~missing).sum()))


def _may_hold_dates(column: pa.ChunkedArray) -> bool:
    kind = column.type
    return is_temporal(kind) or cell_family(kind) in ("text", "nothing")


def is_temporal(kind: pa.DataType) -> bool:
    """Whether cells of that type are dates."""
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def _column_days(column: pa.ChunkedArray, way: str) -> NDArray[np.float64]:
    if cell_family(column.type) == "nothing":
        return np.full(len(column), np.nan)
    if is_temporal(column.type):
        exact = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
        values = exact.cast(pa.float64(), safe=False).to_numpy()
        return np.asarray(values / 86_400e6, dtype=np.float64)
    return _days(trimmed_cells(column), _WAYS[way])


def _days(cells: Any, pattern: str) -> NDArray[np.float64]:
    """[cell], days since 1970; NaN where the cell is no date of that pattern."""
    found = pc.extract_regex(cells, pattern=pattern)
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    known = ~np.asarray(found.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)
    names = [found.type.field(place).name for place in range(found.type.num_fields)]

    def number(name: str) -> NDArray[np.int64]:
        words = found.field(name) if name in names else None
        if words is None:
            return np.zeros(len(found), dtype=np.int64)
        filled = pc.if_else(pc.equal(pc.fill_null(words, ""), ""), "0", words)
        return np.asarray(pc.fill_null(filled, "0").cast(pa.int64()).to_numpy())

    if "word" in names:
        short = pc.utf8_lower(pc.utf8_slice_codeunits(pc.fill_null(found.field("word"), ""), 0, 3))
        month = np.asarray(pc.fill_null(pc.index_in(short, pa.array(_MONTHS)), -1).to_numpy()) + 1
    else:
        month = number("month")
    year, day, hour = number("year"), number("day"), number("H")
    half = pc.utf8_lower(pc.fill_null(found.field("half"), ""))
    is_pm = np.asarray(pc.equal(half, "pm").to_numpy(zero_copy_only=False))
    is_am = np.asarray(pc.equal(half, "am").to_numpy(zero_copy_only=False))
    hour = np.where(is_pm & (hour < 12), hour + 12, np.where(is_am & (hour == 12), 0, hour))
    right = known & (month >= 1) & (month <= 12) & (day >= 1) & (hour < 24)
    months = (12 * (year - 1970) + np.where(right, month, 1) - 1).astype("datetime64[M]")
    dates = months.astype("datetime64[D]") + (day - 1)
    right &= dates.astype("datetime64[M]") == months  # there is no 31st of June
    seconds = 3600 * hour + 60 * number("M") + number("S")
    return np.where(right, dates.astype(np.int64) + seconds / 86_400, np.nan)


def _day(days: float | None) -> str:
    return "" if days is None else str(np.datetime64(int(np.floor(days)), "D"))
