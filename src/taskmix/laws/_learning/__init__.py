"""The way from a table to a law, for Python and for the command.

`LawRegressor` finds the law in scikit-learn's manners; `learn_laws` asks it everything the command does
and gives a document, which is written, read (`_document.py`) and shown (`_shown.py`) in one place.
"""

from taskmix.laws._learning._document import (
    LawsDocument,
    is_laws_document,
    read_laws,
    write_laws,
)
from taskmix.laws._learning._learn import LearnedLaws, learn_laws
from taskmix.laws._learning._picture import (
    FarEnd,
    LawCurve,
    LawLine,
    LawPicture,
    ObservedRow,
)
from taskmix.laws._learning._regressor import LawRegressor
from taskmix.laws._learning._shown import LawTable, describe_laws

__all__ = [
    "FarEnd",
    "LawCurve",
    "LawLine",
    "LawPicture",
    "LawRegressor",
    "LawTable",
    "LawsDocument",
    "LearnedLaws",
    "ObservedRow",
    "describe_laws",
    "is_laws_document",
    "learn_laws",
    "read_laws",
    "write_laws",
]
