"""Cheaper models of the same kind, on which candidates are tried first.

| rung | instead of | where |
|---|---|---|
| frozen features | adapters, all weights | texts and pairs: vectors are read once, heads train on them |
| adapters | all weights | a GPU, on which many are trained at once |
| short texts | the whole length | words and texts to write, which have no vectors |

A rung only says which candidates the model itself tries; how good those are, its own runs say.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from taskmix.engine import Run
from taskmix.models import Transformer
from taskmix.plans import with_tuning
from taskmix.tasks import TaskSet

SHORTER = 4  # times: what attention costs falls at least as much
SHORTEST = 16  # pieces of a text
# In batches of the model, where nothing is measured: a budget of steps counts a rung's batch as this.
COUNTED = {"frozen features": 0.02, "adapters": 0.5, "short texts": 0.25}


@dataclass(frozen=True, kw_only=True)
class CheaperModel:
    """A rung below the model itself."""

    name: str
    template: Run

    @property
    def counted(self) -> float:
        return COUNTED[self.name]


def rung_below(template: Run, tasks: TaskSet) -> CheaperModel | None:
    """The cheapest there is; None for a model from scratch, and below frozen features.

    >>> from taskmix.engine import DigitsSource, Run
    >>> from taskmix.models import Perceptron
    >>> run = Run(label="", source=DigitsSource(), architecture=Perceptron(), steps=1, seed=0)
    >>> rung_below(run, run.load()) is None
    True
    """
    architecture = template.architecture
    if not isinstance(architecture, Transformer):
        return None
    readable = {task.inputs for task in tasks} <= {"text", "pair"}
    if readable and architecture.adapters.start is None:
        return CheaperModel(name="frozen features", template=with_tuning(template, "heads"))
    if architecture.max_length >= SHORTER * SHORTEST:
        short = replace(architecture, max_length=architecture.max_length // SHORTER)
        return CheaperModel(name="short texts", template=replace(template, architecture=short))
    if architecture.tune == "all" and template.device.startswith("cuda"):
        return CheaperModel(name="adapters", template=with_tuning(template, "adapters"))
    return None
