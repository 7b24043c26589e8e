"""The way from a table of runs to the mixture to train on, for Python and for the command.

`learn_mixtures` asks the forecast everything and gives lessons: a plan, predictions, and a document that
is written, read (`_document.py`) and shown (`_shown.py`) in one place.
"""

from taskmix.mixtures._learning._document import (
    CarryRow,
    ComparedMixture,
    DomainRow,
    ForecastValue,
    FrontPoint,
    LawWeight,
    LeftOutMetric,
    MixtureFront,
    MixturesDocument,
    PredictedMixture,
    RunsToDo,
    RunToDo,
    is_mixtures_document,
    read_mixtures_document,
    write_mixtures,
)
from taskmix.mixtures._learning._learn import learn_mixtures
from taskmix.mixtures._learning._lessons import MixtureLessons
from taskmix.mixtures._learning._shown import MixtureLines, describe_mixtures

__all__ = [
    "CarryRow",
    "ComparedMixture",
    "DomainRow",
    "ForecastValue",
    "FrontPoint",
    "LawWeight",
    "LeftOutMetric",
    "MixtureFront",
    "MixtureLessons",
    "MixtureLines",
    "MixturesDocument",
    "PredictedMixture",
    "RunToDo",
    "RunsToDo",
    "describe_mixtures",
    "is_mixtures_document",
    "learn_mixtures",
    "read_mixtures_document",
    "write_mixtures",
]
