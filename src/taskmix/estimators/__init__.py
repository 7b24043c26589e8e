"""One shared model with the manners of scikit-learn: `fit`, `predict`, `score`, also in pipelines."""

from taskmix.estimators._classifier import MultitaskClassifier
from taskmix.estimators._regressor import MultitaskRegressor

__all__ = ["MultitaskClassifier", "MultitaskRegressor"]
