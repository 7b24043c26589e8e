"""Columns of dates, which are read as numbers: days since 1970-01-01, with the time as a fraction.

As words, dates would be a category with thousands of values, nearly all of which new rows do not have.
A column holds dates if its type says so, or if 95 of 100 cells are written in one of these ways, with a
time behind them or not: `2021-03-04`, `04.03.2021`, `3/4/2021`, `4 Mar 2021`, `Mar 4, 2021`. Before a
slash stands the month; where it cannot be one, the day does (`31/12/2020`), and such a column is left
out, since nothing would tell so in a single new row. Time zones are not counted. The first day is fixed:
rows that come later are read as those of training were.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from taskmix.tasks._columns._stack import StackedFiles, cell_family, cells_of, plain
from taskmix.tasks._formats._values import trimmed_cells

DATE_SHARE = 0.95  # of the cells: as for numbers, a few may say that there is no date
_GLANCED, _SAMPLED = 20, 100  # cells looked at first: a wide table has thousands of other columns
_SHAPE = re.compile(
    r"\s*(\d{4}[-/.]\d{1,2}[-/.]\d|\d{1,2}[-/.]\d{1,2}[-/.]\d{4}|\d{1,2}[- ][A-Za-z]{3,9}[- ,]+\d{4}"
    r"|[A-Za-z]{3,9}\.? \d{1,2},? \d{4})"
)
_TIME = (
    r"(?:[T ,]+(?P<H>\d{1,2}):(?P<M>\d{2})(?::(?P<S>\d{2})(?:[.,]\d+)?)?"
    r" ?(?P<half>[AaPp][Mm])?(?: ?(?:Z|UTC|GMT|[+-]\d{2}:?(?:\d{2})?))?)?$"
)
_YEAR_FIRST = r"^(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})" + _TIME
_DAY_FIRST = r"^(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})" + _TIME
_DAY_BEFORE_SLASH = r"^(?P<day>\d{1,2})[/-](?P<month>\d{1,2})[/-](?P<year>\d{4})" + _TIME
_MONTH_FIRST = r"^(?P<month>\d{1,2})[/-](?P<day>\d{1,2})[/-](?P<year>\d{4})" + _TIME
_NAMED_MONTH = r"^(?P<day>\d{1,2})[- ](?P<word>[A-Za-z]{3,9})[- ,]+(?P<year>\d{4})" + _TIME
_MONTH_NAMED_FIRST = r"^(?P<word>[A-Za-z]{3,9})\.? (?P<day>\d{1,2}),? (?P<year>\d{4})" + _TIME
DAY_BEFORE_SLASH = "day/month/year"
# The first that fits best: where both orders of day and month do, the month comes first.
_WAYS = {
    "year-month-day": _YEAR_FIRST,
    "month/day/year": _MONTH_FIRST,
    "day.month.year": _DAY_FIRST,
    DAY_BEFORE_SLASH: _DAY_BEFORE_SLASH,
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
    def can_be_told(self) -> bool:
        """Whether a single new row would be read in the same way."""
        return self.way != DAY_BEFORE_SLASH

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
    families = {cell_family(each.type) for each in columns}
    if not all(map(_may_hold_dates, columns)) or families == {"nothing"}:
        return None
    texts = [each for each in columns if cell_family(each.type) == "text" and len(each)]
    if texts and not _looks_like_dates(texts[0]):
        return None  # most columns of text end here
    columns = [
        trimmed_cells(each) if cell_family(each.type) == "text" else each for each in columns
    ]
    filled = sum(len(each) - each.null_count for each in columns)
    ways = _ways_of(trimmed_cells(texts[0]).drop_null()) if texts else ["a type of its own"]
    if stack.wanted:  # rows for a model, which has learned from no such column
        ways = [way for way in ways if way != DAY_BEFORE_SLASH]
    best: NDArray[np.float64] | None = None
    chosen = ""
    for way in ways:
        days = np.concatenate([_column_days(each, way) for each in columns])
        if best is None or np.isfinite(days).sum() > np.isfinite(best).sum():
            best, chosen = days, way
    if best is None:
        return None
    missing = ~np.isfinite(best)
    others = filled - int((~missing).sum())
    if not filled or others > (1 - DATE_SHARE) * filled:
        return None
    array = pa.array(np.where(missing, 0.0, best), pa.float64(), mask=missing)
    return DateColumn(pa.chunked_array([array]), chosen, others)


def _looks_like_dates(cells: pa.ChunkedArray) -> bool:
    """Whether some cells have the shape of one, by a look that costs next to nothing."""
    places = np.linspace(0, len(cells) - 1, min(len(cells), _GLANCED)).astype(int).tolist()
    found = [cell for place in places if (cell := cells[place].as_py()) and cell.strip()]
    return bool(found) and sum(map(bool, map(_SHAPE.match, found))) >= len(found) / 2


def _ways_of(cells: pa.ChunkedArray) -> list[str]:
    """The ways in which nearly all of a hundred cells are written."""
    if len(cells) > _SAMPLED:
        cells = cells.take(pa.array(np.linspace(0, len(cells) - 1, _SAMPLED).astype(np.int64)))
    least = DATE_SHARE * len(cells) - 1
    return [
        way
        for way, pattern in _WAYS.items()
        if len(cells) and np.isfinite(_days(cells, pattern)).sum() >= least
    ]


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
    return _days(column, _WAYS[way])


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
