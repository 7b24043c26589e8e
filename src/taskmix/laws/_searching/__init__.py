"""Our own search for forms: first guesses by linear algebra, then larger and shorter ones around
them.

The loop is in `_search.py`. First guesses are products and sums under a change of scale
(`_starts.py`, `_monomials.py`, `_split.py`, `_field.py`), made of shapes of one variable (`_shapes.py`,
`_separable.py`); the best are extended (`_extend.py`) and simplified (`_simplify.py`,
`_rewrite.py`). Rows of several groups are brought to one level first (`_group_levels.py`).
"""

from taskmix.laws._searching._group_levels import (
    LevelledRows,
    have_own_curves,
    level_groups,
)
from taskmix.laws._searching._pool import Describer
from taskmix.laws._searching._search import Loss, SearchOptions, search_laws

__all__ = [
    "Describer",
    "LevelledRows",
    "Loss",
    "SearchOptions",
    "have_own_curves",
    "level_groups",
    "search_laws",
]
