"""Which column of a table holds the text, where none is called `text`.

A column holds sentences if its cells have several words (four on average) and at least half of them
differ, of ten or more. Under a usual name, `Review` or `body`, two words and a third will do. Categories
are shorter or come again and again: `Married-civ-spouse`, `some college, no degree`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from taskmix.tasks._columns._cells import cell_family
from taskmix.tasks._columns._stack import StackedFiles

_TEXT_NAMES = frozenset(
    {
        "text",
        "texts",
        "review",
        "reviews",
        "sentence",
        "sentences",
        "body",
        "comment",
        "comments",
        "content",
        "message",
        "document",
        "utterance",
        "tweet",
        "post",
        "article",
        "abstract",
        "passage",
        "paragraph",
        "question",
        "query",
        "premise",
        "hypothesis",
        "prompt",
        "description",
    }
)
_PAIRS = (
    ("premise", "hypothesis"),
    ("question", "sentence"),
    ("question", "passage"),
    ("question", "context"),
    ("question", "answer"),
    ("query", "document"),
    ("query", "passage"),
)
_NUMBERED = re.compile(r"(.+?)[_\s.-]?(1|2|a|b)", re.IGNORECASE)
_CELLS_SAMPLED = 2000  # whose words are counted, evenly over the rows
# With fewer words in the mean, names of places or products would pass for sentences.
_MEAN_WORDS, _MEAN_WORDS_IF_NAMED = 4.0, 2.0
# A smaller share of different cells is a category whose names are long.
_DISTINCT_SHARE, _DISTINCT_SHARE_IF_NAMED = 0.5, 1 / 3
_LEAST_DISTINCT = 10  # cells, where the name does not help: a few rows differ by chance


def holds_sentences(stack: StackedFiles, name: str) -> bool:
    """Whether the cells of a column are texts, and not one of several categories."""
    if cell_family(stack.parts[0].table.column(name).type) not in ("text", "nothing"):
        return False
    cells = stack.column(name)
    if cell_family(cells.type) != "text":
        return False
    is_named = (
        name.strip().lower() in _TEXT_NAMES or _NUMBERED.sub(r"\1", name.lower()) in _TEXT_NAMES
    )
    places = np.unique(np.linspace(0, len(cells) - 1, _CELLS_SAMPLED).astype(np.int64))
    words = pc.utf8_split_whitespace(pc.utf8_trim_whitespace(cells.take(pa.array(places))))
    lengths = pc.list_value_length(words).drop_null().to_numpy()
    if not len(lengths) or lengths.mean() < (_MEAN_WORDS_IF_NAMED if is_named else _MEAN_WORDS):
        return False  # most columns end here, before all cells are compared
    distinct = pc.count_distinct(cells, mode="only_valid").as_py()
    share = distinct / max(len(cells) - cells.null_count, 1)
    if is_named:
        return bool(share >= _DISTINCT_SHARE_IF_NAMED)
    return bool(share >= _DISTINCT_SHARE and distinct >= _LEAST_DISTINCT)


def as_pair(names: Sequence[str]) -> tuple[str, str] | None:
    """Two columns in their order, if they are called as pairs usually are."""
    if len(names) != 2:
        return None
    first, second = names
    known = {name.strip().lower(): name for name in names}
    for one, other in _PAIRS:
        if one in known and other in known:
            return known[one], known[other]
    stems = [_NUMBERED.fullmatch(name) for name in (first, second)]
    if stems[0] and stems[1] and stems[0][1].lower() == stems[1][1].lower():
        return (first, second) if stems[0][2].lower() < stems[1][2].lower() else (second, first)
    return None
