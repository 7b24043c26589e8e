"""Our own search for forms: first guesses by linear algebra, then larger and shorter ones around
them.

The loop is in `_search.py`. First guesses are products and sums under a change of scale
(`_starts.py`, `_monomials.py`, `_split.py`, `_field.py`), made of shapes of one variable (`_shapes.py`,
`_separable.py`); the best are extended (`_extend.py`) and simplified (`_simplify.py`,
`_rewrite.py`).
"""

from taskmix.laws._searching._pool import Describer
from taskmix.laws._searching._search import Loss, SearchOptions, search_laws

__all__ = ["Describer", "Loss", "SearchOptions", "search_laws"]
