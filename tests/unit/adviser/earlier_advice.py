"""Advice of which `earlier_documents.json` has what was made of it before documents had types."""

from __future__ import annotations

from dataclasses import replace

from made_up_advice import made_up_advice

from taskmix.adviser._advice import Advice
from taskmix.adviser._history import History
from taskmix.numerics import Interval
from taskmix.plans import Evaluation, FittedLaw, Outlook
from taskmix.tasks import Finding

FIRST = {"uniform": [0.90, 0.91], "single": [0.80, 0.81]}
THEN = FIRST | {"size": [0.93, 0.94], "equal": [0.70, 0.71]}
LAST = THEN | {"size": [0.93, 0.94, 0.93], "uniform": [0.90, 0.91, 0.92]}
OUTLOOK = Outlook(
    candidate="size",
    words="Twice the batches.",
    evaluations=(Evaluation(seed=0, batches=100.0, score=0.85),),
    law=FittedLaw(
        formula="0.95 - 10/batches",
        explained=0.9,
        batches=400.0,
        more=800.0,
        before=0.925,
        gain=Interval(0.0125, float("nan"), float("nan"), 1, 0.9),
        predicted=0.02,
        observed=0.024,
        curve=((400.0, 0.925), (800.0, 0.9375)),
    ),
)


def finished() -> tuple[Advice, History]:
    """Three stages, two of them with a loser, and everything that a document can have."""
    history = History()
    for scores, spent in ((FIRST, 3000.0), (FIRST, 3000.0), (THEN, 6000.0), (LAST, 7500.0)):
        history.add(made_up_advice(scores, spent=spent))
    few = Finding(kind="few rows", tasks=("parity",), words="Task `parity` has few rows.")
    advice = made_up_advice(LAST, spent=7500.0)
    return replace(advice, notes=("A run failed.",), unlearned=("half",), findings=(few,)), history


def of_one_seed() -> tuple[Advice, History]:
    """No interval is known, and no stage but the first is over."""
    advice, history = made_up_advice({"uniform": [0.9], "single": [0.8]}), History()
    history.add(advice)
    return advice, history
