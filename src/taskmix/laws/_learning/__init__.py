"""The way from a table to a law, for Python and for the command.

`LawRegressor` finds the law in scikit-learn's manners.
"""

from taskmix.laws._learning._regressor import LawRegressor

__all__ = ["LawRegressor"]
